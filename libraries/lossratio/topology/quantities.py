"""Types of fields in topology files: quantities with units, names, and the strictness that all models share.

Names become words of commands and parts of paths on nodes. None begins with ``-``, as options do.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from lossratio.values import (
    WITH_UNIT,
    FileDuration,
    FileShare,
    Like,
    parse_bit_rate,
    parse_frame_rate,
)

ONE_OR_SEVERAL = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
"""The schema of a field that takes a text, or a list of texts."""


def as_tuple(value: Any) -> Any:
    """The value of such a field as a tuple."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,)


_LEAST_SPEED = 1e6


def _with_unit(rate: float) -> float:
    if rate < _LEAST_SPEED:
        raise ValueError(f"{rate:g} bit/s is too slow for a link: write the unit, as in '25 Gbps'")
    return rate


BitRate = Annotated[float, AfterValidator(_with_unit), BeforeValidator(parse_bit_rate), WITH_UNIT]


FrameRate = Annotated[float, BeforeValidator(parse_frame_rate), WITH_UNIT]
Duration = FileDuration
Share = FileShare


TcpPort = Annotated[int, Field(ge=1, le=65_535)]
"""A TCP port."""
Mtu = Annotated[int, Field(ge=68, le=65_535)]
"""An MTU, in bytes."""

_LONGEST_INTERFACE_NAME = 15
_NOT_IN_INTERFACE_NAMES = frozenset(b"/: \t\n\v\f\r\xa0'\"\\|*")


def is_interface_name(name: str) -> bool:
    """Whether a Linux interface can have this name."""
    # The rules of dev_valid_name in the kernel's net/core/dev.c. Those about a leading '-', quotes, '\', '|' and '*'
    # are ours: with these, a name would mean something else in the commands of some devices.
    encoded = name.encode()
    if not 1 <= len(encoded) <= _LONGEST_INTERFACE_NAME:
        return False
    if _NOT_IN_INTERFACE_NAMES.intersection(encoded):
        return False
    return name not in (".", "..") and not name.startswith("-")


def _checked_interface_name(name: str) -> str:
    if not is_interface_name(name):
        raise ValueError(
            f"{name[:100]!r} cannot be the name of an interface: it must have 1 to {_LONGEST_INTERFACE_NAME} bytes, "
            "must not contain '/', ':', quotes, '\\', '|', '*' or white space, and must not begin with '-'"
        )
    return name


InterfaceName = Annotated[
    str,
    AfterValidator(_checked_interface_name),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[^-/:\s'\x22\\|*][^/:\s'\x22\\|*]*$",
            "minLength": 1,
            "maxLength": 15,
        }
    ),
]
"""Name of a Linux interface."""


def _without_port(host: str) -> str:
    name, colon, port = host.partition(":")
    if colon and port.isdigit():
        raise ValueError(f"write the port into the field 'port': host: {name}, port: {port}")
    return host


_LONGEST_FILE_NAME = 100
FileName = Annotated[
    str,
    Like(
        r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        "a name of letters, digits, '_', '.' and '-' that begins with a letter or a digit, such as lab-1",
        _LONGEST_FILE_NAME,
    ),
]
"""A name that becomes part of file names."""


def as_file_name(text: str, otherwise: str) -> str:
    """The `FileName` that is most like a text: it has ``_`` for other characters, and only as many as it may have.

    Args:
        text: The text, such as the name of a host.
        otherwise: The name if nothing is left of the text.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip("_.-")
    return name[:_LONGEST_FILE_NAME] or otherwise


Label = Annotated[str, Like(r"^\S(.*\S)?$", "a name on one line, without spaces at its ends", 100)]
"""A name for people; one line."""
HostName = Annotated[
    str,
    Like(
        r"^[^-\s/@][^\s/@]*$",
        "the name or the address of a machine, such as tg.example; the user is in the field 'username'",
        255,
    ),
    AfterValidator(_without_port),
]
"""Name or address of a machine."""
NamespaceName = Annotated[
    str,
    Like(
        r"^[A-Za-z0-9_][A-Za-z0-9_.|-]*$",
        "the name of a network namespace or of a container, such as clab-lab1-r1",
        255,
    ),
]
"""Name of a network namespace or of a container."""
PodName = Annotated[
    str,
    Like(
        r"^([a-z0-9.-]+/)?[a-z0-9.-]+$|^[a-z0-9.-]+/[a-z0-9.-]+/[a-z0-9.-]+$",
        "the name of a pod, such as default/web-0, or with its container: default/web-0/server",
        255,
    ),
]
"""Name of a pod of Kubernetes, perhaps with its namespace and its container."""
UserName = Annotated[str, Like(r"^[^-\s:/][^\s:/]*$", "the name of a user, such as root", 255)]
"""User to log in as."""
ProgramName = Annotated[
    str,
    Like(
        r"^[^-=\s][^=\x00-\x1f]*$",
        "the name or the path of a program, such as /usr/bin/python3",
        1000,
    ),
]
"""A program on a node, by name or path; it has no ``=``, because ``env`` would take it for a variable."""
DriverName = Annotated[
    str, Like(r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", "the name of a kernel driver, such as vfio-pci", 100)
]
"""Name of a kernel driver; it becomes part of a path in ``/sys``."""
NodePath = Annotated[str, Like(r"^/[^\x00-\x1f]*$", "an absolute path, such as /var/tmp/lab", 1000)]
"""Absolute path on a node."""
ReservationName = Annotated[
    str,
    Like(
        r"^[A-Za-z0-9][A-Za-z0-9_-]*$",
        "a name of letters, digits, '_' and '-' that begins with a letter or a digit, such as testbed",
        100,
    ),
]
"""Name of a reserved thing."""


def _of_one_device(address: str) -> str:
    first = int(address[:2], 16)
    if first & 1 or not int(address.replace(":", ""), 16):
        raise ValueError(
            f"no interface can have the address {address}, because it is a group address or all zeros"
        )
    return address


PciAddress = Annotated[
    str,
    Like(
        r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$",
        "a PCI address with its domain, such as 0000:3b:00.0",
    ),
    AfterValidator(str.lower),
]
"""PCI address of a card, in lower case, as Linux writes it."""
MacAddress = Annotated[
    str,
    Like(
        "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$",
        "a MAC address with colons, such as 02:00:00:00:00:01",
    ),
    AfterValidator(_of_one_device),
]
"""MAC address of an interface."""

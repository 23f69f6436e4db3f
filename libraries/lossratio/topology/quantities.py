"""Types of fields in topology files: quantities with units, names, and the strictness that all models share.

Names become words of commands and parts of paths on nodes. None begins with ``-``, as options do.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from lossratio.units import parse_bit_rate, parse_duration, parse_frame_rate, parse_ratio

_QUANTITY = {"anyOf": [{"type": "number"}, {"type": "string"}]}
ONE_OR_SEVERAL = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
"""The schema of a field that takes a text, or a list of texts."""


def as_tuple(value: Any) -> Any:
    """The value of such a field, always several."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,)


_LEAST_SPEED = 1e6


def _with_unit(rate: float) -> float:
    if rate < _LEAST_SPEED:
        raise ValueError(
            f"{rate:g} bit/s is the speed of no link: write it with its unit, as in '25 Gbps'"
        )
    return rate


BitRate = Annotated[
    float, AfterValidator(_with_unit), BeforeValidator(parse_bit_rate), WithJsonSchema(_QUANTITY)
]
FrameRate = Annotated[float, BeforeValidator(parse_frame_rate), WithJsonSchema(_QUANTITY)]
Duration = Annotated[float, BeforeValidator(parse_duration), WithJsonSchema(_QUANTITY)]
Share = Annotated[float, BeforeValidator(parse_ratio), WithJsonSchema(_QUANTITY)]

_LONGEST_INTERFACE_NAME = 15
_NOT_IN_INTERFACE_NAMES = frozenset(b"/: \t\n\v\f\r\xa0")


def _checked_interface_name(name: str) -> str:
    # The rules of dev_valid_name in the kernel's net/core/dev.c; a leading '-' is ours.
    encoded = name.encode()
    is_valid = 1 <= len(
        encoded
    ) <= _LONGEST_INTERFACE_NAME and not _NOT_IN_INTERFACE_NAMES.intersection(encoded)
    if not is_valid or name in (".", "..") or name.startswith("-"):
        raise ValueError(
            f"{name[:100]!r} cannot be the name of an interface: Linux takes 1 to {_LONGEST_INTERFACE_NAME} bytes "
            "without '/', ':' and white space, and it must not begin with '-'"
        )
    return name


InterfaceName = Annotated[
    str,
    AfterValidator(_checked_interface_name),
    WithJsonSchema(
        {"type": "string", "pattern": r"^[^-/:\s][^/:\s]*$", "minLength": 1, "maxLength": 15}
    ),
]
"""Name of a Linux interface."""
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
"""A name that becomes a part of file names."""
Label = Annotated[str, Field(pattern=r"^\S(.*\S)?$", max_length=100)]
"""A name for people; one line."""
HostName = Annotated[str, Field(pattern=r"^[^-\s/@][^\s/@]*$", max_length=255)]
"""Name or address of a machine."""
NamespaceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.|-]*$", max_length=255)]
"""Name of a network namespace or of a container."""
UserName = Annotated[str, Field(pattern=r"^[^-\s:/][^\s:/]*$", max_length=255)]
"""User to log in as."""
ProgramName = Annotated[str, Field(pattern=r"^[^-=\s][^=\x00-\x1f]*$", max_length=1000)]
"""A program on a node, by name or path; ``env`` takes a word with ``=`` for a variable."""
DriverName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=100)]
"""Name of a kernel driver; it is a part of a path in ``/sys``."""
NodePath = Annotated[str, Field(pattern=r"^/[^\x00-\x1f]*$", max_length=1000)]
"""Absolute path on a node."""


def _as_text(value: Any) -> Any:
    # YAML 1.1 reads digits with colons as a number of base 60.
    if isinstance(value, int | float):
        raise ValueError("write it in quotes: without them YAML reads such an address as a number")
    return value


def _of_one_device(address: str) -> str:
    first = int(address[:2], 16)
    if first & 1 or not int(address.replace(":", ""), 16):
        raise ValueError(
            f"{address} is the address of a group, or of nobody, and no interface has it"
        )
    return address


PciAddress = Annotated[
    str,
    Field(pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$"),
    AfterValidator(str.lower),
    BeforeValidator(_as_text),
]
"""PCI address of a card, in lower case, as Linux writes it."""
MacAddress = Annotated[
    str,
    Field(pattern="^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"),
    AfterValidator(_of_one_device),
    BeforeValidator(_as_text),
]
"""MAC address of an interface."""

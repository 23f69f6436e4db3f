"""Interfaces as XDP sees them, over netlink: the program that is attached, and the abilities of the driver."""

from __future__ import annotations

import errno
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

from lossratio.bpf import BpfError, XdpLink, XdpMode, XdpProgram, program_info

from ..core.links import Link
from ..core.protocol import AgentError

SENDS = 1 << 2
"""The driver sends frames that an XDP program redirects to it (``ndo_xdp_xmit``), as things are at present."""

_NETLINK_GENERIC, _RTM_GETLINK, _GENL_CONTROL = 16, 18, 16
_NLM_F_REQUEST, _NLMSG_ERROR = 0x1, 2
_CTRL_GET_FAMILY, _CTRL_FAMILY_ID, _CTRL_FAMILY_NAME = 3, 1, 2
_NETDEV_DEV_GET, _NETDEV_IFINDEX, _NETDEV_XDP_FEATURES = 1, 1, 3
_IFLA_XDP, _XDP_PROGRAM = 43, 4
_NETLINK_HEADER, _GENL_HEADER, _LINK_HEADER = 16, 4, 16
_NATIVE_REFUSED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE, errno.ENOMEM, errno.ENOSPC, errno.EBUSY)


def xdp_features(interface: int) -> int | None:
    """What the driver of an interface can do with XDP at present, in bits; None: this kernel does not say (before 6.3).

    Args:
        interface: The kernel's number of the interface.
    """
    with suppress(OSError):
        name = _attribute(_CTRL_FAMILY_NAME, b"netdev\0")
        family = _ask(_NETLINK_GENERIC, _GENL_CONTROL, struct.pack("=BBH", _CTRL_GET_FAMILY, 1, 0) + name)
        number = struct.unpack("=H", _attributes(family[_GENL_HEADER:])[_CTRL_FAMILY_ID])[0]
        asked = struct.pack("=BBH", _NETDEV_DEV_GET, 1, 0) + _attribute(_NETDEV_IFINDEX, struct.pack("=I", interface))
        answer = _attributes(_ask(_NETLINK_GENERIC, number, asked)[_GENL_HEADER:])
        return int(struct.unpack("=Q", answer[_NETDEV_XDP_FEATURES])[0])
    return None


def attached_program(interface: int) -> int | None:
    """The number of the XDP program on an interface; None: there is none.

    Args:
        interface: The kernel's number of the interface.
    """
    asked = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, interface, 0, 0)
    answer = _attributes(_ask(socket.NETLINK_ROUTE, _RTM_GETLINK, asked)[_LINK_HEADER:])
    number = _attributes(answer.get(_IFLA_XDP, b"")).get(_XDP_PROGRAM)
    return None if number is None else int(struct.unpack("=I", number)[0]) or None


def check_may_attach(port: Link) -> None:
    """Makes sure that an interface has no XDP program yet: somebody else's is never replaced.

    Raises:
        AgentError: Of kind ``xdp_attached``; names the program.
    """
    number = attached_program(port.index)
    if number is None:
        return
    try:
        name = f"{number} ({program_info(number).name})"
    except BpfError:
        name = str(number)
    raise AgentError(
        "xdp_attached",
        f"Interface {port.name} has an XDP program already: {name}. It is not ours, or another agent's, and is left "
        f"alone. End its owner, or detach it (ip link set dev {port.name} xdp off), or use 'kind: afpacket'.",
    )


def check_can_send(port: Link) -> None:
    """Makes sure that an interface's driver sends redirected frames, as far as the kernel says so.

    Raises:
        AgentError: Of kind ``no_xdp``; names the way out.
    """
    features = xdp_features(port.index)
    if features is None or features & SENDS:
        return
    if port.kind == "veth":
        way_out = "the other end of this veth link needs GRO (ethtool -K OTHER_END gro on) or an XDP program"
    else:
        way_out = "take a card whose driver has ndo_xdp_xmit; some have it only while the card has an XDP program"
    raise AgentError(
        "no_xdp",
        f"The driver of {port.name} does not send frames of XDP programs: {way_out}. Or use 'kind: afpacket'.",
    )


def attach(program: XdpProgram, port: Link) -> tuple[XdpLink, XdpMode]:
    """Attaches a program to an interface: in its driver, or else behind it.

    Returns:
        The attachment, and how it was done.

    Raises:
        AgentError: If neither is possible.
    """
    check_may_attach(port)
    try:
        return XdpLink(program, port.index, XdpMode.NATIVE), XdpMode.NATIVE
    except BpfError as error:
        if error.error_number not in _NATIVE_REFUSED:
            raise
        native = error
    try:
        return XdpLink(program, port.index, XdpMode.GENERIC), XdpMode.GENERIC
    except BpfError as error:
        check_may_attach(port)
        raise AgentError(
            "no_xdp",
            f"No XDP program can be attached to {port.name}, neither in its driver ({native.message}) nor behind it "
            f"({error.message}). Offloads that join frames (ethtool -K {port.name} lro off), an MTU beyond a page, and "
            f"too few queues are in the way of XDP. Or use 'kind: afpacket'.",
        ) from error


def pinned_napi_cpus() -> set[int]:
    """Processors that threads of the kernel are bound to which receive for an interface (threaded NAPI).

    A local testbed has one for each DUT. Whoever bound it wants the processor for that.
    """
    cpus: set[int] = set()
    every = len(os.sched_getaffinity(0))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "comm").read_text(encoding="ascii", errors="replace").startswith("napi/"):
                    # Not by its id, which may be another one in this PID namespace.
                    bound = _allowed((entry / "status").read_text(encoding="ascii", errors="replace"))
                    cpus |= bound if len(bound) < every else set()
    return cpus


def _allowed(status: str) -> set[int]:
    """The processors that a thread may use, by its ``/proc/.../status``."""
    line = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
    cpus: set[int] = set()
    for part in line.split()[1].split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def _ask(protocol: int, kind: int, payload: bytes) -> bytes:
    """The answer to a request over netlink: its first message, without the header."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as netlink:
        netlink.send(struct.pack("=IHHII", _NETLINK_HEADER + len(payload), kind, _NLM_F_REQUEST, 1, 0) + payload)
        data = netlink.recv(1 << 16)
    length, answered = struct.unpack_from("=IH", data)
    if answered == _NLMSG_ERROR:
        code = -struct.unpack_from("=i", data, _NETLINK_HEADER)[0]
        raise OSError(code, os.strerror(code))
    return data[_NETLINK_HEADER:length]


def _attribute(kind: int, value: bytes) -> bytes:
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust(-(-(4 + len(value)) // 4) * 4, b"\0")


def _attributes(data: bytes) -> dict[int, bytes]:
    attributes: dict[int, bytes] = {}
    place = 0
    while place + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        attributes[kind & 0x3FFF] = data[place + 4 : place + length]
        place += max(4, (length + 3) & ~3)
    return attributes

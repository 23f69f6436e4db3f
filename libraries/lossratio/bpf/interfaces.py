"""Interfaces as XDP sees them, over netlink: the program that is attached, and the abilities of the driver."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

SENDS = 1 << 2
"""The driver sends frames that an XDP program redirects to it (``ndo_xdp_xmit``), as things are at present."""

_NETLINK_GENERIC, _RTM_GETLINK, _GENL_CONTROL = 16, 18, 16
_NLM_F_REQUEST, _NLMSG_ERROR = 0x1, 2
_CTRL_GET_FAMILY, _CTRL_FAMILY_ID, _CTRL_FAMILY_NAME = 3, 1, 2
_NETDEV_DEV_GET, _NETDEV_IFINDEX, _NETDEV_XDP_FEATURES = 1, 1, 3
_IFLA_XDP, _XDP_PROGRAM = 43, 4
_NETLINK_HEADER, _GENL_HEADER, _LINK_HEADER = 16, 4, 16


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

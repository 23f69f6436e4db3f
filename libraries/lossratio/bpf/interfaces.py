# SPDX-License-Identifier: Apache-2.0
"""Interfaces over netlink: the attached XDP program, and the abilities of the driver."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import Iterator

_NETLINK_GENERIC = 16
_RTM_GETLINK = 18
_GENL_CONTROL = 16
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_CTRL_GET_FAMILY = 3
_CTRL_FAMILY_ID = 1
_CTRL_FAMILY_NAME = 2
_NETDEV_DEV_GET, _NETDEV_IFINDEX = 1, 1
_IFLA_XDP, _XDP_PROGRAM = 43, 4
_SENDS = 1 << 2
_NETLINK_HEADER = 16
_GENL_HEADER = 4
_ATTRIBUTE_HEADER = 4
_LINK_HEADER = 16
_ACTIONS = 3


def may_send(interface: int) -> bool | None:
    """Whether a driver at present sends frames that XDP programs redirect to it (``ndo_xdp_xmit``).

    None: Linux before 6.3 does not say.
    """
    with suppress(OSError, KeyError):
        name = netlink_attribute(_CTRL_FAMILY_NAME, b"netdev\0")
        family, *_ = ask_netlink(_NETLINK_GENERIC, _GENL_CONTROL, struct.pack("=BBH", _CTRL_GET_FAMILY, 1, 0) + name)
        number = struct.unpack("=H", netlink_attributes(family[_GENL_HEADER:])[_CTRL_FAMILY_ID])[0]
        index = netlink_attribute(_NETDEV_IFINDEX, struct.pack("=I", interface))
        asked = struct.pack("=BBH", _NETDEV_DEV_GET, 1, 0) + index
        answer = netlink_attributes(ask_netlink(_NETLINK_GENERIC, number, asked)[0][_GENL_HEADER:])
        return bool(struct.unpack("=Q", answer[_ACTIONS])[0] & _SENDS)
    return None


def attached_program(interface: int) -> int | None:
    """The number of the XDP program on the interface with this number; None: there is none.

    Raises:
        OSError: If the kernel refuses the request, e.g. because there is no such interface.
    """
    asked = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, interface, 0, 0)
    answer = netlink_attributes(ask_netlink(socket.NETLINK_ROUTE, _RTM_GETLINK, asked)[0][_LINK_HEADER:])
    number = netlink_attributes(answer.get(_IFLA_XDP, b"")).get(_XDP_PROGRAM)
    if number is None:
        return None
    return int(struct.unpack("=I", number)[0]) or None


def ask_netlink(protocol: int, kind: int, payload: bytes, *, dump: bool = False, flags: int = 0) -> list[bytes]:
    """The answers to a request over netlink, without their headers: the first one, or all of a dump.

    If a request has further `flags`, such as ``NLM_F_ACK``, the kernel only confirms that it was fulfilled.

    Raises:
        OSError: If the kernel refuses the request.
    """
    flags |= _NLM_F_REQUEST | (_NLM_F_DUMP if dump else 0)
    bodies: list[bytes] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as netlink:
        netlink.send(struct.pack("=IHHII", _NETLINK_HEADER + len(payload), kind, flags, 1, 0) + payload)
        while True:
            for answered, body in _messages(netlink.recv(1 << 20)):
                if answered == _NLMSG_DONE:
                    return bodies
                if answered == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    if not code:
                        return bodies
                    raise OSError(code, os.strerror(code))
                bodies.append(body)
            if not dump:
                return bodies


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + _NETLINK_HEADER <= len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        yield kind, data[place + _NETLINK_HEADER : place + length]
        place += max(_NETLINK_HEADER, _aligned(length))


def _aligned(length: int) -> int:
    """A length with its padding: parts of a message begin at multiples of four bytes."""
    return (length + 3) & ~3


def netlink_attribute(kind: int, value: bytes) -> bytes:
    """An attribute of a message."""
    attribute = struct.pack("=HH", _ATTRIBUTE_HEADER + len(value), kind) + value
    return attribute.ljust(_aligned(len(attribute)), b"\0")


def netlink_attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message by their numbers."""
    attributes: dict[int, bytes] = {}
    place = 0
    while place + _ATTRIBUTE_HEADER <= len(data):
        length, kind = struct.unpack_from("=HH", data, place)
        attributes[kind & 0x3FFF] = data[place + _ATTRIBUTE_HEADER : place + length]
        place += max(_ATTRIBUTE_HEADER, _aligned(length))
    return attributes

# SPDX-License-Identifier: Apache-2.0
"""What the driver of an interface says beyond netlink: its own statistics (``ethtool -S``)."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections import defaultdict
from typing import Mapping

_SIOCETHTOOL = 0x8946
_DRIVER_INFO = 0x3
_STRINGS = 0x1B
_STATISTICS = 0x1D
_STATISTICS_NAMES = 1
_INFO_BYTES = 196
_DRIVER_NAME = slice(4, 36)
_COUNT_OFFSET = 180
_NAME_BYTES = 32
_WITHOUT_BUFFER = {"vmxnet3": "pkts rx OOB"}
"""For each driver whose interface counters leave out frames that found no buffer on arrival: the name of the driver's
own statistic of these frames."""


def statistics(name: str) -> Mapping[str, int]:
    """The statistics of an interface's driver, by name; empty if it has none.

    Some drivers give the statistics of all queues the same names. These are added up.
    """
    try:
        info = _driver_info(name)
        (count,) = struct.unpack_from("=I", info, _COUNT_OFFSET)
        header = struct.pack("=III", _STRINGS, _STATISTICS_NAMES, count)
        names = ask(name, header + bytes(_NAME_BYTES * count))[len(header) :]
        values = ask(name, struct.pack("=II", _STATISTICS, count) + bytes(8 * count))
    except OSError:
        return {}
    texts = (_text(names[place : place + _NAME_BYTES]) for place in range(0, len(names), _NAME_BYTES))
    found: defaultdict[str, int] = defaultdict(int)
    for text, value in zip(texts, struct.unpack_from(f"={count}Q", values, 8)):
        found[text] += value
    return dict(found)


def without_buffer(name: str) -> int:
    """How many frames found no buffer of an interface as they arrived, if only its driver counts them; otherwise 0."""
    try:
        driver = _text(_driver_info(name)[_DRIVER_NAME])
    except OSError:
        return 0
    if driver not in _WITHOUT_BUFFER:
        return 0
    return statistics(name).get(_WITHOUT_BUFFER[driver], 0)


def ask(name: str, command: bytes, request: int = _SIOCETHTOOL) -> bytes:
    """The answer of an interface's driver to a command; the driver writes it over the command.

    Raises:
        OSError: If there is no such interface, or its driver does not know the command.
    """
    data = array.array("B", command)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked, request, struct.pack("@16sP", name.encode(), data.buffer_info()[0]).ljust(40, b"\0"))
    return data.tobytes()


def _driver_info(name: str) -> bytes:
    return ask(name, struct.pack("=I", _DRIVER_INFO).ljust(_INFO_BYTES, b"\0"))


def _text(name: bytes) -> str:
    return name.split(b"\0")[0].decode().strip()

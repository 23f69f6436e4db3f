# SPDX-License-Identifier: Apache-2.0
"""An XDP device on its node: checks, programs that forward as long as this process lives, reports, changes.

A request is a line of JSON after the line of the program itself, and the answer is also a line of JSON. Errors end the
program.
"""

from __future__ import annotations

import errno
import heapq
import json
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Dict

from lossratio.bpf import (
    Array,
    Attachment,
    BpfError,
    Program,
    Table,
    TableType,
    attached_program,
    may_send,
    program_info,
    read_object,
    why_impossible,
)

COUNTERS = ("seen", "filtered", "dropped", "duplicated", "delayed")
"""Names of a direction's counts, in the order of its array."""
CONNECTIONS = "lossratio_conns"
"""Name of the table of connections."""
FILTERED_FROM = 0xF0000000
"""The first of the IPv4 addresses that rules drop, 240.0.0.0: no traffic has these addresses."""
_FAULTS = ("drop", "duplicate", "delay")
_NEVER = (1 << 64) - 1
_MOST_FILTERED = 1 << 17
_CONNECTION_BYTES = 16


@dataclass(frozen=True)
class Way:
    """The way of one direction's frames."""

    name: str
    """Its name in the kernel's lists."""
    leaving: int
    """The kernel's number of the interface that frames leave by."""
    macs: bytes | None
    """Destination and source address that frames get; None: they keep their own."""
    rules: int | None
    """How many rules examine each frame; None: it is not a filter."""
    every: int
    """Each fault affects one frame out of this many."""
    faults: tuple[str, ...]
    """Some of `_FAULTS`."""
    opens: bool = False
    """Whether its frames open connections, if only frames of connections pass."""
    reflects: bool = False
    """Whether IP packets go back where they came from, with their addresses swapped."""


class Forwarder:
    """The program of one direction, and its maps."""

    def __init__(self, way: Way, filtered: Table | None, connections: Table | None = None) -> None:
        self.counts = Array(8 * len(COUNTERS), "lossratio_count")
        """Frames since the program was loaded: words in the order of `COUNTERS`."""
        # There are two entries for the same interface, so that frames that are sent to all entries leave twice.
        self._twice = Table.create("devices", 4, 4, 2, "lossratio_twice")
        for place in range(2):
            self._twice.update(struct.pack("=I", place), struct.pack("=I", way.leaving))
        maps = {
            "counts": self.counts,
            "twice": self._twice if "duplicate" in way.faults else None,
            "filtered": filtered,
            "connections": connections,
        }
        program = read_object(__package__ or "", "forward")
        self.program: Program = program.load(way.name, maps, _constants(way, connections is not None))


def filtered_addresses() -> Table:
    """An empty table of source addresses that filters drop."""
    return Table.create("hash", 4, 4, _MOST_FILTERED, "lossratio_drop")


def table_of_connections(kind: TableType, most: int) -> Table:
    """An empty table of this many connections, of a type that the kernel makes."""
    return Table.create(kind, _CONNECTION_BYTES, 4, most, CONNECTIONS)


def _constants(way: Way, keeps: bool) -> dict[str, bytes]:
    # Different frames, and none of them at the beginning or end of a trial.
    places = {fault: way.every * (1 + number) // (1 + len(way.faults)) for number, fault in enumerate(way.faults)}
    words = {
        "LEAVING": way.leaving,
        "IS_FILTER": way.rules is not None,
        "RULES": way.rules or 0,
        "HAS_MACS": way.macs is not None,
        "REFLECTS": way.reflects,
        "KEEPS": keeps,
        "OPENS": way.opens,
    }
    constants = {name: struct.pack("=I", value) for name, value in words.items()}
    constants["NEW_MACS"] = way.macs or bytes(12)
    constants["EVERY"] = struct.pack("=Q", way.every)
    for name, fault in zip(("DROPPED", "DUPLICATED", "DELAYED"), _FAULTS):
        constants[name] = struct.pack("=Q", places.get(fault, _NEVER))
    return constants


Request = Dict[str, Any]
_MOST_ENTRIES = 64
_RECEIVE_BUFFER, _ALL = 33, 3
_PACKET = 263
_AUXILIARY_DATA = 8
_VLAN_VALID = 0x10
_BUFFER_BYTES = 1 << 26
_LONGEST_FRAME = 1 << 14
_MACS = 12
_ADDED_FROM = FILTERED_FROM + (1 << 24)


def main() -> None:
    """Answers the request, or acts as the device until it is killed."""
    request = json.loads(sys.stdin.readline())
    actions = {"check": check, "report": report, "fill": fill, "filter": add_filtered, "count": count, "forget": forget}
    try:
        if request["do"] == "serve":
            serve(request)
        print(json.dumps(actions[request["do"]](request)))
    except (BpfError, OSError) as error:
        sys.exit(str(error))


def check(request: Request) -> Request:
    """What prevents programs here; for each interface, its program, and whether it can send frames for programs."""
    impossible = why_impossible()
    sends, attached = {}, {}
    for name in request["interfaces"] if impossible is None else ():
        index = socket.if_nametoindex(name)
        sends[name], number = may_send(index), attached_program(index)
        if number is not None:
            attached[name] = f"{number} ({program_info(number).name})"
    return {"impossible": impossible, "sends": sends, "attached": attached}


def report(request: Request) -> Request:
    """By interface, the kernel's account of its program, and the contents of the program's maps."""
    return {name: _account(socket.if_nametoindex(name)) for name in request["interfaces"]}


def fill(request: Request) -> Request:
    """Makes a map of the program on each interface lead to the other interface."""
    west, east = request["interfaces"]
    for name, other in ((west, east), (east, west)):
        index, leaving = socket.if_nametoindex(name), socket.if_nametoindex(other)
        table = _map_of(index, request["map"])
        for key in (0, index):
            try:
                table.update(key.to_bytes(table.key_bytes, sys.byteorder), leaving.to_bytes(4, sys.byteorder))
            except BpfError as error:
                # A small map has no entry for an interface with a large number.
                if key == 0 or error.error_number != errno.E2BIG:
                    raise
    return {}


def add_filtered(request: Request) -> Request:
    """Adds addresses, which no traffic has, to the table of a filter."""
    table = _map_of(socket.if_nametoindex(request["interfaces"][0]), "lossratio_drop")
    for number in range(request["entries"]):
        table.update((_ADDED_FROM + number).to_bytes(4, "big"), bytes(4))
    return {}


def count(request: Request) -> Request:
    """The number of open connections."""
    return {"connections": _connections(request).count()}


def forget(request: Request) -> Request:
    """Deletes all connections."""
    table = _connections(request)
    began = time.monotonic()
    table.clear()
    return {"seconds": time.monotonic() - began}


def serve(request: Request) -> None:
    """Attaches the programs of both directions, says so, and delays frames until it is killed."""
    interfaces = request["interfaces"]
    indices = [socket.if_nametoindex(name) for name in interfaces]
    filtered = filtered_addresses() if request["rules"] is not None else None
    if request["connections"]:
        connections = table_of_connections(*request["connections"])
    else:
        connections = None

    links = []

    for index, side in zip(range(len(indices)), ("west", "east")):
        macs = None
        if request["macs"]:
            macs = bytes.fromhex(request["macs"][index])

        way = Way(
            name=f"lossratio_{side}",
            leaving=indices[-1 - index],
            macs=macs,
            rules=request["rules"],
            every=request["every"],
            faults=tuple(request["faults"]),
            opens=side == "west",
            reflects=request["reflects"],
        )
        forwarder = Forwarder(way, filtered, connections)
        links.append(Attachment(forwarder.program, indices[index], request["mode"]))

    if "delay" in request["faults"]:
        delay = Delay(interfaces, request["delay"])
    else:
        delay = None

    print("attached", flush=True)
    while delay is None:
        signal.pause()
    delay.work()


class Delay:
    """Frames that programs pass to this process, which sends them on the other side some time later."""

    def __init__(self, interfaces: list[str], seconds: float) -> None:
        self._seconds = seconds
        self._held: list[tuple[float, int, socket.socket, bytes]] = []
        self._number = 0
        ports = []
        for name in interfaces:
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            port.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER, _BUFFER_BYTES)
            port.setsockopt(_PACKET, _AUXILIARY_DATA, 1)
            port.bind((name, _ALL))
            ports.append(port)
        self._opposite = dict(zip(ports, reversed(ports)))

    def work(self) -> None:
        """Receives, holds and sends, forever."""
        while True:
            readable, _, _ = select.select(list(self._opposite), [], [], self._wait())
            for port in readable:
                for frame in _receive(port):
                    self._number += 1
                    due = time.monotonic() + self._seconds
                    heapq.heappush(self._held, (due, self._number, self._opposite[port], frame))
            while self._held and self._held[0][0] <= time.monotonic():
                _, _, port, frame = heapq.heappop(self._held)
                _send(port, frame)

    def _wait(self) -> float | None:
        """Seconds until a frame is due; None: no frame is held."""
        if not self._held:
            return None
        return max(0.0, self._held[0][0] - time.monotonic())


def _send(port: socket.socket, frame: bytes) -> None:
    """Sends a frame, unless the link has no room for it: then it is lost, as in any other device."""
    try:
        port.send(frame)
    except OSError as error:
        if error.errno != errno.ENOBUFS:
            raise


def _receive(port: socket.socket) -> Iterator[bytes]:
    """The frame that has arrived, with its VLAN tag, which the kernel removes; no frame if it is an outgoing one."""
    frame, ancillary, _, (_, _, kind, *_) = port.recvmsg(_LONGEST_FRAME, 256)
    for _, _, data in ancillary:
        status, _, _, _, _, tag, ethertype = struct.unpack_from("=IIIHHHH", data)
        if status & _VLAN_VALID:
            frame = frame[:_MACS] + struct.pack(">HH", ethertype, tag) + frame[_MACS:]
    if kind != socket.PACKET_OUTGOING:
        yield frame


def _connections(request: Request) -> Table:
    return _map_of(socket.if_nametoindex(request["interfaces"][0]), CONNECTIONS)


def _map_of(interface: int, name: str) -> Table:
    number = attached_program(interface)
    if number is None:
        tables = []
    else:
        tables = [Table.open(one) for one in program_info(number).maps]

    for table in tables:
        # The kernel keeps 15 characters.
        if table.name == name[:15]:
            return table
    names = ", ".join(table.name for table in tables) or "none"
    raise OSError(f"The XDP program has no map {name!r}; it has {names}.")


def _account(interface: int) -> Request:
    number = attached_program(interface)
    if number is None:
        raise OSError("The XDP program was detached. Tear the device down and set it up again.")

    info = program_info(number)
    tables = [Table.open(one) for one in info.maps]
    counts: Request = {}
    for table in tables:
        if table.name == "lossratio_count":
            for words in (table.entries(1) or {}).values():
                counts.update(zip(COUNTERS, struct.unpack(f"={len(words) // 8}Q", words)))

    return {
        "id": number,
        "name": info.name,
        "tag": info.tag,
        "runs": info.runs,
        "run_nanoseconds": info.run_nanoseconds,
        "counts": counts,
        # Its constants carry its own name.
        "maps": {table.name: _contents(table) for table in tables if table.name != info.name},
    }


def _contents(table: Table) -> Request:
    entries = table.entries(_MOST_ENTRIES)
    if entries is None:
        contents = None
    else:
        contents = {key.hex(): value.hex() for key, value in entries.items()}

    return {"type": table.kind, "most_entries": table.most_entries, "entries": contents}

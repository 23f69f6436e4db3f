"""The XDP programs of the devices: from one interface to another, unchanged or changed, with faults, or back."""

import struct
from dataclasses import dataclass

from lossratio.bpf import Array, Program, Table, TableType, read_object

COUNTERS = ("seen", "filtered", "dropped", "duplicated", "delayed")
"""Names of a direction's counts, in the order of its array."""

CONNECTIONS = "lossratio_conns"
"""Name of the table of connections."""

FILTERED_FROM = 0xF0000000
"""The first of the IPv4 addresses that rules drop, 240.0.0.0: no traffic has them."""

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
    """Destination and source address that frames get; None: they keep theirs."""
    rules: int | None
    """How many rules examine each frame; None: it is no filter."""
    every: int
    """One frame of so many has each of the faults."""
    faults: tuple[str, ...]
    """Some of `_FAULTS`."""
    opens: bool = False
    """Whether its frames open connections, where only frames of connections pass."""
    reflects: bool = False
    """Whether IP packets go back where they came from, with their addresses swapped."""


class Forwarder:
    """The program of one direction, and its maps.

    Attributes:
        counts: Frames since the program was loaded: words in the order of `COUNTERS`.
    """

    def __init__(self, way: Way, filtered: Table | None, connections: Table | None = None) -> None:
        self.counts = Array(8 * len(COUNTERS), "lossratio_count")
        # Two entries for the same interface: frames that are sent to all of them leave twice.
        self._twice = Table.create(TableType.DEVICES, 4, 4, 2, "lossratio_twice")
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
    return Table.create(TableType.HASH, 4, 4, _MOST_FILTERED, "lossratio_drop")


def table_of_connections(kind: str, most: int) -> Table:
    """An empty table of so many connections, of a type that the kernel makes."""
    return Table.create(TableType[kind.upper()], _CONNECTION_BYTES, 4, most, CONNECTIONS)


def _constants(way: Way, keeps: bool) -> dict[str, bytes]:
    # Different frames, and none at the beginning of a trial or at its end.
    places = {fault: way.every * (1 + number) // (1 + len(way.faults)) for number, fault in enumerate(way.faults)}
    words = (way.leaving, way.rules is not None, way.rules or 0, way.macs is not None, way.reflects, keeps, way.opens)
    return {
        **dict(zip(("LEAVING", "IS_FILTER", "RULES", "HAS_MACS", "REFLECTS", "KEEPS", "OPENS"), map(_word, words))),
        "NEW_MACS": way.macs or bytes(12),
        "EVERY": struct.pack("=Q", way.every),
        **{
            name: struct.pack("=Q", places.get(fault, _NEVER))
            for name, fault in zip(("DROPPED", "DUPLICATED", "DELAYED"), _FAULTS)
        },
    }


def _word(number: int) -> bytes:
    return struct.pack("=I", number)

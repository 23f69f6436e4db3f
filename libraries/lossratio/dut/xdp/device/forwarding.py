"""The XDP programs of the devices: from one interface to another, unchanged, readdressed, filtered, or with faults."""

import struct
from dataclasses import dataclass

from lossratio.bpf import (
    DW,
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R7,
    R8,
    R9,
    R10,
    Array,
    Assembler,
    H,
    Helper,
    Register,
    Table,
    TableType,
    W,
    XdpAction,
    XdpProgram,
)

COUNTERS = ("seen", "filtered", "dropped", "duplicated", "delayed")
"""Names of a direction's counts, in the order of its array."""

FILTERED_FROM = 0xF0000000
"""The first of the IPv4 addresses that rules drop, 240.0.0.0: no traffic has them."""

_SEEN, _FILTERED, _DROPPED, _DUPLICATED, _DELAYED = (8 * place for place in range(len(COUNTERS)))
_MACS, _TYPE, _SOURCE, _DESTINATION_END = 12, 12, 26, 34
_IPV4 = 0x0800
_BROADCAST = 1 << 3
_MOST_FILTERED = 1 << 17


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
    """``drop``, ``duplicate``, ``delay``."""


class Forwarder:
    """The program of one direction, and its maps.

    Args:
        way: What it does.
        filtered: The table of source addresses that filters drop; None: it is no filter.

    Attributes:
        program: The program.
        counts: Frames since the program was loaded: words in the order of `COUNTERS`.
    """

    def __init__(self, way: Way, filtered: Table | None) -> None:
        self.counts = Array(8 * len(COUNTERS), "lossratio_count")
        # Two entries for the same interface: frames that are sent to all of them leave twice.
        self._twice = Table.create(TableType.DEVICES, 4, 4, 2, "lossratio_twice")
        for place in range(2):
            self._twice.update(struct.pack("=I", place), struct.pack("=I", way.leaving))
        self.program = XdpProgram(self._assemble(way, filtered), way.name)

    def _assemble(self, way: Way, filtered: Table | None) -> bytes:
        code = Assembler()
        code.mov(R6, R1)
        code.ld_map_value(R7, self.counts.descriptor)
        if filtered is not None:
            _assemble_filter(code, way.rules or 0, filtered)
        if way.macs is not None:
            _load(code, _MACS, "short")
            for offset in range(0, _MACS, 4):
                code.st(W, R1, offset, struct.unpack_from("=I", way.macs, offset)[0])
        _count(code, _SEEN, fetch=True)
        code.mov(R8, R1)
        code.mod(R8, way.every)
        for number, fault in enumerate(way.faults):
            # Different frames, and none at the beginning of a trial or at its end.
            code.jeq(R8, way.every * (1 + number) // (1 + len(way.faults)), fault)
        code.mov(R1, way.leaving)
        code.mov(R2, 0)
        code.call(Helper.REDIRECT)
        code.exit()
        if "drop" in way.faults:
            code.label("drop")
            _count(code, _DROPPED)
            code.exit(XdpAction.DROP)
        if "duplicate" in way.faults:
            code.label("duplicate")
            _count(code, _DUPLICATED)
            code.ld_map_fd(R1, self._twice.descriptor)
            code.mov(R2, 0)
            code.mov(R3, _BROADCAST)
            code.call(Helper.REDIRECT_MAP)
            code.exit()
        if "delay" in way.faults:
            code.label("delay")
            _count(code, _DELAYED)
            code.exit(XdpAction.PASS)
        if filtered is not None:
            code.label("filtered")
            _count(code, _FILTERED)
            code.exit(XdpAction.DROP)
        if way.macs is not None:
            code.label("short")
            code.exit(XdpAction.ABORTED)
        return code.code()


def filtered_addresses() -> Table:
    """An empty table of source addresses that filters drop."""
    return Table.create(TableType.HASH, 4, 4, _MOST_FILTERED, "lossratio_drop")


def _assemble_filter(code: Assembler, rules: int, filtered: Table) -> None:
    """Compares the source of an IPv4 frame with each rule's address, and looks it up in the table."""
    _load(code, _DESTINATION_END, "passes")
    code.ldx(H, R2, R1, _TYPE)
    code.jne32(R2, _in_memory(_IPV4, 2), "passes")
    code.ldx(W, R9, R1, _SOURCE)
    for number in range(rules):
        code.jeq32(R9, _in_memory(FILTERED_FROM + number, 4), "filtered")
    code.stx(W, R10, -4, R9)
    code.ld_map_fd(R1, filtered.descriptor)
    code.mov(R2, R10)
    code.add(R2, -4)
    code.call(Helper.MAP_LOOKUP_ELEM)
    code.jne(R0, 0, "filtered")
    code.label("passes")


def _load(code: Assembler, size: int, short: str) -> None:
    """Has R1 point to the frame, if it has so many bytes."""
    code.ldx(W, R1, R6, 0)
    code.ldx(W, R3, R6, 4)
    code.mov(R4, R1)
    code.add(R4, size)
    code.jgt(R4, R3, short)


def _count(code: Assembler, offset: int, *, fetch: bool = False) -> None:
    """Counts a frame; R1 gets the count before it where that is fetched."""
    one: Register = R1
    code.mov(one, 1)
    code.atomic_add(DW, R7, offset, one, fetch=fetch)


def _in_memory(number: int, width: int) -> int:
    """The number that a program loads where a frame has this one, in the order of the network."""
    return int(struct.unpack({2: "=H", 4: "=I"}[width], number.to_bytes(width, "big"))[0])

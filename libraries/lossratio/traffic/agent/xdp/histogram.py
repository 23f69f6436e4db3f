"""Log-linear histograms of latencies, as HdrHistogram has them: the same relative width of intervals everywhere.

Below 128 ns each nanosecond has an interval; above it each power of two has 128: at most 0.8 % of the value.
"""

from __future__ import annotations

from typing import Iterator, Sequence

from lossratio.bpf import DW, R1, R2, R3, Assembler, Register

SUB_BITS = 7
"""Each power of two has 2 to the power of this many intervals."""

MOST_BITS = 34
"""Latencies are below 2 to the power of so many nanoseconds (17 s); longer ones count as the longest one."""

INTERVALS = (MOST_BITS - SUB_BITS + 1) << SUB_BITS
"""How many intervals there are."""

_HALVES = (16, 8, 4, 2, 1)


def count(code: Assembler, base: Register, offset: int, none: str) -> None:
    """Counts the latency in R1; R2 and R3 are lost.

    Args:
        code: The program.
        base: The register with the address of memory.
        offset: From there to the histogram.
        none: Label for intervals that cannot be.
    """
    code.mov(R2, R1)
    top = code.new_label("top")
    code.ld_imm64(R3, (1 << MOST_BITS) - 1)
    code.jle(R2, R3, top)
    code.mov(R2, R3)
    code.label(top)
    code.mov(R3, 0)
    for half in _HALVES:
        small = code.new_label("small")
        code.jlt(R2, 1 << SUB_BITS + half, small)
        code.rsh(R2, half)
        code.add(R3, half << SUB_BITS)
        code.label(small)
    code.add(R2, R3)
    code.jge(R2, INTERVALS, none)
    code.lsh(R2, 3)
    code.add(R2, base)
    code.ldx(DW, R3, R2, offset)
    code.add(R3, 1)
    code.stx(DW, R2, offset, R3)


def edge(interval: int) -> int:
    """The lowest latency of an interval, in nanoseconds."""
    shift = max(0, (interval >> SUB_BITS) - 1)
    return interval - (shift << SUB_BITS) << shift


def filled(counts: Sequence[int], least: int, most: int) -> Iterator[tuple[int, int]]:
    """The middle of each interval with frames in it, in nanoseconds, with their number.

    No middle is below the smallest latency of all, or above the largest one.
    """
    for interval, number in enumerate(counts):
        if number:
            yield max(least, min(most, (edge(interval) + edge(interval + 1)) // 2)), number


def percentile(values: Sequence[tuple[int, int]], percent: float) -> int:
    """A percentile of `filled` intervals, one at least, in nanoseconds."""
    wanted, passed = percent / 100.0 * sum(number for _, number in values), 0
    for value, number in values:
        passed += number
        if passed >= wanted:
            return value
    return values[-1][0]

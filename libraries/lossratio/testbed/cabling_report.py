"""What a look at the cabling has found, and how it is said."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class CablingReport:
    """What a probe of the cabling has found."""

    works: tuple[str, ...]
    """What works, a line each."""
    notes: tuple[str, ...]
    """What need not be a fault."""
    problems: tuple[str, ...]
    """Faults, each with its place and the way out."""


def describe_cabling(report: CablingReport) -> Iterator[str]:
    """The findings, a line each."""
    yield from (f"  {line}" for line in report.works)
    yield from (f"  Note: {line}" for line in report.notes)
    yield from (f"  PROBLEM: {line}" for line in report.problems)

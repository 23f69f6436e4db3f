"""The findings of a check of the cabling, and their description."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class CablingReport:
    """The findings of a check of the cabling."""

    works: tuple[str, ...]
    """What works, in a line each."""
    notes: tuple[str, ...]
    """Findings that need not be faults."""
    problems: tuple[str, ...]
    """Faults, each with its place and its remedy."""


def describe_cabling(report: CablingReport) -> Iterator[str]:
    """The findings, in a line each."""
    yield from (f"  {line}" for line in report.works)
    yield from (f"  Note: {line}" for line in report.notes)
    yield from (f"  PROBLEM: {line}" for line in report.problems)

"""What a comparison says: its quantities, each with a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from lossratio import results
from lossratio.report.comparison.differences import Difference, Sample
from lossratio.report.verdict import Verdict

SEEMING = (Verdict.SEEMS_WORSE, Verdict.SEEMS_BETTER)
"""Verdicts that more runs have to confirm."""


@dataclass(frozen=True)
class ComparedQuantity:
    """One quantity of one test, before and after."""

    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR; with the device, if other devices were also measured."""
    findings_before: tuple[results.Finding, ...]
    """The findings before, including those without a value."""
    findings_after: tuple[results.Finding, ...]
    """The findings after, likewise; one of the two may be empty."""
    verdict: Verdict = Verdict.NOT_COMPARABLE
    """The verdict."""
    note: str = ""
    """Reason of the verdict and caveats of the values; may be empty."""
    difference: Difference | None = None
    """The difference of the values, or of their upper ends if that is smaller; None: one side has no values, or the
    sides are not comparable."""
    p_value: float | None = None
    """Probability, adjusted for the number of compared quantities; None: no statistical test."""
    number: int = 1
    """Position among the quantities of the comparison, from 1."""

    @property
    def link(self) -> str:
        """The name of its section on a page, to which addresses link."""
        return f"quantity-{self.number}"

    @property
    def words(self) -> str:
        """The text that a search on a page looks at, in lower case."""
        return self.newest.words

    @property
    def is_odd(self) -> bool:
        """Whether it changed, or seems to have changed."""
        return self.verdict in (Verdict.REGRESSION, Verdict.PROGRESSION, *SEEMING)

    @property
    def sides(self) -> tuple[tuple[str, tuple[results.Finding, ...]], ...]:
        """The findings of A and of B."""
        return ("A", self.findings_before), ("B", self.findings_after)

    @cached_property
    def before(self) -> Sample:
        """Values before, in the unit; rates are per interface."""
        return _sample(self.findings_before)

    @cached_property
    def after(self) -> Sample:
        """Values after, likewise."""
        return _sample(self.findings_after)

    @property
    def newest(self) -> results.Finding:
        """The newest finding, for what all of them share."""
        return (self.findings_after or self.findings_before)[-1]

    @cached_property
    def ends(self) -> tuple[list[results.Ends], list[results.Ends]]:
        """The ranges of the values before and after, because frames may be missing that the SUT did not lose."""
        return _ends_of(self.findings_before), _ends_of(self.findings_after)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sets of runs."""

    testbed: str
    """The testbed of all runs."""
    quantities: tuple[ComparedQuantity, ...]
    """The quantities, in the order of the tests."""
    problems: tuple[str, ...]
    """Parts of the runs that could not be read, tests that were cut off, and tests that measured nothing."""

    def having(self, *verdicts: Verdict) -> tuple[ComparedQuantity, ...]:
        """The quantities with one of some verdicts."""
        return tuple(one for one in self.quantities if one.verdict in verdicts)

    @property
    def by_verdict(self) -> list[ComparedQuantity]:
        """The quantities with the regressions first, in the order of the verdicts."""
        return sorted(self.quantities, key=attrgetter("verdict.order"))

    @property
    def worse(self) -> tuple[ComparedQuantity, ...]:
        """The quantities that got worse."""
        return tuple(one for one in self.having(Verdict.REGRESSION) if one.difference is not None)

    @property
    def broken(self) -> tuple[ComparedQuantity, ...]:
        """The quantities that no longer have a value."""
        return tuple(one for one in self.having(Verdict.REGRESSION) if one.difference is None)

    @property
    def undecided(self) -> tuple[ComparedQuantity, ...]:
        """The quantities about which nothing is proved."""
        return tuple(one for one in self.quantities if one.verdict.is_open)

    @property
    def has_verdict(self) -> bool:
        """Whether at least one quantity could be judged."""
        return len(self.undecided) < len(self.quantities)

    @property
    def is_undecided(self) -> bool:
        """Whether no quantity could be judged, or some seem worse."""
        return not self.has_verdict or bool(self.having(Verdict.SEEMS_WORSE))


def _sample(findings: Sequence[results.Finding]) -> Sample:
    """The values of those findings that have a value."""
    numbers = (results.number_of(finding.value) for finding in findings)
    return Sample(tuple(number for number in numbers if number is not None))


def _ends_of(findings: Sequence[results.Finding]) -> list[results.Ends]:
    """The ranges of the findings that have a value."""
    ranges = map(results.ends_of, findings)
    return [ends for ends in ranges if ends is not None]

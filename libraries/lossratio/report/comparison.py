"""Two sets of runs of the same tests, compared test by test: what got worse or better, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from lossratio.errors import ReportError
from lossratio.report.difference import Difference, Sample, adjusted, difference
from lossratio.report.findings import MRR, Finding, findings_of
from lossratio.report.model import ThroughputResult
from lossratio.report.run import Run

SIGNIFICANCE = 0.05
"""Adjusted probability below which a difference is taken for real."""

LEAST_CHANGE = 0.01
"""Changes of less than this, relative, are none: a search's own bounds are half of it apart."""


class Verdict(str, Enum):
    """What can be said about one quantity of one test."""

    REGRESSION = "regression"
    """It is lower than it was, and it is not chance; or it has no value any more."""
    PROGRESSION = "progression"
    """It is higher than it was, and it is not chance."""
    UNCHANGED = "no change"
    """There is no difference that matters or that chance would not make."""
    TOO_FEW = "too few results"
    """There are not enough results to tell a change from chance."""
    NOT_COMPARABLE = "not comparable"
    """Different things were measured."""


@dataclass(frozen=True)
class ComparedQuantity:
    """One quantity of one test, before and after.

    Attributes:
        test: Full name of the test.
        quantity: Name of the goal, or MRR.
        before: Aggregate rates before, frames per second.
        after: Aggregate rates after, frames per second.
        difference: How they differ; None: one side has no values.
        p_value: Probability adjusted for the number of quantities compared; None: there was no test.
        verdict: What can be said.
        note: Why, where the numbers do not say it; empty otherwise.
    """

    test: str
    quantity: str
    before: Sample
    after: Sample
    difference: Difference | None
    p_value: float | None
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sets of runs.

    Attributes:
        testbed: The testbed of all runs.
        quantities: The quantities, in the order of the tests.
        problems: What could not be read in the runs.
    """

    testbed: str
    quantities: tuple[ComparedQuantity, ...]
    problems: tuple[str, ...]

    @property
    def regressions(self) -> tuple[ComparedQuantity, ...]:
        """What got worse."""
        return tuple(each for each in self.quantities if each.verdict is Verdict.REGRESSION)

    @property
    def has_verdict(self) -> bool:
        """Whether anything can be said about any quantity."""
        unsaid = (Verdict.TOO_FEW, Verdict.NOT_COMPARABLE)
        return any(each.verdict not in unsaid for each in self.quantities)


def compare(before: Sequence[Run], after: Sequence[Run], *, least_change: float = LEAST_CHANGE) -> Comparison:
    """Compares two sets of runs.

    Args:
        before: Runs of what was.
        after: Runs of what is.
        least_change: Relative changes below this are none.

    Raises:
        ReportError: If they are from different testbeds, or have no test in common.
    """
    runs = (*before, *after)
    testbeds = {result.conditions.testbed.name for run in runs for result in run.results}
    if len(testbeds) != 1:
        named = ", ".join(sorted(testbeds)) or "none"
        raise ReportError(
            f"Only results of one testbed can be compared, as equal testbeds differ; these are of: {named}. "
            f"Give runs of one testbed."
        )
    old, new = _by_quantity(before), _by_quantity(after)
    if not set(old) & set(new):
        raise ReportError("The runs have no test in common, so there is nothing to compare.")
    compared = [_compared(key, old.get(key, []), new.get(key, [])) for key in dict.fromkeys((*old, *new))]
    problems = tuple(problem for run in runs for problem in run.problems)
    return Comparison(testbeds.pop(), tuple(_judged(compared, least_change)), problems)


def _by_quantity(runs: Sequence[Run]) -> dict[tuple[str, str], list[Finding]]:
    found: dict[tuple[str, str], list[Finding]] = {}
    for run in runs:
        for finding in findings_of(run.results):
            found.setdefault((finding.result.test.full_name, finding.quantity), []).append(finding)
    return found


def _compared(key: tuple[str, str], before: list[Finding], after: list[Finding]) -> ComparedQuantity:
    old, new = _sample(before), _sample(after)
    base = ComparedQuantity(*key, old, new, None, None, Verdict.NOT_COMPARABLE)
    if not (before and after):
        return replace(base, note="not in B" if before else "not in A")
    differing = _differing_conditions([*before, *after])
    if differing:
        return replace(base, note=f"the runs differ in {', '.join(differing)}")
    if not old.values:
        return replace(base, note=f"A has no value: {before[-1].reason}")
    if not new.values:
        return replace(base, verdict=Verdict.REGRESSION, note=f"B has no value: {after[-1].reason}")
    return replace(base, difference=difference(old, new), verdict=Verdict.TOO_FEW)


def _judged(compared: Sequence[ComparedQuantity], least_change: float) -> Iterator[ComparedQuantity]:
    """The same with verdicts, where there was a statistical test."""
    p_values = [None if each.difference is None else each.difference.p_value for each in compared]
    all_adjusted = iter(adjusted([value for value in p_values if value is not None]))
    for each, p_value in zip(compared, p_values, strict=True):
        if each.difference is None or p_value is None:
            yield each
        else:
            probability = next(all_adjusted)
            verdict = _verdict(each.difference.change, probability, least_change)
            yield replace(each, p_value=probability, verdict=verdict)


def _verdict(change: float, p_value: float, least_change: float) -> Verdict:
    if p_value >= SIGNIFICANCE or abs(change) < least_change:
        return Verdict.UNCHANGED
    return Verdict.PROGRESSION if change > 0.0 else Verdict.REGRESSION


def _sample(findings: Sequence[Finding]) -> Sample:
    return Sample(tuple(each.value.aggregate_fps for each in findings if each.value is not None))


def _differing_conditions(findings: Sequence[Finding]) -> list[str]:
    """What must be the same for two rates to mean the same, and is not."""
    aspects: dict[str, list[object]] = {
        "traffic profile": [each.result.conditions.traffic for each in findings],
        "directions": [each.result.conditions.load for each in findings],
        "kind of measurement": [each.result.kind for each in findings],
        "goal": [_goal(each) for each in findings],
    }
    return [name for name, values in aspects.items() if any(value != values[0] for value in values)]


def _goal(finding: Finding) -> object:
    if finding.quantity == MRR or not isinstance(finding.result, ThroughputResult):
        return None
    return next(each.goal for each in finding.result.goals if each.goal.name == finding.quantity)

"""Two sets of runs of the same tests, compared test by test: what got worse or better, and what cannot be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from lossratio.errors import ReportError
from lossratio.report.difference import Difference, Sample, adjusted, difference
from lossratio.report.run import Run
from lossratio.results import Finding, Outcome, TestResult, caveats_of, differing_aspects, findings_of

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
    new_results = _results(after)
    old_results = _without(_results(before), new_results)
    old, new = _by_quantity(old_results), _by_quantity(new_results)
    if not set(old) & set(new):
        raise ReportError("The runs have no test in common, so there is nothing to compare.")
    compared = [_compared(key, old.get(key, []), new.get(key, [])) for key in dict.fromkeys((*old, *new))]
    problems = tuple(problem for run in runs for problem in _problems(run))
    return Comparison(testbeds.pop(), tuple(_judged(compared, least_change)), problems)


def _results(runs: Sequence[Run]) -> list[TestResult]:
    """The results of some runs, each once: a run that was kept before it was resumed has most of them twice."""
    found: dict[str, list[TestResult]] = {}
    for result in (result for run in runs for result in run.results):
        same = found.setdefault(result.test.full_name, [])
        if result not in same:
            same.append(result)
    return [result for same in found.values() for result in same]


def _without(results: Sequence[TestResult], others: Sequence[TestResult]) -> list[TestResult]:
    """Leaves out what would be compared with itself, where there is something else to compare with."""
    rest = [result for result in results if result not in others]
    names = {result.test.full_name for result in rest}
    return [result for result in results if result in rest or result.test.full_name not in names]


def _by_quantity(results: Sequence[TestResult]) -> dict[tuple[str, str], list[Finding]]:
    found: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings_of(results):
        found.setdefault((finding.result.test.full_name, finding.quantity), []).append(finding)
    return found


def _problems(run: Run) -> Iterator[str]:
    yield from run.problems
    for each in run.cut_off:
        yield f"{run.path}: {each.name} was cut off."


def _compared(key: tuple[str, str], before: list[Finding], after: list[Finding]) -> ComparedQuantity:
    old, new = _sample(before), _sample(after)
    base = ComparedQuantity(*key, old, new, None, None, Verdict.NOT_COMPARABLE)
    if not (before and after):
        return replace(base, note="not in B" if before else "not in A")
    differing = differing_aspects([*before, *after])
    if differing:
        return replace(base, note=f"the runs differ in {', '.join(differing)}")
    if all(each.outcome is Outcome.FAILED for each in after) and _any_measured(before):
        return replace(base, verdict=Verdict.REGRESSION, note=f"B has no value: {after[-1].reason}")
    if not after[0].has_rate:
        return replace(base, note=f"what is measured as {after[0].quantity} is no single rate: see the reports")
    if not old.values:
        return replace(base, note=f"A has no value: {before[-1].reason}")
    if not new.values:
        return replace(base, verdict=Verdict.REGRESSION, note=f"B has no value: {after[-1].reason}")
    note = "; ".join((*_caveats("A", before), *_caveats("B", after)))
    return replace(base, difference=difference(old, new), verdict=Verdict.TOO_FEW, note=note)


def _any_measured(findings: Sequence[Finding]) -> bool:
    return any(each.outcome is not Outcome.FAILED for each in findings)


def _caveats(side: str, findings: Sequence[Finding]) -> Iterator[str]:
    """What is to be known about the values of one side, with how many of them it concerns."""
    counts = Counter(caveat for finding in findings for caveat in caveats_of(finding))
    for caveat, count in counts.items():
        yield f"{side}, {count} of {len(findings)} {caveat}"


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

"""Compares two sets of runs of the same tests: regressions, progressions and undecided; as a table, or JUnit cases."""

import math
import statistics
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any

from lossratio import results
from lossratio.errors import ReportError
from lossratio.report.junit import Case, of_stream
from lossratio.report.run import Run
from lossratio.report.tables import markdown_cell, markdown_table
from lossratio.units import FRAMES_PER_SECOND, Unit

RANK_TEST_LEAST = 5
"""Least number of results on both sides for a comparison of ranks."""
ONE_SIDED_LEAST = 3
"""Least number of results on one side if the other side has only one; their spread represents both sides."""
_ROUNDING = 1e-9
_NOT_IN_A, _NOT_IN_B = "not in A", "not in B"


@dataclass(frozen=True)
class Sample:
    """Results of repeated runs of one test."""

    values: tuple[float, ...]
    """The values, in any unit."""

    @property
    def mean(self) -> float:
        """Mean of the values; NaN if there are no values."""
        if self.values:
            return statistics.fmean(self.values)
        return math.nan

    @property
    def stdev(self) -> float | None:
        """Sample standard deviation; None: fewer than two values."""
        if len(self.values) > 1:
            return statistics.stdev(self.values)
        return None


@dataclass(frozen=True)
class Difference:
    """The difference of two samples."""

    change: float
    """Difference of the means, relative to the mean before; infinite if only the mean before is zero."""
    interval: tuple[float, float] | None
    """Confidence interval (95 %) of the relative change; None: too few values, no spread, or a mean of zero before."""
    test: str | None
    """Name of the statistical test; ``no spread``: the values of each side are all equal, so no test was made; None:
    too few values for a test."""
    p_value: float | None
    """Probability of a difference at least as large if nothing had changed; without spread, 1 for equal sides,
    otherwise 0; None: too few values for a test."""


def difference(before: Sample, after: Sample) -> Difference:
    """Compares two samples, neither of which may be empty.

    Only the numbers of results select the statistical test, never the values:

    * five or more on both sides: Mann-Whitney's rank test, because rates of software are rarely normally distributed,
    * two or more on both sides: Welch's t test,
    * one on one side, three or more on the other: Student's t test with the larger side's spread,
    * fewer: no test, because nothing distinguishes a change from the spread of repeated runs.
    """
    change = _relative(after.mean - before.mean, before.mean)
    sizes = sorted((len(before.values), len(after.values)))
    if sizes[0] >= RANK_TEST_LEAST:
        # Imported here and below because importing scipy.stats takes a second, and most reports do not need it.
        from scipy import stats

        ranked = stats.mannwhitneyu(before.values, after.values, alternative="two-sided")
        test = "Mann-Whitney"
        p_value = float(ranked.pvalue)
    elif sizes[0] >= 2:
        test = "Welch"
        p_value = _t_test(before, after, equal_variances=False)
    elif sizes[1] >= ONE_SIDED_LEAST:
        test = "Student"
        p_value = _t_test(before, after, equal_variances=True)
    else:
        return Difference(change, None, None, None)

    if sizes[0] >= RANK_TEST_LEAST or _have_spread(before, after):
        named = test
    else:
        named = "no spread"

    return Difference(change, _interval(before, after), named, p_value)


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusts the probabilities of many tests, so that few of the significant differences are wrong.

    Benjamini and Hochberg's procedure: of all tests with an adjusted probability below 0.05, at most 5 % are expected
    to be wrong.
    """
    from scipy import stats

    if p_values:
        return [float(value) for value in stats.false_discovery_control(p_values)]
    return []


def _relative(change: float, before: float) -> float:
    if before == 0.0:
        if change == 0.0:
            return 0.0
        return math.copysign(math.inf, change)
    return change / abs(before)


def _t_test(before: Sample, after: Sample, *, equal_variances: bool) -> float:
    if not _have_spread(before, after):
        # Without spread, every difference is significant, and the t statistic would divide by zero.
        if before.mean == after.mean:
            return 1.0
        return 0.0
    return float(_tested(before, after, equal_variances).pvalue)


def _tested(one: Sample, other: Sample, equal_variances: bool) -> Any:
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns if all values of one side are equal. Policed rates often are, and the test is precise enough.
        warnings.simplefilter("ignore", RuntimeWarning)
        return stats.ttest_ind(one.values, other.values, equal_var=equal_variances)


def _have_spread(*samples: Sample) -> bool:
    return any((sample.stdev or 0.0) > _ROUNDING * abs(sample.mean) for sample in samples)


def _interval(before: Sample, after: Sample) -> tuple[float, float] | None:
    """The t test's confidence interval of the difference of the means, relative to the mean before."""
    if before.mean == 0.0 or not _have_spread(before, after):
        return None
    equal_variances = min(len(before.values), len(after.values)) < 2
    interval = _tested(after, before, equal_variances).confidence_interval(0.95)
    return float(interval.low) / abs(before.mean), float(interval.high) / abs(before.mean)


SIGNIFICANCE = 0.05
"""Adjusted probability below which a difference counts as real."""
LEAST_CHANGE = 0.01
"""Smaller relative changes do not count: the bounds of one search are half of this apart."""
_HEADER = ("test", "goal", "stream", "A", "B", "change", "95 % interval", "p", "verdict")


class Verdict(str, Enum):
    """The verdict on one quantity of one test."""

    REGRESSION = "regression"
    """The quantity is worse, and chance does not explain it; or the quantity no longer has a value."""
    PROGRESSION = "progression"
    """The quantity is better, and chance does not explain it."""
    UNCHANGED = "no change"
    """The difference is too small to matter, or chance explains it."""
    TOO_FEW = "too few results"
    """There are not enough results to distinguish a change from chance."""
    NOT_COMPARABLE = "not comparable"
    """The two sides measured different quantities, lack a value, or differ in frames that the SUT did not lose."""


_STATES = {
    Verdict.REGRESSION: "failure",
    Verdict.TOO_FEW: "skipped",
    Verdict.NOT_COMPARABLE: "skipped",
}


@dataclass(frozen=True)
class ComparedQuantity:
    """One quantity of one test, before and after."""

    test: str
    """Full name of the test."""
    quantity: str
    """Name of the goal, or MRR; with the device, if other devices were also measured."""
    before: Sample
    """Values before, in the unit; rates are per interface."""
    after: Sample
    """Values after, likewise."""
    difference: Difference | None
    """The difference of the values, or of their upper ends if that is smaller; None: one side has no values, or the
    sides are not comparable."""
    p_value: float | None
    """Probability, adjusted for the number of compared quantities; None: no statistical test."""
    verdict: Verdict
    """The verdict."""
    note: str = ""
    """Reason of the verdict and caveats of the values; may be empty."""
    unit: Unit = FRAMES_PER_SECOND
    """The unit of the values."""
    findings_before: tuple[results.Finding, ...] = ()
    """The findings before, including those without a value."""
    findings_after: tuple[results.Finding, ...] = ()
    """The findings after, likewise."""

    @cached_property
    def ends(self) -> tuple[list[results.Ends], list[results.Ends]]:
        """The ranges of the values before and after, because frames may be missing that the SUT did not lose."""
        sides = (self.findings_before, self.findings_after)
        before, after = (
            [ends for one in side if (ends := results.ends_of(one)) is not None] for side in sides
        )
        return before, after

    @property
    def stream(self) -> str | None:
        """The stream whose loss alone counts; None: the loss of all frames counts."""
        return next((one.stream for one in (*self.findings_after, *self.findings_before)), None)

    @property
    def resolution(self) -> float | None:
        """The width of the search's goal, relative to the upper bound; None: there is none."""
        return next((one.resolution for one in (*self.findings_after, *self.findings_before)), None)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sets of runs."""

    testbed: str
    """The testbed of all runs."""
    quantities: tuple[ComparedQuantity, ...]
    """The quantities, in the order of the tests."""
    problems: tuple[str, ...]
    """Parts of the runs that could not be read, tests that were cut off, and tests that measured nothing."""

    @property
    def regressions(self) -> tuple[ComparedQuantity, ...]:
        """The quantities that got worse."""
        return tuple(
            quantity for quantity in self.quantities if quantity.verdict is Verdict.REGRESSION
        )

    @property
    def has_verdict(self) -> bool:
        """Whether at least one quantity could be judged."""
        unsaid = (Verdict.TOO_FEW, Verdict.NOT_COMPARABLE)
        return any(quantity.verdict not in unsaid for quantity in self.quantities)


def compare(
    before: Sequence[Run], after: Sequence[Run], *, least_change: float = LEAST_CHANGE
) -> Comparison:
    """Compares two sets of runs, older and newer ones.

    Args:
        before: The older runs.
        after: The newer runs.
        least_change: Smaller changes, relative to the earlier value, do not count.

    Raises:
        ReportError: If the runs are from different testbeds, have no results, or have no test in common.
    """
    runs = (*before, *after)
    testbeds = {result.conditions.testbed.name for run in runs for result in run.results}
    if not testbeds:
        raise ReportError(
            "There are no results to compare. 'lossratio report DIR' shows why nothing was measured."
        )
    if len(testbeds) != 1:
        named = ", ".join(sorted(testbeds))
        raise ReportError(
            "Only results from one testbed can be compared, because even identical testbeds "
            f"differ. These come from: {named}. Name runs from one testbed."
        )

    names = _names_now(result.test for run in runs for result in run.results)
    old_results, new_results = _results(before, names), _results(after, names)
    # Results that would be compared with themselves are left out, if the test has other results.
    rest = [result for result in old_results if result not in new_results]
    others = {names[result.test.full_name] for result in rest}
    old_results = [
        result
        for result in old_results
        if result in rest or names[result.test.full_name] not in others
    ]
    old, new = results.apart_by_device(
        _by_quantity(old_results, names), _by_quantity(new_results, names)
    )
    empty_in_a, empty_in_b = _unmeasured(before, "A"), _unmeasured(after, "B")
    compared = []

    for key in dict.fromkeys((*old, *new)):
        not_in_a = empty_in_a.get(key[0], _NOT_IN_A)
        not_in_b = empty_in_b.get(key[0], _NOT_IN_B)
        compared.append(_compared(key, old.get(key, []), new.get(key, []), (not_in_a, not_in_b)))

    if all(one.note in (_NOT_IN_A, _NOT_IN_B) for one in compared):
        raise ReportError("There is nothing to compare: the runs have no test in common.")
    return Comparison(
        testbeds.pop(), tuple(_judged(compared, least_change)), tuple(_problems(runs))
    )


def _problems(runs: Sequence[Run]) -> Iterator[str]:
    """What is missing in some runs, with their paths."""
    for run in runs:
        # The messages about files name them.
        yield from run.problems
        yield from (
            f"{run.path}: {' '.join(lack.split())}" for lack in run.lacks[len(run.problems) :]
        )


def _names_now(tests: Iterable[results.TestIdentity]) -> dict[str, str]:
    """The names by which tests are compared, by their full names.

    A result of an earlier version has Robot Framework's full name; its test is the present test whose name fits, if
    there is only one.
    """
    known = list(tests)
    identities = {test.full_name for test in known if test.long_name is not None}
    earlier = {test.full_name for test in known} - identities
    now = {
        name: fits[0]
        for name, fits in results.fitting(earlier, identities).items()
        if len(fits) == 1
    }
    return {name: now.get(name, name) for name in identities | earlier}


def _results(runs: Sequence[Run], names: Mapping[str, str]) -> list[results.TestResult]:
    """The results of the runs without repetitions: a copy of a run and the resumed run share most of their results."""
    by_test: dict[str, list[results.TestResult]] = {}
    for result in (result for run in runs for result in run.results):
        of_test = by_test.setdefault(names[result.test.full_name], [])
        if result not in of_test:
            of_test.append(result)
    return [result for of_test in by_test.values() for result in of_test]


def _unmeasured(runs: Sequence[Run], side: str) -> dict[str, str]:
    """Why a side has no result of some tests, by their full names."""
    skipped = {
        test.full_name: f"{alike.what} in {side}"
        for run in runs
        for alike in run.skipped
        for test in alike.tests
    }
    return skipped | {
        test.name: f"{side} measured nothing" for run in runs for test in run.unmeasured
    }


def _by_quantity(
    measured: Sequence[results.TestResult], names: Mapping[str, str]
) -> dict[tuple[str, str], list[results.Finding]]:
    by_quantity: dict[tuple[str, str], list[results.Finding]] = {}
    for finding in results.findings_of(measured):
        by_quantity.setdefault((names[finding.result.test.full_name], finding.quantity), []).append(
            finding
        )
    return by_quantity


def _compared(
    key: tuple[str, str],
    before: list[results.Finding],
    after: list[results.Finding],
    absent: tuple[str, str],
) -> ComparedQuantity:
    """Compares the findings of a quantity; the words are for quantities that are missing in A, and in B."""
    old, new = _sample(before), _sample(after)
    base = ComparedQuantity(*key, old, new, None, None, Verdict.NOT_COMPARABLE)
    base = replace(
        base,
        unit=(after or before)[-1].unit,
        findings_before=tuple(before),
        findings_after=tuple(after),
    )
    if not (before and after):
        return replace(base, note=absent[1] if before else absent[0])

    for side, findings in (("A", before), ("B", after)):
        if all(
            finding.result.error in (results.INTERRUPTED, results.TERMINATED)
            for finding in findings
        ):
            return replace(
                base, note=f"{side} was interrupted: resume it with lossratio run --resume"
            )

    differing = results.differing_aspects([*before, *after])
    if differing:
        return replace(base, note=f"the runs differ in {', '.join(differing)}")

    if any(one.is_as_before for one in (*before, *after)):
        side, one = next(
            (side, one)
            for side, findings in (("B", after), ("A", before))
            for one in findings
            if one.is_as_before
        )
        return replace(base, note=f"{side} was not searched: {one.reason}")

    # Frames that the generator could not send, or a TG that failed, say nothing about the SUT.
    if all(map(results.unsent_share_of, after)):
        missing = Verdict.NOT_COMPARABLE
    else:
        missing = Verdict.REGRESSION

    if all(one.outcome is results.Outcome.FAILED for one in after) and any(
        one.outcome is not results.Outcome.FAILED for one in before
    ):
        return replace(base, verdict=missing, note=f"B has no value: {after[-1].reason}")
    if not after[0].has_value:
        return replace(base, note=f"{after[0].quantity} has no single value: see the reports")
    if not old.values:
        return replace(base, note=f"A has no value: {before[-1].reason}")
    if not new.values:
        return replace(base, verdict=missing, note=f"B has no value: {after[-1].reason}")

    notes = [*_missing_frames(base), *_caveats("A", before), *_caveats("B", after)]
    generators = [
        {results.generator_of(one.result) for one in findings} - {None}
        for findings in (before, after)
    ]
    if len(set.union(*generators)) > 1:
        kinds = [" and ".join(sorted(map(str, side))) or "not known" for side in generators]
        notes = [
            (
                f"the traffic generators differ (A: {kinds[0]}; B: {kinds[1]}), which may explain the "
                "difference"
            ),
            *notes,
        ]

    return replace(
        base, difference=difference(old, new), verdict=Verdict.TOO_FEW, note="; ".join(notes)
    )


def _missing_frames(compared: ComparedQuantity) -> Iterator[str]:
    """The share of missing frames that the SUT did not lose, for each side that has such frames."""
    for name, side in zip("AB", compared.ends, strict=True):
        words = results.share_in_words(one.share for one in side)
        if words:
            yield f"{name}: up to {words}"


def _caveats(side: str, findings: Sequence[results.Finding]) -> Iterator[str]:
    for caveat, count in Counter(
        caveat for finding in findings for caveat in results.caveats_of(finding)
    ).items():
        yield f"{side}, {count} of {len(findings)} {caveat}"


def _judged(
    compared: Sequence[ComparedQuantity], least_change: float
) -> Iterator[ComparedQuantity]:
    """The verdicts on the values as they are, and on their upper ends."""
    as_they_are = [one.difference for one in compared]
    at_their_most = [
        None if one.difference is None else difference_at_most(*one.ends, one.unit, one.difference)
        for one in compared
    ]
    sides = zip(compared, _adjusted(as_they_are), _adjusted(at_their_most), strict=True)
    for one, plain, most in sides:
        yield (
            one
            if plain is None
            else _verdict(one, plain, most, results.least_news(least_change, one.resolution))
        )


def _adjusted(differences: Sequence[Difference | None]) -> list[Difference | None]:
    """The differences that were tested, each with its probability adjusted for the number of them."""
    p_values = [None if one is None else one.p_value for one in differences]
    probabilities = iter(adjusted([p_value for p_value in p_values if p_value is not None]))
    return [
        None if one is None or p_value is None else replace(one, p_value=next(probabilities))
        for one, p_value in zip(differences, p_values, strict=True)
    ]


def difference_at_most(
    before: Sequence[results.Ends], after: Sequence[results.Ends], unit: Unit, plain: Difference
) -> Difference | None:
    """The difference of the upper ends of values, if frames are missing that the SUT did not lose; None: not known.

    Args:
        before: The ranges of the values before.
        after: The ranges of the values after.
        unit: The unit of the values.
        plain: The difference of the values as they are.
    """
    if all(one.least == one.most for one in (*before, *after)):
        return plain
    old, new = (results.at_most(side, unit) for side in (before, after))
    if not old or not new:
        return None
    no_end = [any(map(math.isinf, side)) for side in (old, new)]
    if all(no_end):
        return None
    if any(no_end):
        # A value that is only a lower bound may be larger, and so may its distance from known values.
        return replace(plain, change=-math.inf if no_end[0] else math.inf)
    return difference(Sample(tuple(old)), Sample(tuple(new)))


def real_change(found: Difference | None, least_change: float) -> float | None:
    """A change that is large enough to matter and that chance does not explain; None: there is none, or not known.

    Args:
        found: The difference of two samples; None: there is none.
        least_change: Smaller changes, relative to the mean before, do not matter.
    """
    if (
        found is None
        or found.p_value is None
        or found.p_value >= SIGNIFICANCE
        or abs(found.change) < least_change
    ):
        return None
    return found.change


def _verdict(
    compared: ComparedQuantity, plain: Difference, most: Difference | None, least_change: float
) -> ComparedQuantity:
    changes = [real_change(one, least_change) for one in (plain, most)]
    change = results.agreed_change(*changes)
    if change is not None:
        weaker = min(filter(None, (plain, most)), key=lambda one: abs(one.change))
    else:
        weaker = plain

    p_value = max(one.p_value or 0.0 for one in (plain, most) if one is not None)
    notes = [compared.note]

    if change is not None:
        if compared.unit.is_better(change):
            verdict = Verdict.PROGRESSION
        else:
            verdict = Verdict.REGRESSION

        if change != plain.change and any(one.share for side in compared.ends for one in side):
            notes.append(_both_changes(plain, weaker))
    elif changes == [None, None] or (
        changes[0] is None and most is not None and math.isinf(most.change)
    ):
        verdict = Verdict.UNCHANGED
    else:
        verdict = Verdict.NOT_COMPARABLE
        notes.insert(
            0, "frames that the generator did not send or did not count may explain the difference"
        )
        if most is not None and abs(most.change) < abs(plain.change):
            # No verdict is based on either; the smaller one promises the least.
            weaker = most
            notes.append(_both_changes(plain, most))

    note = "; ".join(filter(None, notes))
    return replace(compared, difference=weaker, p_value=p_value, verdict=verdict, note=note)


def _both_changes(plain: Difference, most: Difference) -> str:
    return (
        f"{100 * plain.change:+.2f} % as measured, {100 * most.change:+.2f} % if these frames had "
        "passed"
    )


def _sample(findings: Sequence[results.Finding]) -> Sample:
    return Sample(
        tuple(
            value for finding in findings if (value := results.number_of(finding.value)) is not None
        )
    )


def comparison_table(comparison: Comparison) -> str:
    """Formats the comparison as a table of plain text, with a summary below."""
    rows = _rows(comparison.quantities)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join((*lines, "", *summary_of(comparison)))


def comparison_markdown(comparison: Comparison) -> str:
    """Formats the comparison as Markdown: the summary, then a table with the regressions first."""
    order = list(Verdict)
    quantities = sorted(comparison.quantities, key=lambda compared: order.index(compared.verdict))
    summary = [markdown_cell(line) for line in summary_of(comparison)]
    head, *rows = _rows(quantities)
    return "\n".join((*summary, "", *markdown_table(head, rows)))


def _rows(quantities: Sequence[ComparedQuantity]) -> list[tuple[str, ...]]:
    """The column headings, and the cells of each quantity; without streams, there is no column for them."""
    cells = itemgetter(
        *(head for head in _HEADER if head != "stream" or any(one.stream for one in quantities))
    )
    return [
        cells(dict(zip(_HEADER, _HEADER, strict=True))),
        *map(cells, map(quantity_in_words, quantities)),
    ]


def comparison_cases(comparison: Comparison) -> list[Case]:
    """Converts the comparison into JUnit cases: a regression is a failure, an undecided quantity is skipped."""
    return [
        Case(
            one.test,
            one.quantity,
            state=_STATES.get(one.verdict, "passed"),
            message=text,
            output=text,
            properties=of_stream(one.stream),
        )
        for one in comparison.quantities
        for text in [describe_quantity(one)]
    ]


def describe_quantity(compared: ComparedQuantity) -> str:
    """Describes one quantity in one line."""
    *_, before, after, change, interval, p_value, verdict = quantity_in_words(compared).values()
    if compared.difference is None:
        return verdict
    return f"{verdict}: {before} before, {after} after: {change} (95 % interval {interval}; p {p_value})"


def quantity_in_words(compared: ComparedQuantity) -> Mapping[str, str]:
    """The cells of a quantity's row, by the column headings of the table."""
    difference = compared.difference
    interval = None if difference is None else difference.interval
    change = "-"
    p_value = "-"
    ends = "-"
    if difference is not None:
        change = f"{100 * difference.change:+.2f} %"
        if difference.test is not None:
            p_value = f"{compared.p_value:.2g} ({difference.test})"
            if compared.before.mean:
                ends = "none: the values do not vary"
    if interval is not None:
        ends = " to ".join(f"{100 * end:+.2f}" for end in interval)

    verdict = compared.verdict.value
    if compared.note:
        verdict = f"{verdict}: {compared.note}"

    cells = (
        compared.test,
        compared.quantity,
        compared.stream or "",
        _sample_in_words(compared.before, compared.unit),
        _sample_in_words(compared.after, compared.unit),
        change,
        ends,
        p_value,
        verdict,
    )

    return dict(zip(_HEADER, cells, strict=True))


def _sample_in_words(sample: Sample, unit: Unit) -> str:
    if not sample.values:
        return "none"

    if sample.stdev is None:
        spread = ""
    else:
        spread = f" ± {100 * sample.stdev / sample.mean if sample.mean else 0.0:.2f} %"

    return f"{unit.format(sample.mean)}{spread} (n={len(sample.values)})"


def summary_of(comparison: Comparison) -> Iterator[str]:
    """How many quantities have which verdict, what to do without any verdict, and what is missing, in lines."""
    counts = {
        verdict: sum(compared.verdict is verdict for compared in comparison.quantities)
        for verdict in Verdict
    }
    summary = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)

    yield (
        f"Testbed {comparison.testbed}: {summary}. "
        "Rates are per interface; p is adjusted for the number of comparisons."
    )
    if not comparison.has_verdict:
        yield (
            "No verdict yet: repeat the runs at least twice on both sides, or three times on one "
            "side."
        )
    yield from results.quick_goals_in(compared.quantity for compared in comparison.quantities)
    yield from (f"Missing: {problem}" for problem in comparison.problems)

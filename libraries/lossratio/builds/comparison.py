"""Which of two builds is faster: measured alternately until the verdict on every test is clear, and no longer.

Builds are measured in blocks of A, B, B, A, so that a steady drift of the testbed during a block cancels out. Each
block gives one relative difference, and after each block the interval of the difference is computed. The chance that
any of these intervals misses the truth is limited, not only the chance for a single interval.

If hundreds of measurements are cheap, builds are measured in pairs instead, in random order.
"""

import math
import random
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from html import escape
from statistics import fmean, median

from lossratio.builds.asking import WHOLE, AsBefore, Wanted
from lossratio.builds.measuring import BuildRecord, Measure
from lossratio.errors import BuildError, SearchError
from lossratio.exit_status import ExitStatus
from lossratio.results import Ends, share_in_words

_MIXTURE = 0.005
"""Precision of the mixture over the difference in standard deviations. With it, two blocks that agree perfectly are
enough: ((2 + m) / m) ** 0.5 is just above 20, which a certainty of 95 % requires."""
_FEW_BLOCKS, _WIDE = 8, 4.5
"""From this many blocks on, a block counts as at most this many times the median distance away from the median: three
standard deviations of normal values."""


class Build(str, Enum):
    """The builds that are compared."""

    A = "A"
    """The build to compare with, e.g. the parent of a patch."""
    B = "B"
    """The build to judge, e.g. a patch."""


_BLOCK = (Build.A, Build.B, Build.B, Build.A)


class ComparisonVerdict(str, Enum):
    """The verdict on build B, compared with A."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """Any difference is too small to matter."""
    UNDECIDED = "undecided"
    """The limit was reached before the verdict was clear."""


@dataclass(frozen=True)
class ComparisonResult:
    """The difference of two builds, if it is known."""

    verdict: ComparisonVerdict
    """The verdict on B."""
    difference: float | None
    """The difference of the means of whole blocks, relative to A's; None before the first block is whole."""
    interval: tuple[float, float]
    """The interval that contains the relative difference with the requested certainty; infinite before two blocks are
    whole."""
    measurements: int
    """Number of measurements of both builds."""
    share: float = 0.0
    """Largest share of missing frames at a load that neither build lost; 0: there are few of them."""
    measured: float | None = None
    """The difference as measured, if it differs from the difference with these frames passed."""
    missed: float | None = None
    """The probability that a build with the least change is called *as before*; None: not all measurements asked
    whether the builds are as before."""


@dataclass(frozen=True)
class AbRequest:
    """The request for a comparison."""

    least_change: float = 0.01
    """The smallest relative difference that matters; smaller ones are ``same``."""
    limit: int = 40
    """The most measurements, of both builds together."""
    certainty: float = 0.95
    """Probability that no interval of a test's comparison misses the truth."""
    pairs: bool = False
    """Whether builds are measured in pairs in random order, instead of blocks A B B A: at least 16 measurements, and no
    assumption about noise."""


class BuildComparison:
    """Asks for measurements of two builds, and compares them.

    Raises:
        SearchError: If the request is out of range.
    """

    def __init__(self, request: AbRequest) -> None:
        least_change = request.least_change
        limit = request.limit
        certainty = request.certainty
        if not 0.0 < least_change < 1.0:
            raise SearchError(f"The least change is a share between 0 and 1, not {least_change!r}.")
        if not 0.5 <= certainty < 1.0:
            raise SearchError(f"A certainty must be at least 0.5 and below 1, not {certainty!r}.")
        if limit < 2 * len(_BLOCK):
            raise SearchError(
                f"A comparison needs at least {2 * len(_BLOCK)} measurements, not {limit}."
            )

        self._least_change = least_change
        self._doubt = 1.0 - certainty
        self._limit = limit
        self._values: list[float] = []
        # The inverse of `_relative`.
        share = 2.0 * least_change / (2.0 + least_change)
        self._pairs = _Pairs(share, self._doubt) if request.pairs else None

    def next_build(self) -> Build | None:
        """The build to measure; None if the verdict is clear, or the limit is reached."""
        block = _BLOCK if self._pairs is None else self._pairs.order
        index = len(self._values) % len(block)
        if index == 0:
            ended = self._verdict() is not ComparisonVerdict.UNDECIDED
            if ended or len(self._values) + len(block) > self._limit:
                return None
        return block[index]

    def record(self, value: float) -> None:
        """Records the throughput of the build that `next_build` named.

        Args:
            value: The throughput: a number in any unit, the same for both builds.

        Raises:
            SearchError: If the comparison has ended, the value is not a throughput, or build A
                forwards nothing.
        """
        if self.next_build() is None:
            raise SearchError("The comparison has ended and accepts no further measurement.")
        if not 0.0 <= value < math.inf:
            raise SearchError(f"A throughput is a number of at least 0, not {value!r}.")
        if value == 0.0 and self.next_build() is Build.A:
            raise SearchError(
                "Build A forwards nothing, so there is no relative difference. Compare with a build that works."
            )
        self._values.append(value)
        if self._pairs is not None and len(self._values) % 2 == 0:
            self._pairs.add(*self._values[-2:])

    def result(self) -> ComparisonResult:
        """The difference so far."""
        differences = self._differences()
        # A few pairs in which the machine stalled do not move the median.
        middle = fmean if self._pairs is None else median
        mean = _relative(middle(differences)) if differences else None
        return ComparisonResult(self._verdict(), mean, self._interval(), len(self._values))

    def _differences(self) -> list[float]:
        """The differences of blocks as a share of the mean of both builds.

        This treats A and B alike, so a stall of the machine makes as many large values on one side as on the other.
        From some number of blocks on, such values count as the largest of the others.
        """
        if self._pairs is not None:
            return self._pairs.differences
        whole = len(self._values) // len(_BLOCK) * len(_BLOCK)
        blocks = [
            self._values[start : start + len(_BLOCK)] for start in range(0, whole, len(_BLOCK))
        ]
        sums = [(first + last, second + third) for first, second, third, last in blocks]
        differences = [2.0 * (b - a) / (a + b) if a + b else 0.0 for a, b in sums]
        if len(differences) < _FEW_BLOCKS:
            return differences
        middle = median(differences)
        room = _WIDE * median(abs(difference - middle) for difference in differences)
        return [min(max(difference, middle - room), middle + room) for difference in differences]

    def _interval(self) -> tuple[float, float]:
        """A confidence sequence for a mean of normal values of unknown variance.

        For every mean, the mixture over effects of N(0, 1 / m) standard deviations against none, with the variance
        integrated out, is sqrt(m / (n + m)) (1 - S^2 / ((n + m) V))^(-n / 2), with S and V the sums of the deviations
        from that mean and of their squares. It is a test martingale, so the probability that it ever exceeds
        1 / doubt is at most the doubt (Ville's inequality). The interval has the means at which it does not.
        """
        if self._pairs is not None:
            low, high = _interval(self._pairs.differences, self._doubt)
            return _relative(low), _relative(high)

        values = self._differences()
        n = len(self._differences())
        if n < 2:
            return -math.inf, math.inf

        share = 1.0 - (self._doubt * math.sqrt(_MIXTURE / (n + _MIXTURE))) ** (2.0 / n)
        room = n - share * (n + _MIXTURE)
        if room <= 0.0:
            return -math.inf, math.inf

        mean = fmean(values)
        half = math.sqrt(
            share * (n + _MIXTURE) * sum((value - mean) ** 2 for value in values) / (n * room)
        )
        return _relative(mean - half), _relative(mean + half)

    def _verdict(self) -> ComparisonVerdict:
        if self._pairs is not None:
            return self._pairs.verdict
        low, high = self._interval()
        if -self._least_change < low and high < self._least_change:
            return ComparisonVerdict.SAME
        if low > 0.0:
            return ComparisonVerdict.FASTER
        if high < 0.0:
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED


_BETS = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Stakes per unit of distance: small ones find small differences, large ones need few pairs for large differences."""
_LONGEST = 2.0
"""A difference counts as at most this many median distances, because a stall of the machine is no better evidence."""


class Signs:
    """Evidence that differences lie above a centre, and that they lie below it.

    The order of the two builds in each pair is random. So whatever the machine does, a pair's difference is as likely
    above zero as below it if the builds are the same. Nothing else is assumed: no distribution, no steady machine.

    For each stake, it computes the wealth of a gambler who bets on the signs: each factor exp(stake * distance) /
    cosh(stake * distance) has the mean 1 for a fair coin, so the mean of all stakes' wealth is a test martingale. The
    distance is measured in medians of the distances so far, which do not depend on signs.
    """

    def __init__(self, centre: float, differences: Iterable[float] = ()) -> None:
        self._centre = centre
        self._distances: list[float] = []
        self._above, self._below = [0.0] * len(_BETS), [0.0] * len(_BETS)
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """Adds the difference of another pair."""
        off = difference - self._centre
        insort(self._distances, abs(off))
        middle = self._distances[len(self._distances) // 2]
        distance = math.copysign(min(abs(off) / middle, _LONGEST) if middle else 0.0, off)
        for index, stake in enumerate(_BETS):
            fair = math.log(math.cosh(stake * distance))
            self._above[index] += stake * distance - fair
            self._below[index] -= stake * distance + fair

    @property
    def above(self) -> float:
        """Logarithm of the evidence that differences lie above the centre."""
        return _mean(self._above)

    @property
    def below(self) -> float:
        """Logarithm of the evidence that differences lie below the centre."""
        return _mean(self._below)


def _interval(differences: list[float], doubt: float) -> tuple[float, float]:
    """The centres that neither side's evidence speaks against; infinite if there are too few differences."""
    needed = math.log(2.0 / doubt)
    if len(differences) < 2:
        return -math.inf, math.inf
    least, most = min(differences), max(differences)
    room = max(most - least, 1e-9)
    return (
        _border(lambda centre: Signs(centre, differences).above >= needed, least - room, most),
        _border(lambda centre: Signs(centre, differences).below >= needed, most + room, least),
    )


def _border(is_excluded: Callable[[float], bool], outside: float, inside: float) -> float:
    if not is_excluded(outside):
        return math.copysign(math.inf, outside - inside)
    for _ in range(30):
        middle = 0.5 * (outside + inside)
        outside, inside = (middle, inside) if is_excluded(middle) else (outside, middle)
    return outside


def _mean(logarithms: list[float]) -> float:
    most = max(logarithms)
    return most + math.log(sum(math.exp(one - most) for one in logarithms) / len(logarithms))


class _Pairs:
    """Pairs of measurements, one of each build, in random order.

    The least change is a share of the mean of both builds; the verdict is wrong with at most the probability `doubt`.
    """

    def __init__(self, least_change: float, doubt: float) -> None:
        self.differences: list[float] = []
        # The same draws each time, so that an interrupted comparison can continue.
        self._coin = random.Random(0)
        self._needed = math.log(2.0 / doubt)
        self._zero, self._low, self._high = (
            Signs(centre) for centre in (0.0, -least_change, least_change)
        )
        self._draw()

    def add(self, first: float, second: float) -> None:
        a, b = (first, second) if self.order[0] is Build.A else (second, first)
        self.differences.append(2.0 * (b - a) / (a + b) if a + b else 0.0)
        for signs in (self._zero, self._low, self._high):
            signs.add(self.differences[-1])
        self._draw()

    @property
    def verdict(self) -> ComparisonVerdict:
        if self._low.above >= self._needed and self._high.below >= self._needed:
            return ComparisonVerdict.SAME
        if self._zero.above >= self._needed:
            return ComparisonVerdict.FASTER
        if self._zero.below >= self._needed:
            return ComparisonVerdict.SLOWER
        return ComparisonVerdict.UNDECIDED

    def _draw(self) -> None:
        self.order = self._coin.choice(((Build.A, Build.B), (Build.B, Build.A)))


def _relative(difference: float) -> float:
    """B / A - 1, from their difference as a share of their mean."""
    if difference >= 2.0:
        return math.inf
    return max(-1.0, 2.0 * difference / (2.0 - difference))


class _BothEnds:
    """Two comparisons of one test: of the values as they are, and of their upper ends."""

    def __init__(self, request: AbRequest) -> None:
        self._as_they_are, self._at_their_most = BuildComparison(request), BuildComparison(request)
        self._share = 0.0

    def next_build(self) -> Build | None:
        return self._as_they_are.next_build() or self._at_their_most.next_build()

    def record(self, value: Ends) -> None:
        for comparison, end in (
            (self._as_they_are, value.least),
            (self._at_their_most, value.most),
        ):
            if comparison.next_build() is not None:
                self._share = max(self._share, value.share)
                comparison.record(end)

    def result(self) -> ComparisonResult:
        """The verdict that both share, with the smaller difference; otherwise undecided."""
        plain, most = self._as_they_are.result(), self._at_their_most.result()
        weaker = plain
        if None not in (plain.difference, most.difference):
            # Without a common sign, the smaller one is no verdict, and promises the least.
            weaker = min(plain, most, key=_size)
        if plain.verdict is not most.verdict:
            weaker = replace(weaker, verdict=ComparisonVerdict.UNDECIDED)
        measured = None if weaker.difference == plain.difference else plain.difference
        return replace(
            weaker,
            measurements=max(plain.measurements, most.measurements),
            share=self._share,
            measured=measured,
        )


def _size(result: ComparisonResult) -> float:
    return abs(result.difference or 0.0)


def compare_builds(
    request: AbRequest,
    record: BuildRecord,
    measure: Measure,
    show: Callable[[str], None],
    *,
    asks: bool = False,
) -> dict[str, ComparisonResult]:
    """Measures two builds alternately, and compares each test. Measurements that are already in the record count.

    Args:
        request: When the comparison ends.
        record: What was measured until now.
        measure: Measures a build.
        show: Called with a line of text for each measurement.
        asks: Whether the builds are first asked whether they are as in earlier searches. Only tests in which one of
            them is not are compared by searches.

    Raises:
        BuildError: If a build cannot be measured, or its tests are not the same each time.
        SearchError: If the request is out of range.
    """
    same: dict[str, ComparisonResult] = {}
    wanted = WHOLE
    step = 0
    if asks:
        same, rest, step = _ask(request, record, measure, show)
        if not rest:
            return same
        wanted = Wanted(tests=rest)

    # The first measurement shows which tests there are.
    comparisons = {"": _BothEnds(request)}
    first = step
    # All comparisons that have not ended name the same build.
    while build := next(
        filter(None, (comparison.next_build() for comparison in comparisons.values())), None
    ):
        values = record.measurement(step, build.value, measure, wanted).ends or {}
        if step == first:
            comparisons = {name: _BothEnds(request) for name in values}
        if values.keys() != comparisons.keys():
            missing = ", ".join(sorted(values.keys() ^ comparisons.keys()))
            raise BuildError(
                f"Measurement {step + 1}, of build {build.value}, has different tests: {missing}.",
                ExitStatus.FAILED,
            )

        for name, comparison in comparisons.items():
            comparison.record(values[name])
        step += 1
        show(
            f"{step:>3}  {build.value}  "
            + "  ".join(f"{value.least:,.0f} fps" for value in values.values())
        )

    compared = {name: comparison.result() for name, comparison in comparisons.items()}
    return {**same, **compared}


def _ask(
    request: AbRequest, record: BuildRecord, measure: Measure, show: Callable[[str], None]
) -> tuple[dict[str, ComparisonResult], tuple[str, ...], int]:
    """Asks both builds, in one block of alternating measurements, whether they are as before.

    Returns:
        The comparisons of tests in which both always are; the full names of the other tests; and the number of
        measurements.
    """
    answers: dict[str, list[AsBefore]] = {}
    # The tests that were as before so far, and the others.
    asked: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    tests: dict[str, str] = {}
    step = 0
    for step, build in enumerate(_BLOCK, start=1):
        wanted = Wanted(asks=True, tests=asked)
        measurement = record.measurement(step - 1, build.value, measure, wanted)
        tests.update(measurement.tests or {})
        for name, answer in measurement.answers.items():
            answers.setdefault(name, []).append(answer)

        as_before = {
            tests[name]
            for name, answer in measurement.answers.items()
            if answer.probability(request.least_change) <= 1.0 - request.certainty
        }
        as_before -= {tests[name] for name in measurement.values or {}}
        asked = tuple(sorted(as_before))
        rest = tuple(sorted({*tests.values()} - as_before))
        show(f"{step:>3}  {build.value}  " + _as_before_in_words(len(asked), len(rest)))
        if not asked:
            break

    # Record: the comparisons that are over.
    same = {
        name: ComparisonResult(
            ComparisonVerdict.SAME,
            None,
            (-math.inf, math.inf),
            step,
            missed=max(answer.probability(request.least_change) for answer in given),
        )
        for name, given in answers.items()
        if tests[name] in asked
    }
    return same, rest, step


def _as_before_in_words(asked: int, rest: int) -> str:
    """How many tests are as before."""
    return f"{asked} of {asked + rest} tests as before"


def describe_comparison(name: str, result: ComparisonResult) -> str:
    """A verdict in a line."""
    if result.missed is not None:
        return f"{name}: B is the same as A: both are as before, {_asked(result, result.missed)}."
    difference = "" if result.difference is None else f" by {result.difference:+.2%}"
    low, high = result.interval
    interval = "" if low == -high else f" (between {low:+.2%} and {high:+.2%})"
    verdict = {
        ComparisonVerdict.SAME: "B is the same as A",
        ComparisonVerdict.UNDECIDED: "undecided: B differs from A",
    }.get(result.verdict, f"B is {result.verdict.value} than A")
    missing = share_in_words([result.share])

    if missing:
        measured = "" if result.measured is None else f" by {result.measured:+.2%}"
        if measured in ("", difference):
            as_measured = ""
        else:
            as_measured = f"; it differs{measured} as measured"

        if result.verdict is ComparisonVerdict.UNDECIDED:
            may_be = ", and may explain the difference"
        else:
            may_be = ""

        missing = f" Up to {missing}{may_be}{as_measured}."

    return f"{name}: {verdict}{difference}{interval}, after {result.measurements} measurements.{missing}"


def _asked(result: ComparisonResult, missed: float) -> str:
    """How a comparison without a search was made."""
    return (
        f"asked {result.measurements} times and not searched; a build with the least change is called as before with a "
        f"probability of {missed:.1%}"
    )


def comparison_comment(
    results: Mapping[str, ComparisonResult], record: BuildRecord, request: AbRequest
) -> str:
    """The verdicts as Markdown, for a comment on a pull request: a table, and a chart of all measurements.

    The chart is in Mermaid, which GitHub and GitLab draw; neither shows pictures that are embedded in a comment.
    """
    verdicts = {result.verdict for result in results.values()}
    worst = next(verdict.value for verdict in _WORST_FIRST if verdict in verdicts)
    lines = [
        f"### Data plane throughput of B compared with A: {worst}",
        "",
        f"| test | B is | change | {100 * request.certainty:.4g} % interval | measurements |",
        "| --- | --- | ---: | ---: | ---: |",
    ]

    for name, result in results.items():
        change = "" if result.difference is None else f"{result.difference:+.2%}"
        low, high = result.interval
        interval = "" if math.isinf(high) else f"{low:+.2%} to {high:+.2%}"
        if result.verdict is ComparisonVerdict.SLOWER:
            verdict = f"**{result.verdict.value}**"
        else:
            verdict = result.verdict.value

        cell = escape(name).replace("|", "\\|")
        lines.append(f"| {cell} | {verdict} | {change} | {interval} | {result.measurements} |")

    lines += ["", "Measured in turns until each verdict was clear, or the limit was reached.", ""]
    for name, result in results.items():
        if result.missed is not None:
            lines += [
                f"{escape(name)}: both builds are as before, {_asked(result, result.missed)}.",
                "",
            ]
    missing = share_in_words(result.share for result in results.values())
    if missing:
        lines += [
            f"Up to {missing}: the verdicts hold with and without these frames, and the smaller change is given.",
            "",
        ]

    for name in (name for name, result in results.items() if result.missed is None):
        head = f"<details><summary>Measurements of {escape(name)}</summary>"
        lines += [head, "", *_chart(name, record), "</details>", ""]

    return "\n".join(lines)


_WORST_FIRST = (
    ComparisonVerdict.SLOWER,
    ComparisonVerdict.UNDECIDED,
    ComparisonVerdict.FASTER,
    ComparisonVerdict.SAME,
)


def _chart(name: str, record: BuildRecord) -> list[str]:
    """All measurements of a test, in their order, in thousands of frames per second."""
    measured = [
        (one.build, one.values[name] / 1e3)
        for one in record.measurements
        if one.values and name in one.values
    ]
    values = [value for _, value in measured]
    room = max(values) * 0.01
    low = max(0.0, min(values) - room)
    high = max(values) + room
    labels = ", ".join(f'"{number} {build}"' for number, (build, _) in enumerate(measured, start=1))

    return [
        "```mermaid",
        "xychart-beta",
        f"  x-axis [{labels}]",
        f'  y-axis "kfps" {low:.3f} --> {high:.3f}',
        f"  bar [{', '.join(f'{value:.3f}' for value in values)}]",
        "```",
        "",
    ]

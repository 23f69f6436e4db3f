"""Which revision of a repository changed the throughput of a test: bisection by probability, with noisy measurements.

Each revision could be the first one with the change. The measurements so far make some revisions more probable than
others, and the next measurement is at the revision that splits the probability into halves. A measurement that says
little, because the noise is large or it is an outlier, only shifts probabilities. If need be, the same rule repeats the
measurement.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.errors import BuildError, SearchError
from lossratio.results import agreed_change, share_in_words
from lossratio.runs.builds.measuring import Measure
from lossratio.runs.builds.record import BuildRecord
from lossratio.values import ExitStatus, counted, format_change

_CHANGE_SCALE = 10.0
"""The prior of the change is normal; this is its standard deviation, in standard deviations of the noise."""


class BisectionVerdict(str, Enum):
    """The verdict of a bisection."""

    FOUND = "found"
    NO_CHANGE = "no change"
    """The first and the last revision differ by less than the smallest change that matters."""
    UNDECIDED = "undecided"
    """The limit was reached before the verdict was clear."""


@dataclass(frozen=True)
class BisectionResult:
    """The change, if it is known."""

    verdict: BisectionVerdict
    """Whether the change was found."""
    candidates: tuple[str, ...]
    """The revisions that are most probably the first with the change; more than one if the revisions between them could
    not be measured. Empty if there was no change."""
    probability: float
    """Probability of the verdict."""
    change: float | None
    """The change as a share of the throughput before; None if it is not known."""
    measurements: int
    """Number of measurements."""
    share: float = 0.0
    """Largest share of the frames of a load that are missing and that no build lost; 0: there are few of them."""
    is_split: bool = False
    """Whether it is undecided because these frames alone may explain the change."""


class Bisection:
    """Searches for the first revision with a change: names a revision to measure, and records its value."""

    def __init__(
        self,
        revisions: Sequence[str],
        *,
        least_change: float = 0.01,
        certainty: float = 0.98,
        limit: int = 100,
    ) -> None:
        """Prepares a search among revisions in their order: the first one without the change, the last one with it.

        It ends early if the first and the last revision certainly differ by less than the smallest change that matters,
        unless a change between them is already clear.

        Args:
            revisions: The revisions in their order, each of them once.
            least_change: The smallest change that matters, as a share of the throughput.
            certainty: The probability of an answer at which the search ends.
            limit: Number of measurements at which the search ends anyway.
        """
        self._revisions = tuple(revisions)
        self._indices = {revision: index for index, revision in enumerate(self._revisions)}
        self._least_change = least_change
        self._certainty = certainty
        self._limit = limit
        self._measured: list[tuple[int, float]] = []
        self._skipped: set[int] = set()
        self._ends = (0, len(revisions) - 1)

    def next_revision(self) -> str | None:
        """The revision to measure; None if the answer is clear, or the limit is reached."""
        if len(self._measured) >= self._limit:
            return None

        counts = Counter(index for index, _ in self._measured)
        last = len(self._revisions) - 1
        if min(counts[0], counts[last]) == 0:
            return self._revisions[0 if counts[0] == 0 else last]

        indices, probabilities, no_change = self._posterior()
        if max(self._nothing_matters(no_change), probabilities.max()) >= self._certainty:
            return None
        if no_change > 1.0 - self._certainty:
            # The first and the last revision show best whether there is a change at all.
            return self._revisions[0 if counts[0] <= counts[last] else last]

        # The index that best splits the probability of the change; among equals, the index with the fewest
        # measurements.
        changed = np.concatenate([[0.0], np.cumsum(probabilities)])
        halves = [round(abs(float(share) - 0.5), 3) for share in changed]
        _, _, best = min(
            (half, counts[index], index) for half, index in zip(halves, [0, *indices], strict=True)
        )
        return self._revisions[best]

    def record(self, revision: str, value: float) -> None:
        """Records the throughput of a revision.

        Args:
            revision: The revision that was measured.
            value: Its throughput: a number in any unit, the same for all revisions.
        """
        self._measured.append((self._indices[revision], value))

    def skip(self, revision: str) -> None:
        """Leaves out a revision that cannot be measured.

        Raises:
            SearchError: If it is the first or the last.
        """
        index = self._indices[revision]
        if index in (0, len(self._revisions) - 1):
            raise SearchError(
                f"Revision {revision} cannot be left out: the search begins or ends with it. Begin "
                "and end with revisions that can be measured."
            )
        self._skipped.add(index)

    def result(self) -> BisectionResult:
        """The answer so far."""
        if not {0, len(self._revisions) - 1} <= {index for index, _ in self._measured}:
            return self._answer(BisectionVerdict.UNDECIDED, self._revisions[1:], 0.0, None)

        indices, probabilities, no_change = self._posterior()
        best = int(probabilities.argmax())
        nothing = self._nothing_matters(no_change)
        if nothing >= self._certainty:
            return self._answer(BisectionVerdict.NO_CHANGE, (), nothing, None)

        probability = float(probabilities[best])
        verdict = BisectionVerdict.UNDECIDED
        if probability >= self._certainty:
            verdict = BisectionVerdict.FOUND

        # The revisions right before the best one that could not be measured may also be the first with the change.
        first = 1 if best == 0 else indices[best - 1] + 1
        last = indices[best]
        candidates = self._revisions[first : last + 1]
        return self._answer(verdict, candidates, probability, self._change(last))

    def _answer(
        self,
        verdict: BisectionVerdict,
        candidates: tuple[str, ...],
        probability: float,
        change: float | None,
    ) -> BisectionResult:
        return BisectionResult(verdict, candidates, probability, change, len(self._measured))

    def _posterior(self) -> tuple[list[int], NDArray[np.float64], float]:
        """Probabilities that each measurable index is the first with the change, and that there is no change.

        The values are normal, around one mean before the change and around another mean from the change on. With flat
        priors of the mean and of the logarithm of the noise, and a normal prior of the change in units of the noise,
        all three are integrated out in closed form.
        """
        last = len(self._revisions) - 1
        indices = [index for index in range(1, last + 1) if index not in self._skipped]
        where = np.array([index for index, _ in self._measured])
        values = np.array([value for _, value in self._measured])
        deviations = values - values.mean()
        total = max(float(deviations @ deviations), (1e-9 * (abs(values.mean()) or 1.0)) ** 2)
        side = (where[None, :] >= np.array(indices)[:, None]).astype(float)
        side -= side.mean(axis=1, keepdims=True)
        weight = (side**2).sum(axis=1)
        explained = (side @ deviations) ** 2 / (weight + _CHANGE_SCALE**-2)
        left = np.log1p(-np.minimum(explained / total, 1.0 - 1e-15))
        logs = -0.5 * np.log1p(_CHANGE_SCALE**2 * weight) - 0.5 * (len(values) - 1) * left
        # An index also stands for the indices before it that cannot be measured. Half of the prior is for no change.
        logs = np.append(logs + np.log(np.diff([0, *indices]) / last), 0.0)
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()

        return indices, shares[:-1], float(shares[-1])

    def _nothing_matters(self, no_change: float) -> float:
        """Probability that there is no change; if this is quite possible, the probability that no change matters."""
        ends = [self._values_at(index) for index in self._ends]
        degrees = sum(len(values) - 1 for values in ends)
        if no_change <= 1.0 - self._certainty or degrees < 1:
            return no_change

        first, last = ends
        noise = math.sqrt(
            sum(float(((values - values.mean()) ** 2).sum()) for values in ends) / degrees
        )
        error = (
            max(noise, 1e-9 * first.mean()) * math.sqrt(1.0 / len(first) + 1.0 / len(last))
            or math.inf
        )
        limit = self._least_change * first.mean()
        difference = last.mean() - first.mean()
        t = scipy.stats.t
        small = t.cdf((limit - difference) / error, degrees) - t.cdf(
            (-limit - difference) / error, degrees
        )

        return max(no_change, float(small))

    def _values_at(self, revision: int) -> NDArray[np.float64]:
        """The values of the revision with an index."""
        return np.array([value for index, value in self._measured if index == revision])

    def _change(self, first: int) -> float | None:
        before = [value for index, value in self._measured if index < first]
        after = [value for index, value in self._measured if index >= first]
        mean = float(np.mean(before))
        if mean == 0.0 or not after:
            return None
        return float(np.mean(after)) / mean - 1.0


def bisect(
    search: Bisection, record: BuildRecord, measure: Measure, show: Callable[[str], None]
) -> BisectionResult:
    """Measures revisions until it is clear which one changed the throughput. Measurements in the record count.

    If frames are missing that no build lost, both the values as they are and their upper ends must give the answer.

    Args:
        search: The search, without a measurement.
        record: The measurements so far.
        measure: Measures a revision.
        show: Called with a line of text for each measurement.

    Raises:
        BuildError: If a revision cannot be measured, or does not have exactly one value.
    """
    step = 0
    share = 0.0
    at_their_most = deepcopy(search)

    while (revision := search.next_revision() or at_their_most.next_revision()) is not None:
        measured = record.measurement(step, revision, measure).measured
        step += 1
        if measured is None:
            search.skip(revision)
            at_their_most.skip(revision)
            show(f"{step:>3}  {revision[:12]}  left out")
            continue

        if len(measured.values) != 1:
            names = ", ".join(measured.values)
            raise BuildError(
                f"A bisection follows one value, but several were measured: {names}. Choose a test and a --quantity.",
                ExitStatus.BAD_INPUT,
            )

        (value,) = measured.values.values()
        search.record(revision, value.least)
        at_their_most.record(revision, value.most)
        share = max(share, value.share)
        show(f"{step:>3}  {revision[:12]}  {value.least:,.0f} fps")

    return replace(_both(search.result(), at_their_most.result()), share=share)


def _both(plain: BisectionResult, most: BisectionResult) -> BisectionResult:
    """The answer that both the values and their upper ends give, with the smaller change; otherwise undecided."""
    weaker = plain
    agreed = agreed_change(plain.change, most.change)
    if agreed is not None and agreed == most.change:
        weaker = most
    is_change_in_one = plain.verdict is BisectionVerdict.FOUND and agreed is None
    if is_change_in_one or (plain.verdict, plain.candidates) != (most.verdict, most.candidates):
        candidates = plain.candidates or most.candidates
        return replace(
            weaker, verdict=BisectionVerdict.UNDECIDED, candidates=candidates, is_split=True
        )

    return weaker


def describe_bisection(result: BisectionResult, subject: Callable[[str], str]) -> str:
    """The result of a bisection in a few lines."""
    missing = share_in_words([result.share])
    return _answer(result, subject) + (f"\nUp to {missing}." if missing else "")


def _answer(result: BisectionResult, subject: Callable[[str], str]) -> str:
    effort = f"after {counted(result.measurements, 'measurement')}"
    if result.verdict is BisectionVerdict.NO_CHANGE:
        return (
            f"There is no change that matters between the first and the last revision ({effort})."
        )

    change = "" if result.change is None else f" by {format_change(result.change)}"
    sure = f"probability {probability_in_words(result.probability)}, {effort}"
    if result.is_split:
        return (
            f"Undecided, {effort}: the change may come from frames that are missing but were "
            "not lost by any build."
        )

    if result.verdict is BisectionVerdict.UNDECIDED:
        return f"Undecided when the limit was reached; the most probable revision is {result.candidates[0]} ({sure})."
    if len(result.candidates) > 1:
        listed = "\n".join(f"  {subject(revision)}" for revision in result.candidates)
        return f"One of these changed it{change} ({sure}); some of them could not be measured:\n{listed}"
    return f"It changed{change} ({sure}) with:\n  {subject(result.candidates[0])}"


def probability_in_words(probability: float) -> str:
    """A probability after the word, e.g. ``of 97.5 %``. A rounded one is never said to be zero or certain."""
    if 0.0 < probability < 0.001:
        return "below 0.1 %"
    if 0.999 < probability < 1.0:
        return "above 99.9 %"
    return f"of {100 * probability:.1f} %"

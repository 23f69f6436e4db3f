"""Which revision changed a test's throughput, found with noisy measurements: bisection by probability.

Each revision could be the first one that is different. What was measured so far makes some of these more probable than
others; the next measurement is where it splits them in halves. A measurement that says little, as the noise is large or
as it was an outlier, only shifts probabilities, and is repeated by the same rule; nothing is repeated without need.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from lossratio.errors import SearchError

_CHANGE_SCALE = 10.0
"""How many standard deviations of the noise a change has, about; the prior of the change is normal with this."""


class BisectionVerdict(str, Enum):
    """What a bisection found."""

    FOUND = "found"
    NO_CHANGE = "no change"
    """The first and the last revision do not differ by as much as matters."""
    UNDECIDED = "undecided"
    """The limit was reached before it became clear."""


@dataclass(frozen=True)
class BisectionResult:
    """What is known about a change.

    Attributes:
        verdict: Whether it was found.
        candidates: The revisions that are most probably the first with the change; more than one where those between
            them could not be measured. Empty if there was no change.
        probability: How probable the verdict is.
        change: By which share of the throughput before it changed; None if that is not known.
        measurements: How many measurements were made.
    """

    verdict: BisectionVerdict
    candidates: tuple[str, ...]
    probability: float
    change: float | None
    measurements: int


class Bisection:
    """Searches for the first revision with a change: asks for a revision to measure, and is told its value."""

    def __init__(
        self, revisions: Sequence[str], *, least_change: float = 0.01, certainty: float = 0.98, limit: int = 100
    ) -> None:
        """Prepares a search.

        Args:
            revisions: The revisions in their order: the first one without the change, the last one with it.
            least_change: The smallest change that matters, as a share of the throughput. The search ends where the ends
                certainly differ by less, unless it is clear by then that they do differ.
            certainty: How probable an answer must be to end the search.
            limit: The most measurements.

        Raises:
            SearchError: If a value makes no sense.
        """
        if len(revisions) < 2 or len(set(revisions)) < len(revisions):
            raise SearchError("A bisection needs two different revisions at least, each of them once.")
        if not 0.0 < least_change < 1.0:
            raise SearchError(f"The least change is a share between 0 and 1, not {least_change!r}.")
        if not 0.5 <= certainty < 1.0:
            raise SearchError(f"A certainty is a probability from 0.5 to below 1, not {certainty!r}.")
        self._revisions = tuple(revisions)
        self._places = {revision: place for place, revision in enumerate(self._revisions)}
        self._least_change = least_change
        self._certainty = certainty
        self._limit = limit
        self._measured: list[tuple[int, float]] = []
        self._skipped: set[int] = set()
        self._ends = (0, len(revisions) - 1)

    def next_revision(self) -> str | None:
        """The revision to measure; None when the answer is clear, or the limit is reached."""
        if len(self._measured) >= self._limit:
            return None
        counts = Counter(place for place, _ in self._measured)
        last = len(self._revisions) - 1
        if min(counts[0], counts[last]) == 0:
            return self._revisions[0 if counts[0] == 0 else last]
        places, probabilities, no_change = self._posterior()
        if max(self._nothing_matters(no_change), probabilities.max()) >= self._certainty:
            return None
        if no_change > 1.0 - self._certainty:
            # Whether there is a change at all is best told from the ends.
            return self._revisions[0 if counts[0] <= counts[last] else last]
        return self._revisions[self._halving(places, probabilities, counts)]

    def record(self, revision: str, value: float) -> None:
        """Takes in the throughput of a revision, in any unit.

        Raises:
            SearchError: If there is no such revision, or it is no throughput.
        """
        if not 0.0 <= value < math.inf:
            raise SearchError(f"A throughput is a number from 0, not {value!r}.")
        self._measured.append((self._place(revision), value))

    def skip(self, revision: str) -> None:
        """Takes in that a revision cannot be measured, e.g. as it cannot be built.

        Raises:
            SearchError: If there is no such revision, or it is the first or the last one.
        """
        place = self._place(revision)
        if place in (0, len(self._revisions) - 1):
            raise SearchError(f"Revision {revision} cannot be left out: the change is looked for from it, or up to it.")
        self._skipped.add(place)

    def result(self) -> BisectionResult:
        """What is known so far."""
        measured = {place for place, _ in self._measured}
        if not {0, len(self._revisions) - 1} <= measured:
            return BisectionResult(BisectionVerdict.UNDECIDED, self._revisions[1:], 0.0, None, len(self._measured))
        places, probabilities, no_change = self._posterior()
        best = int(probabilities.argmax())
        nothing = self._nothing_matters(no_change)
        if nothing >= self._certainty:
            return BisectionResult(BisectionVerdict.NO_CHANGE, (), nothing, None, len(self._measured))
        first = 1 if best == 0 else places[best - 1] + 1
        probability = float(probabilities[best])
        return BisectionResult(
            BisectionVerdict.FOUND if probability >= self._certainty else BisectionVerdict.UNDECIDED,
            self._revisions[first : places[best] + 1],
            probability,
            self._change(places[best]),
            len(self._measured),
        )

    def _place(self, revision: str) -> int:
        if revision not in self._places:
            raise SearchError(f"Revision {revision} is not one of those to search.")
        return self._places[revision]

    def _halving(self, places: list[int], probabilities: NDArray[np.float64], counts: Counter[int]) -> int:
        """The place at which it is most uncertain whether the change is there already; of equals the least measured."""
        changed = np.concatenate([[0.0], np.cumsum(probabilities)])
        doubts = [
            (round(abs(float(share) - 0.5), 3), counts[place], place)
            for place, share in zip([0, *places], changed, strict=True)
        ]
        return min(doubts)[-1]

    def _posterior(self) -> tuple[list[int], NDArray[np.float64], float]:
        """Probabilities of the change being there first at a measurable place, and of no change at all.

        The values are normal around one mean before the change and another one from it on. With flat priors of the mean
        and of the logarithm of the noise, and a normal one of the change in units of the noise, all three are
        integrated out in closed form.

        Returns:
            The places, their probabilities, and that of no change.
        """
        last = len(self._revisions) - 1
        places = [place for place in range(1, last + 1) if place not in self._skipped]
        where = np.array([place for place, _ in self._measured])
        values = np.array([value for _, value in self._measured])
        deviations = values - values.mean()
        total = max(float(deviations @ deviations), (1e-9 * (abs(values.mean()) or 1.0)) ** 2)
        side = (where[None, :] >= np.array(places)[:, None]).astype(float)
        side -= side.mean(axis=1, keepdims=True)
        weight = (side**2).sum(axis=1)
        explained = (side @ deviations) ** 2 / (weight + _CHANGE_SCALE**-2)
        degrees = len(values) - 1
        logs = -0.5 * np.log1p(_CHANGE_SCALE**2 * weight) - 0.5 * degrees * np.log1p(
            -np.minimum(explained / total, 1.0 - 1e-15)
        )
        # A place stands for those before it that cannot be measured, too; half of the prior is for no change.
        prior = np.diff([0, *places]) / last
        logs = np.append(logs + np.log(prior), 0.0)
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        return places, shares[:-1], float(shares[-1])

    def _nothing_matters(self, no_change: float) -> float:
        """Probability that there is no change, or, as long as that is well possible, only one too small to matter."""
        ends = [np.array([value for place, value in self._measured if place == end]) for end in self._ends]
        degrees = sum(len(values) - 1 for values in ends)
        if no_change <= 1.0 - self._certainty or degrees < 1:
            return no_change
        first, last = ends
        noise = math.sqrt(sum(float(((values - values.mean()) ** 2).sum()) for values in ends) / degrees)
        error = max(noise, 1e-9 * first.mean()) * math.sqrt(1.0 / len(first) + 1.0 / len(last)) or math.inf
        limit, difference = self._least_change * first.mean(), last.mean() - first.mean()
        small = t.cdf((limit - difference) / error, degrees) - t.cdf((-limit - difference) / error, degrees)
        return max(no_change, float(small))

    def _change(self, first: int) -> float | None:
        before = [value for place, value in self._measured if place < first]
        after = [value for place, value in self._measured if place >= first]
        mean = float(np.mean(before))
        return None if mean == 0.0 else float(np.mean(after)) / mean - 1.0

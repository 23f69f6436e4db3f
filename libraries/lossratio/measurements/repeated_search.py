"""A search for the largest size (of a burst, of a table) at which nothing is lost, repeated several times."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lossratio.errors import SearchError, TesterError
from lossratio.mlrsearch import Forecast
from lossratio.trials import TrialInput, TrialResult, missing_frames
from lossratio.values import counted

MOST_UNKNOWN = 5
"""The maximum number of trials in a row that may show nothing."""


def is_lossless(result: TrialResult) -> bool | None:
    """Whether the SUT lost nothing in a trial; None: not known, because only the tester lost frames.

    Frames that come back late count as lost, as in every trial.
    """
    missing = missing_frames(result.output)
    if missing is None:
        return result.loss_ratio == 0.0
    if missing.lost_by_sut or missing.late:
        return False
    if missing.by_tester:
        return None
    return True


def ending_where_unknown(reason: Callable[[TrialResult], str]) -> Callable[[TrialResult], None]:
    """A check of each trial. It raises TesterError, with the reason, if too many trials in a row show nothing."""
    unknown = 0

    def check(trial: TrialResult) -> None:
        nonlocal unknown
        unknown = unknown + 1 if is_lossless(trial) is None else 0
        if unknown == MOST_UNKNOWN:
            raise TesterError(reason(trial))

    return check


class SizeFound(NamedTuple):
    """The outcome of one search."""

    lossless: int
    """The largest size without loss; 0: there is none."""
    lossy: int | None
    """The smallest size with loss; None: there is none."""
    trials: int
    """Number of trials of the search."""


class RepeatedSearch:
    """Searches up to the largest size until two bounds are a step apart; a `lossratio.trials.Controller`.

    A search begins with the first size. Each trial without loss is followed by twice the size; once a size lost
    something, each further size is half-way between the bounds. The attribute `trials` is the number of recorded
    trials, and `elapsed` is the seconds that they took.
    """

    def __init__(
        self,
        trial_of: Callable[[int], TrialInput],
        most: int,
        *,
        first: int | None = None,
        step: int = 1,
        repeats: int = 1,
        loss_verification: bool = False,
    ) -> None:
        """Begins.

        Args:
            trial_of: Makes a trial of a size.
            most: The largest size.
            first: The first size of a search; None: the largest one.
            step: A search ends when its bounds are this close to each other.
            repeats: Number of searches.
            loss_verification: Whether a size counts as lossy only if a second trial loses something, too.
        """
        self._trial_of = trial_of
        self._most = most
        self._first = min(first or most, most)
        self._step = step
        self._repeats = repeats
        self._loss_verification = loss_verification
        self._ended: list[SizeFound] = []
        self.trials, self.elapsed = 0, 0.0
        self._begin()

    def _begin(self) -> None:
        self._lossless, self._of_search = 0, 0
        self._lossy: int | None = None
        self._lost_once = False

    @property
    def purpose(self) -> str | None:
        """Why the next size was chosen."""
        if self.next_trial() is None:
            return None
        again = ", once more after loss" if self._lost_once else ""
        bounds = "no bounds yet"
        if self._lossy is not None:
            bounds = f"between {self._lossless:,} and {self._lossy:,}"
        elif self._lossless:
            bounds = f"above {self._lossless:,}"
        return f"search {len(self._ended) + 1} of {self._repeats}: {bounds}{again}"

    @property
    def remaining(self) -> int:
        """The number of remaining trials, if no loss is verified, and each search doubles its size up to the most."""
        of_each = 1 + math.ceil(math.log2(max(2.0, self._most / self._step)))
        of_each += math.ceil(math.log2(self._most / self._first))
        return max(0, (self._repeats - len(self._ended)) * of_each - self._of_search)

    def forecast(self) -> Forecast:
        """The time left, if later searches need as many trials as earlier ones, or all that they may need."""
        left = float(self.remaining)
        if self._ended:
            of_each = statistics.fmean(search.trials for search in self._ended)
            left = max(0.0, (self._repeats - len(self._ended)) * of_each - self._of_search)
        per_trial = self.elapsed / max(1, self.trials)
        # Trials that verify a loss are not in the remaining ones.
        most = max(left, self.remaining)
        return Forecast(left * per_trial, 0.5 * left * per_trial, most * per_trial)

    def next_trial(self) -> TrialInput | None:
        """The next trial; None when all searches have ended."""
        if len(self._ended) == self._repeats:
            return None
        return self._trial_of(self._next_size())

    def record(self, result: TrialResult) -> None:
        """Records a trial. A trial whose size is not that of the last `next_trial` shows nothing here."""
        self.trials += 1
        self.elapsed += result.elapsed
        self._of_search += 1
        trial = result.input
        size = self._next_size()
        # For a trial from a result file, only the duration of its traffic is known.
        if (round(trial.load * trial.duration) if trial.frames is None else trial.frames) != size:
            return

        lossless = is_lossless(result)
        self._lost_once = self._loss_verification and not self._lost_once and lossless is False
        if lossless is None or self._lost_once:
            return

        if lossless:
            self._lossless = size
        else:
            self._lossy = size

        if self._lossless == self._most or (
            self._lossy is not None and self._lossy - self._lossless <= self._step
        ):
            self._ended.append(SizeFound(self._lossless, self._lossy, self._of_search))
            self._begin()

    def result(self) -> tuple[SizeFound, ...]:
        """The outcomes of the searches so far."""
        return tuple(self._ended)

    def all_found(self, trials: Sequence[TrialResult], what: str) -> tuple[SizeFound, ...]:
        """The outcomes of all searches, from their trials.

        Args:
            trials: The trials.
            what: The measurement, in words for the error.

        Raises:
            SearchError: If there are fewer searches, or more.
        """
        for trial in trials:
            self.record(trial)
        if len(self._ended) != self._repeats:
            raise SearchError(
                f"{what} has the trials of {counted(len(self._ended), 'finished search', 'finished searches')}, but "
                f"'repeats' is {self._repeats}: the trials do not belong to these settings. Measure it again."
            )
        return self.result()

    def _next_size(self) -> int:
        if self._lossy is None:
            return min(self._most, 2 * self._lossless or self._first)
        return (self._lossless + self._lossy) // 2

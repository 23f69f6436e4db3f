"""A search for the largest size (of a burst, of a table) at which nothing is lost, repeated several times."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from lossratio.errors import SearchError, TesterError
from lossratio.trials import TrialInput, TrialResult, missing_frames
from lossratio.units import counted

FoundT = TypeVar("FoundT")
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


class RepeatedSearch(ABC, Generic[FoundT]):
    """Searches up to the largest size until two bounds are a step apart; a `lossratio.trials.Controller`.

    The attribute `trials` is the number of recorded trials, and `elapsed` is the seconds that they took.
    """

    def __init__(
        self, most: int, step: int, repeats: int, trial_of: Callable[[int], TrialInput]
    ) -> None:
        self._most = most
        self._step = step
        self._repeats = repeats
        self._trial_of = trial_of
        self._ended: list[FoundT] = []
        self.trials, self.elapsed = 0, 0.0
        self._begin()

    def _begin(self) -> None:
        self._lossless, self._of_search = 0, 0
        self._lossy: int | None = None

    @property
    def purpose(self) -> str | None:
        """Why the next size was chosen."""
        if self.next_trial() is None:
            return None
        return f"search {len(self._ended) + 1} of {self._repeats}: {self._bounds_in_words()}"

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

        is_lossless = self._is_lossless(result)
        if is_lossless is None:
            return

        if is_lossless:
            self._lossless = size
        else:
            self._lossy = size

        if self._lossless == self._most or (
            self._lossy is not None and self._lossy - self._lossless <= self._step
        ):
            self._ended.append(self._ended_with(self._lossless, self._lossy, self._of_search))
            self._begin()

    def result(self) -> tuple[FoundT, ...]:
        """The outcomes of the searches so far."""
        return tuple(self._ended)

    def all_found(self, trials: Sequence[TrialResult], what: str) -> tuple[FoundT, ...]:
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

    @abstractmethod
    def _next_size(self) -> int: ...

    @abstractmethod
    def _is_lossless(self, result: TrialResult) -> bool | None:
        """Whether a trial lost nothing; None: the trial does not show this."""

    @abstractmethod
    def _ended_with(self, lossless: int, lossy: int | None, trials: int) -> FoundT: ...

    @abstractmethod
    def _bounds_in_words(self) -> str: ...

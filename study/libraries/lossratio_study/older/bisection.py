"""Binary searches for one goal, in which all trials have the final duration.

Sources: RFC 2544 section 26.1; ETSI GS NFV-TST 009 clause 12.3 (binary search with loss verification).
"""

import math
from collections.abc import Generator

from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal
from lossratio.trials import TrialInput, TrialResult
from lossratio_study.older.scripted import ScriptedController, Step, bounds_result


class TST009Bisection(ScriptedController):
    """Halves the interval of loads, and repeats trials with loss to verify them.

    A load with a low-loss trial is a lower bound. A high-loss trial is repeated. If all repetitions have high loss,
    too, the load is an upper bound. The maximum load comes first. The minimum load comes only if all loads above it
    lose frames.
    """

    def __init__(
        self,
        goal: SearchGoal,
        min_load: float,
        max_load: float,
        *,
        max_repetitions: int = 2,
        verified_loss: float = math.inf,
        timeout: float | None = None,
    ) -> None:
        """Prepares a search.

        Args:
            goal: The search goal; its loss ratio, final trial duration and width are used.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface.
            max_repetitions: Maximum number of trials at one load (the specification's max(r)).
            verified_loss: A trial that loses more frames than this is not repeated (the specification's z).
            timeout: The search ends after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If an argument makes no sense.
        """
        super().__init__((goal,), min_load, max_load, timeout)
        if max_repetitions < 1 or not verified_loss >= 0:
            raise SearchError(
                f"max_repetitions must be at least 1 and verified_loss at least 0, "
                f"not {max_repetitions!r} and {verified_loss!r}."
            )
        self._goal = goal
        self._max_repetitions = max_repetitions
        self._verified_loss = verified_loss
        self._lower: TrialResult | None = None
        self._upper: TrialResult | None = None

    def _search(self) -> Generator[Step, TrialResult, None]:
        yield from self._try(self.max_load, "the maximum load")
        while self._lower is None or self._lower.load < self.max_load:
            floor = self.min_load if self._lower is None else self._lower.load
            ceiling = self.max_load if self._upper is None else self._upper.load
            if ceiling - floor > self._goal.width * ceiling:
                yield from self._try((floor + ceiling) / 2.0, f"the middle of {floor:.0f} and {ceiling:.0f} frames/s")
            elif self._lower is None and ceiling > self.min_load:
                yield from self._try(self.min_load, "the minimum load, as all loads above it lose")
            else:
                return

    def _try(self, load: float, purpose: str) -> Generator[Step, TrialResult, None]:
        for repetition in range(1, self._max_repetitions + 1):
            reason = purpose
            if repetition > 1:
                reason = f"{purpose}; verifies the loss, trial {repetition}"
            result = yield Step(TrialInput(self._goal.final_trial_duration, load), reason)
            if result.loss_ratio <= self._goal.loss_ratio:
                self._lower = result
                return
            if _lost_frames(result) > self._verified_loss:
                break
        self._upper = result

    def _take_unasked(self, result: TrialResult) -> None:
        """Ignored: a binary search decides by its own trials."""

    def _goal_result(self, goal: SearchGoal, unfinished: IrregularReason) -> GoalResult:
        return bounds_result(
            goal, self._lower, self._upper, min_load=self.min_load, max_load=self.max_load, unfinished=unfinished
        )


class RFC2544Bisection(TST009Bisection):
    """Halves the interval of loads. One trial decides about each load."""

    def __init__(self, goal: SearchGoal, min_load: float, max_load: float, *, timeout: float | None = None) -> None:
        """Prepares a search.

        Args:
            goal: The search goal; its loss ratio, final trial duration and width are used.
            min_load: Smallest load of a trial, frames per second per interface.
            max_load: Largest load of a trial, frames per second per interface.
            timeout: The search ends after this many seconds of trials; None: no limit.

        Raises:
            SearchError: If an argument makes no sense.
        """
        super().__init__(goal, min_load, max_load, max_repetitions=1, timeout=timeout)


def _lost_frames(result: TrialResult) -> float:
    lost = result.output.lost_frames
    if lost is None:
        return result.load * result.duration * result.loss_ratio
    return lost

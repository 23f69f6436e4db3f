"""Trials that are no evidence because the generator did not send their frames, or sent them late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from lossratio import plrsearch
from lossratio.errors import TesterError
from lossratio.trials import TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange

_WATCHED_TRIALS = 10
_LEAST_WATCHED = 4
_MOST_IN_A_ROW = 20
"""Number of trials. Even if chance sets aside half of all trials, this many in a row happen once in a million cases."""


class OnTrustedTrials:
    """Kinds whose trials only count if the generator sent the frames in time; otherwise, another trial follows."""

    load_argument: ClassVar[str] = "max_load"
    """The argument that lowers the load."""

    def why_set_aside(self, trial: TrialResult) -> str | None:
        """Why a trial is no evidence about the SUT; None: it is evidence."""
        return plrsearch.why_set_aside(trial)

    def watch(self, request: Any, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a measurement whose trials show the generator rather than the SUT.

        A generator that cannot send the load will not send it the next time either. Stalls come and go: later trials
        replace the trials that are set aside, within the search's time.

        Returns:
            A function that takes in each trial. It raises `TesterError` if the generator could not send enough frames
            in most of the last trials, or if many trials in a row were set aside.
        """
        # Only trials of this run count: an interrupted run may be resumed on a machine with less other work.
        unsent: deque[str | None] = deque(maxlen=_WATCHED_TRIALS)
        in_a_row: list[str] = []

        def check(trial: TrialResult) -> None:
            reason = self.why_set_aside(trial)
            unsent.append(reason if plrsearch.sent_too_few(trial) else None)
            if reason is None:
                in_a_row.clear()
            else:
                in_a_row.append(reason)

            too_short = [why for why in unsent if why is not None]
            if len(unsent) >= _LEAST_WATCHED and 2 * len(too_short) > len(unsent):
                raise self._too_little(
                    f"{len(too_short)} of the last {len(unsent)} trials", too_short[-1]
                )
            if len(in_a_row) >= _MOST_IN_A_ROW:
                raise self._too_little(f"The last {len(in_a_row)} trials", in_a_row[-1])

        return check

    def _too_little(self, trials: str, reason: str) -> TesterError:
        return TesterError(
            f"{trials} were set aside (the last one because {reason}), which leaves too little evidence about the SUT. "
            "Stop other programs on the TG, have its agent run with real-time priority, or lower the load "
            f"({self.load_argument})."
        )

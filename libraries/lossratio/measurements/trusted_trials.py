"""Trials that are no evidence: the generator did not send their frames, or sent them late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lossratio.errors import TesterError
from lossratio.plrsearch import why_set_aside
from lossratio.trials import TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange

_WATCHED_TRIALS = 10
_LEAST_WATCHED = 4


class OnTrustedTrials:
    """Kinds for which a trial counts only if the generator sent its frames, and in time; another one replaces it."""

    def why_set_aside(self, trial: TrialResult) -> str | None:
        """Why a trial is no evidence about the SUT; None: it is."""
        return why_set_aside(trial)

    def watch(self, request: Any, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a measurement whose trials show the generator rather than the SUT.

        Returns:
            A function that takes in each trial. It raises `TesterError` when most of the last ones
            were set aside.
        """
        # Trials of this run only: an interrupted run may be resumed on a machine with less other work.
        reasons: deque[str | None] = deque(maxlen=_WATCHED_TRIALS)

        def check(trial: TrialResult) -> None:
            reasons.append(self.why_set_aside(trial))
            set_aside = [reason for reason in reasons if reason is not None]
            if len(reasons) >= _LEAST_WATCHED and 2 * len(set_aside) > len(reasons):
                raise TesterError(
                    f"{len(set_aside)} of the last {len(reasons)} trials were set aside (the last one because "
                    f"{set_aside[-1]}), which leaves too little evidence about the SUT. Look for other work on the "
                    "TG, or lower the load."
                )

        return check

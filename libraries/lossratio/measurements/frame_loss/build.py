"""From the trials of a measurement of the frame loss rate to the result that is kept."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.results import FrameLossResult, MaxLoad, Outcome, TestRun, describe_trials, frame_loss
from lossratio.trials import JournalEntry


def frame_loss_result(run: TestRun, max_load: MaxLoad, entries: Sequence[JournalEntry]) -> FrameLossResult:
    """Puts the result of a measurement of the frame loss rate together.

    Args:
        run: The test.
        max_load: The largest load.
        entries: All its trials.
    """
    trials = [entry.result for entry in entries]
    found = frame_loss(trials, max_load.rate.per_interface_fps, run.conditions) if run.error is None else None
    return FrameLossResult(
        **run.stated(),
        outcome=Outcome.FAILED if found is None else Outcome.MEASURED,
        trials=describe_trials(entries),
        max_load=max_load,
        frame_loss=found,
    )

"""From what latency trials left behind to the result that is kept."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.results import LatencyAtLoad, LatencyResult, MaxLoad, Outcome, TestRun, describe_trials, name_load
from lossratio.trials import JournalEntry, TrialResult

PURPOSE = "latency"
"""Why a trial was measured whose frames say how long they took."""


def latency_result(
    run: TestRun, max_load: MaxLoad, latency: Sequence[LatencyAtLoad], trials: Sequence[TrialResult]
) -> LatencyResult:
    """Puts the result of a measurement of latency together: failed if there is none at all.

    Args:
        run: The test.
        max_load: The largest load.
        latency: What was measured at each load.
        trials: The trials that did not fail.
    """
    faults = [f"{name_load(each)}: {fault}" for each in latency for fault in each.faults]
    outcome = Outcome.MEASURED if not faults else Outcome.IRREGULAR
    if not any(each.is_measured for each in latency):
        outcome = Outcome.FAILED
    return LatencyResult(
        **{**run.stated(), "error": "; ".join(faults) if outcome is Outcome.FAILED else None},
        outcome=outcome,
        trials=describe_trials([JournalEntry(trial, PURPOSE) for trial in trials]),
        max_load=max_load,
        latency=tuple(latency),
    )

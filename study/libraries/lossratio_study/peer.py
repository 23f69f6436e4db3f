"""The peer: FD.io's own MLRsearch 1.2.1 from PyPI, with our measurers and our kind of result."""

from collections.abc import Sequence
from importlib import metadata, util
from time import thread_time
from typing import Any

from lossratio.errors import SearchError
from lossratio.mlrsearch import GoalResult, IrregularReason, SearchGoal, SearchResult
from lossratio.trials import Measurer, TrialInput
from lossratio_study.outcome import Outcome, Recorder
from lossratio_study.suts import Subject

PEER_VERSION = "1.2.1"


def why_not_installed() -> str | None:
    """The reason why the peer cannot take part; None if it can."""
    if util.find_spec("MLRsearch") is None:
        return (
            f"MLRsearch {PEER_VERSION} is not installed: pip install 'lossratio-study[peer]' "
            "(in a clone: pip install './study[peer]')."
        )
    installed = metadata.version("MLRsearch")
    if installed != PEER_VERSION:
        return f"The comparison is with MLRsearch {PEER_VERSION}, but {installed} is installed."
    return None


def search_with_peer(goals: Sequence[SearchGoal], subject: Subject, measurer: Measurer) -> Outcome:
    """Runs one search of the peer, with its defaults for settings that goals lack. It must be installed."""
    import MLRsearch

    recorder = Recorder(measurer)

    class Adapter(MLRsearch.AbstractMeasurer):  # type: ignore[misc]
        def measure(self, intended_duration: float, intended_load: float) -> Any:
            """Performs one trial. The peer adds up its effective duration."""
            output = recorder.measure(TrialInput(intended_duration, intended_load))
            sent = output.sent_frames or 0
            return MLRsearch.MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=sent,
                loss_count=output.lost_frames or 0,
                intended_count=sent + (output.unsent_frames or 0),
                duration_with_overheads=recorder.trials[-1].effective_duration,
            )

    theirs = [
        MLRsearch.SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=goal.exceed_ratio,
            relative_width=goal.width,
            initial_trial_duration=goal.first_duration,
            final_trial_duration=goal.final_trial_duration,
            duration_sum=goal.duration_sum,
            fail_fast=False,
        )
        for goal in goals
    ]
    config = MLRsearch.Config(
        goals=theirs,
        min_load=subject.min_load,
        max_load=subject.max_load,
        # The peer measures these seconds on the real clock, but trials here take virtual time.
        search_duration_max=1e9,
        warmup_duration=None,
    )
    begin = thread_time()
    try:
        found = MLRsearch.MultipleLossRatioSearch(config=config).search(measurer=Adapter(), debug=_say_nothing)
    except RuntimeError as error:
        raise SearchError(f"MLRsearch {PEER_VERSION} failed: {error}") from error
    seconds = thread_time() - begin - recorder.seconds
    results = [
        _our_result(goal, found[their], subject.min_load, subject.max_load)
        for goal, their in zip(goals, theirs, strict=True)
    ]
    trials = tuple(recorder.trials)
    elapsed = sum(trial.elapsed for trial in trials)
    return Outcome(SearchResult(results, finished=True, elapsed=elapsed, trials=len(trials)), trials, seconds)


def _say_nothing(text: str) -> None:
    pass


def _our_result(goal: SearchGoal, theirs: Any, min_load: float, max_load: float) -> GoalResult:
    values = (theirs.relevant_lower_bound, theirs.relevant_upper_bound, theirs.conditional_throughput)
    lower, upper, throughput = map(_float_or_none, values)
    if lower is not None and upper is not None:
        regular = upper - lower <= goal.width * upper
        unfinished = None if regular else IrregularReason.STOPPED_EARLY
        return GoalResult(goal, regular, lower, upper, throughput, unfinished)
    if lower is not None and lower >= max_load:
        return GoalResult(goal, False, lower, lower, throughput, IrregularReason.MAX_LOAD_IS_LOWER_BOUND)
    if upper is not None and upper <= min_load:
        return GoalResult(goal, False, lower, upper, throughput, IrregularReason.MIN_LOAD_IS_UPPER_BOUND)
    return GoalResult(goal, False, lower, upper, throughput, IrregularReason.STOPPED_EARLY)


def _float_or_none(value: Any) -> float | None:
    return None if value is None else float(value)

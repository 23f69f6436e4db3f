"""What limits a search other than the SUT's throughput: the generator, late frames, and a loss at any load.

A controller knows only loss ratios. These include frames that the generator could not send, and frames that came back
but were dropped by the generator. So before a goal result is reported, its bounds are judged again without such frames.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from lossratio import mlrsearch, results
from lossratio.errors import StarvedGeneratorError
from lossratio.measurements.throughput.result import Goal, GoalsResult, search_goal
from lossratio.mlrsearch import (
    Bound,
    GoalResult,
    IrregularReason,
    SearchGoal,
    evidence_of,
    is_of_sut,
    of_sut,
    with_late_frames,
    without_generators_faults,
    without_starvation,
)
from lossratio.trials import (
    FAR_BELOW,
    MissingFrames,
    TrialOutput,
    TrialResult,
    known_missing,
    missing_frames,
    offered_load,
    sut_loss_ratio,
)
from lossratio.values import Rate, format_frame_rate, format_ratio

UNSENT_LIMIT = "unsent frames, not lost ones, made the upper bound"
"""The reason for a result whose upper bound is caused by frames that were not sent. The generator may have been too
slow, or a device may have held it back with PAUSE frames: the counts do not show which."""
DROPS_LIMIT = "frames that the generator dropped, not lost ones, made the upper bound"
"""The reason for a result whose upper bound is caused by frames that came back and that the generator dropped, perhaps
together with fewer frames that were not sent."""
MAX_LOAD_OF_GENERATOR = (
    "the generator's maximum load is a lower bound: higher loads were not offered"
)
"""The reason for a result whose bounds are the maximum load, if this is what the generator can send by the topology
file."""
LATE_LIMIT = "late frames, not lost ones, made the upper bound; a longer wait (settle of the generator) would tell"
"""The reason for a result whose upper bound is caused by frames that came back after the wait."""
STALL_LIMIT = "bursts after stalls of the generator may have made the upper bound; a quieter machine would tell"
"""The reason for a result whose upper bound may be caused by the bursts that a generator sends after its stalls."""
STARVED_LIMIT = "a DUT's program that waited for a CPU may have made the upper bound; a quieter machine would tell"
"""The reason for a result whose upper bound is caused by frames that came while a DUT's program had no CPU."""
_LIMITS = {
    UNSENT_LIMIT: without_generators_faults,
    LATE_LIMIT: with_late_frames,
    STARVED_LIMIT: without_starvation,
    STALL_LIMIT: of_sut,
}
"""What else than the SUT may make an upper bound, in the order in which it is asked, and how a trial counts without
it."""
_LIMITS_OF_GENERATOR = (UNSENT_LIMIT, DROPS_LIMIT, MAX_LOAD_OF_GENERATOR)
_NOTHING_KNOWN = MissingFrames(lost_by_sut=1)
_ALSO_DUE_TO_OTHERS = (
    IrregularReason.MAX_LOAD_IS_LOWER_BOUND,
    IrregularReason.MIN_LOAD_IS_UPPER_BOUND,
)


def judge(
    result: GoalResult, trials: Sequence[TrialResult], *, max_load_origin: results.LoadOrigin
) -> str | None:
    """Decides why a goal result is irregular; None: it is regular.

    A goal result is limited by the generator if only frames that it did not send, or dropped when they came back, make
    its relevant upper bound an upper bound. If even the generator's maximum load is a lower bound, no frame
    need be missing. If only late frames make the upper bound, the SUT may forward more: the search counted these frames
    as lost, but they were not. The SUT may also forward more if only frames make the upper bound that came while a
    DUT's program had no CPU, or if the SUT lost no more frames than the generator sent in bursts, to make up for its
    stalls, unless the trials without stalls alone make the bound.

    Args:
        result: The goal result.
        trials: The trials of the search.
        max_load_origin: What limits the maximum load.
    """
    limit = _limit_of_others(result, trials, max_load_origin)
    reason = result.reason
    if reason is None:
        return limit
    if limit is None:
        return str(reason)
    if reason in _ALSO_DUE_TO_OTHERS:
        return limit
    return f"{limit}; {reason}"


def is_generators_limit(reason: str | None) -> bool:
    """Whether an irregular goal result was limited, at least in part, by what the generator sent or dropped."""
    return reason is not None and reason.startswith(_LIMITS_OF_GENERATOR)


def is_least(reason: str | None) -> bool:
    """Whether an irregular goal result was limited, at least in part, by something other than the SUT."""
    return is_generators_limit(reason) or (reason or "").startswith(tuple(_LIMITS))


def is_bound_of_others(result: GoalsResult, bound: Rate | None, goal: Goal) -> bool:
    """Whether, in most trials that lost too much at an upper bound, the SUT itself lost few enough frames.

    Args:
        result: The result of the search.
        bound: The upper bound; None: there is none.
        goal: The goal of the bound.
    """
    if bound is None:
        return False
    searched = search_goal(goal)
    at_bound = [searched.seen(trial.as_result()) for trial in result.evidence_at(bound)]
    failed = [trial for trial in at_bound if trial.loss_ratio > goal.loss_ratio]
    by_others = [trial for trial in failed if sut_loss_ratio(trial) <= goal.loss_ratio]
    return 2 * len(by_others) > len(failed)


def is_bound_of_bursts(result: GoalsResult, bound: Rate | None, goal: Goal) -> bool:
    """Whether an upper bound exists only because of frames that the generator's bursts after stalls may have cost.

    Args:
        result: The result of the search.
        bound: The upper bound; None: there is none.
        goal: The goal of the bound.
    """
    if bound is None:
        return False
    searched = search_goal(goal)
    made = [trial.as_result() for trial in result.evidence_at(bound)]
    with_bursts = [with_late_frames(trial, searched) for trial in made]
    is_upper = _is_upper_bound(bound.per_interface_fps, searched, with_bursts)
    return is_upper and not is_of_sut(searched, made)


def _limit_of_others(
    result: GoalResult, trials: Sequence[TrialResult], max_load_origin: results.LoadOrigin
) -> str | None:
    """What bounded a result from above, apart from the SUT; None: nothing did."""
    if result.reason is IrregularReason.MAX_LOAD_IS_LOWER_BOUND:
        if max_load_origin is results.LoadOrigin.GENERATOR:
            return MAX_LOAD_OF_GENERATOR
        return None

    upper = result.relevant_upper_bound
    goal = result.goal
    seen = [goal.seen(trial) for trial in trials]
    if upper is None or not _is_upper_bound(upper, goal, seen):
        return None

    for limit, kept in _LIMITS.items():
        there = [kept(trial, goal) if trial.load == upper else goal.seen(trial) for trial in trials]
        if there == seen or _is_upper_bound(upper, goal, there):
            continue
        if limit == STALL_LIMIT and is_of_sut(goal, [one for one in trials if one.load == upper]):
            return None
        dropped = limit == UNSENT_LIMIT and _are_mostly_dropped(upper, seen)
        return DROPS_LIMIT if dropped else limit
    return None


def _are_mostly_dropped(load: float, seen: Iterable[TrialResult]) -> bool:
    """Whether the generator dropped more frames at a load than it left unsent."""
    known = [known_missing(one.output) for one in seen if one.load == load]
    missing = sum(known, MissingFrames())
    return missing.generator_drops > missing.unsent + missing.refused


def _is_upper_bound(load: float, goal: SearchGoal, trials: Iterable[TrialResult]) -> bool:
    evidence = evidence_of(goal)
    for trial in trials:
        evidence.add(trial)
    return evidence.bound(load) is Bound.UPPER


def is_disturbed(trial: TrialResult, others: Iterable[TrialResult]) -> bool:
    """Whether the generator did not offer a load although it has sent far more in another trial.

    Args:
        trial: A trial at the load.
        others: The trials of the search.
    """
    if offered_load(trial) > (1.0 - results.LEAST_UNSENT) * trial.load:
        return False
    return trial.load < FAR_BELOW * max(map(offered_load, others), default=0.0)


def check_generator(
    trials: Sequence[TrialResult],
    goals: Iterable[SearchGoal],
    *,
    is_one_enough: bool,
    others: Sequence[TrialResult] = (),
) -> None:
    """Makes sure that a load that the generator can send is no upper bound because of the generator.

    Such a load is the smallest of a search, or far below what was sent in other trials. A search does not follow a
    disturbed generator down.

    A goal may allow that some trials lose too much, so a single trial does not decide.

    Args:
        trials: All trials at the load so far, at least one.
        goals: The goals of the search.
        is_one_enough: Whether the search ends as soon as it finds no load for one goal.
        others: All trials of the search.

    Raises:
        StarvedGeneratorError: If the load is an upper bound only because of frames that the generator did not send, or
            dropped.
    """
    trial = trials[-1]
    failed = []
    for goal in goals:
        by_others = [without_generators_faults(each, goal) for each in trials]
        if _is_upper_bound(trial.load, goal, by_others):
            # The SUT does not meet this goal, whatever the generator does.
            return
        seen = [goal.seen(each) for each in trials]
        failed.append(_is_upper_bound(trial.load, goal, seen))

    is_failure = any if is_one_enough else all
    if not is_failure(failed):
        return

    faults = ", ".join(_faults(trial.output))
    passed = [
        each.load for each in others if not (missing_frames(each.output) or _NOTHING_KNOWN).total
    ]
    largest = "no load was both offered in full and forwarded without loss"
    if passed:
        most = format_frame_rate(max(passed))
        largest = (
            f"the largest load that was offered in full and lost nothing is {most} per interface"
        )
    raise StarvedGeneratorError(
        "The search shows nothing about the device's throughput, because the generator faltered at "
        f"{format_frame_rate(trial.load)} per interface, a load that it can send: it reports {faults}; "
        f"{largest}. {_help(trials)} A resumed run measures such trials again."
    )


def _help(trials: Sequence[TrialResult]) -> str:
    """What helps a generator that does not send: what counters named, or what else it may be."""
    named = [one for trial in trials for one in trial.output.incidents if one.way_out]
    if not named:
        return (
            "If the generator's sender was late, look for other programs on the TG, or reserve CPUs. "
            "If it receives PAUSE frames, switch flow control off (ethtool --pause)."
        )
    change = named[-1].change
    return f"{change[0].upper()}{change[1:]}. {named[-1].way_out}"


def _faults(output: TrialOutput) -> Iterator[str]:
    """The generator's counts of the frames in a trial that the SUT did not lose, and its delay."""
    missing = known_missing(output)
    unsent = missing.unsent + missing.refused
    if unsent:
        wanted = (output.sent_frames or 0) + unsent
        yield f"{unsent:,} unsent frames of {wanted:,}"
    if missing.generator_drops:
        yield f"{missing.generator_drops:,} frames that came back and that it dropped"

    late = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    if late:
        yield f"a delay of up to {late * 1e3:.3g} ms"


def level_in_words(level: "mlrsearch.LevelLoss", written: Callable[..., str]) -> str:
    """A loss that is the same at any load, in a sentence without a full stop.

    Args:
        level: The loss.
        written: Writes loads.
    """
    if level.unit is mlrsearch.LossUnit.SHARE:
        what = "share of the frames"
        lost = format_ratio(level.lost)
    elif level.unit is mlrsearch.LossUnit.SECONDS:
        what = "loss in time"
        lost = f"the frames of {level.lost * 1e3:.3g} ms"
    else:
        what = "number of frames"
        lost = f"{level.lost:,.0f} per interface"

    return (
        f"each trial loses the same {what}, {lost}, at each of {level.loads} loads from "
        f"{written(level.lowest, level.highest)}"
    )

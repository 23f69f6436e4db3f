"""The findings of a search, in one sentence for each goal, for people who read nothing else."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import fmean

from lossratio.measurements.throughput.limits import is_least
from lossratio.measurements.throughput.result import (
    Goal,
    GoalReport,
    GoalsResult,
    OfEarlierSearch,
    QuestionAsked,
    search_goal,
)
from lossratio.mlrsearch import Bound, evidence_of, of_sut
from lossratio.results import (
    Trial,
    frames_in_words,
    headline,
    in_good_trials,
    in_trials_without_loss,
    rate_in_words,
    share_missing_in_words,
)
from lossratio.trials import sut_loss_ratio
from lossratio.values import FRAMES_PER_SECOND, Rate, format_ratio, trials_counted

_BY_CHANCE = 0.01
"""A part of the traffic is named as the cause of a bound if chance would name one less often: after eight trials with
losses, of two directions."""


@headline
def sentences(result: GoalsResult) -> Iterator[str]:
    """A sentence for each goal: the forwarded rate, and how precisely the limit is known.

    If the SUT is as before, it is one sentence for all goals.
    """
    if result.question is not None:
        yield _about_question(result.question, result)
    if result.is_as_before:
        return

    of_connections = result.unit is not FRAMES_PER_SECOND
    frames = "connections/s" if of_connections else frames_in_words(result.conditions)
    forwards = "establishes" if of_connections else "forwards"
    for report in result.goals:
        lower, upper = report.bounds
        if report.result is None:
            continue
        if lower is None:
            yield f"{report.goal.name}: no load was found that meets it: {report.result.reason}."
            continue

        found = _found(report, lower, result, forwards, frames)
        length = f"{report.goal.final_trial_duration_s:.4g} s"
        found += f" of {length}" if found.endswith("trials") else f" in trials of {length}"
        if lower == result.max_load.rate:
            yield f"{found}; that is the maximum load, and the SUT may forward more."
        elif is_least(report.result.reason):
            most = _least_that_the_sut_fails(result.evidence, report.goal)
            more = "more" if most is None else f"more, but less than {rate_in_words(most)}"
            yield f"{found}; the SUT may forward {more}: {report.result.reason}."
        elif upper is None or not report.result.regular:
            yield f"{found}; the limit is not proved: {report.result.reason}."
        else:
            gap = _gap(lower, upper, report.goal.final_trial_duration_s)
            yield f"{found}; the limit is proved to within {100.0 * gap:.2g} %{made_by(report, result)}."
    if result.longer_trial is not None:
        yield result.longer_trial.sentence(forwards, frames)


def made_by(report: GoalReport, result: GoalsResult) -> str:
    """The words for the part of the frames that alone made a goal's upper bound; empty: all, or nobody knows.

    A part is a direction, a stream, or the frames that came back with a fault.

    Args:
        report: The goal, with its result.
        result: The result of the search.
    """
    upper = report.bounds[1]
    if upper is None or report.goal.stream is not None:
        return ""
    at_upper = result.evidence_at(upper)
    by_fault = _mean_shares(map(_lost_by_fault, at_upper))
    if by_fault and by_fault["lost"] <= report.goal.loss_ratio < by_fault["faulty"]:
        return ", by frames with a fault alone"
    for shares_of in (_lost_by_direction, _lost_by_stream):
        means = _mean_shares(map(shares_of, at_upper))
        guilty = [name for name, share in means.items() if share > report.goal.loss_ratio]
        if 0 < len(guilty) < len(means) and _always_worst(map(shares_of, result.evidence), guilty):
            return f", by {' and '.join(guilty)} alone"
    return ""


def _mean_shares(of_trials: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of the shares that parts of the traffic lost in trials, by part; empty: nobody knows."""
    known = [shares for shares in of_trials if shares]
    names = known[0] if known else {}
    return {name: fmean(shares.get(name, 0.0) for shares in known) for name in names}


def _lost_by_direction(trial: Trial) -> dict[str, float]:
    """The share of the frames of each direction that the SUT may have lost."""
    return {
        way.name: max(0, way.lost - way.generator_drop_frames) / max(1, way.sent_frames)
        for way in trial.directions
    }


def _lost_by_stream(trial: Trial) -> dict[str, float]:
    """The lost share of the frames of each stream; empty: it is not known."""
    sent: Counter[str] = Counter()
    received: Counter[str] = Counter()
    for one in chain.from_iterable(way.by_stream for way in trial.directions):
        sent[one.name] += one.sent_frames
        received[one.name] += one.received_frames
    return {f"stream {name}": 1.0 - received[name] / sent[name] for name in sent if sent[name]}


def _lost_by_fault(trial: Trial) -> dict[str, float]:
    """The share of the frames that came back with a fault, and the share of those that did not come back at all."""
    faulty = sum(way.faulty - way.duplicated_frames for way in trial.directions)
    lost = sum(way.lost for way in trial.directions) - faulty
    sent = max(1, trial.sent_frames or 0)
    return {"faulty": faulty / sent, "lost": max(0, lost) / sent}


def _always_worst(trials: Iterable[dict[str, float]], guilty: Sequence[str]) -> bool:
    """Whether only these parts lost most in all trials with losses, more often than chance would have it.

    Of the few frames at a bound, chance takes all from one part now and then, so each trial counts once.
    """
    lossy = [shares for shares in trials if any(shares.values())]
    worst = [max(shares, key=shares.__getitem__) for shares in lossy]
    if not lossy or not set(worst) <= set(guilty):
        return False
    # Formula: that one of several sets of parts has the worst one in every trial, if each part is as likely.
    likely = len(guilty) / len(lossy[0])
    return math.comb(len(lossy[0]), len(guilty)) * likely ** len(lossy) < _BY_CHANCE


def _gap(lower: Rate, upper: Rate, duration: float) -> float:
    """The distance of two bounds, as a share of the upper one. Trials send whole frames, and may not come closer."""
    loads = (lower.per_interface_fps, upper.per_interface_fps)
    # The product's rounding error must not become a frame.
    passed, failed = (math.ceil(load * duration * (1.0 - 1e-12)) for load in loads)
    return 1.0 - min(loads[0] / loads[1], passed / failed)


def _least_that_the_sut_fails(trials: Sequence[Trial], goal: Goal) -> float | None:
    """The smallest load at which the SUT itself lost too much, frames per second per interface; None: there is none."""
    searched = search_goal(goal)
    evidence = evidence_of(searched)
    for trial in trials:
        evidence.add(of_sut(trial.as_result(), searched))
    loads = {trial.load_per_interface_fps for trial in trials}
    return min((load for load in loads if evidence.bound(load) is Bound.UPPER), default=None)


def _about_question(question: QuestionAsked, result: GoalsResult) -> str:
    """The outcome of the question whether the SUT is as before, or why it was not asked."""
    if question.answer == "not asked":
        return f"Searched, without asking whether the SUT is as before: {question.reason}."
    trials = trials_counted(question.trials)
    if question.answer != "as before":
        found = "the bounds do not contradict the earlier searches"
        if question.answer == "changed":
            found = "the bounds show that the SUT has changed"
        return f"Searched, because {trials} did not show that the SUT is unchanged since {_day(question)}: {found}."

    shown = "; ".join(_shown(asked, result) for asked in question.earlier)
    missed = ", and ".join(
        f"a change of {format_ratio(one.change_ratio)} is missed in {one.as_before} of {one.questions}"
        for one in sorted(question.replays, key=lambda one: one.change_ratio)
        if one.change_ratio
    )
    return (
        f"As before since {_day(question)}, and not searched. Of tonight's {trials}, {shown} (frames/s per interface). "
        f"In replays of these nights, {missed}."
    )


def _shown(asked: OfEarlierSearch, result: GoalsResult) -> str:
    """How many trials passed and failed a goal at its two loads of the question."""
    allowed = result.goal_named(asked.goal).goal.loss_ratio
    losses = Counter[tuple[float, bool]]()
    for trial in result.trials:
        is_lossy = sut_loss_ratio(trial.as_result()) > allowed
        losses[trial.load_per_interface_fps, is_lossy] += 1
    words = []
    for load, is_lossy in (asked.passing_load_fps, False), (asked.failing_load_fps, True):
        number = losses[load, is_lossy]
        verb = "failed" if is_lossy else "passed"
        words.append(
            f"{number} of {number + losses[load, not is_lossy]} {verb} at {rate_in_words(load)}"
        )
    return f"{asked.goal}: {words[0]}, and {words[1]}"


def _day(question: QuestionAsked) -> str:
    """The day of the last search."""
    return "the last search" if question.since is None else f"{question.since:%Y-%m-%d}"


def _found(report: GoalReport, lower: Rate, result: GoalsResult, forwards: str, frames: str) -> str:
    goal = report.goal
    offered = rate_in_words(lower.per_interface_fps, frames)
    here = result.evidence_at(lower)
    if goal.stream is not None:
        searched = search_goal(goal)
        seen = (searched.seen(trial.as_result()) for trial in here)
        where = in_good_trials([sut_loss_ratio(trial) <= goal.loss_ratio for trial in seen])
        lost = f"at most {format_ratio(goal.loss_ratio)}" if goal.loss_ratio else "no frame"
        of_all = "" if ">" in goal.stream else " of all streams"
        return f"{goal.name}: {goal.part} loses {lost}{where} when offered {offered}{of_all}"
    if goal.loss_ratio == 0.0:
        return f"{goal.name}: {forwards} {offered} without loss{in_trials_without_loss(here)}"

    forwarded = report.throughput or lower
    share = 1.0 - forwarded.per_interface_fps / lower.per_interface_fps
    lost = share_missing_in_words(share, here)
    by_direction = _mean_shares(map(_lost_by_direction, here)).values()
    on_average = ""
    # One direction alone loses more than may be lost of both.
    if by_direction and min(by_direction) <= goal.loss_ratio < max(by_direction):
        on_average = " on average"
    return (
        f"{goal.name} (at most {format_ratio(goal.loss_ratio)} may be lost): {forwards} "
        f"{rate_in_words(forwarded.per_interface_fps, frames)}{on_average} when offered "
        f"{rate_in_words(lower.per_interface_fps)} ({lost})"
    )

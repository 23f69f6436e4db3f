"""Trials of latency and telemetry after a search, and whether they contradict it."""

from collections.abc import Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import NamedTuple

from lossratio.measurements.latency.result import name_load
from lossratio.measurements.throughput.result import Goal, GoalsResult
from lossratio.results import ROUNDING, NoteKind, Offered, doubt
from lossratio.trials import MissingFrames
from lossratio.values import format_frame_rate, format_ratio

LEAST_CHANGE = 0.01
"""The smallest relative change that a comparison or a trend reports."""
LEAST_EXCESS = LEAST_CHANGE
"""At a load that meets a goal, a loss ratio contradicts the search only if it exceeds the goal's by this much. A
smaller excess may be a stall, or one of the lossy trials that a goal with an exceed ratio allows."""
USUAL_BUCKET = 0.05
"""A policer's bucket may hold the frames of this many seconds at its rate. The search, whose trials were shorter,
passed these frames, and a longer trial loses them. This is no contradiction."""
LEAST_LOST = 10
"""Fewer lost frames are no contradiction: at the minimum load, they may be chance."""


class _LaterTrial(NamedTuple):
    """A trial after the search: its name, its traffic, and its duration in seconds."""

    what: str
    offered: Offered
    duration: float

    @property
    def lost(self) -> int:
        """Frames that the SUT lost."""
        return self.offered.missing.lost_by_sut

    @property
    def loss_ratio(self) -> float:
        """The share of the frames that the SUT lost."""
        return self.lost / max(1, self.offered.sent)


def _after(result: GoalsResult) -> list[_LaterTrial]:
    """The trials of latency and telemetry that followed the search."""
    return [*_of_latency(result), *_of_telemetry(result)]


def offered_after(result: GoalsResult) -> list[Offered]:
    """The traffic of the trials that followed the search."""
    return [trial.offered for trial in _after(result)]


@doubt(
    NoteKind.CONTRADICTED,
    f"A trial after the search, at a load that met a goal, lost {LEAST_LOST} frames or more, and "
    f"{format_ratio(LEAST_EXCESS)} more than the goal and a bucket of {1e3 * USUAL_BUCKET:.0f} ms explain.",
)
def contradicted(result: GoalsResult) -> Iterator[str]:
    """A later trial contradicts the search."""
    excesses = list(_excesses(result, _after(result)))
    if excesses:
        _, worst, goal = max(excesses, key=itemgetter(0))
        yield (
            f"the {worst.what} lost {format_ratio(worst.loss_ratio)} of the sent frames, and {goal.name} allows "
            f"{format_ratio(goal.loss_ratio)}, although the search found that this load meets the goal. "
            f"{_advice(worst.duration, goal.final_trial_duration_s)}"
        )


def _advice(later_s: float, searched_s: float) -> str:
    """What to do: a longer trial may also lose more because the SUT is as before, but fast only at first."""
    if later_s <= searched_s:
        return "Find out what changed, and search again"
    return (
        f"This trial took {later_s:.3g} s, and those of the search {searched_s:.3g} s: either something changed, or a "
        f"bucket or a buffer holds more than {1e3 * USUAL_BUCKET:.0f} ms of traffic. Search again with "
        "trials as long as this one"
    )


def _of_latency(result: GoalsResult) -> Iterator[_LaterTrial]:
    for at_load in result.latency:
        if at_load.duration_s is not None and at_load.offered is not None:
            yield _LaterTrial(
                f"latency trial at {name_load(at_load)},", at_load.offered, at_load.duration_s
            )


def _of_telemetry(result: GoalsResult) -> Iterator[_LaterTrial]:
    for trial in result.telemetry:
        load = trial.load.per_interface_fps
        intended = round(trial.load.aggregate_fps * trial.duration_s)
        missing = MissingFrames(
            lost_by_sut=max(0, trial.lost_frames - trial.generator_drop_frames - trial.late_frames),
            late=trial.late_frames,
            unsent=max(0, intended - trial.sent_frames),
            generator_drops=trial.generator_drop_frames,
        )
        yield _LaterTrial(
            f"telemetry's trial at {format_frame_rate(load)} per interface",
            Offered(load, trial.sent_frames, missing),
            trial.duration_s,
        )


def _excesses(
    result: GoalsResult, trials: Iterable[_LaterTrial]
) -> Iterator[tuple[float, _LaterTrial, Goal]]:
    """The trials that contradict the search, each with the loss ratio that its goal and a bucket do not explain."""
    for trial in trials:
        goal = _strictest_met(result, trial.offered.load)
        if goal is None or trial.lost < LEAST_LOST:
            continue

        # The maximum that a bucket can add to the loss ratio of a trial that is longer than the goal's trials.
        longer = max(0.0, trial.duration - goal.final_trial_duration_s)
        bucket = USUAL_BUCKET * longer / (trial.duration * goal.final_trial_duration_s)
        excess = trial.loss_ratio - goal.loss_ratio - bucket
        if excess > LEAST_EXCESS:
            yield excess, trial, goal


def _strictest_met(result: GoalsResult, load: float) -> Goal | None:
    """The goal with the smallest loss ratio among the goals that this load met in the search; None: it met none."""
    met = [
        report.goal
        for report in result.goals
        if (bound := report.bounds[0]) is not None
        and load <= bound.per_interface_fps * (1.0 + ROUNDING)
    ]
    return min(met, key=attrgetter("loss_ratio"), default=None)

"""Moments at which frames are lost: the beginning and the end of trials, pauses, and every n-th frame."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lossratio.results.loss_tests import OTHER_LOAD, SeenLosses, runs_of
from lossratio.results.losses import PatternKind
from lossratio.trials import FlowClasses, Losses
from lossratio.units import format_ratio, range_in_words

WHOLE = 0.995
"""A flow that lost more than this share of its frames counts as having lost all: some at the edges may not be lost."""
_FAR_LOAD = 1.25
_LEAST_DISTANCE = 3
"""The smallest n that is examined. A device that loses one in n frames because of its capacity would lose clearly more
at `_FAR_LOAD` times the load.
"""
_LEAST_LEADING = 2
_LEAST_PAUSE_S = 0.02
_FEWEST_STEPS = 3
"""Steps of time without any frame of a direction that count as an outage."""
_MOST_PAUSED = 0.1
"""Maximum share of a trial that pauses may take. A longer loss means that the device lacks capacity, not that it
pauses."""


@dataclass(frozen=True)
class Found:
    """A pattern before the correction for the number of patterns examined; without a sentence, it is not reported."""

    kind: PatternKind
    direction: str | None
    chance: float
    sentence: str | None = None
    explained: float = 0.0
    trials: int = 0


@dataclass(frozen=True)
class OfDirection:
    """The losses of one direction in several trials."""

    name: str
    seen: Sequence[SeenLosses]
    in_words: str
    """The words after "lost frames", if several directions lose frames."""

    def share(self, explained: float, others: float) -> str:
        """The beginning of a sentence: the share of the loss that a pattern explains; `others` has other causes."""
        frames = f"lost frames{self.in_words}"
        if any(one.losses.known_frames != one.losses.run_frames for one in self.seen):
            frames += " (of those examined)"
        if not others:
            return f"All {frames} are"
        return f"{format_ratio(min(explained, 0.999))} of the {frames} are"


def streams_of(losses: Losses) -> FlowClasses | None:
    """The streams of the frames of a round; None: there is one stream."""
    return next((one for one in losses.classes if one.names), None)


def _partly_lost(seen: Sequence[SeenLosses]) -> list[SeenLosses]:
    """The trials that did not lose every frame: only in these, a loss is at the beginning or at the end."""
    return [one for one in seen if one.losses.lost_frames < one.losses.known_frames]


def of_beginning(own: OfDirection) -> Found:
    """Whether the first frames of trials are lost."""
    seen = _partly_lost(own.seen)
    kind: PatternKind = "beginning"
    chance = 1.0
    leading = []
    for one in seen:
        losses = one.losses
        first = losses.leading_frames
        rest = (losses.lost_frames - first) / max(1, losses.known_frames)
        if first >= _LEAST_LEADING:
            leading.append(one)
            # By chance, the first event of a trial may begin anywhere.
            chance *= max(rest, 1.0 / losses.known_frames)

    without = len(seen) - len(leading)
    if not leading or without > len(seen) // 4:
        return Found(kind, own.name, 1.0)
    # Formula: that no more trials than these are without it.
    chance *= float(len(seen)) ** without
    counts = [one.losses.leading_frames for one in leading]
    lost = sum(one.losses.lost_frames for one in own.seen)
    explained = sum(counts) / lost
    all_flows = leading[0].losses.flows
    whole = {count % all_flows for count in counts} == {0} and len(set(counts)) == 1
    seconds = [one.losses.leading_frames / one.load for one in leading]
    is_time = _spread(seconds) < _spread([float(count) for count in counts])

    if whole and all_flows > 1 and streams_of(leading[0].losses) is None:
        kind = "first_frames_of_flows"
        rounds = counts[0] // all_flows
        many = "first frame" if rounds == 1 else f"first {rounds:,} frames"
        what = f"the {many} of each of the {all_flows:,} flows"
    elif is_time:
        what = f"those of the first {_interval(seconds, 1e3)} ms of each trial"
    else:
        what = f"the first {_interval([float(count) for count in counts])} frames of each trial"
    sentence = f"{own.share(explained, lost - sum(counts))} {what}"
    return Found(kind, own.name, chance, sentence, explained, len(leading))


def of_end(own: OfDirection) -> Found:
    """Whether the last frames of trials are lost."""
    seen = _partly_lost(own.seen)
    chance = 1.0
    counts = []
    for one in seen:
        losses = one.losses
        last = losses.trailing_frames
        if last >= _LEAST_LEADING:
            counts.append(last)
            # By chance, the last event of a trial may end anywhere.
            rest = (losses.lost_frames - last) / max(1, losses.known_frames)
            chance *= max(rest, 1.0 / losses.known_frames)

    without = len(seen) - len(counts)
    if not counts or without > len(seen) // 4:
        return Found("end", own.name, 1.0)
    # Formula: that no more trials than these are without it.
    chance *= float(len(seen)) ** without
    lost = sum(one.losses.lost_frames for one in own.seen)
    what = f"the last {_interval([float(count) for count in counts])} frames of each trial"
    explained = sum(counts) / lost
    sentence = f"{own.share(explained, lost - sum(counts))} {what}"
    return Found("end", own.name, chance, sentence, explained, len(counts))


def of_every_nth(own: OfDirection) -> Found:
    """Whether every n-th frame is lost, with one n at two loads: then no resource is exhausted, but a counter acts."""
    nothing = Found("every_nth", own.name, 1.0)
    distances = {one.losses.every_frames for one in own.seen}
    loads = sorted(one.load for one in own.seen)
    # An overloaded device loses a larger share of the frames at a higher load.
    if len(distances) > 1 or min(distances) < _LEAST_DISTANCE or loads[-1] < _FAR_LOAD * loads[0]:
        return nothing

    (distance,) = distances
    gaps = sum(one.losses.lost_frames - 1 for one in own.seen)
    # Formula: that a frame is lost again at exactly that point, if each frame is lost independently.
    chance = max(float(distance) ** -gaps, 1e-300) if gaps < 100 else 1e-300
    sentence = (
        f"All lost frames{own.in_words} are one in {distance:,}, "
        "always the same number of frames apart, at any load"
    )
    return Found("every_nth", own.name, chance, sentence, 1.0, len(own.seen))


def _spread(values: Sequence[float]) -> float:
    """The difference between the largest and the smallest value, as a share of the largest."""
    return (max(values) - min(values)) / max(values)


def _interval(values: Sequence[float], factor: float = 1.0) -> str:
    least, most = (
        f"{value * factor:,.3g}" if factor > 1 else f"{value:,.0f}"
        for value in (min(values), max(values))
    )
    return range_in_words(least, most)


@dataclass(frozen=True)
class _Pause:
    """A time in which every frame of a direction was lost."""

    start: float
    length: float
    chance: float


def of_pauses(own: OfDirection) -> Found:
    """Whether a direction loses every frame for a while, and none before or after that."""
    kind: PatternKind = "pauses"
    nothing = Found(kind, own.name, 1.0)
    chance = 1.0
    paused = []
    gaps: list[float] = []
    seen = own.seen
    for one in seen:
        pauses = _pauses_in(one)
        if pauses is None:
            return nothing
        paused += pauses
        starts = [pause.start for pause in pauses]
        gaps += np.diff(starts).tolist()

    if not paused:
        return nothing
    for pause in paused[:10]:
        chance *= pause.chance
    lengths = [pause.length for pause in paused]
    loads = [one.load for one in seen]
    if max(loads) >= OTHER_LOAD * min(loads) and _spread(lengths) > 0.5:
        # A device that lacks capacity loses frames for longer at a higher load.
        return nothing

    step = max(one.losses.step_s for one in seen)
    trials = len({one.trial for one in seen})
    every = ""
    if len(gaps) >= 3 and max(gaps) - min(gaps) <= max(2.0 * step, 0.03 * max(gaps)):
        every = f", one every {np.mean(gaps):.3g} s"
    number = f"{len(paused)} {'pause' if len(paused) == 1 else 'pauses'} of about {_interval(lengths, 1e3)} ms"
    sentence = f"{own.share(1.0, 0)} from {number}{every}: no frame came back during a pause, and all did otherwise"
    return Found(kind, own.name, chance, sentence, 1.0, trials)


def has_outage(one: SeenLosses) -> bool:
    """Whether a direction loses every frame for a while, however long it takes.

    Args:
        one: The losses of a direction in a trial.
    """
    lost, known = one.steps
    is_whole = (known > 0) & (lost >= WHOLE * known)
    longest = max((end - start for start, end in runs_of(is_whole)), default=0)
    return longest >= _FEWEST_STEPS and longest * one.losses.step_s >= _LEAST_PAUSE_S


def _pauses_in(one: SeenLosses) -> list[_Pause] | None:
    """The pauses of a trial; None: there are also other losses, or no pauses."""
    lost, known = one.steps
    step = one.losses.step_s
    if len(lost) < 10 or not known.all():
        return None
    share = float(lost.sum() / known.sum())
    runs = runs_of(lost > 0)
    if share > _MOST_PAUSED:
        return None
    pauses = []
    for start, end in runs:
        inner = lost[start + 1 : end - 1].sum() >= WHOLE * known[start + 1 : end - 1].sum()
        length = float((lost[start:end] / known[start:end]).sum()) * step
        if not inner or length < _LEAST_PAUSE_S or length < (end - start - 2) * step:
            return None
        # Formula: that the next steps are also lost, if steps are independent.
        pauses.append(_Pause(start * step, length, share ** max(0, end - start - 2)))
    return pauses

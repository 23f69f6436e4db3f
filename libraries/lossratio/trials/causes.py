"""Why frames of a trial did not come back: each has one cause, and each cause a type.

What the generator did is no property of the SUT. So sentences, rules and doubts about the SUT use the frames that the
SUT lost, and not a trial's loss ratio, in which RFC 9971 also counts unsent frames.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import DirectionCounters
from lossratio.values import counted

STALL = 1e-3
"""Usual delay of a sender on a shared machine, in seconds; a longer delay is a stall."""
USUAL_BATCH = 32.0
"""Number of frames that software such as DPDK's programs handles, and loses, at once."""
FAR_BELOW = 0.5
"""A load below this share of what the generator has sent in another trial is one that it can send."""


@dataclass(frozen=True)
class MissingFrames:
    """The frames of a trial that the load asked for and that did not come back in time, by their cause."""

    lost_by_sut: int = 0
    """Frames that left the generator and never came back, or came back with a fault."""
    late: int = 0
    """Frames that came back after the wait for frames in flight; they count as lost (RFC 2544, section 23)."""
    unsent: int = 0
    """Frames that the generator could not send in time, without the refused frames."""
    refused: int = 0
    """Frames that the generator's port, or the ring of a virtual link, had no room for."""
    generator_drops: int = 0
    """Frames that came back and that the generator itself dropped."""

    @property
    def by_tester(self) -> int:
        """Frames that are missing because of the generator or its links."""
        return self.unsent + self.refused + self.generator_drops

    @property
    def without_tester(self) -> int:
        """Frames that are missing for other reasons: the SUT lost them, or they were late."""
        return self.lost_by_sut + self.late

    @property
    def total(self) -> int:
        """All missing frames."""
        return self.without_tester + self.by_tester

    @property
    def not_lost(self) -> str:
        """The frames that the SUT did not lose, in words, e.g. ``5 frames unsent, 2 frames only late``; empty: none."""
        counts = {
            "unsent": self.unsent + self.refused,
            "dropped by the generator": self.generator_drops,
            "only late": self.late,
        }
        parts = [
            f"{counted(frames, 'frame')} {cause}" for cause, frames in counts.items() if frames
        ]
        return ", ".join(parts)

    def __add__(self, other: "MissingFrames") -> "MissingFrames":
        """The missing frames of two directions, or of two trials."""
        return MissingFrames(
            lost_by_sut=self.lost_by_sut + other.lost_by_sut,
            late=self.late + other.late,
            unsent=self.unsent + other.unsent,
            refused=self.refused + other.refused,
            generator_drops=self.generator_drops + other.generator_drops,
        )


class CountedFrames(Protocol):
    """The counts of a trial, as in its output and in its record in a result."""

    @property
    def directions(self) -> Sequence[DirectionCounters]:
        """The counters of each direction; empty: only sums are known."""

    @property
    def lost_frames(self) -> int | None:
        """Frames sent minus frames received; None: not counted."""

    @property
    def unsent_frames(self) -> int | None:
        """Frames that the generator could not send; None: not counted."""

    @property
    def late_frames(self) -> int | None:
        """Lost frames that came back after the wait; None: none is known."""


def missing_frames(output: CountedFrames) -> MissingFrames | None:
    """The frames of a trial that did not come back, by their cause; None: the trial counted no frames."""
    if output.directions:
        known = sum((_missing_in(direction) for direction in output.directions), MissingFrames())
    elif output.lost_frames is not None:
        known = MissingFrames(lost_by_sut=output.lost_frames, unsent=output.unsent_frames or 0)
    else:
        return None
    late = min(output.late_frames or 0, known.lost_by_sut)
    return replace(known, lost_by_sut=known.lost_by_sut - late, late=late)


def known_missing(output: CountedFrames) -> MissingFrames:
    """The frames of a trial that did not come back, by their cause; none if the trial counted no frames."""
    return missing_frames(output) or MissingFrames()


def most_lost_in_bursts(directions: Iterable[DirectionCounters], duration: float) -> float:
    """The maximum number of frames that a trial may have lost because the generator made up for stalls with bursts.

    In each direction, a burst has no more frames than were due during the longest stall of its sender.

    Args:
        directions: The counters of the trial.
        duration: The intended duration of the trial, in seconds.
    """
    frames = 0.0
    for direction in directions:
        stall = direction.lateness_s or 0.0
        if stall > STALL:
            frames += min(direction.lost, stall * direction.intended_frames / duration)
    return frames


def sut_loss_ratio(result: TrialResult, in_bursts: float = 0.0) -> float:
    """The share that the SUT lost of the frames that were sent to it.

    Unsent, refused and late frames are not in it, nor are frames that the generator dropped. If the trial counted no
    frames, this is its loss ratio. If an early verdict ended the trial, the result is a lower limit, like the loss
    ratio, and a share of the frames of the whole duration.

    The SUT cannot have lost a larger share than the trial's loss ratio.

    Args:
        result: The trial.
        in_bursts: Lost frames that are left out, because the generator's bursts may be the cause.
    """
    missing = missing_frames(result.output)
    if missing is None:
        return result.loss_ratio
    return _share(result, max(0.0, missing.lost_by_sut - in_bursts))


def offered_load(result: TrialResult) -> float:
    """The load of a trial without the frames that were not sent, in frames per second per interface."""
    missing = missing_frames(result.output)
    sent = result.output.sent_frames
    if missing is None or not sent:
        return result.load
    return result.load * sent / (sent + missing.unsent + missing.refused)


def loss_ratio_without_tester(result: TrialResult) -> float:
    """The loss ratio of a trial if only its sent frames had been its load, and every returned frame had counted.

    Late frames count as lost, as in every trial; frames that are missing because of the tester do not.
    """
    missing = missing_frames(result.output)
    if missing is None or not missing.by_tester:
        return result.loss_ratio
    return _share(result, missing.without_tester)


def _missing_in(direction: DirectionCounters) -> MissingFrames:
    lost = abs(direction.lost)
    dropped = max(0, min(direction.generator_drop_frames, direction.lost))
    refused = min(direction.refused_frames, direction.unsent_frames)
    return MissingFrames(
        lost_by_sut=lost - dropped,
        unsent=direction.unsent_frames - refused,
        refused=refused,
        generator_drops=dropped,
    )


def _share(result: TrialResult, frames: float) -> float:
    """Frames as a share of the sent ones; after an early verdict, of the frames that the whole duration required."""
    output = result.output
    if result.is_early:
        whole = sum(direction.intended_frames for direction in output.directions)
    else:
        whole = output.sent_frames or 0
    if not whole:
        if frames:
            return result.loss_ratio
        return 0.0
    return min(1.0, frames / whole)

"""Load, exposure and lost frames of each trial, and which trials are evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lossratio.errors import SearchError
from lossratio.trials import TrialResult, missing_frames
from lossratio.values import format_ratio

Array = NDArray[np.float64]

MAX_UNSENT = 0.01
"""The largest share of the intended frames that may be unsent. Beyond this share, a trial is set aside."""

MAX_STALL = 1e-3
"""The largest share of a trial's duration for which its generator may stall. Beyond this share, the trial is set
aside."""

USUAL_STALL = 2e-3
"""Seconds: no trial is set aside for a shorter stall. A machine with other work is late by 1.4 ms in most trials."""

USUAL_BURST = 1
"""Frames: no trial is set aside for a stall in which no more frames than this are due, because it makes no burst. A
policer may lose any burst."""

OVERLOAD = 1e-3
"""Minimum loss ratio of trials in overload, if the target is small. In such trials, the SUT forwards what it can."""

Row: TypeAlias = tuple[float, float, float, float, float]
"""A trial's entries of `TrialCounts`, in the order of its fields."""


@dataclass(frozen=True)
class TrialCounts:
    """The trials in the order in which they were measured, as arrays of one shape."""

    load: Array
    """Offered load, in frames per second."""
    exposure: Array
    """Sent frames divided by the load, in seconds. The exposure times a mean loss rate is the mean count of losses.
    With several sending interfaces, the exposure is that many times the duration, because loads are per interface."""
    lost: Array
    """Lost frames."""
    time: Array
    """Seconds from the first trial's beginning to the middle of the trial, including trials that are set aside."""
    duration: Array
    """Seconds of the trial, no matter how many interfaces sent."""
    overload: float = OVERLOAD
    """Minimum loss ratio of trials in overload."""

    def __len__(self) -> int:
        return len(self.load)

    @property
    def sent(self) -> Array:
        """Sent frames."""
        return self.load * self.exposure

    @property
    def forwarding_rate(self) -> Array:
        """Forwarded frames per second, on one interface."""
        return self.load - self.lost / self.exposure

    @property
    def is_little(self) -> NDArray[np.bool_]:
        """Which trials lose at most a tenth of what trials in overload do."""
        return np.asarray(self.lost < 0.1 * self.overload * self.sent)

    @property
    def is_overload(self) -> NDArray[np.bool_]:
        """Which trials are in overload: they lose much, and no trial at their load or above it loses little."""
        is_heavy = self.lost > self.overload * self.sent
        return np.asarray(is_heavy & (self.load > self.load[~is_heavy].max(initial=0.0)))


def sent_too_few(result: TrialResult) -> bool:
    """Whether the generator left so many frames unsent that the trial is no evidence about the SUT."""
    output = result.output
    unsent = output.unsent_frames or 0
    return unsent > MAX_UNSENT * ((output.sent_frames or 0) + unsent)


def why_set_aside(result: TrialResult) -> str | None:
    """How the generator failed to offer the load, so that a trial is no evidence about the SUT; None: it did not fail.

    The SUT's loss makes no difference to the answer. If the generator makes up for a stall with a burst, a SUT with
    memory, such as a policer, passes less of the burst. If the generator does not, the SUT passes more after the stall.
    Both change the loss by up to the stall's share of the duration.
    """
    output = result.output
    if sent_too_few(result):
        unsent = output.unsent_frames or 0
        expected = (output.sent_frames or 0) + unsent
        return f"the generator could not send {unsent:,} of {expected:,} frames, more than {format_ratio(MAX_UNSENT)}"
    stall = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    allowed = max(USUAL_STALL, MAX_STALL * result.duration, USUAL_BURST / result.load)
    if stall > allowed:
        return f"the generator was stalled for {stall * 1e3:.3g} ms, but at most {allowed * 1e3:.3g} ms are allowed"
    return None


def count(result: TrialResult, begun: float) -> Row:
    """The entries of one trial that began at a time (seconds).

    Frames that the generator could not send are no evidence about the SUT: they only shrink the exposure. Frames that
    came back but were dropped by the generator count as forwarded.

    Raises:
        SearchError: If the trial has no counts of sent and lost frames (a loss ratio alone has no weight), or if they
            contradict each other.
    """
    output = result.output
    where = f"the trial at {result.load:.10g} frames/s of {result.duration:g} s"
    sent = output.sent_frames
    lost = output.lost_frames
    unsent = output.unsent_frames or 0
    if sent is None or lost is None:
        raise SearchError(
            f"A critical load needs the counts of sent and lost frames, but {where} has only a loss ratio. "
            f"Use a measurer that reports `sent_frames` and `lost_frames`."
        )
    if not (sent > 0 and 0 <= lost <= sent and unsent >= 0):
        raise SearchError(
            f"The counts of {where} contradict each other: {sent} frames sent, {lost} lost and {unsent} not sent. A "
            "trial sends at least one frame, and loses at most as many as it sends."
        )

    dropped = 0 if (missing := missing_frames(output)) is None else missing.generator_drops
    return (
        result.load,
        sent / result.load,
        float(lost - dropped),
        begun + 0.5 * result.duration,
        result.duration,
    )


def from_rows(rows: Sequence[Row]) -> TrialCounts:
    """Counts from the entries of each trial."""
    return TrialCounts(*np.array(rows, dtype=float).reshape(-1, 5).T)

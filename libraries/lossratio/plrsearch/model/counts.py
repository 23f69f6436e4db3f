"""Load, exposure and lost frames of each trial, and which trials are evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lossratio.errors import SearchError
from lossratio.plrsearch.model.functions import Array
from lossratio.trials import TrialResult

MAX_UNSENT = 0.01
"""The largest share of the intended frames that may not have been sent; beyond it a trial is set aside."""

MAX_STALL = 1e-3
"""The largest share of a trial's duration that its generator may have been stalled; beyond it a trial is set aside."""

USUAL_STALL = 2e-3
"""Seconds: no trial is set aside for less. A machine with other work is late by 1.4 ms in most trials."""


@dataclass(frozen=True)
class TrialCounts:
    """The trials in the order in which they were measured, as arrays of one shape."""

    load: Array
    """Offered load, in frames per second."""
    exposure: Array
    """Sent frames divided by the load, in seconds: times a mean loss rate, it is the mean count of losses. With several
    sending interfaces it is that many times the duration, since loads are per interface."""
    lost: Array
    """Lost frames."""

    def __len__(self) -> int:
        return len(self.load)

    def sorted(self) -> TrialCounts:
        """The same trials in an order that does not depend on when they were measured."""
        order = np.lexsort((self.lost, self.exposure, self.load))
        return TrialCounts(self.load[order], self.exposure[order], self.lost[order])


def why_set_aside(result: TrialResult) -> str | None:
    """Why a trial is no evidence about the SUT: its generator did not offer the load. None if it did.

    The SUT's loss makes no difference to that. If the generator makes up for a stall with a burst, a SUT with memory,
    such as a policer, passes less of it; if it does not, the SUT passes more after the stall. Either changes the loss
    by up to the stall's share of the duration.
    """
    output = result.output
    unsent = output.unsent_frames or 0
    expected = (output.sent_frames or 0) + unsent
    if unsent > MAX_UNSENT * expected:
        return f"the generator could not send {unsent:,} of {expected:,} frames, more than {MAX_UNSENT:.0%}"
    stall = max((direction.lateness_s or 0.0 for direction in output.directions), default=0.0)
    allowed = max(USUAL_STALL, MAX_STALL * result.duration)
    if stall > allowed:
        return f"the generator was stalled for {stall * 1e3:.3g} ms, more than {allowed * 1e3:.3g} ms"
    return None


def count(result: TrialResult) -> tuple[float, float, float]:
    """Load (frames per second), exposure (seconds) and lost frames of one trial.

    Frames that the generator could not send are no evidence about the SUT: they only shrink the exposure.

    Raises:
        SearchError: If the trial has no counts of sent and lost frames (a loss ratio alone has no weight), or if they
            contradict each other.
    """
    output, where = result.output, f"the trial at {result.load:.10g} frames/s of {result.duration:g} s"
    sent, lost, unsent = output.sent_frames, output.lost_frames, output.unsent_frames or 0
    if sent is None or lost is None:
        raise SearchError(
            f"PLRsearch needs the counts of sent and lost frames, but {where} has only a loss ratio. "
            f"Use a measurer that reports `sent_frames` and `lost_frames`."
        )
    if not (sent > 0 and 0 <= lost <= sent and unsent >= 0):
        raise SearchError(f"In {where}, {sent} frames sent, {lost} lost and {unsent} not sent make no sense.")
    return result.load, sent / result.load, float(lost)


def collect(results: Iterable[TrialResult]) -> TrialCounts:
    """The counts of all trials that are evidence.

    Raises:
        SearchError: As `count` does; or if there are trials, and none of them is evidence.
    """
    given = [(result, why_set_aside(result)) for result in results]
    rows = [count(result) for result, reason in given if reason is None]
    if given and not rows:
        raise SearchError(
            f"No trial is evidence about the SUT: e.g. {given[0][1]} at {given[0][0].load:.10g} frames/s."
        )
    return from_rows(rows)


def from_rows(rows: Sequence[tuple[float, float, float]]) -> TrialCounts:
    """Counts from (load, exposure, lost) of each trial."""
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    return TrialCounts(columns[0], columns[1], columns[2])


def merged(counts: TrialCounts, *keys: str) -> tuple[TrialCounts, Array]:
    """The trials with equal keys added up, sorted by load, and how many trials each sum has; the load is a key."""
    if not len(counts):
        return counts, np.zeros(0)
    counts = counts.sorted()
    columns = np.stack([counts.load, *(getattr(counts, key) for key in keys)])
    starts = np.flatnonzero(np.any(np.diff(columns, axis=1, prepend=np.nan) != 0, axis=0))
    exposure, lost, trials = (
        np.add.reduceat(column, starts) for column in (counts.exposure, counts.lost, np.ones(len(counts)))
    )
    return TrialCounts(counts.load[starts], exposure, lost), trials

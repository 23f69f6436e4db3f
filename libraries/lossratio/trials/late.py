"""Late frames: they belong to the trial whose tag they have, and are only seen after it.

A generator counts late frames of earlier traffic while it sends the next traffic. That may be another attempt at the
next trial, and the earlier traffic may have been an attempt that was thrown away. So the sender notes each beginning of
traffic here, the code that keeps trials notes which traffic was a trial, and each late frame finds its trial.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lossratio.trials.record import Frames, Observed
from lossratio.trials.trial_output import TrialOutput

_MOST_TRAFFIC = 64
"""How many runs of traffic are remembered: no generator still counts late frames of older traffic."""


@dataclass(frozen=True)
class Late(Observed):
    """Late frames, seen only now, of a trial that is already in the journal."""

    trial: int
    """Place of the trial among all trials of the journal, from 1."""
    frames: Frames
    """How many more came back since the last such line."""


@dataclass
class _Traffic:
    """Traffic that was sent."""

    keeper: Callable[[int], None] | None = None
    """Called with the number of its late frames each time that some come; None: no trial is kept yet."""
    missing: int = 0
    """Frames of such a trial that are still missing."""
    early: int = 0
    """Late frames that came before the trial was kept."""


class LateFrames:
    """Finds the trials that late frames belong to."""

    def __init__(self) -> None:
        self._traffic: deque[_Traffic] = deque(maxlen=_MOST_TRAFFIC)
        self._latest: _Traffic | None = None
        self._is_aside = False
        self.total = 0
        """Late frames of all trials so far."""

    @property
    def may_come(self) -> bool:
        """Whether frames of trials are missing that could be late."""
        return any(traffic.missing for traffic in self._traffic)

    def begin_traffic(self) -> None:
        """Notes that traffic begins now: a trial or anything else."""
        self._traffic.appendleft(_Traffic())
        if not self._is_aside:
            self._latest = self._traffic[0]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Traffic of the block is part of the previous trial, and not a trial of its own."""
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False

    def forget(self) -> None:
        """Forgets all traffic so far: the generator was restarted, and no longer counts its late frames."""
        self._traffic.clear()
        self._latest = None

    def keep(self, missing: int, keeper: Callable[[int], None]) -> None:
        """Notes that the latest traffic was a trial, how many frames are missing, and who gets its late frames."""
        if self._latest is not None:
            self._latest.keeper = keeper
            self._latest.missing = missing
            self._take(self._latest.early, self._latest)

    def seen_since(self, counts: Iterable[int]) -> None:
        """Notes late frames that came while the latest traffic flowed, by earlier traffic, newest first."""
        self._put(counts, list(self._traffic)[1:])

    def seen_after(self, counts: Iterable[int]) -> None:
        """Notes late frames that came after all traffic, by traffic, newest first."""
        self._put(counts, list(self._traffic))

    def _put(self, counts: Iterable[int], traffic: Sequence[_Traffic]) -> None:
        for count, sent in zip(counts, traffic, strict=False):
            self._take(count, sent)

    def _take(self, count: int, sent: _Traffic) -> None:
        if sent.keeper is None:
            sent.early += count
            return

        late = min(count, sent.missing)
        if late:
            sent.missing -= late
            self.total += late
            sent.keeper(late)


def with_late_frames(output: TrialOutput, frames: int) -> TrialOutput:
    """The output with this many more late frames; no more than were lost can be late."""
    late = (output.late_frames or 0) + frames
    if output.lost_frames is not None:
        late = min(late, output.lost_frames)
    if late:
        return replace(output, late_frames=late)
    return output

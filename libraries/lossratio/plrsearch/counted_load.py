"""What the search by counts states: a verified load and a contradicted one, and how frames are lost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from lossratio.plrsearch.statement import CountedStatement, Verdict
from lossratio.values import counted, format_about, format_frame_rate, format_ratio

if TYPE_CHECKING:
    from lossratio.plrsearch.csit_estimate import CsitEstimate
    from lossratio.plrsearch.losses import FixedPause, SeenBucketRate
    from lossratio.plrsearch.options import StopReason
    from lossratio.plrsearch.poisson import PoissonEstimate


class LimitReached(str, Enum):
    """Why only a limit on one side of the critical load is known."""

    AT_LEAST = "at least"
    """It may be above the maximum load, where nothing was measured."""
    AT_MOST = "at most"
    """It is below the minimum load, where nothing was measured."""


_CLOSE = 1.01
"""If a load is contradicted that is at most this many times the stated one, a model does not speak against that."""
_LIMITS = {
    LimitReached.AT_LEAST: "the maximum load does not lose the target, and the critical load may be above it",
    LimitReached.AT_MOST: "even the minimum load loses more than the target, and the critical load is below it",
}


@dataclass(frozen=True, kw_only=True)
class CountedLoad:
    """What the search by counts states. All loads are in frames per second per interface."""

    target: float
    """The target loss ratio."""
    stated: float
    """The verified load; if there is none, the load that the search would try to verify."""
    verified: float | None
    """The highest verified load (97.5 %)."""
    contradicted: float | None
    """The lowest load above the stated one that loses more than the target (97.5 %); None: no load does."""
    statement: CountedStatement
    """What the trials at the stated load say."""
    limit: LimitReached | None
    """The limit of the loads beyond which the critical load may be; None: it is inside."""
    line: float | None
    """The load that loses the target by a line through the trials that lose little: a model."""
    model: PoissonEstimate | None = field(default=None, repr=False)
    """PLRsearch's estimate as in its draft; None: it was not asked for."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports; None: the loads were not chosen as in CSIT."""
    clump: float
    """The statement holds for losses of up to so many frames at a time near the stated load."""
    trial_s: float
    """Seconds of most trials."""
    long_s: float | None
    """Seconds of the long trials that passed at the stated load or above; None: none did."""
    changes: tuple[float, ...]
    """Changes of the forwarded rate, as a share, after which the past was forgotten."""
    bucket: SeenBucketRate | None
    """A bucket or a buffer; None: none is seen."""
    pause: FixedPause | None
    """Pauses of one length, or of several together; None: none are seen."""
    batch: float | None
    """Frames that are lost at a time; None: not known."""
    once: float
    """Largest number of frames that each trial may have lost once, which do not count."""
    stopped_by: StopReason | None
    """Why the search ended; None: it is not finished."""

    @property
    def rarest_s(self) -> float:
        """Losses that come at least once in so many seconds would have been seen (97.5 %) by the counted trials."""
        return self.statement.unseen_burst_s or 0.0

    @property
    def single_pause(self) -> FixedPause | None:
        """The pauses if length and ring are those of one; None: none are seen, or perhaps several together."""
        if self.pause is None or not self.pause.is_single:
            return None
        return self.pause

    @property
    def is_regular(self) -> bool:
        """Whether nothing speaks against the stated load."""
        return self.reason is None

    @property
    def reason(self) -> str | None:
        """Why the stated load may be wrong; None: nothing speaks against it.

        If a load is not verified, but only because that takes more frames, nothing does.
        """
        if self.limit is not None:
            return _LIMITS[self.limit]
        if self.once:
            frames = format_about(self.once)
            return f"each trial loses up to {frames} frames once, however long it is; they do not count"
        if self.verified is None and not self._lacks_frames_only:
            return f"no load is verified; {self.statement}"
        line = self.line or math.inf
        is_close = (self.contradicted or math.inf) <= _CLOSE * self.stated
        if line >= self.stated or is_close or self.pause is not None:
            return None
        return (
            f"a line through trials with little loss puts the critical load at {format_frame_rate(line)}, below "
            "the stated one, and no load just above that is contradicted: search for longer"
        )

    @property
    def _lacks_frames_only(self) -> bool:
        said = self.statement
        is_open = said.verdict is Verdict.EXTRAPOLATED and said.missing_frames is not None
        return is_open and not said.missing_trials and not said.lost_frames

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is known about the losses, in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        for change in self.changes:
            word = "more" if change > 0.0 else "less"
            yield (
                f"the device changed: at the same overload, it forwarded {format_ratio(abs(change))} {word}; earlier "
                "trials do not count"
            )
        if self.bucket is not None:
            yield (
                f"in short trials, about {format_about(self.bucket.frames)} frames more pass than in the long run, "
                f"which passes {format_frame_rate(self.bucket.long_run)}"
            )
        if self.single_pause is not None:
            yield (
                f"frames are lost in pauses of about {1e6 * self.single_pause.length_s:.0f} us, which overflow a ring "
                f"of about {self.single_pause.ring_frames:,.0f} frames"
            )
        if self.batch is not None:
            yield f"frames are lost in batches of {counted(round(self.batch), 'frame')}"

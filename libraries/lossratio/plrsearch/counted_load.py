"""What the search by counts states: a verified load and a contradicted one, and how frames are lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lossratio.plrsearch.counting import FixedPause
from lossratio.plrsearch.model import StopReason
from lossratio.units import counted, format_about, format_frame_rate, format_ratio


@dataclass(frozen=True)
class SeenBucketRate:
    """What a short trial passes once, and the rate in the long run."""

    long_run: float
    """Frames per second."""
    frames: float
    """Frames that pass once in each trial."""


@dataclass(frozen=True, kw_only=True)
class CountedLoad:
    """What the search by counts states. All loads are in frames per second per interface."""

    stated: float
    """The verified load; if there is none, the load that the search would try to verify."""
    verified: float | None
    """The highest verified load (97.5 %)."""
    contradicted: float | None
    """The lowest load above the stated one that loses more than the target (97.5 %); None: no load does."""
    estimate: float | None
    """The load that loses the target by a line through the trials that lose little: a model."""
    clump: float
    """The statement holds for losses of up to so many frames at a time near the stated load."""
    rarest_s: float
    """Losses that occur once in so many seconds near the stated load would almost certainly (95 %) have been seen."""
    trial_s: float
    """Seconds of most trials."""
    long_s: float | None
    """Seconds of the long trials that passed at the stated load or above; None: none did."""
    changes: tuple[float, ...]
    """Changes of the forwarded rate, as a share, after which the past was forgotten."""
    bucket: SeenBucketRate | None
    """A bucket or a buffer; None: none is seen."""
    pause: FixedPause | None
    """Pauses of one length; None: none are seen."""
    batch: float | None
    """Frames that are lost at a time; None: not known."""
    once: float
    """Largest number of frames that each trial may have lost once, which do not count."""
    stopped_by: StopReason | None
    """Why the search ended; None: it is not finished."""

    @property
    def is_regular(self) -> bool:
        """Whether the stated load is verified, and no losses are left out."""
        return self.verified is not None and not self.once

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is known about the losses, in words."""
        return tuple(self._sentences())

    def _sentences(self) -> Iterator[str]:
        stated = format_frame_rate(self.stated)
        if self.verified is None:
            yield f"No load is verified. {stated} was tried last."
        else:
            yield (
                f"{stated} is verified (97.5 %) for losses of up to {format_about(self.clump)} frames at a time that "
                f"come more often than every {format_about(self.rarest_s)} s."
            )
        if self.contradicted is not None:
            yield f"{format_frame_rate(self.contradicted)} loses more than the target (97.5 %)."

        for change in self.changes:
            word = "more" if change > 0.0 else "less"
            yield f"The device changed: at the same overload, it forwarded {format_ratio(abs(change))} {word}."
        if self.bucket is not None:
            yield (
                f"In short trials, about {format_about(self.bucket.frames)} frames more pass than in the long run, "
                f"which passes {format_frame_rate(self.bucket.long_run)}."
            )
        if self.pause is not None:
            yield (
                f"Frames are lost in pauses of about {1e6 * self.pause.length_s:.0f} us, which overflow a ring of "
                f"about {self.pause.ring_frames:,.0f} frames."
            )
        if self.batch is not None:
            yield f"Frames are lost in batches of {counted(round(self.batch), 'frame')}."
        if self.once:
            yield f"Each trial loses up to {format_about(self.once)} frames once, which do not count."

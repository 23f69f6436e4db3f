"""What the devices told in a trial of their own, after the search: where frames went, and what it took."""

from __future__ import annotations

from pydantic import Field, JsonValue

from lossratio.records import FrameCount, Rate, Record, Seconds


class DutTelemetry(Record):
    """What one DUT told."""

    node: str
    """The DUT."""
    kind: str
    """Kind of the DUT."""
    received_frames: dict[str, int]
    """Frames that came in, by side."""
    transmitted_frames: dict[str, int]
    """Frames that went out, by side."""
    dropped_frames: dict[str, int]
    """Frames that were dropped, by the name of the place."""
    unaccounted_frames: int
    """Frames received that were neither transmitted nor dropped at a named place; negative: frames of its own."""
    details: dict[str, int]
    """What else was counted, by name."""
    told: dict[str, JsonValue]
    """What it told about itself, by topic, e.g. ``show runtime``."""


class TelemetryTrial(Record):
    """A trial around which the devices were asked; it is none of the search's."""

    load: Rate
    """Its load."""
    goal: str | None
    """Name of the goal whose relevant lower bound the load is; null: it was given."""
    duration_s: Seconds = Field(gt=0.0)
    """How long traffic was sent."""
    sent_frames: FrameCount
    """Frames sent, in all directions."""
    received_frames: FrameCount
    """Frames received, likewise."""
    duts: tuple[DutTelemetry, ...]
    """The DUTs, from west to east."""

    @property
    def lost_frames(self) -> int:
        """Frames sent that did not come back."""
        return self.sent_frames - self.received_frames

"""The reports of DUTs on an extra trial after the search: where frames went, and the DUTs' own counters."""

from __future__ import annotations

from pydantic import Field, JsonValue

from lossratio.records import FrameCount, Rate, Record, Seconds


class DutTelemetry(Record):
    """The report of one DUT."""

    node: str
    """The DUT."""
    kind: str
    """Kind of the DUT."""
    received_frames: dict[str, int]
    """Frames that came in, by side."""
    transmitted_frames: dict[str, int]
    """Frames that went out, by side."""
    dropped_frames: dict[str, int]
    """Frames that the DUT dropped, by the name of the place."""
    unaccounted_frames: int
    """Frames received that were neither transmitted nor dropped at a named place; negative: frames of its own."""
    details: dict[str, int]
    """Further counters, by name."""
    told: dict[str, JsonValue]
    """The DUT's answers about itself, by topic, e.g. ``show runtime``."""


class TelemetryTrial(Record):
    """A trial before and after which the DUTs were asked; it does not belong to the search."""

    load: Rate
    """The load."""
    goal: str | None
    """Name of the goal whose relevant lower bound the load is; null: it was given."""
    duration_s: Seconds = Field(gt=0.0)
    """Duration of the traffic."""
    sent_frames: FrameCount
    """Frames sent, in all directions."""
    received_frames: FrameCount
    """Frames received, in all directions."""
    duts: tuple[DutTelemetry, ...]
    """The DUTs, from west to east."""

    @property
    def lost_frames(self) -> int:
        """Frames sent that did not come back."""
        return self.sent_frames - self.received_frames

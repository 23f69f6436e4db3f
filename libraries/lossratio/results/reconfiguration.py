"""What a reconfiguration test finds: how much is lost while the SUT is reconfigured under traffic."""

from __future__ import annotations

from lossratio.records import FrameCount, Rate, Record, Seconds


class ReconfigurationLoss(Record):
    """Loss while the SUT was reconfigured."""

    load: Rate
    """The load all the time."""
    lost_frames: FrameCount
    """Frames lost, without those that the generator could not send."""
    lost_time_s: Seconds
    """Lost frames over the aggregate load: for how long nothing would have been forwarded."""


def reconfiguration_loss(load: Rate, lost_frames: int) -> ReconfigurationLoss:
    """The loss with its time.

    Args:
        load: The load all the time.
        lost_frames: Frames lost in all directions, without those that the generator could not send.
    """
    return ReconfigurationLoss(load=load, lost_frames=lost_frames, lost_time_s=lost_frames / load.aggregate_fps)

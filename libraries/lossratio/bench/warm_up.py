"""A warm-up: one trial before a measurement, with traffic of its own, whose result is discarded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lossratio.bench.testbed import Testbed
from lossratio.traffic import TrafficProfile
from lossratio.trial import TrialInput
from lossratio.units import format_frame_rate, format_ratio


@dataclass(frozen=True)
class WarmUp:
    """What to warm up with.

    Attributes:
        duration: Seconds.
        profile: What the traffic is.
    """

    duration: float
    profile: TrafficProfile

    def to_json(self) -> dict[str, Any]:
        """The warm-up as JSON data."""
        return {"duration_s": self.duration, "profile": self.profile.description_in_full()}


def run_warm_up(testbed: Testbed, warm_up: WarmUp, load: float) -> str:
    """Performs a warm-up.

    Args:
        testbed: The testbed.
        warm_up: What to warm up with.
        load: Frames per second, per interface.

    Returns:
        What a reader of the numbers should know about it.

    Raises:
        LossRatioError: If its traffic cannot be generated, or does not get through.
    """
    with testbed.ready_for(warm_up.profile) as ready:
        output = ready.measurer.measure(TrialInput(warm_up.duration, load))
    return (
        f"before the first trial there was a warm-up of {warm_up.duration:g} s at {format_frame_rate(load)} per "
        f"interface with the traffic profile {warm_up.profile.name}; it lost {format_ratio(output.loss_ratio)}, which "
        "counts for nothing"
    )

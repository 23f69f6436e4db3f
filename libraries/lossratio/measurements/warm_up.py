"""A warm-up: one trial before a measurement, with traffic of its own, whose result is discarded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossratio.errors import SearchError
from lossratio.trials import TrialInput
from lossratio.units import format_frame_rate, format_ratio

if TYPE_CHECKING:
    from lossratio.testbed import Testbed
    from lossratio.traffic import TrafficProfile


@dataclass(frozen=True)
class WarmUp:
    """The settings of a warm-up.

    Attributes:
        duration: Seconds.
        profile: Its traffic.
    """

    duration: float
    profile: TrafficProfile

    def to_json(self) -> dict[str, Any]:
        """The warm-up as JSON data."""
        return {"duration_s": self.duration, "profile": self.profile.description_in_full()}


def warm_up_like(traffic: TrafficProfile, duration: float | None, profile: str | Path | None = None) -> WarmUp | None:
    """A warm-up before a measurement.

    Args:
        traffic: The measurement's traffic; the warm-up has the same frame size and directions.
        duration: Seconds; None: there is no warm-up.
        profile: Traffic profile of the warm-up, by name or file; None: that of the measurement.

    Raises:
        SearchError: If there is a profile without a duration.
        TrafficError: If there is no such profile, or it cannot have frames of that size.
    """
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.traffic import load_profile

    if duration is None:
        if profile is not None:
            raise SearchError(f"How long is the warm-up with {profile}? Say e.g. warm_up=5 s.")
        return None
    if profile is None:
        return WarmUp(duration, traffic)
    own = load_profile(profile, frame_size=traffic.frame_size, bidirectional=traffic.bidirectional)
    return WarmUp(duration, own)


def run_warm_up(testbed: Testbed, warm_up: WarmUp, load: float) -> str:
    """Performs a warm-up.

    Args:
        testbed: The testbed.
        warm_up: The settings of the warm-up.
        load: Frames per second, per interface.

    Returns:
        A remark on the warm-up, for the reader of the numbers.

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

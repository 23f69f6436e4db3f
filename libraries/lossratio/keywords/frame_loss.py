"""The keyword of frame loss rates."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, Share, typed_keyword
from lossratio.keywords.measuring import describe_profile, measured
from lossratio.keywords.session import Keywords
from lossratio.measurements.frame_loss import (
    LARGEST_STEP,
    TRIAL_DURATION,
    FrameLossRequest,
    FrameLossResult,
    measure_frame_loss_rate,
)
from lossratio.traffic import load_profile
from lossratio.trials import Integrity


class FrameLossKeywords(Keywords):
    """Frame loss rate over load."""

    @typed_keyword()
    def measure_frame_loss_rate(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        step: Share = Share(LARGEST_STEP),  # noqa: B008 (a number, which nobody changes)
        trial_duration: timedelta = timedelta(seconds=TRIAL_DURATION),
        rest: timedelta = timedelta(),
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        resume: Path | None = None,
    ) -> FrameLossResult:
        """Measures which share of the frames is lost at each load (RFC 2544, section 26.3), and returns the result.

        It begins at the maximum load and goes down by ``step`` of it, at most 10 %, until two trials in a row lose
        nothing. Each trial takes ``trial_duration``; RFC 2544 wants 60 s at least. The log and the page have the graph.
        The other arguments are described under `Arguments of measurements`.

        | `Measure Frame Loss Rate`    frame_size=64B
        | `Measure Frame Loss Rate`    1518B    step=5 %    trial_duration=10 s    max_load=1 Mpps
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        seconds = trial_duration.total_seconds()
        request = FrameLossRequest(traffic, max_load, step, seconds, integrity, rest.total_seconds())
        return measured(
            self.session,
            f"Measuring the frame loss rate: {describe_profile(traffic)}",
            lambda testbed, place, show: measure_frame_loss_rate(testbed, request, place, show),
            resume,
        )

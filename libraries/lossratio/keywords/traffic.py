"""Keywords for traffic apart from trials."""

from __future__ import annotations

from datetime import timedelta

from robot.api import logger

from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, typed_keyword
from lossratio.keywords.session import Keywords
from lossratio.results import format_frames_per_second
from lossratio.testbed import DEFAULT_LATE_WAIT, describe_stopped, start_traffic
from lossratio.traffic import StoppedTraffic, load_profile
from lossratio.trials import Integrity


class TrafficKeywords(Keywords):
    """Traffic that flows around other keywords."""

    @typed_keyword()
    def start_traffic(
        self,
        load: FrameRate,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        bidirectional: bool | None = None,
        integrity: Integrity = Integrity.DOUBT,
    ) -> None:
        """Begins to send traffic of a constant ``load``, which flows until `Stop Traffic`.

        Use it for work under load, such as a reconfiguration of the device or a look at its counters. No other
        measurement can begin before it is stopped; `Tear Down Testbed` stops it, too. The other arguments are described
        under `Arguments of measurements`.

        | `Start Traffic`    50 kpps    frame_size=64B
        | Reconfigure The Device
        | ${traffic} =    `Stop Traffic`
        | Should Be True    ${traffic.lost} < 100
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        self.session.traffic = start_traffic(self.session.ready_testbed(), traffic, load, integrity)
        logger.info(f"{traffic.name} flows at {format_frames_per_second(load)} per interface.")

    @typed_keyword()
    def stop_traffic(self, late_wait: timedelta = timedelta(seconds=DEFAULT_LATE_WAIT)) -> StoppedTraffic:
        """Ends the traffic that `Start Traffic` began, and returns the counters.

        Counters are read when the traffic has stopped and frames in flight have had the time to come back. Frames that
        arrive later, for up to ``late_wait`` more, are late: counted apart, and not received.

        The result has the totals ``sent``, ``received``, ``lost`` (sent and neither received nor late), ``late`` and
        ``unsent`` (what the generator could not send), and ``directions`` with the counters of each direction.
        """
        stopped = self.session.running_traffic().stop(late_wait.total_seconds())
        logger.info(describe_stopped(stopped))
        return stopped

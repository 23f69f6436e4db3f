"""Keywords for the tester alone: its self-test, and traffic outside of trials."""

from datetime import timedelta
from itertools import islice
from typing import Any

from robot.api import logger

from lossratio.errors import TrafficError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, typed_keyword
from lossratio.keywords.course import announce, describe_profile
from lossratio.keywords.groups import Keywords
from lossratio.keywords.live_view import live_view
from lossratio.keywords.measurements import asks, request_of
from lossratio.measurements.self_test import SelfTest, SelfTestRequest, find_tester_limit
from lossratio.results import format_frames_per_second, view_of
from lossratio.testbed import DEFAULT_LATE_WAIT, describe_stopped, start_traffic
from lossratio.traffic import Answer, load_profile
from lossratio.trials import Integrity


class TesterKeywords(Keywords):
    """The self-test of the tester, and traffic that flows around other keywords."""

    group = "Traffic"

    @asks(SelfTestRequest)
    @typed_keyword()
    def find_tester_limit(
        self, frame_size: FrameSize, profile: str = DEFAULT_PROFILE, **fields: Any
    ) -> SelfTest:
        """Searches for the largest load at which the tester sends each frame in time and gets each frame back.

        There must be no device between the ports of the TG: connect them with a cable, as in the topology
        ``local-cable``. Above this limit, no search can distinguish loss of the generator from loss of a device.
        RFC 9971 recommends the limit as the maximum load.

        ``max_load`` is the first load of the search; by default, it is what the links and NICs can carry. If the
        limit is the ``max_rate`` of the generator in the topology file, it is the maximum load of searches, and a
        search with a larger one warns.

        | `Set Up Testbed`    local-cable
        | ${test} =    `Find Tester Limit`    frame_size=64B
        | Log    ${test.max_load}
        """
        request = request_of(self.session, SelfTestRequest, frame_size, profile, fields)
        place = self.session.place(None)
        announce(f"Testing the tester: {describe_profile(request.profile)}")
        testbed = self.session.ready_testbed()
        with live_view(testbed) as show:
            test = find_tester_limit(testbed, request, place, show)
        for picture in islice(view_of(test.result).pictures(test.result), 1):
            logger.info(picture.svg, html=True)
        logger.info(str(test), also_console=True)
        self.session.last_result = test.result
        return test

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
        """Starts traffic at a constant ``load``, which flows until `Stop Traffic`.

        Use it for work under load, such as reconfiguring the device or reading its counters. No measurement can begin
        until the traffic is stopped. `Tear Down Testbed` stops it, too. The other arguments are described under
        `Arguments of measurements`.

        | `Start Traffic`    50 kfps    frame_size=64B
        | Reconfigure The Device
        | ${traffic} =    `Stop Traffic`
        | Should Be True    ${traffic.lost} < 100
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        self.session.traffic = start_traffic(self.session.ready_testbed(), traffic, load, integrity)
        logger.info(f"{traffic.name} flows at {format_frames_per_second(load)} per interface.")

    @typed_keyword()
    def stop_traffic(self, late_wait: timedelta = timedelta(seconds=DEFAULT_LATE_WAIT)) -> Answer:
        """Stops the traffic that `Start Traffic` started, and returns the counters.

        The counters are read after the traffic has stopped and frames in flight have had time to come back. Frames that
        arrive after that, for up to ``late_wait``, are late: they are counted separately, and not as received.

        The result has the totals ``sent``, ``received``, ``lost`` (sent and neither received nor late), ``late`` and
        ``unsent`` (what the generator could not send), and ``directions`` with the counters of each direction.
        """
        traffic = self.session.traffic
        self.session.traffic = None
        if traffic is None:
            raise TrafficError(
                "There is no traffic to stop. Call the keyword 'Start Traffic' first."
            )
        stopped = traffic.stop(late_wait.total_seconds())
        logger.info(describe_stopped(stopped))
        return stopped

"""Keywords that test the tester."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from robot.api import logger

from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, typed_keyword
from lossratio.keywords.console import announce, describe_profile, show_progress
from lossratio.keywords.session import Keywords
from lossratio.measurements.self_test import SelfTest, SelfTestRequest, find_tester_limit
from lossratio.results import view_of
from lossratio.traffic import load_profile


class TesterKeywords(Keywords):
    """The self-test of the tester."""

    @typed_keyword()
    def find_tester_limit(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        record: Path | None = None,
    ) -> SelfTest:
        """Searches for the largest load at which the tester sends every frame in time and gets every one back.

        There must be no device between the ports of the TG: a cable joins them, as in ``topologies/local-cable.yaml``.
        Above that limit no search can distinguish loss of the generator from loss of a device. RFC 9971 recommends the
        limit as maximum load.

        ``max_load`` is the first load that is tried; left out, it is what links and NICs can do. ``record`` is a file
        that the limit is written into. A topology whose generator names that file as its ``self_test`` has the limit
        as maximum load of its searches; a search with a larger one warns. The other arguments are described
        under `Arguments of measurements`.

        | `Set Up Testbed`    topologies/local-cable.yaml
        | ${test} =    `Find Tester Limit`    frame_size=64B    record=topologies/local.self-test.yaml
        | Log    ${test.limit.max_load}
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        place = self.session.place(None)
        announce(f"Testing the tester: {describe_profile(traffic)}")
        request = SelfTestRequest(traffic, max_load, record)
        test = find_tester_limit(self.session.ready_testbed(), request, place, show_progress)
        for picture in islice(view_of(test.result).pictures(test.result), 1):
            logger.info(picture.svg, html=True)
        logger.info(str(test), also_console=True)
        self.session.last_result = test.result
        return test

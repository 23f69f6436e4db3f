"""Keywords that ask the devices under test, and that reconfigure them."""

from __future__ import annotations

from datetime import timedelta

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import SearchError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, seconds, typed_keyword
from lossratio.keywords.console import announce, describe_profile, show_progress
from lossratio.keywords.measuring import measured
from lossratio.keywords.session import Keywords
from lossratio.measurements.reconfiguration import (
    RECONFIGURATION_GOAL,
    ReconfigurationRequest,
    measure_reconfiguration_loss,
    reconfigure_duts,
)
from lossratio.measurements.telemetry import (
    TELEMETRY_DURATION,
    TelemetryRequest,
    add_telemetry,
    describe_telemetry,
    relevant_load,
)
from lossratio.measurements.throughput import DEFAULT_TIMEOUT, SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results import ReconfigurationResult, ThroughputResult
from lossratio.traffic import load_profile
from lossratio.trials import Integrity

_ENTRIES = 1000
_TIMEOUT = timedelta(seconds=DEFAULT_TIMEOUT)


class DeviceKeywords(Keywords):
    """Telemetry and reconfiguration."""

    @typed_keyword()
    def collect_telemetry(
        self, goal: str | None = None, *, duration: timedelta = timedelta(seconds=TELEMETRY_DURATION)
    ) -> ThroughputResult:
        """Makes one more trial after a search, asks the devices around it, and returns the search's result with that.

        The trial of ``duration`` is at the relevant lower bound of ``goal``, by default PDR, and is none of the
        search's: nothing asks a device while a search runs. The result then has, for each device, the frames that it
        received, transmitted and dropped (by place, so that each is accounted for), and what its kind tells: VPP
        ``show runtime``, testpmd's and Open vSwitch's statistics, of all kinds the counters of interfaces and CPUs, and
        ``perf stat`` where that is there and allowed.

        | `Find NDR And PDR`    frame_size=64B
        | `Collect Telemetry`
        """
        search = self.session.last_search
        if search is None:
            raise SearchError(
                "No search has been made since this testbed was set up. Call e.g. 'Find NDR And PDR' first."
            )
        name, load = relevant_load(search.result, goal)
        request = TelemetryRequest(search.profile, load, name, duration.total_seconds())
        announce(f"Collecting telemetry at {name}: {describe_profile(search.profile)}")
        result = add_telemetry(self.session.ready_testbed(), request, search.place, search.result)
        self.session.remember_search(result, search.profile, search.place)
        logger.info(describe_telemetry(result.telemetry[-1]))
        return result

    @typed_keyword("Reconfigure DUTs")
    def reconfigure_duts(self, entries: int = _ENTRIES) -> None:
        """Adds so many ``entries`` to what each device forwards by, which are of no concern to test traffic.

        They are addresses of a bridge, routes of a router, rules of Open vSwitch, and with VPP whatever it forwards by.
        `Tear Down Testbed` takes them away.
        """
        reconfigure_duts(self.session.ready_testbed(), entries)

    @typed_keyword()
    def measure_reconfiguration_loss(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        entries: int = _ENTRIES,
        keyword: str | None = None,
        goal: SearchGoal = RECONFIGURATION_GOAL,
        bidirectional: bool | None = None,
        min_load: FrameRate | None = None,
        max_load: FrameRate | None = None,
        timeout: timedelta = _TIMEOUT,
        integrity: Integrity = Integrity.DOUBT,
    ) -> ReconfigurationResult:
        """Measures what is lost while the devices are being reconfigured, and returns the result, as FD.io CSIT does.

        First comes a search with a strict ``goal`` (CSIT's: no loss in any trial, 11 s, width 0.1 %). Then traffic
        flows at its relevant lower bound while `Reconfigure DUTs` adds so many ``entries``, or another ``keyword`` of
        yours does what it does. The result has the frames lost, without those that the generator could not send, and
        the lost time: how long nothing at all would have been forwarded.

        | `Measure Reconfiguration Loss`    frame_size=64B    entries=10000
        | `Measure Reconfiguration Loss`    frame_size=64B    keyword=Restart The Routing Daemon
        """
        search = SearchRequest(
            (goal,),
            load_profile(profile, frame_size=frame_size, bidirectional=bidirectional),
            min_load,
            max_load,
            seconds(timeout),
            integrity=integrity,
        )

        def reconfigure() -> None:
            if keyword is None:
                self.reconfigure_duts(entries)
            else:
                BuiltIn().run_keyword(keyword)

        request = ReconfigurationRequest(search, reconfigure)
        return measured(
            self.session,
            f"Measuring what a reconfiguration loses: {describe_profile(search.profile)}",
            lambda testbed, place: measure_reconfiguration_loss(testbed, request, place, show_progress),
        )

"""Keywords that measure throughput and latency."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from robot.api import logger

from lossratio import results
from lossratio.errors import LossRatioError, SearchError, TrafficError
from lossratio.keywords.arguments import (
    DEFAULT_PROFILE,
    FrameRate,
    FrameSize,
    Share,
    Shares,
    seconds,
    typed_keyword,
)
from lossratio.keywords.course import announce, describe_profile, measured, show_result
from lossratio.keywords.devices import telemetry_after_search
from lossratio.keywords.groups import Keywords
from lossratio.keywords.live_view import live_view, say
from lossratio.keywords.measurements import asks, request_of
from lossratio.keywords.session import Doubts, Session
from lossratio.measurements import check_warm_up, latency as latencies, throughput
from lossratio.measurements.telemetry import TELEMETRY_DURATION
from lossratio.mlrsearch import SearchGoal

_SHARES = Shares(map(Share, latencies.LATENCY_SHARES))


class ThroughputKeywords(Keywords):
    """Searches and latency measurements."""

    @asks(throughput.SearchRequest, without="goals warm_up_duration fail_fast")
    @typed_keyword("Find NDR And PDR")
    def find_ndr_and_pdr(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        goals: throughput.GoalSet | None = None,
        latency: bool | None = None,
        telemetry: bool | None = None,
        must_find: bool = True,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> throughput.ThroughputResult:
        """Searches for the non-drop rate (NDR) and the partial drop rate (PDR) at once, and returns the result.

        ``goals`` are the search goals: ``csit`` (comparable with FD.io CSIT's numbers), ``quick`` (a tenth of the
        evidence), presets, or a file of your own. The default is what the library was imported with.

        With ``telemetry``, one trial at PDR follows in which the devices are read, as with `Collect Telemetry`, if
        there are devices to read. With ``latency``, trials at 100, 90, 50 and 10 % of PDR and at the minimum load
        follow, as with `Measure Latency`. Each of these trials takes as long as in FD.io CSIT (1 s for telemetry, 5 s
        for latency), or half of the goals' duration sum if that is less. The default of both is what the library was
        imported with. A failure of these trials is then a warning, but it is an error if you give ``on``.

        | `Find NDR And PDR`    frame_size=64B    profile=ethip4-udp
        | `Find NDR And PDR`    IMIX_v4_1    max_load=1 Mfps    timeout=2 min
        | `Find NDR And PDR`    frame_size=64B    hints=/srv/nightly
        | `Find NDR And PDR`    frame_size=64B    hints=/srv/nightly    nightly=as_before
        """
        wanted = self.session.goals if goals is None else goals
        fields = {"goals": wanted.goals, "early_verdict": wanted.early_verdict, **fields}
        request = self._asked_search(frame_size, profile, fields)
        result = self._search(request, resume, must_find=must_find)
        if result.is_as_before:
            logger.info(
                "The SUT is as before, so there was no search, and no bounds at which to measure latency. "
                "To measure both, set nightly=search."
            )
            self.session.judge([result], doubts)
            return result

        has_telemetry = _chosen(telemetry, self.session.collects_telemetry)
        if has_telemetry and self.session.ready_testbed().duts:
            with self._more("Telemetry", is_asked_for=telemetry is not None):
                duration = throughput.duration_after_search(wanted.goals, TELEMETRY_DURATION)
                telemetry_after_search(self.session, duration=duration)

        if _chosen(latency, self.session.measures_latency):
            with self._more("Latency", is_asked_for=latency is not None):
                duration = throughput.duration_after_search(
                    wanted.goals, latencies.LATENCY_DURATION
                )
                latency_after_search(
                    self.session, duration=duration, integrity=request.integrity, rest=request.rest
                )

        if self.session.last_search is not None:
            # The message includes everything that was measured after the search, or why that failed.
            result = self.session.last_search.result

        self.session.judge([result], doubts)
        return result

    @asks(throughput.SearchRequest, without="goals warm_up_duration fail_fast")
    @typed_keyword()
    def find_conditional_throughput(
        self,
        *goals: SearchGoal,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        must_find: bool = True,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> throughput.ThroughputResult:
        """Searches for the conditional throughput of any search goals at once, and returns the result.

        ``goals`` are presets or your own goals: see the type ``SearchGoal``.

        | `Find Conditional Throughput`    RFC2544    frame_size=1518B    timeout=1 h
        | `Find Conditional Throughput`    NDR    {"loss_ratio": "0.1 %", "width": "2 %"}    frame_size=64B
        """
        request = self._asked_search(frame_size, profile, {"goals": goals, **fields})
        result = self._search(request, resume, must_find=must_find)
        self.session.judge([result], doubts)
        return result

    @asks(latencies.LatencyRequest)
    @typed_keyword()
    def measure_latency(
        self,
        *loads: FrameRate,
        frame_size: FrameSize | None = None,
        profile: str = DEFAULT_PROFILE,
        goal: str | None = None,
        shares: Shares = _SHARES,
        doubts: Doubts | None = None,
        **fields: Any,
    ) -> throughput.ThroughputResult | latencies.LatencyResult:
        """Measures one-way latency at several loads, in one trial of ``duration`` each, and returns the result.

        After a search in the same test, it measures with the traffic of that search, as FD.io CSIT does: at ``shares``
        of the relevant lower bound of a goal (by default at 100, 90, 50 and 10 % of PDR), and at the minimum load of
        the search. ``goal`` names another goal. The latency becomes part of the search's result.
        | `Find NDR And PDR`    frame_size=64B
        | `Measure Latency`
        | `Measure Latency`    goal=NDR    shares=[1, 0.5]    duration=1 s

        With ``loads``, it needs no search. ``frame_size``, ``profile`` and ``bidirectional`` are described under
        `Arguments of measurements`.
        | `Measure Latency`    10 kfps    100 kfps    frame_size=64B

        Each load is measured in ``repeats`` trials. RFC 2544, section 26.2, asks for 20 trials of 120 s at the
        throughput, and measures one frame in each. Here, some frames of the whole trial count, and the log contains
        the average of the repeats.
        | `Find Conditional Throughput`    RFC2544    frame_size=64B
        | `Measure Latency`    goal=RFC2544    shares=[1]    duration=2 min    repeats=20

        Some frames of the load carry a number. The generator records when each of them leaves and comes back; the
        resolution of these times is in the result, as ``resolution``. For each direction, the result contains the
        smallest, mean and largest latency, the jitter, percentiles, the whole histogram, frames out of order and
        duplicates. If the measurement of a load or a direction fails, you get a warning, and the result contains the
        others. If all fail, the keyword fails.
        """
        if not loads:
            fields.pop("bidirectional", None)
            with_latency = latency_after_search(self.session, goal, shares, **fields)
            self.session.judge([with_latency], doubts)
            return with_latency

        if goal is not None or tuple(shares) != tuple(_SHARES):
            raise SearchError(
                "'goal' and 'shares' choose loads after a search. Give them, or loads of your own, but not both."
            )
        if frame_size is None:
            raise SearchError("Give the frame size of the traffic, e.g. frame_size=64B.")

        points = [latencies.LatencyPoint(load) for load in sorted(loads, reverse=True)]
        request = request_of(
            self.session,
            latencies.LatencyRequest,
            frame_size,
            profile,
            {"points": points, **fields},
        )
        what = f"Measuring latency: {describe_profile(request.profile)}"
        result = measured(
            self.session,
            what,
            lambda testbed, at, _: latencies.measure_latency(testbed, request, at, _show),
            doubts,
        )
        _check(result.latency, request.repeats)

        return result

    def _asked_search(
        self, frame_size: FrameSize, profile: str, fields: dict[str, Any]
    ) -> throughput.SearchRequest:
        """The requested search; a warm-up with the same traffic is its first trial."""
        fields = {**self.session.search_defaults, **fields}
        if fields.get("warm_up_profile") is None:
            length = fields.pop("warm_up", None)
            check_warm_up(seconds(length))
            fields["warm_up_duration"] = length
        return request_of(self.session, throughput.SearchRequest, frame_size, profile, fields)

    @contextmanager
    def _more(self, what: str, *, is_asked_for: bool) -> Iterator[None]:
        """A measurement after the search. Unless a test asks for it, a failure is a warning: the search is complete."""
        try:
            yield
        except LossRatioError as error:
            if is_asked_for:
                raise
            text = f"{what} was not measured after the search. {error}"
            self.session.warn_once(self.session.last_result, text)
            self.session.messages[what] = text

    def _search(
        self, request: throughput.SearchRequest, resume: Path | None, *, must_find: bool
    ) -> throughput.ThroughputResult:
        testbed = self.session.ready_testbed()
        announce(
            f"Searching for {', '.join(map(str, request.goals))}: {describe_profile(request.profile)}; "
            "~ marks bounds that are not proved yet"
        )
        place = self.session.place(resume)
        with live_view(testbed) as show:
            result = throughput.find_conditional_throughput(testbed, request, place, show)
        self.session.remember_search(result, request, place)
        show_result(self.session, result, place.directory)
        if must_find:
            throughput.require_lower_bounds(result)
        return result


def _chosen(by_keyword: bool | None, by_import: bool) -> bool:
    """Whether something is measured: as the keyword says, or else as the library was imported with."""
    return by_import if by_keyword is None else by_keyword


def latency_after_search(
    session: Session,
    goal: str | None = None,
    shares: Sequence[float] = latencies.LATENCY_SHARES,
    **fields: Any,
) -> throughput.ThroughputResult:
    """Measures latency at shares of the bound that the last search found; see `ThroughputKeywords.measure_latency`.

    Raises:
        SearchError: If no search in this test and on this testbed has found loads to measure at.
    """
    search = session.last_search
    if search is None or search.test_name != session.test_name:
        raise SearchError(
            "No search in this test on this testbed has found loads at which to measure latency. First call a "
            "keyword such as 'Find NDR And PDR', or name the loads: 'Measure Latency    10 kfps    frame_size=64B'."
        )

    points = latencies.points_of(search.result, goal=goal, shares=shares)
    request = latencies.LatencyRequest(profile=search.request.profile, points=points, **fields)
    announce(f"Measuring latency: {describe_profile(search.request.profile)}")
    result = session.add_to(
        search,
        "latency",
        lambda testbed, place, found: latencies.add_latency(testbed, request, place, found, _show),
    )
    show_result(session, result, search.place.directory)
    _check(result.latency, request.repeats)

    return result


def _show(at_load: latencies.LatencyAtLoad) -> None:
    say(results.in_columns(f"{at_load.line()}; {at_load.takes()}"))
    for fault in at_load.faults:
        logger.warn(f"Latency at {latencies.name_load(at_load)} could not be measured: {fault}")


def _check(measured_at: Sequence[latencies.LatencyAtLoad], repeats: int) -> None:
    """Requires a latency, and shows the average of the repeats at each load (RFC 2544, section 26.2)."""
    if not any(load.is_measured for load in measured_at):
        raise TrafficError(
            f"Latency could not be measured at any load. {'; '.join(measured_at[0].faults)}"
        )
    for load, trials in groupby(measured_at if repeats > 1 else (), key=latencies.name_load):
        means = [
            one.mean_us for trial in trials for one in trial.directions if one.mean_us is not None
        ]
        if means:
            text = f"latency at {load}: {fmean(means):.1f} µs on average of {repeats} repeats and all directions"
            logger.info(text, also_console=True)

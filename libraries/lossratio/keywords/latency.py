"""Keywords that measure latency."""

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from robot.api import logger

from lossratio.errors import SearchError, TrafficError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, Share, typed_keyword
from lossratio.keywords.live_view import say
from lossratio.keywords.measurements import asks, request_of
from lossratio.keywords.session import Keywords, Session, announce, describe_profile, measured, show_result
from lossratio.measurements import latency
from lossratio.measurements.throughput import ThroughputResult

_SHARES = tuple(Share(share) for share in latency.LATENCY_SHARES)


class LatencyKeywords(Keywords):
    """Latency after a search, or at given loads."""

    @asks(latency.LatencyRequest)
    @typed_keyword()
    def measure_latency(
        self,
        *loads: FrameRate,
        frame_size: FrameSize | None = None,
        profile: str = DEFAULT_PROFILE,
        goal: str | None = None,
        shares: tuple[Share, ...] = _SHARES,
        **fields: Any,
    ) -> ThroughputResult | latency.LatencyResult:
        """Measures one-way latency at some loads, in one trial of ``duration`` each, and returns the result.

        After a search in the same test, latency is measured with that search's traffic at ``shares`` of a goal's
        relevant lower bound, and at the search's minimum load, as FD.io CSIT does: by default at 100, 90, 50 and
        10 % of PDR. ``goal`` names another goal. The latency becomes a part of the search's result.
        | `Find NDR And PDR`    frame_size=64B
        | `Measure Latency`
        | `Measure Latency`    goal=NDR    shares=[1, 0.5]    duration=1 s

        With ``loads`` it is a measurement of its own, with traffic of ``frame_size``, ``profile`` and ``bidirectional``
        as under `Arguments of measurements`.
        | `Measure Latency`    10 kpps    100 kpps    frame_size=64B

        Each load is measured in as many trials as ``repeats``. RFC 2544, section 26.2, has 20 trials of 120 s at the
        throughput, and one frame in each; here some frames of the whole trial count, and the log has the average of
        the repeats.
        | `Find Conditional Throughput`    RFC2544    frame_size=64B
        | `Measure Latency`    goal=RFC2544    shares=[1]    duration=2 min    repeats=20

        Some frames of the load carry a number. The generator records when each of them leaves and when it comes back;
        the result has the resolution of these times as ``resolution``. For each direction the result has the least,
        mean and largest latency, jitter, percentiles and the whole histogram, frames out of order and duplicates. A
        load or a direction that fails is a warning, and the others stay. If all fail, the keyword fails.
        """
        if not loads:
            fields.pop("bidirectional", None)
            return latency_after_search(self.session, goal, shares, **fields)
        if frame_size is None:
            raise SearchError("Say the frame_size of the traffic, e.g. frame_size=64B.")
        points = [latency.LatencyPoint(load) for load in sorted(loads, reverse=True)]
        request = request_of(self.session, latency.LatencyRequest, frame_size, profile, {"points": points, **fields})
        what = f"Measuring latency: {describe_profile(request.profile)}"
        result = measured(
            self.session, what, lambda testbed, at, _: latency.measure_latency(testbed, request, at, _show)
        )
        _check(result.latency, request.repeats)
        return result


def latency_after_search(
    session: Session, goal: str | None = None, shares: Sequence[float] = latency.LATENCY_SHARES, **fields: Any
) -> ThroughputResult:
    """Measures latency at shares of what the last search found; see `LatencyKeywords.measure_latency`."""
    search = session.last_search
    if search is None or search.test_name != session.test_name:
        raise SearchError(
            "No search in this test and on this testbed has found loads to measure latency at. Call e.g. "
            "'Find NDR And PDR' before, or say the loads: 'Measure Latency    10 kpps    frame_size=64B'."
        )
    points = latency.points_of(search.result, goal=goal, shares=shares)
    request = latency.LatencyRequest(profile=search.profile, points=points, **fields)
    announce(f"Measuring latency: {describe_profile(search.profile)}")
    result = session.add_to(
        search, "latency", lambda testbed, place, found: latency.add_latency(testbed, request, place, found, _show)
    )
    show_result(result, search.place.directory)
    _check(result.latency, request.repeats)
    return result


def _show(at_load: latency.LatencyAtLoad) -> None:
    say(next(iter(latency.latency_lines([at_load]))))
    for fault in at_load.faults:
        logger.warn(f"Latency at {latency.name_load(at_load)} is not known: {fault}")


def _check(measured_at: Sequence[latency.LatencyAtLoad], repeats: int) -> None:
    """Requires a latency, and shows the average of the repeats at each load (RFC 2544, section 26.2)."""
    if not any(load.is_measured for load in measured_at):
        raise TrafficError(f"No latency could be measured at any load. {'; '.join(measured_at[0].faults)}")
    for load, trials in groupby(measured_at if repeats > 1 else (), key=latency.name_load):
        means = [one.mean_us for trial in trials for one in trial.directions if one.mean_us is not None]
        if means:
            text = f"latency at {load}: {fmean(means):.1f} µs on average of {repeats} repeats and all directions"
            logger.info(text, also_console=True)

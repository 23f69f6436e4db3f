"""Latency: trials at some loads, whose frames carry time stamps, from the request to the result file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from lossratio.errors import LossRatioError, ReportError, SearchError, TrafficError
from lossratio.measurements import (
    NOT_IN_FILES,
    Additions,
    Audience,
    Request,
    RequestedKind,
    Span,
    TestPlace,
    check_arguments,
)
from lossratio.measurements.latency.result import (
    LatencyAtLoad,
    LatencyResult,
    direction_latency,
    latency_contradictions,
    latency_result,
    stream_latencies,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import Conditions, Outcome, TestRun, read_result, same_value
from lossratio.trials import (
    Integrity,
    LatencyOutput,
    TrialInput,
    TrialResult,
    check_integrity,
    known_missing,
    output_from_counters,
)
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    Repeats,
    format_frame_rate,
    parse_frame_rate,
    shown_value,
)

if TYPE_CHECKING:
    from lossratio.measurements.throughput import ThroughputResult
    from lossratio.testbed import LoadRange, Testbed

LATENCY_DURATION = 5.0
"""Seconds of each trial, as in FD.io CSIT."""
LATENCY_SHARES = (1.0, 0.9, 0.5, 0.1)
"""Shares of PDR's relevant lower bound at which latency is measured, besides the minimum load: FD.io CSIT's shares, and
the whole bound as in RFC 2544."""
_UNSUPPORTED = "unsupported"
"""Kind of the error of a generator that cannot measure the latency of such traffic at any load."""

OnLatency = Callable[[LatencyAtLoad], None]


@dataclass(frozen=True)
class LatencyPoint:
    """A load to measure latency at."""

    load: float
    """Frames per second, per interface."""
    goal: str | None = None
    """Name of the goal; the load is a share of the goal's relevant lower bound. None: the load was given."""
    share: float | None = None
    """The share; 0: the minimum load; None: the load was given."""
    is_raised: bool = False
    """Whether the load is the minimum load because the share is below it."""


def _points(loads: object) -> tuple[LatencyPoint, ...]:
    """The points for given loads, each a point or a frame rate."""
    if isinstance(loads, str | bytes) or not isinstance(loads, Iterable):
        raise ValueError(
            f"{shown_value(loads)} is not a list of loads; write it like ['10 kfps', '20 kfps']."
        )
    return tuple(
        load if isinstance(load, LatencyPoint) else LatencyPoint(parse_frame_rate(load))
        for load in loads
    )


class LatencyRequest(Request):
    """The settings of a measurement of latency."""

    unused = frozenset({"max_load", "min_load", "ramp", "warm_up"})

    points: Annotated[
        tuple[LatencyPoint, ...], BeforeValidator(_points), NOT_IN_FILES, Audience.SCRIPTS
    ]
    """The loads, in the order in which they are measured, or frame rates per interface, such as ``10 kfps``."""
    duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = LATENCY_DURATION
    """Seconds of each trial."""
    repeats: Repeats = 1
    """Number of trials at each load."""

    @property
    def all_points(self) -> tuple[LatencyPoint, ...]:
        """The load of each trial."""
        return tuple(point for point in self.points for _ in range(self.repeats))

    def asked(self, point: LatencyPoint) -> dict[str, Any]:
        """The request for one load, as JSON data."""
        settings = {
            "duration_s": self.duration,
            "integrity": self.integrity.value,
            "rest_s": self.rest,
        }
        return {"goal": point.goal, "share_ratio": point.share, "load_fps": point.load, **settings}

    def forecast(self, loads: LoadRange, waits: float) -> Forecast:
        """The time of all trials.

        Args:
            loads: The range of the loads of its trials.
            waits: Seconds that each trial takes besides its traffic.
        """
        seconds = len(self.all_points) * (self.duration + waits)
        return Forecast(seconds, seconds, seconds)


class Latency(RequestedKind[LatencyRequest, LatencyResult]):
    """The kind: latency at given loads. Its trials are not a search, and have no journal."""

    keyword = "Measure Latency"
    method = "latency"

    def perform(
        self,
        testbed: Testbed,
        request: LatencyRequest,
        place: TestPlace,
        on_progress: OnLatency | None = None,
    ) -> LatencyResult:
        """Measures as `measure_latency` does."""
        return measure_latency(testbed, request, place, on_progress)

    def contradictions(self, result: LatencyResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Latencies that differ from those of the trials, or contradict each other."""
        measured = [at_load for at_load in result.latency if at_load.error is None]
        if len(measured) != len(trials):
            yield f"latency: there are {len(measured)} loads and {len(trials)} trials"
            return
        for index, (at_load, trial) in enumerate(zip(measured, trials, strict=True)):
            if at_load.loss_ratio != trial.loss_ratio or not same_value(
                at_load.load.per_interface_fps, trial.load
            ):
                yield f"latency[{index}]: load or loss ratio differ from trial {index + 1}"
            yield from latency_contradictions(at_load, f"latency[{index}]")


def points_of(
    result: ThroughputResult, *, goal: str | None = None, shares: Sequence[float] = LATENCY_SHARES
) -> tuple[LatencyPoint, ...]:
    """The loads at which latency is measured after a search, from the highest; the last one is the minimum load.

    They are shares of the relevant lower bound of a goal. The name of the goal may be in any case; None: PDR, or else a
    goal whose name ends with these letters, or else the last goal. A load below the minimum load is raised to the
    minimum load.

    Raises:
        SearchError: If there is no such goal, it has no relevant lower bound, or a share is not between 0 and 1.
    """
    report = result.goal_to_follow(goal)
    bound, _ = report.bounds
    if bound is None:
        raise SearchError(
            f"{report.goal.name} has no relevant lower bound from which to calculate loads. Name the loads "
            "at which to measure latency."
        )
    if not all(0.0 < share <= 1.0 for share in shares):
        raise SearchError(
            f"Shares of {report.goal.name} must be above 0 and at most 1, not {list(shares)}."
        )

    least = result.min_load.per_interface_fps
    points = []
    for share in (*sorted(shares, reverse=True), 0.0):
        load = share * bound.per_interface_fps
        is_raised = 0.0 < load < least
        points.append(LatencyPoint(max(least, load), report.goal.name, share, is_raised=is_raised))
    return tuple(points)


def add_latency(
    testbed: Testbed,
    request: LatencyRequest,
    place: TestPlace,
    result: ThroughputResult,
    on_latency: OnLatency | None = None,
) -> ThroughputResult:
    """Measures latency after a search, and writes it into the search's result file.

    The latency at each load is in the search's journal before the next load is tried. A resumed run takes everything
    but errors from there.

    Raises:
        LossRatioError: If the generator cannot measure the latency of such traffic, or the result cannot be written.
    """
    span = Span()
    latency = []
    asked = [request.asked(point) for point in request.all_points]

    with Additions(place, "latency", asked, None if result.latency else 1) as additions:
        for index, point in enumerate(request.all_points):
            at_load = additions.known(index, LatencyAtLoad)
            if at_load is None or at_load.faults:
                at_load = _measure_point(testbed, request, point).at_load(
                    result.conditions, request.duration
                )
                additions.add(index, at_load)
            latency.append(at_load)
            if on_latency is not None:
                on_latency(at_load)

    whole = result.model_copy(
        update={"latency": tuple(latency), "ended": span.later_than(result.ended)}
    )
    place.directory.write(whole)
    return whole


def measure_latency(
    testbed: Testbed, request: LatencyRequest, place: TestPlace, on_latency: OnLatency | None = None
) -> LatencyResult:
    """Measures latency at given loads, and writes the result file.

    Raises:
        SearchError: If the request has no loads.
        TrafficError: If no load could be measured at all.
    """
    from lossratio.testbed import load_limits, load_range

    check_arguments(testbed, request, LatencyRequest, place, on_latency)
    span = Span()
    if not request.points:
        raise SearchError("No search has found a load at which to measure latency. Name the loads.")

    offered = [point.load for point in request.points]
    loads = load_range(
        load_limits(testbed, request.profile), min_load=min(offered), max_load=max(offered)
    )
    conditions: Conditions | None = None
    all_measured = []

    for point in request.all_points:
        measured = _measure_point(testbed, request, point)
        all_measured.append(measured)
        conditions = conditions or measured.conditions
        if on_latency is not None and conditions is not None:
            on_latency(measured.at_load(conditions, request.duration))

    if conditions is None:
        raise TrafficError(f"Latency could not be measured at any load. {all_measured[0].outcome}")

    run = TestRun(place.test, span.started, span.end(), conditions, loads.remarks)
    latency = [measured.at_load(conditions, request.duration) for measured in all_measured]
    trials = [measured.trial for measured in all_measured if measured.trial is not None]
    result = latency_result(run, loads.describe(conditions), latency, trials)
    place.directory.write(result)

    return result


def measure_latency_once(
    testbed: Testbed, request: LatencyRequest, place: TestPlace, on_latency: OnLatency | None = None
) -> LatencyResult:
    """Measures latency, unless the resumed run already has the result (latency has no journal to continue).

    Raises:
        LossRatioError: As `measure_latency`.
    """
    earlier = None
    if place.resume is not None:
        with contextlib.suppress(ReportError):
            earlier = read_result(place.resume.result_path(place.test.full_name))
    if not isinstance(earlier, LatencyResult) or not _is_as_asked(earlier, request):
        return measure_latency(testbed, request, place, on_latency)
    place.directory.write(earlier)
    return earlier


def _is_as_asked(earlier: LatencyResult, request: LatencyRequest) -> bool:
    measured = [(at.load.per_interface_fps, at.duration_s) for at in earlier.latency]
    asked = [(point.load, request.duration) for point in request.all_points]
    is_same_traffic = earlier.conditions.traffic == request.profile.described()
    return earlier.outcome is Outcome.MEASURED and measured == asked and is_same_traffic


@dataclass(frozen=True)
class Measured:
    """The outcome at one load."""

    point: LatencyPoint
    """The point."""
    outcome: LatencyOutput | str
    """The trial's output, or the error."""
    trial: TrialResult | None
    """The trial; None if it failed."""
    conditions: Conditions | None = None
    """The conditions of the trial; None if there was no trial."""

    def at_load(self, conditions: Conditions, duration: float) -> LatencyAtLoad:
        """The latency in the form of result files."""
        asked: dict[str, Any] = {
            "goal": self.point.goal,
            "share_ratio": self.point.share,
            "is_raised": self.point.is_raised,
            "load": conditions.rate(self.point.load),
            "duration_s": duration,
        }
        if self.trial is None or isinstance(self.outcome, str):
            return LatencyAtLoad(**asked, directions=(), error=str(self.outcome))

        missing = known_missing(self.trial.output)
        # Record: the latency at a load as it stands in a result.
        return LatencyAtLoad(
            **asked,
            loss_ratio=self.trial.loss_ratio,
            unsent_frames=sum(way.unsent_frames for way in self.outcome.directions),
            generator_drop_frames=missing.generator_drops,
            late_frames=missing.late,
            # Frames that came back beyond the sent ones.
            surplus_frames=sum(max(0, -way.lost) for way in self.trial.output.directions),
            directions=tuple(map(direction_latency, self.outcome.latency)),
            by_stream=tuple(stream_latencies(self.outcome.latency)),
        )


def _measure_point(testbed: Testbed, request: LatencyRequest, point: LatencyPoint) -> Measured:
    from lossratio.traffic import AgentRefusalError

    conditions: Conditions | None = None
    trial = TrialInput(request.duration, point.load).sendable(testbed.load_step(request.profile))
    point = replace(point, load=trial.load)

    try:
        # The testbed is made ready again for each load, so that an agent that failed at a load is replaced before the
        # next load.
        with request.ready(testbed) as ready:
            conditions = ready.conditions
            begun = ready.source.now()
            output = ready.source.latency(trial.load, trial.duration)
            elapsed = ready.source.now() - begun
            counted = ready.with_late_frames(
                output_from_counters(
                    trial, output.directions, negative_loss="csit", elapsed=elapsed
                )
            )
        if request.integrity is Integrity.FAIL:
            check_integrity(output.directions, f"at {format_frame_rate(trial.load)}")
    except LossRatioError as error:
        if isinstance(error, AgentRefusalError) and error.kind == _UNSUPPORTED:
            # Such a measurement would fail at every other load, too.
            raise
        return Measured(point, str(error), None, conditions)

    return Measured(point, output, TrialResult(trial, counted), conditions)

"""The six tests of RFC 2544 over frame sizes: what is measured with which settings, the forecast, and the run.

Each test of each frame size is a measurement with files of its own. So a run that was interrupted continues in the
middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from lossratio.errors import DutError, LossRatioError, ReportError, SearchError
from lossratio.measurements import InWords, Span, TestPlace
from lossratio.measurements.back_to_back import BURST_REPEATS, BackToBackRequest, measure_back_to_back
from lossratio.measurements.frame_loss import FrameLossRequest, measure_frame_loss_rate
from lossratio.measurements.latency import LatencyPoint, LatencyRequest, LatencyResult, measure_latency
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.reset import DEVICES, ResetRequest, measure_reset
from lossratio.measurements.rfc2544.modifiers import ActiveModifier, Modifier, ModifierReport
from lossratio.measurements.throughput import SearchRequest, ThroughputResult, find_conditional_throughput, goal_from
from lossratio.mlrsearch import RFC2544, Forecast, MLRsearch, SearchGoal
from lossratio.results import Outcome, TestIdentity, TestResult, read_result
from lossratio.trials import Integrity

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

ResultT = TypeVar("ResultT", bound=TestResult)


class Rfc2544Test(str, Enum):
    """The tests of RFC 2544, section 26, in their order."""

    THROUGHPUT = "throughput"
    """26.1."""
    LATENCY = "latency"
    """26.2, at the throughput."""
    FRAME_LOSS = "frame loss"
    """26.3."""
    BACK_TO_BACK = "back-to-back"
    """26.4, by RFC 9004."""
    RECOVERY = "recovery"
    """26.5."""
    RESET = "reset"
    """26.6, by RFC 6201: at the smallest frame size."""


ALL_TESTS = tuple(Rfc2544Test)
"""All tests."""


@dataclass(frozen=True)
class Rfc2544Settings:
    """The settings of all tests. The defaults are those of the RFCs, as far as these have any.

    Attributes:
        goal: The goal of the search for the throughput; it allows no loss.
        latency_trials: Number of trials for latency.
        latency_duration: Seconds of each.
        loss_duration: Seconds of each trial for the frame loss rate.
        loss_step: Distance of successive loads there, as a share of the maximum load.
        burst_repeats: Number of searches for the longest burst.
        longest_burst: Seconds of the longest burst.
        settle: Least seconds without traffic after each burst.
        recovery_repeats: Number of overloads.
        overload_duration: Seconds of each.
        recovery_limit: Seconds after each in which the DUT is watched.
        reset_repeats: Number of resets.
        reset_lead: Seconds of forwarding before each.
        reset_limit: Seconds after each in which the DUT is watched.
    """

    goal: SearchGoal = RFC2544
    latency_trials: int = 20
    latency_duration: float = 120.0
    loss_duration: float = 60.0
    loss_step: float = 0.1
    burst_repeats: int = BURST_REPEATS
    longest_burst: float = 2.0
    settle: float = 2.0
    recovery_repeats: int = 5
    overload_duration: float = 60.0
    recovery_limit: float = 10.0
    reset_repeats: int = 5
    reset_lead: float = 15.0
    reset_limit: float = 10.0


FULL = Rfc2544Settings()
"""The settings of a report that is handed in."""

QUICK = Rfc2544Settings(
    goal=goal_from("QUICK_NDR"),
    latency_trials=2,
    latency_duration=0.5,
    loss_duration=0.5,
    burst_repeats=2,
    longest_burst=0.5,
    settle=0.1,
    recovery_repeats=2,
    overload_duration=1.0,
    recovery_limit=1.0,
    reset_repeats=2,
    reset_lead=0.5,
    reset_limit=2.0,
)
"""The settings for trying things out: a hundredth of the time. The report names each difference."""


@dataclass(frozen=True)
class Rfc2544Request:
    """What to measure.

    Attributes:
        profiles: The test traffic of each frame size.
        tests: The tests; throughput is always among them, as the others need it.
        settings: The settings of the tests.
        max_load: The largest load, frames per second per interface; None: the most that generator, links and NICs can
            do.
        reset: Resets the DUT; None: a software reset of the devices, see `lossratio.measurements.reset`.
        reset_name: The reset, in words.
        modifier: The modifier; the profiles have it if it is one of the traffic, see `modified`. None: there is none.
        modifier_commands: Commands of the modifier on this machine: a query of the device for ``management``, two
            alternating ones for ``routing updates``.
        integrity: What happens if frames do not come back as they were sent.
    """

    profiles: Sequence[TrafficProfile]
    tests: Sequence[Rfc2544Test] = ALL_TESTS
    settings: Rfc2544Settings = FULL
    max_load: float | None = None
    reset: Callable[[], object] | None = None
    reset_name: str = DEVICES
    modifier: Modifier | None = None
    modifier_commands: Sequence[str] = ()
    integrity: Integrity = Integrity.DOUBT

    def planned(self) -> Iterator[tuple[TrafficProfile, Rfc2544Test]]:
        """The measurements, in their order. Resets are at the first, which is the smallest, frame size."""
        for place, profile in enumerate(self.profiles):
            for test in ALL_TESTS:
                is_wanted = test in self.tests or test is Rfc2544Test.THROUGHPUT
                if is_wanted and (test is not Rfc2544Test.RESET or place == 0):
                    yield profile, test


@dataclass(frozen=True)
class Rfc2544Part:
    """One test of one frame size.

    Attributes:
        frame_size: The frame size, e.g. ``64B``.
        test: The test.
        result: The result; None: there is none.
        problem: Why there is no result; None: there is one.
    """

    frame_size: str
    test: Rfc2544Test
    result: TestResult | None
    problem: str | None = None

    def result_as(self, kind: type[ResultT]) -> ResultT | None:
        """The result, if it is of this kind; None: there is none, or it is another test's."""
        return self.result if isinstance(self.result, kind) else None


@dataclass(frozen=True)
class Rfc2544Run:
    """All tests of all frame sizes.

    Attributes:
        test: The identity of the whole.
        settings: The settings.
        started: When the run began, UTC; a run that was continued, when it was continued.
        ended: When it ended.
        forecast: The time that was forecast, in seconds.
        parts: The tests, in their order.
        modifier: The modifier; None: there is none.
        modifier_report: What the modifier did; None: there is none.
    """

    test: TestIdentity
    settings: Rfc2544Settings
    started: datetime
    ended: datetime
    forecast: Forecast
    parts: tuple[Rfc2544Part, ...]
    modifier: Modifier | None = None
    modifier_report: ModifierReport | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Why tests have no result; each reason with the test and its frame size."""
        return tuple(
            f"{part.frame_size} {part.test.value}: {part.problem}" for part in self.parts if part.problem is not None
        )

    def of(self, test: Rfc2544Test) -> tuple[Rfc2544Part, ...]:
        """The parts of one test, by frame size."""
        return tuple(part for part in self.parts if part.test is test)

    def results_as(self, kind: type[ResultT]) -> tuple[ResultT, ...]:
        """The results of one kind, by frame size."""
        return tuple(result for part in self.parts if (result := part.result_as(kind)) is not None)


_IMPOSSIBLE: Mapping[str, tuple[Rfc2544Test, ...]] = MappingProxyType(
    {"trex": (Rfc2544Test.RECOVERY, Rfc2544Test.RESET), "xdp": (Rfc2544Test.RESET,)}
)
"""Tests that a generator cannot do, see `lossratio.traffic.agent.core.generator.TimedGenerator`."""

_TRIAL_OVERHEAD = 0.3
"""Seconds: the usual time of a trial of the embedded generator besides its traffic."""

OnPart = Callable[[Rfc2544Part], None]


def run_rfc2544(
    testbed: Testbed,
    request: Rfc2544Request,
    place: TestPlace,
    *,
    on_forecast: Callable[[int, Forecast], None] | None = None,
    on_progress: Callable[[InWords], None] | None = None,
    on_part: OnPart | None = None,
) -> Rfc2544Run:
    """Performs all tests. A test that fails does not end the others; its reason is in the answer.

    Args:
        testbed: The testbed.
        request: What to measure.
        place: The test, and the directory of its files. The name of each measurement has frame size and test behind it.
        on_forecast: Called before the first test, with the number of measurements and the time that they will take.
        on_progress: Called after each trial.
        on_part: Called after each test of each frame size.

    Raises:
        LossRatioError: If the request makes no sense; nothing was measured then.
    """
    span = Span()
    _check(testbed, request)
    modifier = ActiveModifier(request.modifier, request.modifier_commands, testbed)
    forecast = forecast_of(testbed, request)
    if on_forecast is not None:
        on_forecast(len(tuple(request.planned())), forecast)
    parts: list[Rfc2544Part] = []
    throughput: float | None = None
    with modifier:
        for profile, test in request.planned():
            if test is Rfc2544Test.THROUGHPUT:
                throughput = None
            part = _perform(_Task(testbed, request, profile, test, throughput), place, on_progress)
            if (searched := part.result_as(ThroughputResult)) is not None:
                throughput = throughput_of(searched)
            parts.append(part)
            if on_part is not None:
                on_part(part)
    return Rfc2544Run(
        place.test,
        request.settings,
        span.started,
        span.end(),
        forecast,
        tuple(parts),
        request.modifier,
        modifier.report(),
    )


def throughput_of(result: ThroughputResult) -> float | None:
    """The throughput without loss, frames per second per interface; None: there is none."""
    outcome = result.goals[0].result
    found = None if outcome is None else outcome.conditional_throughput
    return None if found is None else found.per_interface_fps


def forecast_of(testbed: Testbed, request: Rfc2544Request) -> Forecast:
    """The time of all tests, from their settings alone: each device may need more trials or fewer.

    Raises:
        SearchError: If the maximum load is not known.
    """
    waits = _waits(testbed)
    parts = [_forecast(_loads(testbed, request, profile), request, test, waits) for profile, test in request.planned()]
    return Forecast(
        sum(part.seconds for part in parts), sum(part.low for part in parts), sum(part.high for part in parts)
    )


def _waits(testbed: Testbed) -> float:
    """Seconds that a trial is expected to take besides its traffic."""
    generator = testbed.request.topology.nodes[testbed.request.topology.tg_name].generator
    recovery = max((dut.recovery_time for dut in testbed.duts), default=0.0)
    return max(getattr(generator, "overhead", None) or _TRIAL_OVERHEAD, recovery)


def _forecast(loads: LoadRange, request: Rfc2544Request, test: Rfc2544Test, waits: float) -> Forecast:
    chosen = request.settings
    if test is Rfc2544Test.THROUGHPUT:
        search = MLRsearch([replace(chosen.goal)], loads.min_load, loads.max_load, timeout=None).forecast()
        longer = 1.0 + waits / chosen.goal.final_trial_duration
        return Forecast(search.seconds * longer, search.low * longer, search.high * longer)
    if test is Rfc2544Test.FRAME_LOSS:
        steps = round(1.0 / chosen.loss_step)
        return Forecast(*((chosen.loss_duration + waits) * trials for trials in (0.7 * steps, 2, steps)))
    if test is Rfc2544Test.LATENCY:
        seconds, least = chosen.latency_trials * (chosen.latency_duration + waits), 1.0
    elif test is Rfc2544Test.RECOVERY:
        seconds, least = chosen.recovery_repeats * (chosen.overload_duration + chosen.recovery_limit + waits), 0.0
    elif test is Rfc2544Test.RESET:
        seconds, least = chosen.reset_repeats * (chosen.reset_lead + chosen.reset_limit + waits), 1.0
    else:
        trials = 1 + math.ceil(math.log2(max(2.0, chosen.longest_burst * loads.max_load)))
        # Bursts become shorter by half, unless none loses a frame: together they are two of the longest ones.
        seconds, least = chosen.burst_repeats * (trials * (chosen.settle + waits) + 2.0 * chosen.longest_burst), 0.0
    return Forecast(seconds, least * seconds, seconds)


def _check(testbed: Testbed, request: Rfc2544Request) -> None:
    if not request.profiles:
        raise SearchError("RFC 2544 needs a frame size at least. Its own are 64, 128, 256, 512, 1024, 1280 and 1518.")
    if request.settings.goal.loss_ratio > 0.0:
        raise SearchError(f"The throughput of RFC 2544 allows no loss, and {request.settings.goal} does.")
    sizes = [profile.average_frame_size for profile in request.profiles]
    if sizes != sorted(set(sizes)):
        raise SearchError(f"Give each frame size once, from the smallest to the largest, not {_in_words(sizes)}.")
    generator = testbed.request.topology.nodes[testbed.request.topology.tg_name].generator
    kind = "" if generator is None else str(generator.kind)
    impossible = [test.value for test in _IMPOSSIBLE.get(kind, ()) if test in request.tests]
    if impossible:
        possible = "    ".join(test.value for test in request.tests if test.value not in impossible)
        raise SearchError(
            f"The generator {kind} cannot locate losses in time as {' and '.join(impossible)} need it. Leave out what "
            f"is impossible: Run RFC 2544    {possible}; or take 'kind: afpacket'."
        )
    is_simulated = testbed.request.topology.testbed.value == "simulated"
    if Rfc2544Test.RESET in request.tests and request.reset is None and not testbed.duts and not is_simulated:
        raise DutError(
            "There is no DUT of ours to reset: say which kind it is when the testbed is set up, give a command or a "
            "keyword that resets the device, or leave the test 'reset' out."
        )


def _in_words(sizes: Sequence[float]) -> str:
    return ", ".join(f"{size:g}" for size in sizes)


def _loads(testbed: Testbed, request: Rfc2544Request, profile: TrafficProfile) -> LoadRange:
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.testbed import load_limits, load_range

    return load_range(load_limits(testbed, profile), min_load=None, max_load=request.max_load)


@dataclass(frozen=True)
class _Task:
    """One test of one frame size, before it is performed."""

    testbed: Testbed
    request: Rfc2544Request
    profile: TrafficProfile
    test: Rfc2544Test
    throughput: float | None

    @property
    def frame_size(self) -> str:
        size = self.profile.frame_size
        return size if isinstance(size, str) else f"{size}B"


def _perform(task: _Task, whole: TestPlace, on_progress: Callable[[InWords], None] | None) -> Rfc2544Part:
    name = f"{whole.test.name} {task.frame_size} {task.test.value}"
    place = replace(whole, test=whole.test.model_copy(update={"name": name}))
    if task.test not in (Rfc2544Test.THROUGHPUT, Rfc2544Test.FRAME_LOSS) and task.throughput is None:
        return Rfc2544Part(task.frame_size, task.test, None, "the throughput is not known")
    try:
        result = _measure(task, place, on_progress)
    except LossRatioError as error:
        # The other tests go on: hours of measurements must not be lost for one of them.
        return Rfc2544Part(task.frame_size, task.test, None, str(error))
    return Rfc2544Part(task.frame_size, task.test, result)


def _measure(task: _Task, place: TestPlace, on_progress: Callable[[InWords], None] | None) -> TestResult:
    testbed, request, chosen = task.testbed, task.request, task.request.settings
    shared: dict[str, Any] = {"profile": task.profile, "integrity": request.integrity}
    limited = {**shared, "max_load": request.max_load}
    if task.test is Rfc2544Test.THROUGHPUT:
        search = SearchRequest((chosen.goal,), timeout=None, **limited)
        return find_conditional_throughput(testbed, search, place, on_progress)
    if task.test is Rfc2544Test.FRAME_LOSS:
        loss = FrameLossRequest(step=chosen.loss_step, trial_duration=chosen.loss_duration, **limited)
        return measure_frame_loss_rate(testbed, loss, place, on_progress)
    if task.throughput is None:
        raise SearchError("the throughput is not known")
    if task.test is Rfc2544Test.LATENCY:
        points = [LatencyPoint(task.throughput)] * chosen.latency_trials
        return _latency(testbed, LatencyRequest(points=points, duration=chosen.latency_duration, **shared), place)
    if task.test is Rfc2544Test.BACK_TO_BACK:
        bursts = BackToBackRequest(
            throughput=task.throughput,
            repeats=chosen.burst_repeats,
            longest_burst=chosen.longest_burst,
            settle=chosen.settle,
            **limited,
        )
        return measure_back_to_back(testbed, bursts, place, on_progress)
    if task.test is Rfc2544Test.RECOVERY:
        recovery = RecoveryRequest(
            throughput=task.throughput,
            repeats=chosen.recovery_repeats,
            overload_duration=chosen.overload_duration,
            limit=chosen.recovery_limit,
            **limited,
        )
        return measure_recovery(testbed, recovery, place, on_progress)
    reset = ResetRequest(
        throughput=task.throughput,
        reset=request.reset,
        name=request.reset_name,
        repeats=chosen.reset_repeats,
        lead=chosen.reset_lead,
        limit=chosen.reset_limit,
        **limited,
    )
    return measure_reset(testbed, reset, place, on_progress)


def _latency(testbed: Testbed, request: LatencyRequest, place: TestPlace) -> LatencyResult:
    """Measures latency, unless the run that is continued has the result: latency has no journal."""
    earlier = None if place.resume is None else _earlier(place, request)
    if earlier is None:
        return measure_latency(testbed, request, place)
    place.directory.write(earlier)
    return earlier


def _earlier(place: TestPlace, request: LatencyRequest) -> LatencyResult | None:
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.testbed import describe_traffic

    path = None if place.resume is None else place.resume.result_path(place.test.full_name)
    if path is None or not path.exists():
        return None
    try:
        result = read_result(path)
    except ReportError:
        return None
    if not isinstance(result, LatencyResult):
        return None
    is_same = (
        result.outcome is Outcome.MEASURED
        and [(at.load.per_interface_fps, at.duration_s) for at in result.latency]
        == [(point.load, request.duration) for point in request.points]
        and result.conditions.traffic == describe_traffic(request.profile)
    )
    return result if is_same else None

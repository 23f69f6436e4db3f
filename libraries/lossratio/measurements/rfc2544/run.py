"""The six tests of RFC 2544 over frame sizes: what is measured, with which settings, the forecast, and the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from lossratio.errors import DutError, LossRatioError, SearchError
from lossratio.measurements import AfterThroughput, InWords, Request, Span, TestPlace
from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
from lossratio.measurements.frame_loss import FrameLossRequest, measure_frame_loss_rate
from lossratio.measurements.latency import LatencyPoint, LatencyRequest, measure_latency_once
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.reset import DEVICES, ResetRequest, measure_reset
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput, goal_from
from lossratio.mlrsearch import RFC2544, Forecast
from lossratio.results import TestIdentity, TestResult, number_of
from lossratio.trials import Integrity

if TYPE_CHECKING:
    from lossratio.testbed import Testbed
    from lossratio.traffic import TrafficProfile


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


Rfc2544Settings = Mapping[Rfc2544Test, Mapping[str, Any]]
"""Changes to the requests of tests, by the names of their fields. All other fields have the request's defaults."""

FULL: Rfc2544Settings = {
    Rfc2544Test.THROUGHPUT: {"goals": (RFC2544,), "timeout": None},
    Rfc2544Test.LATENCY: {"repeats": 20, "duration": 120.0},
}
"""The settings for an official report: the defaults of all requests, and anything else that RFC 2544 asks for."""

# Table: the changes of each test.
QUICK: Rfc2544Settings = {
    Rfc2544Test.THROUGHPUT: {"goals": (goal_from("QUICK_NDR"),), "timeout": None},
    Rfc2544Test.LATENCY: {"repeats": 2, "duration": 0.5},
    Rfc2544Test.FRAME_LOSS: {"trial_duration": 0.5},
    Rfc2544Test.BACK_TO_BACK: {"repeats": 2, "longest_burst": 0.5, "settle": 0.1},
    Rfc2544Test.RECOVERY: {"repeats": 2, "duration": 1.0, "limit": 1.0},
    Rfc2544Test.RESET: {"repeats": 2, "lead": 0.5, "limit": 2.0},
}
"""The settings for trying things out, which take a hundredth of the time. The report names each difference."""


@dataclass(frozen=True)
class Rfc2544Request:
    """What to measure."""

    profiles: Sequence[TrafficProfile]
    """The test traffic of each frame size."""
    tests: Sequence[Rfc2544Test] = ALL_TESTS
    """The tests; throughput is always included, because the others need it."""
    settings: Rfc2544Settings = field(default_factory=lambda: FULL)
    """The settings of the tests."""
    max_load: float | None = None
    """The largest load, frames per second per interface; None: the maximum that generator, links and NICs can do."""
    reset: Callable[[], object] | None = None
    """Resets the DUT; None: a software reset of the devices, see `lossratio.measurements.reset`."""
    reset_name: str = DEVICES
    """The reset, in words."""
    integrity: Integrity = Integrity.DOUBT
    """What happens if frames do not come back as they were sent."""

    def request_for(self, test: Rfc2544Test, profile: TrafficProfile, throughput: float) -> Any:
        """The request of a test; the throughput without loss of this traffic is in frames per second per interface.

        Raises:
            SearchError: If the settings make no sense.
        """
        kind, _ = _KINDS[test]
        shared: dict[str, Any] = {
            "profile": profile,
            "max_load": self.max_load,
            "integrity": self.integrity,
        }
        if issubclass(kind, AfterThroughput):
            shared["throughput"] = throughput
        if kind is LatencyRequest:
            shared["points"] = (LatencyPoint(throughput),)
        if kind is ResetRequest:
            shared |= {"reset": self.reset, "reset_name": self.reset_name}
        return kind(**shared, **self.settings.get(test, {}))

    def planned(self) -> Iterator[tuple[TrafficProfile, Rfc2544Test]]:
        """The measurements, in their order. Resets are measured only at the first and smallest frame size."""
        for index, profile in enumerate(self.profiles):
            for test in ALL_TESTS:
                is_wanted = test in self.tests or test is Rfc2544Test.THROUGHPUT
                if is_wanted and (test is not Rfc2544Test.RESET or index == 0):
                    yield profile, test


@dataclass(frozen=True)
class Rfc2544Part:
    """One test of one frame size."""

    frame_size: str
    """The frame size, e.g. ``64B``."""
    test: Rfc2544Test
    """The test."""
    result: TestResult | None
    """The result; None: there is none."""
    problem: str | None = None
    """Why there is no result; None: there is one."""


@dataclass(frozen=True)
class Rfc2544Run:
    """All tests of all frame sizes."""

    test: TestIdentity
    """The identity of the whole run."""
    requests: Mapping[Rfc2544Test, Request]
    """The request of each test at the smallest frame size."""
    started: datetime
    """When the run began, UTC; for a resumed run, when it was resumed."""
    ended: datetime
    """When it ended."""
    forecast: Forecast
    """The time that was forecast, in seconds."""
    parts: tuple[Rfc2544Part, ...]
    """The tests, in their order."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why tests have no result; each reason with the test and its frame size."""
        failed = [part for part in self.parts if part.problem is not None]
        return tuple(f"{part.frame_size} {part.test.value}: {part.problem}" for part in failed)

    def of(self, test: Rfc2544Test) -> tuple[Rfc2544Part, ...]:
        """The parts of one test, by frame size."""
        return tuple(part for part in self.parts if part.test is test)

    def results_of(self, test: Rfc2544Test) -> tuple[Any, ...]:
        """The results of one test, by frame size."""
        return tuple(part.result for part in self.of(test) if part.result is not None)


_TRIAL_OVERHEAD = 0.3
"""The usual seconds that a trial of the embedded generator takes besides its traffic."""


def run_rfc2544(
    testbed: Testbed,
    request: Rfc2544Request,
    place: TestPlace,
    *,
    on_forecast: Callable[[int, Forecast], None] | None = None,
    on_progress: Callable[[InWords], None] | None = None,
    on_part: Callable[[Rfc2544Part], None] | None = None,
) -> Rfc2544Run:
    """Performs all tests. A test that fails does not end the others; the answer has the reason.

    Each test of each frame size has its own files, with names that add the test and the frame size to the name of the
    place's test. So an interrupted run can be continued in the middle. The functions are called before the first test
    (with the number of measurements and their forecast time), after each trial, and after each test of each frame size.

    Raises:
        LossRatioError: If the request cannot be measured here. Nothing has been measured yet.
        SearchError: If the request makes no sense. Again, nothing has been measured yet.
    """
    span = Span()
    _check(testbed, request)
    forecast = forecast_of(testbed, request)
    planned = tuple(request.planned())
    if on_forecast is not None:
        on_forecast(len(planned), forecast)
    parts: list[Rfc2544Part] = []
    throughput: float | None = None

    for profile, test in planned:
        part = _measured(testbed, request, place, (profile, test), throughput, on_progress)
        parts.append(part)
        if test is Rfc2544Test.THROUGHPUT:
            searched: Any = part.result
            throughput = None if searched is None else number_of(searched.goals[0].throughput)
        if on_part is not None:
            on_part(part)

    requests = {
        test: request.request_for(test, profile, throughput or 1.0)
        for profile, test in reversed(planned)
    }
    return Rfc2544Run(
        test=place.test,
        requests=requests,
        started=span.started,
        ended=span.end(),
        forecast=forecast,
        parts=tuple(parts),
    )


def _measured(
    testbed: Testbed,
    request: Rfc2544Request,
    place: TestPlace,
    planned: tuple[TrafficProfile, Rfc2544Test],
    throughput: float | None,
    on_progress: Callable[[InWords], None] | None,
) -> Rfc2544Part:
    """One test of one frame size, given the throughput without loss of these frames, if there is one."""
    profile, test = planned
    size = profile.size_name
    identity = place.test.model_copy(update={"name": f"{place.test.name} {size} {test.value}"})

    try:
        if throughput is None and test not in (Rfc2544Test.THROUGHPUT, Rfc2544Test.FRAME_LOSS):
            raise SearchError(
                f"This test needs the throughput without loss of {size} frames, but the "
                "throughput test found none. Its result says why: correct that, and run all "
                "tests of this size again."
            )
        wanted = request.request_for(test, profile, throughput or 0.0)
        _, measure = _KINDS[test]
        result = measure(testbed, wanted, replace(place, test=identity), on_progress)
    except LossRatioError as error:
        # The other tests continue, because hours of measurements must not be lost to one failed test.
        return Rfc2544Part(size, test, None, str(error))
    return Rfc2544Part(size, test, result)


def forecast_of(testbed: Testbed, request: Rfc2544Request) -> Forecast:
    """The time of all tests, from their settings alone; a device may need more or fewer trials.

    Raises:
        SearchError: If the maximum load is not known.
    """
    from lossratio.testbed import load_limits, load_range

    generator = testbed.request.topology.nodes[testbed.request.topology.tg_name].generator
    recovery = max((dut.recovery_time for dut in testbed.duts), default=0.0)
    # The seconds that a trial is expected to take in addition to its traffic.
    waits = max(getattr(generator, "overhead", None) or _TRIAL_OVERHEAD, recovery)
    parts = []
    for profile, test in request.planned():
        loads = load_range(load_limits(testbed, profile), min_load=None, max_load=request.max_load)
        parts.append(request.request_for(test, profile, loads.max_load).forecast(loads, waits))
    return Forecast(*(sum(getattr(part, each.name) for part in parts) for each in fields(Forecast)))


def in_words(numbers: Sequence[int]) -> str:
    """Some numbers as a list, e.g. ``64, 128 and 256``."""
    *others, last = map(str, numbers)
    return f"{', '.join(others)} and {last}"


def _check(testbed: Testbed, request: Rfc2544Request) -> None:
    from lossratio.topology import RealGenerator
    from lossratio.traffic import RFC2544_FRAME_SIZES, load_generator

    if not request.profiles:
        raise SearchError(
            f"RFC 2544 needs at least one frame size. The RFC's own sizes are {in_words(RFC2544_FRAME_SIZES)}."
        )

    goal = request.request_for(Rfc2544Test.THROUGHPUT, request.profiles[0], 1.0).goals[0]
    if goal.loss_ratio > 0.0:
        raise SearchError(
            f"The throughput of RFC 2544 allows no loss, but the goal {goal} does. Choose the goal RFC2544."
        )

    sizes = [profile.average_frame_size for profile in request.profiles]
    if sizes != sorted(set(sizes)):
        listed = ", ".join(f"{size:g}" for size in sizes)
        raise SearchError(
            f"Give each frame size once, from the smallest to the largest, not {listed}."
        )

    generator = testbed.request.topology.generator
    impossible = []
    if isinstance(generator, RealGenerator):
        able = load_generator(generator.kind)
        needs = {
            Rfc2544Test.RECOVERY: able.runs_schedules,
            Rfc2544Test.RESET: able.locates_running_losses,
        }
        impossible = [
            test.value for test, is_able in needs.items() if not is_able and test in request.tests
        ]

    if generator is not None and impossible:
        possible = "    ".join(test.value for test in request.tests if test.value not in impossible)
        raise SearchError(
            f"The generator {generator.kind} cannot tell when frames are lost, which is needed for "
            f"{' and '.join(impossible)}. Leave out what it cannot measure (Run RFC 2544    {possible}), or use "
            "'kind: afpacket'."
        )

    is_simulated = testbed.request.topology.testbed == "simulated"
    if (
        Rfc2544Test.RESET in request.tests
        and request.reset is None
        and not testbed.duts
        and not is_simulated
    ):
        raise DutError(
            "There is no DUT that lossratio can reset: name its kind when you set up the testbed, give a command or "
            "a keyword that resets the device, or leave the test 'reset' out."
        )


# Table: how each test is requested and measured.
_KINDS: Mapping[
    Rfc2544Test, tuple[type[Any], Callable[[Testbed, Any, TestPlace, Any], TestResult]]
] = {
    Rfc2544Test.THROUGHPUT: (SearchRequest, find_conditional_throughput),
    Rfc2544Test.LATENCY: (LatencyRequest, measure_latency_once),
    Rfc2544Test.FRAME_LOSS: (FrameLossRequest, measure_frame_loss_rate),
    Rfc2544Test.BACK_TO_BACK: (BackToBackRequest, measure_back_to_back),
    Rfc2544Test.RECOVERY: (RecoveryRequest, measure_recovery),
    Rfc2544Test.RESET: (ResetRequest, measure_reset),
}
"""The class of a test's requests, and the function that measures it and writes the result file."""

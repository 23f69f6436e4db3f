"""Reset (RFC 6201) on a testbed, from the request to the result file: traffic, a reset meanwhile, and the outage."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements import (
    Measurement,
    OnProgress,
    PlannedKind,
    PlannedTrials,
    Request,
    TestPlace,
    known_throughput,
    measure,
)
from lossratio.measurements.reset.result import ResetResult, ResetSettings, reset_result, reset_time, reset_values
from lossratio.results import MaxLoad, View, differences
from lossratio.trials import (
    Integrity,
    Measurer,
    StepCounters,
    Timeline,
    TrialInput,
    TrialOutput,
    TrialResult,
    output_from_counters,
)
from lossratio.units import format_milliseconds

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed, TrafficSource
    from lossratio.traffic import TrafficProfile

RESET_LEAD = 15.0
"""Seconds of forwarding before the reset: the least of RFC 6201, section 4."""

RESET_LIMIT = 10.0
"""Seconds after the reset in which the DUT is watched."""

RESET_REPEATS = 5
"""Number of repetitions; RFC 6201 recommends several."""

LATE_WAIT = 0.5
"""Seconds to wait for late frames in the end."""

DEVICES = "software reset of the devices"
"""The reset of requests that name none."""


@dataclass(frozen=True)
class ResetRequest(Request):
    """What to measure.

    Attributes:
        profile: The test traffic.
        throughput: The load during the reset, frames per second per interface: the throughput without loss, or less;
            None: not known.
        max_load: The largest load that is allowed; None: see `lossratio.testbed.loads`.
        reset: Resets the DUT, and returns when it has done so; None: a software reset of each device that lossratio set
            up, or of the model of a simulated testbed.
        name: The reset, in words.
        hitless: Whether a reset without loss is a result. Otherwise it is an error, as the reset may have done nothing.
        repeats: Number of repetitions.
        lead: Seconds of forwarding before the reset.
        limit: Seconds after the reset in which the DUT is watched.
        rest: Least seconds without traffic before each trial.
        integrity: What happens if frames do not come back as they were sent.
    """

    profile: TrafficProfile
    throughput: float | None = None
    max_load: float | None = None
    reset: Callable[[], object] | None = None
    name: str = DEVICES
    hitless: bool = False
    repeats: int = RESET_REPEATS
    lead: float = RESET_LEAD
    limit: float = RESET_LIMIT
    integrity: Integrity = Integrity.DOUBT
    rest: float = 0.0


def command_reset(command: str, timeout: float = 60.0, name: str = "reset command") -> Callable[[], None]:
    """A reset by a command on this machine, for black boxes: a switchable socket, or a login on the device.

    Args:
        command: The command with its arguments, as for a shell; no shell interprets it.
        timeout: Seconds that it may take.
        name: The command in words, for errors.

    Raises:
        DutError: By the reset, if the command cannot be run, fails, or takes too long.
    """

    def reset() -> None:
        try:
            done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=timeout, check=False)
        except (OSError, ValueError) as error:
            raise DutError(f"The {name} cannot be run: {command}: {error}. Correct the command.") from error
        except subprocess.TimeoutExpired as error:
            raise DutError(f"The {name} took longer than {timeout:g} s: {command}.") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip() or "it printed nothing"
            raise DutError(f"The {name} failed with exit status {done.returncode}: {command}: {said}.")

    return reset


class ResettingMeasurer:
    """Performs trials with a reset in each; a `lossratio.trials.Measurer`.

    The timelines of its answers have two steps: before and after the reset.

    Args:
        source: Sends the traffic.
        reset: Resets the DUT.
        request: The parameters of the test.
    """

    def __init__(self, source: TrafficSource, reset: Callable[[], object], request: ResetRequest) -> None:
        self._source = source
        self._reset = reset
        self._request = request

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Sends, resets, watches, and locates the outage.

        Raises:
            LossRatioError: If the traffic or the reset fails, or the reset shows no trace.
        """
        source = self._source
        begun = source.now()
        source.start_traffic(trial.load, watch=True)
        source.wait(self._request.lead)
        moment = source.now()
        self._reset()
        source.wait(self._request.limit)
        stopped = source.stop_traffic(LATE_WAIT)
        elapsed = source.now() - begun
        timelines = tuple(_with_reset(timeline, moment) for timeline in stopped.timelines)
        if not self._request.hitless and not reset_time(timelines).outages:
            quiet = max((silence.duration for line in timelines for silence in line.silences), default=0.0)
            kept = f", or kept frames in the {format_milliseconds(quiet)} without any" if quiet else ""
            raise TrafficError(
                f"No frame was lost after the reset ({self._request.name}): it did nothing, or the device forwarded "
                f"through it{kept}. Look whether the reset reaches the device. If it forwards through resets, say "
                "hitless=True: then the result is 'no loss'."
            )
        # The traffic flowed as long as it flowed: it is no trial of a given number of frames.
        flowed = max(step.start + step.elapsed for timeline in timelines for step in timeline.steps)
        output = output_from_counters(
            TrialInput(flowed, trial.load), stopped.directions, negative_loss="csit", elapsed=elapsed
        )
        return replace(output, timelines=timelines)


def _with_reset(timeline: Timeline, moment: float) -> Timeline:
    """A timeline whose second step begins with the reset."""
    (whole,) = timeline.steps
    at = max(0.0, moment - timeline.began)
    share = min(1.0, at / whole.elapsed)
    lost = sum(outage.frames for outage in timeline.outages if outage.first_sent < at)
    before = StepCounters(0.0, at, round(whole.intended * share), round(whole.sent * share), lost)
    after = StepCounters(
        at,
        max(0.0, whole.elapsed - at),
        whole.intended - before.intended,
        whole.sent - before.sent,
        max(0, whole.lost - lost),
        whole.last_lost,
    )
    return replace(timeline, steps=(before, after))


class Reset(PlannedKind[ResetRequest, ResetResult]):
    """The kind: reset."""

    name = "reset"
    algorithm = "reset"
    result = ResetResult

    def controller(self, request: ResetRequest, loads: LoadRange) -> PlannedTrials:
        """Trials at one load, until the DUT does not come back."""
        _check(request)
        load = min(known_throughput(request.throughput), loads.max_load)
        return PlannedTrials([TrialInput(request.lead + request.limit, load)] * request.repeats, _is_gone)

    def measurer(self, request: ResetRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Resets the DUT in each trial."""
        reset = request.reset or device_reset(testbed, ready.source)
        return ResettingMeasurer(ready.source, reset, request)

    def inputs(self, request: ResetRequest, loads: LoadRange, controller: PlannedTrials) -> Mapping[str, Any]:
        """Load and parameters."""
        return {
            "max_load_fps": loads.max_load,
            "throughput_fps": request.throughput,
            "settings": _settings(request).model_dump(mode="json"),
        }

    def build(
        self,
        measured: Measurement[Any],
        request: ResetRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> ResetResult:
        """The reset times."""
        load = min(known_throughput(request.throughput), max_load.rate.per_interface_fps)
        return reset_result(measured.run, max_load, load, _settings(request), measured.entries)

    def contradictions(self, result: ResetResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Where the averages do not follow from the repetitions."""
        if result.reset is None:
            return
        if len(trials) != len(result.reset.times):
            yield f"reset: there are {len(result.reset.times)} times and {len(trials)} trials"
        yield from differences(result.reset, reset_values(result.reset.times), "reset")

    def view(self) -> View[ResetResult]:
        """How the reset time is shown."""
        from lossratio.measurements.reset.view import ResetView

        return ResetView()


def measure_reset(
    testbed: Testbed, request: ResetRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> ResetResult:
    """Measures the reset time, and writes the result file; see `lossratio.measurements.measure`."""
    return measure(Reset(), testbed, request, place, on_progress)


def device_reset(testbed: Testbed, source: TrafficSource) -> Callable[[], None]:
    """A software reset of each device that lossratio set up, or of the model of a simulated testbed.

    Raises:
        DutError: If there is nothing that could be reset.
    """
    model = getattr(source, "reset", None)
    if not testbed.duts and model is None:
        raise DutError(
            "There is no DUT of ours to reset: say which kind it is when the testbed is set up, or give a command or a "
            "keyword that resets the device."
        )

    def reset() -> None:
        for dut in testbed.duts:
            dut.restart()
        if model is not None:
            model()

    return reset


def _is_gone(results: Sequence[TrialResult]) -> bool:
    """Whether the DUT did not come back, so that further resets would show nothing."""
    return bool(results) and reset_time(results[-1].output.timelines).time_stamp_s is None


def _check(request: ResetRequest) -> None:
    if request.repeats < 1:
        raise SearchError(f"A reset needs a repetition at least, not {request.repeats}.")
    for name, seconds in (("lead", request.lead), ("limit", request.limit)):
        if seconds <= 0.0:
            raise SearchError(f"A reset needs some seconds for {name}, not {seconds:g}.")


def _settings(request: ResetRequest) -> ResetSettings:
    return ResetSettings(reset=request.name, lead_s=request.lead, limit_s=request.limit, repeats=request.repeats)

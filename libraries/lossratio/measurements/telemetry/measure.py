"""Telemetry: one extra trial after a search, with questions to the DUTs around it; never during the search itself.

The reports of the DUTs show where frames went, and the DUTs' own counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from lossratio.errors import DutError, TrafficError
from lossratio.measurements import Additions, Request, TestPlace
from lossratio.measurements.telemetry.result import DutTelemetry, TelemetryTrial
from lossratio.quantities import Duration, FrameRate
from lossratio.trials import TrialInput

if TYPE_CHECKING:
    from lossratio.dut import Dut, DutCounters, DutOptions
    from lossratio.measurements.throughput import ThroughputResult
    from lossratio.testbed import Testbed

TELEMETRY_DURATION = 1.0
"""Seconds of the trial: FD.io CSIT's."""
_ATTEMPTS = 5
_PER_FRAME = {"cycles": "cycles", "instructions": "instructions", "cache-misses": "misses", "branch-misses": "misses"}


def counts_per_frame(perf: Any, frames: int) -> Iterator[dict[str, Any]]:
    """Statistics of the CPUs' counters (PMU) per frame that the DUT received, from the JSON lines of ``perf stat``.

    Counts that the machine does not have are left out, as are all if no frame came in.
    """
    counts: dict[str, float] = {}
    for line in perf if isinstance(perf, list) else ():
        event = str(line.get("event", "")).partition(":")[0]
        if event in _PER_FRAME:
            # Instead of a count, perf may write words, such as ``<not supported>``.
            with suppress(TypeError, ValueError):
                counts[event] = float(line.get("counter-value"))
    for event, count in counts.items():
        if frames > 0:
            name = f"{event.replace('-', '_')}_per_frame"
            yield {"place": "all CPUs", "name": name, "value": count / frames, "unit": _PER_FRAME[event]}
    if counts.get("cycles") and "instructions" in counts:
        ratio = counts["instructions"] / counts["cycles"]
        yield {"place": "all CPUs", "name": "instructions_per_cycle", "value": ratio, "unit": "instructions"}


class TelemetryRequest(Request):
    """The settings of the telemetry's trial."""

    load: FrameRate
    """Frames per second, per interface."""
    goal: str | None = None
    """Name of the goal whose relevant lower bound the load is; None: the load was given."""
    duration: Annotated[Duration, Field(gt=0.0)] = TELEMETRY_DURATION
    """Seconds of the trial."""


@dataclass
class Observation:
    """A DUT's report on the traffic of a ``with`` block; complete when the block has ended."""

    dut: Dut[DutOptions]
    """The DUT."""
    answers: dict[str, Any]
    """The DUT's answers, by topic."""
    counted: DutCounters
    """Frames that the DUT counted."""

    def add(self, answers: Mapping[str, Any]) -> None:
        """Adds the answers about another trial; their statistics have names of their own."""
        statistics = [*self.answers.get("statistics", ()), *answers.get("statistics", ())]
        self.answers = {**self.answers, **answers, "statistics": statistics}


@contextmanager
def observed(duts: Sequence[Dut[DutOptions]]) -> Iterator[list[Observation]]:
    """Observes DUTs: gets their counters and their answers for the traffic inside the ``with`` block."""
    from lossratio.dut import DutCounters

    observations: list[Observation] = []
    with ExitStack() as undo:
        observations += [Observation(dut, undo.enter_context(dut.telemetry()), DutCounters({}, {}, {})) for dut in duts]
        for dut in duts:
            if dut.resets:
                # So that the reset before the trial does not clear these counters.
                dut.reset()
        # Read last before the traffic, and first after it: the DUT's answers may have been reset in between.
        before = [dut.read_counters() for dut in duts]
        yield observations
        for observation, earlier in zip(observations, before, strict=True):
            observation.counted = observation.dut.read_counters().since(earlier)


def add_telemetry(
    testbed: Testbed, request: TelemetryRequest, place: TestPlace, result: ThroughputResult
) -> ThroughputResult:
    """Performs a trial, asks the DUTs before and after it, and writes their answers into the search's result file.

    What costs a DUT time while traffic passes is counted in a further trial. The telemetry is in the search's journal
    as soon as it is known, and a run that is resumed takes it from there.

    Raises:
        TrafficError: If every attempt had to measure the trial again: the DUTs have counted all its repetitions then.
        LossRatioError: If the trial failed, a DUT did not answer, or there is no DUT that can answer.
    """
    if not testbed.duts:
        raise DutError("There is no DUT of ours to ask: say which kind it is when the testbed is set up.")
    asked = {"goal": request.goal, "load_fps": request.load, "duration_s": request.duration}
    with Additions(place, "telemetry", [asked], len(result.telemetry) + 1) as additions:
        trial = additions.known(0, TelemetryTrial)
        if trial is None:
            trial = _observe(testbed, request)
            additions.add(0, trial)
    whole = result.model_copy(update={"telemetry": (*result.telemetry, trial)})
    place.directory.write(whole)
    return whole


def _observe(testbed: Testbed, request: TelemetryRequest) -> TelemetryTrial:
    trial = TrialInput(request.duration, request.load).sendable(testbed.load_step(request.profile))
    with testbed.ready_for(request.profile) as ready:
        for _ in range(_ATTEMPTS):
            with observed(testbed.duts) as observations:
                output = ready.measurer.measure(trial)
            if not (output.repeats or output.repairs):
                break
        else:
            raise TrafficError(
                f"The trial had to be measured again in each of {_ATTEMPTS} attempts, so that the DUTs' counters have "
                "frames in them that were thrown away. Look for other work on the generator's node."
            )
        rate = ready.conditions.rate(trial.load)
        wanted = {dut: tuple(dut.probes()) for dut in testbed.duts}
        for probe in dict.fromkeys(name for names in wanted.values() for name in names):
            with ExitStack() as undo:
                answers = {dut: undo.enter_context(dut.probe(probe)) for dut, names in wanted.items() if probe in names}
                ready.measurer.measure(trial)
            for observation in observations:
                observation.add(answers.get(observation.dut, {}))
    return TelemetryTrial(
        load=rate,
        goal=request.goal,
        duration_s=request.duration,
        sent_frames=sum(direction.sent_frames for direction in output.directions),
        received_frames=sum(direction.received_frames for direction in output.directions),
        duts=tuple(_described(observation) for observation in observations),
    )


def _described(observation: Observation) -> DutTelemetry:
    dut, counted = observation.dut, observation.counted
    answers = dict(observation.answers)
    statistics = list(answers.pop("statistics", ()))
    statistics += counts_per_frame(answers.get("perf"), sum(counted.received.values()))
    # A node may print nan; a file of JSON has no such number.
    finite = [statistic for statistic in statistics if math.isfinite(statistic["value"])]
    return DutTelemetry.model_validate(
        {
            "node": dut.hop.label,
            "kind": dut.kind,
            **{f"{name}_frames": dict(getattr(counted, name)) for name in ("received", "transmitted", "dropped")},
            "unaccounted_frames": counted.unaccounted,
            "details": dict(counted.details),
            "told": answers,
            "statistics": tuple(finite),
            **{topic: tuple(answers.pop(topic, ())) for topic in ("workers", "queues", "cpus")},
        }
    )

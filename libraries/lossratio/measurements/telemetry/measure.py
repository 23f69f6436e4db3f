"""Telemetry: one extra trial after a search, with questions to the DUTs around it; never during the search itself.

The reports of the DUTs show where frames went, and the DUTs' own counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from lossratio.errors import DutError, TrafficError
from lossratio.measurements import Additions, Request, TestPlace
from lossratio.measurements.telemetry.load import (
    CpuLoad,
    QueueLoad,
    WorkerLoad,
    counts_per_frame,
    describe_loads,
    uneven_loads,
)
from lossratio.quantities import Duration, FrameRate
from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import Doubt
from lossratio.trials import TrialInput

if TYPE_CHECKING:
    from lossratio.dut import Dut, DutCounters, DutOptions
    from lossratio.measurements.throughput import ThroughputResult
    from lossratio.testbed import Testbed

TELEMETRY_DURATION = 1.0
"""Seconds of the trial: FD.io CSIT's."""

_ATTEMPTS = 5


class DutStatistic(Record):
    """A number that a DUT reports about the traffic of the trial."""

    place: str
    """Where it was counted, such as a thread, a graph node, or a CPU."""
    name: str
    """The quantity, e.g. ``clocks_per_packet``."""
    value: float
    """Its value."""
    unit: str
    """Its unit, e.g. ``cycles``."""
    labels: dict[str, str] = Field(default_factory=dict)
    """The parts of its place by name, e.g. ``thread_name``, where it has several."""


class DutTelemetry(Record):
    """The report of one DUT."""

    node: str
    """The DUT."""
    kind: str
    """Kind of the DUT."""
    received_frames: dict[str, int]
    """Frames that came in, by side."""
    transmitted_frames: dict[str, int]
    """Frames that went out, by side."""
    dropped_frames: dict[str, int]
    """Frames that the DUT dropped, by the name of the place."""
    unaccounted_frames: int
    """Frames received that were neither transmitted nor dropped at a named place; negative: frames of its own."""
    details: dict[str, int]
    """Further counters, by name."""
    told: dict[str, JsonValue]
    """The DUT's answers about itself, by topic, e.g. ``show runtime``."""
    statistics: tuple[DutStatistic, ...] = ()
    """The numbers in these answers, with their units, as far as they are known."""
    workers: tuple[WorkerLoad, ...] = ()
    """The load of the threads that forward."""
    queues: tuple[QueueLoad, ...] = ()
    """The load of the receive queues."""
    cpus: tuple[CpuLoad, ...] = ()
    """The load of the kernel's CPUs."""


class TelemetryTrial(Record):
    """A trial before and after which the DUTs were asked; it does not belong to the search."""

    load: Rate
    """The load."""
    goal: str | None
    """Name of the goal whose relevant lower bound the load is; null: it was given."""
    duration_s: Seconds = Field(gt=0.0)
    """Duration of the traffic."""
    sent_frames: FrameCount
    """Frames sent, in all directions."""
    received_frames: FrameCount
    """Frames received, in all directions."""
    duts: tuple[DutTelemetry, ...]
    """The DUTs, from west to east."""

    @property
    def lost_frames(self) -> int:
        """Frames sent that did not come back."""
        return self.sent_frames - self.received_frames


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
    """Observes DUTs: gets their counters and their answers for the traffic inside the ``with`` block.

    Raises:
        DutError: If a DUT cannot be asked.
    """
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.dut import DutCounters

    observations: list[Observation] = []
    with ExitStack() as opened:
        observations += [
            Observation(dut, opened.enter_context(dut.telemetry()), DutCounters({}, {}, {})) for dut in duts
        ]
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

    Returns:
        The result of the search with the telemetry.

    Raises:
        TrafficError: If every attempt had to measure the trial again: the DUTs have counted all its repetitions then.
        LossRatioError: If the trial failed, a DUT did not answer, or there is no DUT that can answer.
    """
    if not testbed.duts:
        raise DutError("There is no DUT of ours to ask: say which kind it is when the testbed is set up.")
    asked = {"goal": request.goal, "load_fps": request.load, "duration_s": request.duration}
    with Additions(place, "telemetry", [asked], len(result.telemetry) + 1) as additions:
        known = additions.known(0)
        if known is not None:
            trial = TelemetryTrial.model_validate_json(known, strict=True)
        else:
            trial = _observe(testbed, request)
            additions.add(0, trial)
    whole = result.model_copy(update={"telemetry": (*result.telemetry, trial)})
    place.directory.write(whole)
    return whole


def _observe(testbed: Testbed, request: TelemetryRequest) -> TelemetryTrial:
    """Performs the trials of the telemetry."""
    with testbed.ready_for(request.profile) as ready:
        for _ in range(_ATTEMPTS):
            with observed(testbed.duts) as observations:
                output = ready.measurer.measure(TrialInput(request.duration, request.load))
            if not (output.repeats or output.repairs):
                break
        else:
            raise TrafficError(
                f"The trial had to be measured again in each of {_ATTEMPTS} attempts, so that the DUTs' counters have "
                "frames in them that were thrown away. Look for other work on the generator's node."
            )
        rate = ready.conditions.rate(request.load)
        wanted = {dut: tuple(dut.probes()) for dut in testbed.duts}
        for probe in dict.fromkeys(name for names in wanted.values() for name in names):
            with ExitStack() as opened:
                answers = {
                    dut: opened.enter_context(dut.probe(probe)) for dut, names in wanted.items() if probe in names
                }
                ready.measurer.measure(TrialInput(request.duration, request.load))
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


def describe_telemetry(trial: TelemetryTrial) -> str:
    """The frames of the trial at each DUT and at the TG, a line for each of them."""
    lines = [
        f"{dut.node} ({dut.kind}): received {sum(dut.received_frames.values()):,} frames, transmitted "
        f"{sum(dut.transmitted_frames.values()):,}, dropped {_drops(dut)}; "
        f"{dut.unaccounted_frames:,} unaccounted for"
        for dut in trial.duts
    ]
    lines += [f"{dut.node}: {text}" for dut in trial.duts for text in describe_loads(dut.workers, dut.cpus)]
    return "\n".join((*lines, f"TG: sent {trial.sent_frames:,} frames, received {trial.received_frames:,}"))


def telemetry_doubts(trials: Sequence[TelemetryTrial]) -> Iterator[Doubt]:
    """Doubts that a DUT is one SUT, from the newest trial: the load of its workers or receive queues is uneven."""
    for dut in trials[-1].duts if trials else ():
        yield from uneven_loads(dut.node, dut.workers, dut.queues)


def _described(observation: Observation) -> DutTelemetry:
    dut, counted = observation.dut, observation.counted
    answers = dict(observation.answers)
    statistics = list(answers.pop("statistics", ()))
    statistics += counts_per_frame(answers.get("perf"), sum(counted.received.values()))
    loads = {topic: tuple(answers.pop(topic, ())) for topic in ("workers", "queues", "cpus")}
    return DutTelemetry(
        node=dut.hop.label,
        kind=dut.kind,
        received_frames=dict(counted.received),
        transmitted_frames=dict(counted.transmitted),
        dropped_frames=dict(counted.dropped),
        unaccounted_frames=counted.unaccounted,
        details=dict(counted.details),
        told=answers,
        # A node may print nan; a file of JSON has no such number.
        statistics=tuple(
            DutStatistic.model_validate(statistic) for statistic in statistics if math.isfinite(statistic["value"])
        ),
        workers=tuple(WorkerLoad.model_validate(load) for load in loads["workers"]),
        queues=tuple(QueueLoad.model_validate(load) for load in loads["queues"]),
        cpus=tuple(CpuLoad.model_validate(load) for load in loads["cpus"]),
    )


def _drops(dut: DutTelemetry) -> str:
    places = ", ".join(f"{count:,} at {place}" for place, count in dut.dropped_frames.items() if count)
    return places or "none"

"""Telemetry: one extra trial after a search.

The DUTs are read before and after this trial, never during the search. The reports show where frames went, and have the
DUTs' own counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from lossratio.errors import TrafficError
from lossratio.measurements import Request
from lossratio.results import LEAST_FRAMES_EACH, UNEVEN_TIMES
from lossratio.trials import TrialInput, known_missing
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    FrameCount,
    FrameRate,
    Rate,
    Record,
    Seconds,
    left_out_if_empty,
)

if TYPE_CHECKING:
    from lossratio.dut import Dut, DutCounters, DutOptions
    from lossratio.testbed import Testbed


class WorkerLoad(Record):
    """A thread that forwards frames, one of several."""

    worker: str
    """Its name, e.g. ``vpp_wk_0``."""
    frames: FrameCount
    """Frames that it received in the trial."""
    busy: float | None = Field(default=None, ge=0.0, le=1.0)
    """Share of its time in which it had frames; null: not known."""
    queues: tuple[str, ...] = ()
    """The receive queues that it reads, if known."""


class QueueLoad(Record):
    """A receive queue of an interface."""

    interface: str
    """The interface."""
    queue: int
    """Number of the queue."""
    frames: FrameCount
    """Frames that came in through it in the trial."""
    dropped_frames: FrameCount = 0
    """Frames that it dropped by the device's counters; left out: none, or the device does not count them by queue."""

    _leave_out = left_out_if_empty("dropped_frames")


class CpuLoad(Record):
    """The kernel's work on arriving frames on one CPU, for the whole machine."""

    cpu: int
    """Number of the CPU."""
    frames: FrameCount
    """Frames that the kernel took in on it."""
    softirq: float | None = Field(default=None, ge=0.0, le=1.0)
    """Share of its time in soft interrupts, which is where the kernel forwards; null: not known."""


def uneven_loads(
    node: str, workers: Sequence[WorkerLoad], queues: Sequence[QueueLoad]
) -> Iterator[str]:
    """Says that a SUT may not be one SUT: a worker or a receive queue has far more than its share of the frames.

    The even share is the total divided by the number of workers, or of queues of one interface. If shares are uneven,
    the busiest part limits the throughput of the SUT. In addition, the flows of each part may change from run to run.
    """
    groups = {"workers": {load.worker: load.frames for load in workers}}
    for load in queues:
        groups.setdefault(f"receive queues of {load.interface}", {})[f"queue {load.queue}"] = (
            load.frames
        )

    for what, frames in groups.items():
        number = len(frames)
        total = sum(frames.values())
        name = max(frames, key=lambda part: frames[part], default="")
        if (
            number > 1
            and total >= LEAST_FRAMES_EACH * number
            and frames[name] * number >= UNEVEN_TIMES * total
        ):
            share = f"{100 * frames[name] / total:.1f} % of {total:,} frames"
            even = f"where {100 / number:.3g} % would be its share"
            yield (
                f"{node}: of {number} {what} {name} takes {share}, {even}. Look at the flows, at RSS (ethtool -x) and "
                "at the queues of each worker"
            )
            if what == "workers":
                # The worker's queues are the reason, so they cause no second doubt.
                return


def describe_loads(workers: Sequence[WorkerLoad], cpus: Sequence[CpuLoad]) -> Iterator[str]:
    """A line each with the shares of the workers and of the kernel's CPUs; no line if no frame was counted."""
    kernel = [
        WorkerLoad(worker=f"CPU {cpu.cpu}", frames=cpu.frames, busy=cpu.softirq) for cpu in cpus
    ]
    for name, loads, busy in (
        ("workers", workers, "busy"),
        ("kernel", kernel, "in soft interrupts"),
    ):
        total = sum(load.frames for load in loads)
        if total:
            shares = ", ".join(_share_in_words(load, total, busy) for load in loads)
            yield f"{name}: of {total:,} frames {shares}"


def describe_drops(queues: Sequence[QueueLoad]) -> Iterator[str]:
    """A line with the receive queues that dropped frames; no line if the device counted none by queue."""
    places = [
        f"{load.dropped_frames:,} in queue {load.queue} of {load.interface}"
        for load in queues
        if load.dropped_frames
    ]
    if places:
        yield f"receive queues dropped {', '.join(places)}"


def _share_in_words(load: WorkerLoad, total: int, busy: str) -> str:
    share = f"{load.worker} {100 * load.frames / total:.1f} %"
    if load.busy is None:
        return share
    return f"{share} ({100 * load.busy:.0f} % {busy})"


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
    """The parts of its place by name, e.g. ``thread_name``, if it has several."""


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
    """Frames received that were neither transmitted nor dropped at a named place. Negative: the DUT sent frames of its
    own."""
    details: dict[str, int]
    """Further counters, by name."""
    told: dict[str, JsonValue]
    """The DUT's answers about itself, by topic, e.g. ``show runtime``."""
    statistics: tuple[DutStatistic, ...] = ()
    """The numbers in these answers, with their units, if known."""
    workers: tuple[WorkerLoad, ...] = ()
    """The load of the threads that forward."""
    queues: tuple[QueueLoad, ...] = ()
    """The load of the receive queues."""
    cpus: tuple[CpuLoad, ...] = ()
    """The load of the kernel's CPUs."""


class TelemetryTrial(Record):
    """A trial with readings of the DUTs before and after it. It does not belong to the search."""

    load: Rate
    """The load."""
    goal: str | None
    """Name of the goal; the load is the goal's relevant lower bound. null: the load was given."""
    duration_s: Seconds = Field(gt=0.0)
    """Duration of the traffic."""
    sent_frames: FrameCount
    """Frames sent, in all directions."""
    received_frames: FrameCount
    """Frames received, in all directions."""
    generator_drop_frames: FrameCount = 0
    """Frames that came back but that the generator itself dropped; left out: none."""
    late_frames: FrameCount = 0
    """Frames that came back after the wait for frames in flight. They do not count as received. Left out: none."""
    duts: tuple[DutTelemetry, ...]
    """The DUTs, from west to east."""

    _leave_out = left_out_if_empty("generator_drop_frames", "late_frames")

    @property
    def lost_frames(self) -> int:
        """Frames sent that did not come back in time."""
        return self.sent_frames - self.received_frames


def describe_telemetry(trial: TelemetryTrial) -> str:
    """The frames of the trial at each DUT and at the TG, a line for each of them."""
    lines = []
    for dut in trial.duts:
        places = ", ".join(
            f"{count:,} at {place}" for place, count in dut.dropped_frames.items() if count
        )
        received = sum(dut.received_frames.values())
        transmitted = sum(dut.transmitted_frames.values())
        lines.append(
            f"{dut.node} ({dut.kind}): received {received:,} frames, transmitted {transmitted:,}, "
            f"dropped {places or 'none'}; {dut.unaccounted_frames:,} unaccounted for"
        )

    lines += [
        f"{dut.node}: {text}"
        for dut in trial.duts
        for text in (*describe_loads(dut.workers, dut.cpus), *describe_drops(dut.queues))
    ]
    late = f", and {trial.late_frames:,} too late" if trial.late_frames else ""
    at_tg = f"TG: sent {trial.sent_frames:,} frames, received {trial.received_frames:,}{late}"
    return "\n".join((*lines, at_tg))


TELEMETRY_DURATION = 1.0
"""Seconds of the trial: FD.io CSIT's."""
_ATTEMPTS = 5
_PER_FRAME = {
    "cycles": "cycles",
    "instructions": "instructions",
    "cache-misses": "misses",
    "branch-misses": "misses",
}


def counts_per_frame(perf: Any, frames: int) -> Iterator[dict[str, Any]]:
    """Statistics of the CPUs' counters (PMU) per frame that the DUT received, from the JSON lines of ``perf stat``.

    Counts that the machine does not have are left out. If no frame came in, all counts are left out.
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
            yield {
                "place": "all CPUs",
                "name": name,
                "value": count / frames,
                "unit": _PER_FRAME[event],
            }

    if counts.get("cycles") and "instructions" in counts:
        ratio = counts["instructions"] / counts["cycles"]
        yield {
            "place": "all CPUs",
            "name": "instructions_per_cycle",
            "value": ratio,
            "unit": "instructions",
        }


class TelemetryRequest(Request):
    """The settings of the telemetry's trial."""

    load: FrameRate
    """Frames per second, per interface."""
    goal: str | None = None
    """Name of the goal; the load is its relevant lower bound. None: the load was given."""
    duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = TELEMETRY_DURATION
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
        """Adds the answers about another trial, whose statistics have their own names."""
        statistics = [*self.answers.get("statistics", ()), *answers.get("statistics", ())]
        self.answers = {**self.answers, **answers, "statistics": statistics}


@contextmanager
def observed(duts: Sequence[Dut[DutOptions]]) -> Iterator[list[Observation]]:
    """Observes DUTs: gets their counters and their answers for the traffic inside the ``with`` block."""
    from lossratio.dut import DutCounters

    observations: list[Observation] = []
    with ExitStack() as undo:
        observations += [
            Observation(dut, undo.enter_context(dut.telemetry()), DutCounters({}, {}, {}))
            for dut in duts
        ]
        for dut in duts:
            if dut.resets:
                # Without this reset, the reset before the trial would clear the counters that are read below.
                dut.reset()

        # Counters are read last before the traffic and first after it, because the DUT's answers may be reset in
        # between.
        before = [dut.read_counters() for dut in duts]
        yield observations
        for observation, earlier in zip(observations, before, strict=True):
            observation.counted = observation.dut.read_counters().since(earlier)


def measure_telemetry(testbed: Testbed, request: TelemetryRequest) -> TelemetryTrial:
    """Performs a trial, and reads the DUTs before and after it.

    Counts that slow the DUTs down have a trial of their own.

    Raises:
        TrafficError: If each attempt had to repeat the trial, so that the DUTs counted the frames of all repetitions.
        LossRatioError: If the trial failed, or a DUT did not answer.
    """
    trial = TrialInput(request.duration, request.load).sendable(testbed.load_step(request.profile))
    with request.ready(testbed) as ready:
        for _ in range(_ATTEMPTS):
            with observed(testbed.duts) as observations:
                output = ready.measurer.measure(trial)
            if not (output.repeats or output.repairs):
                break
        else:
            raise TrafficError(
                f"In each of {_ATTEMPTS} attempts, the trial had to be repeated, so the DUTs' "
                "counters include frames of discarded trials. Look for other programs on the "
                "generator's node."
            )

        output = ready.with_late_frames(output)
        rate = ready.conditions.rate(trial.load)
        wanted = {dut: tuple(dut.probes()) for dut in testbed.duts}
        for probe in dict.fromkeys(name for names in wanted.values() for name in names):
            with ExitStack() as undo:
                answers = {
                    dut: undo.enter_context(dut.probe(probe))
                    for dut, names in wanted.items()
                    if probe in names
                }
                ready.measurer.measure(trial)
            for observation in observations:
                observation.add(answers.get(observation.dut, {}))

    missing = known_missing(output)
    # Record: the trial as it stands in a result.
    return TelemetryTrial(
        load=rate,
        goal=request.goal,
        duration_s=request.duration,
        sent_frames=sum(direction.sent_frames for direction in output.directions),
        received_frames=sum(direction.received_frames for direction in output.directions),
        generator_drop_frames=missing.generator_drops,
        late_frames=missing.late,
        duts=tuple(_described(observation) for observation in observations),
    )


def _described(observation: Observation) -> DutTelemetry:
    dut, counted = observation.dut, observation.counted
    answers = dict(observation.answers)
    statistics = list(answers.pop("statistics", ()))
    statistics += counts_per_frame(answers.get("perf"), sum(counted.received.values()))
    # A node may print ``nan``, which does not exist in JSON.
    finite = [statistic for statistic in statistics if math.isfinite(statistic["value"])]

    counts = {
        f"{name}_frames": dict(getattr(counted, name))
        for name in ("received", "transmitted", "dropped")
    }
    # Record: the DUT as it stands in a result.
    return DutTelemetry.model_validate(
        {
            "node": dut.hop.label,
            "kind": dut.kind,
            **counts,
            "unaccounted_frames": counted.unaccounted,
            "details": dict(counted.details),
            "told": answers,
            "statistics": tuple(finite),
            **{topic: tuple(answers.pop(topic, ())) for topic in ("workers", "queues", "cpus")},
        }
    )

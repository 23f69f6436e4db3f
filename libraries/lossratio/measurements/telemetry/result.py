"""Telemetry as data: the reports of DUTs about one trial, their words, and the doubts that follow from them."""

from collections.abc import Iterator, Sequence

from pydantic import Field, JsonValue

from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import Doubt, DoubtKind

UNEVEN = 1.5
"""A share of so many times the even one is uneven."""
LEAST_FRAMES = 1000
"""Fewer frames for each worker or queue say nothing about the shares."""


class WorkerLoad(Record):
    """A thread that forwards frames, beside others of its kind."""

    worker: str
    """Its name, e.g. ``vpp_wk_0``."""
    frames: FrameCount
    """Frames that it took in the trial."""
    busy: float | None = Field(default=None, ge=0.0, le=1.0)
    """Share of its time for which it had frames; null: not known."""
    queues: tuple[str, ...] = ()
    """The receive queues that it reads, as far as they are known."""


class QueueLoad(Record):
    """A receive queue of an interface."""

    interface: str
    """The interface."""
    queue: int
    """Number of the queue."""
    frames: FrameCount
    """Frames that came in through it in the trial."""


class CpuLoad(Record):
    """The kernel's work on arriving frames on one CPU, for the whole machine."""

    cpu: int
    """Number of the CPU."""
    frames: FrameCount
    """Frames that the kernel took in on it."""
    softirq: float | None = Field(default=None, ge=0.0, le=1.0)
    """Share of its time in soft interrupts, which is where the kernel forwards; null: not known."""


def uneven_loads(node: str, workers: Sequence[WorkerLoad], queues: Sequence[QueueLoad]) -> Iterator[Doubt]:
    """Doubts that a SUT is one SUT: a worker or a receive queue with far more than its share of the frames.

    The even share is one of as many workers, or queues of one interface, as there are. The busiest part limits the
    throughput of a SUT with uneven shares; and which part gets which flows may change from run to run.
    """
    groups = {"workers": {load.worker: load.frames for load in workers}}
    for load in queues:
        groups.setdefault(f"receive queues of {load.interface}", {})[f"queue {load.queue}"] = load.frames
    for what, frames in groups.items():
        number, total, name = len(frames), sum(frames.values()), max(frames, key=lambda part: frames[part], default="")
        if number > 1 and total >= LEAST_FRAMES * number and frames[name] * number >= UNEVEN * total:
            share = f"{100 * frames[name] / total:.1f} % of {total:,} frames"
            even = f"where {100 / number:.3g} % would be its share"
            yield Doubt(DoubtKind.UNEVEN, f"{node}: of {number} {what} {name} takes {share}, {even}")
            if what == "workers":
                # Its queues are the reason, and no second doubt.
                return


def describe_loads(workers: Sequence[WorkerLoad], cpus: Sequence[CpuLoad]) -> Iterator[str]:
    """The shares of the workers, and of the kernel's CPUs, in a line each; nothing where no frame was counted."""
    kernel = [WorkerLoad(worker=f"CPU {cpu.cpu}", frames=cpu.frames, busy=cpu.softirq) for cpu in cpus]
    for name, loads, busy in (("workers", workers, "busy"), ("kernel", kernel, "in soft interrupts")):
        total = sum(load.frames for load in loads)
        shares = (
            f"{load.worker} {100 * load.frames / total:.1f} %"
            + ("" if load.busy is None else f" ({100 * load.busy:.0f} % {busy})")
            for load in loads
        )
        if total:
            yield f"{name}: of {total:,} frames {', '.join(shares)}"


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


def describe_telemetry(trial: TelemetryTrial) -> str:
    """The frames of the trial at each DUT and at the TG, a line for each of them."""
    lines = []
    for dut in trial.duts:
        places = ", ".join(f"{count:,} at {place}" for place, count in dut.dropped_frames.items() if count)
        lines.append(
            f"{dut.node} ({dut.kind}): received {sum(dut.received_frames.values()):,} frames, transmitted "
            f"{sum(dut.transmitted_frames.values()):,}, dropped {places or 'none'}; "
            f"{dut.unaccounted_frames:,} unaccounted for"
        )
    lines += [f"{dut.node}: {text}" for dut in trial.duts for text in describe_loads(dut.workers, dut.cpus)]
    return "\n".join((*lines, f"TG: sent {trial.sent_frames:,} frames, received {trial.received_frames:,}"))


def telemetry_doubts(trials: Sequence[TelemetryTrial]) -> Iterator[Doubt]:
    """Doubts that a DUT is one SUT, from the newest trial: the load of its workers or receive queues is uneven."""
    for dut in trials[-1].duts if trials else ():
        yield from uneven_loads(dut.node, dut.workers, dut.queues)

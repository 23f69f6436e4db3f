"""The load of a DUT's parts in the telemetry's trial: of its workers, its receive queues, and its CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from lossratio.records import FrameCount, Record
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

    The even share is that of as many workers, or queues of one interface, as there are. The throughput of a SUT with
    uneven shares is that of its busiest part; and which part gets which flows may change from run to run.

    Args:
        node: Name of the DUT.
        workers: Its workers.
        queues: Its receive queues.
    """
    uneven = _uneven({load.worker: load.frames for load in workers})
    if uneven is not None:
        name, text = uneven
        yield Doubt(DoubtKind.UNEVEN, f"{node}: of {len(workers)} workers {name} takes {text}")
        # Its queues are the reason, and no second doubt.
        return
    for interface in dict.fromkeys(load.interface for load in queues):
        own = {f"queue {load.queue}": load.frames for load in queues if load.interface == interface}
        uneven = _uneven(own)
        if uneven is not None:
            name, text = uneven
            yield Doubt(DoubtKind.UNEVEN, f"{node}: of {len(own)} receive queues of {interface} {name} takes {text}")


def _uneven(frames: Mapping[str, int]) -> tuple[str, str] | None:
    """The part with too much, and how much it is."""
    total = sum(frames.values())
    if len(frames) < 2 or total < LEAST_FRAMES * len(frames):
        return None
    name = max(frames, key=lambda part: frames[part])
    share = frames[name] / total
    if share * len(frames) < UNEVEN:
        return None
    return name, f"{100 * share:.1f} % of {total:,} frames, where {100 / len(frames):.3g} % would be its share"


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


_PER_FRAME = {"cycles": "cycles", "instructions": "instructions", "cache-misses": "misses", "branch-misses": "misses"}


def counts_per_frame(perf: Any, frames: int) -> Iterator[dict[str, Any]]:
    """Statistics of the CPUs' counters (PMU) per frame that the DUT received, from the JSON lines of ``perf stat``.

    Counts that the machine does not have are left out, as are all if no frame came in.

    Args:
        perf: The objects that perf wrote, as `lossratio.dut.Dut.telemetry` reports them.
        frames: Frames that the DUT received.
    """
    counts: dict[str, float] = {}
    for line in perf if isinstance(perf, list) else ():
        event = str(line.get("event", "")).partition(":")[0]
        value = _number(line.get("counter-value"))
        if event in _PER_FRAME and value is not None:
            counts[event] = value
    for event, count in counts.items():
        if frames > 0:
            name = f"{event.replace('-', '_')}_per_frame"
            yield {"place": "all CPUs", "name": name, "value": count / frames, "unit": _PER_FRAME[event]}
    if counts.get("cycles") and "instructions" in counts:
        ratio = counts["instructions"] / counts["cycles"]
        yield {"place": "all CPUs", "name": "instructions_per_cycle", "value": ratio, "unit": "instructions"}


def _number(text: Any) -> float | None:
    """A count; None: perf wrote words, such as ``<not supported>``."""
    try:
        return float(text)
    except (TypeError, ValueError):
        return None

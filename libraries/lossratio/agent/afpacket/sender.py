# SPDX-License-Identifier: Apache-2.0
"""A process that transmits in one direction, so that no direction has to wait for another one in Python."""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import multiprocessing
import os
import signal
import socket
import time
from array import array
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Callable, Union, cast

from ..core.arrays import HAS_NUMPY, NDArray, np
from ..core.pacing import BATCH, Transmission, be_prompt, in_all, raise_priority, transmit
from ..core.plan import Plan
from ..core.processes import die_with
from ..core.protocol import AgentError
from .bare import BareOutput
from .frames import Numbers
from .kernel_pace import Queue, can_be_paced, transmit_ahead
from .transmit import MixedOutput, SenderSetup

_PR_SET_TIMERSLACK = 29
_STOP_SECONDS = 2.0

PERMIT_SECONDS = 1.0
"""Seconds for which a sender continues without a sign of life from the agent."""
STARVED_SECONDS = 10.0
"""The same while the agent is ready to run but gets no processor, because senders take precedence."""
SENDING = 10
"""Priority of processes that send."""
_STARVED_STATES = ("R", "D")
"""An agent without a processor is ready to run, or waits for a kernel lock whose holder has no processor."""
_MOST_ENTRIES = 1 << 20


@dataclass(frozen=True)
class SendOrder:
    """An order to a sender."""

    plan: Plan
    """The traffic, with the loads of the sender's direction."""
    tag: int
    """The tag of all frames that count."""
    ramp_tag: int = 0
    """The tag of the growing traffic's frames."""
    is_patient: bool = False
    """Whether every frame must leave, with no less time between frames than the load says."""
    probe_tag: int = 0
    """The tag of the first latency frame."""
    probes: tuple[int, ...] = ()
    """Numbers of the frames that measure latency, from 0 on, in their order."""
    replies: int = 0
    """How many headers from the memory of replies are sent; 0: this is not a reply."""
    length: int = 0
    """Bytes of each reply, without FCS."""

    @property
    def is_steady(self) -> bool:
        """Whether it is one load for a duration, and neither single frames nor the progress matter."""
        plan = self.plan
        is_special = plan.ramp or plan.is_burst or plan.exchange or self.probes or self.replies or self.is_patient
        return not (is_special or plan.is_watched or plan.locates or plan.is_endless)


class SendLog:
    """When frames left, as far as the sender knows: all frames of a batch at the batch's beginning."""

    def __init__(self, send: Callable[[int], int], clock: Callable[[], float]) -> None:
        self._send = send
        self._clock = clock
        self._times, self._firsts = array("d"), array("q")
        self._sent = 0
        self._every, self._batches = 1, 0

    def offer(self, count: int) -> int:
        """Sends up to this many frames, notes the time, and returns how many it sent."""
        now = self._clock()
        left = self._send(count)
        if left:
            if self._batches % self._every == 0:
                self._note(now)
            self._batches += 1
            self._sent += left
        return left

    def sent_batches(self) -> SentBatches:
        """The batches so far."""
        return SentBatches(self._times, self._firsts, BATCH * self._every)

    def _note(self, now: float) -> None:
        if len(self._times) == _MOST_ENTRIES:
            # A long time is known less exactly, in the same memory.
            self._times = self._times[::2]
            self._firsts = self._firsts[::2]
            self._every = 2 * self._every
        self._times.append(now)
        self._firsts.append(self._sent)


@dataclass(frozen=True)
class SentBatches:
    """Batches of frames that left."""

    times: array[float]
    """When each batch left, in seconds of the monotonic clock."""
    firsts: array[int]
    """Number of its first frame."""
    resolution: float
    """Seconds by which these times may be wrong if nothing stalls."""

    def time_of(self, numbers: Numbers) -> NDArray[np.float64]:
        """When frames left, in seconds, by their numbers; there is at least one batch."""
        places = np.searchsorted(np.frombuffer(self.firsts, dtype=np.int64), numbers, side="right") - 1
        times: NDArray[np.float64] = np.frombuffer(self.times, dtype=np.float64)[places]
        return times


@dataclass(frozen=True)
class SenderReport:
    """A sender's report on one transmission."""

    transmission: Transmission
    """What it sent."""
    dropped_beyond: int
    """How many of the sent frames were lost at the far end of the link."""
    first: int
    """Number of the first frame, with sequence number 0, in the order of all frames."""
    steps: tuple[Transmission, ...]
    """What it sent in each step."""
    batches: SentBatches | None
    """When frames left; None: this was not requested."""
    probes: int
    """How many of the sent frames measure latency."""


class Permit:
    """How long a sender may run, in memory shared with the agent, because a frozen agent cannot stop its senders.

    Attributes:
        is_abandoned: Whether it had to stop because the agent did not let it continue.
    """

    def __init__(self) -> None:
        self._until = memoryview(mmap.mmap(-1, 8)).cast("d")
        # Its id as /proc shows it, which may belong to another PID namespace.
        self._agent = os.readlink("/proc/self")
        self._looked = 0.0
        self._state = "not looked at"
        self.is_abandoned = False

    def grant(self) -> None:
        """Lets the sender begin."""
        self._until[0] = time.monotonic() + PERMIT_SECONDS

    def renew(self) -> None:
        """Lets the sender continue, unless it was stopped."""
        if self._until[0]:
            self.grant()

    def revoke(self) -> None:
        """Stops the sender."""
        self._until[0] = 0.0

    def is_over(self) -> bool:
        """Whether the sender must stop."""
        # An agent may renew and rest while this process checks it, because the kernel forwards frames in between.
        is_over = self._has_run_out() and not self._is_agent_starved() and self._has_run_out()
        self.is_abandoned = is_over and self._until[0] != 0.0
        return is_over

    def circumstances(self) -> str:
        """When the sender was last renewed, and what the agent was doing then."""
        return f"for {time.monotonic() - self._until[0] + PERMIT_SECONDS:.3f} s (process {self._agent}: {self._state})"

    def _has_run_out(self) -> bool:
        return time.monotonic() >= self._until[0]

    def _is_agent_starved(self) -> bool:
        until = self._until[0]
        now = time.monotonic()
        if until == 0.0 or now >= until + STARVED_SECONDS:
            return False
        if now >= self._looked + PERMIT_SECONDS:
            with open(f"/proc/{self._agent}/stat", "rb") as file:
                self._state = file.read().rpartition(b")")[2].split()[0].decode()
            if self._state not in _STARVED_STATES:
                return False
            self._looked = now
        return True


class Progress(ctypes.Structure):
    """The progress of a sender, in memory that it shares with the agent."""

    sent: int
    """Frames that left."""
    unsent: int
    """Frames that were skipped because they could not be sent in time."""
    longest_burst: int
    """The maximum number of frames that left at once."""
    first: int
    """Number of the first frame, as in `SenderReport`; -1: none was sent yet."""
    _fields_ = [(name, ctypes.c_int64) for name in ("sent", "unsent", "longest_burst", "first")]

    def begin(self) -> None:
        """Begins again."""
        self.sent = self.unsent = self.longest_burst = 0
        self.first = -1

    def note(self, sent: int, unsent: int) -> None:
        """Notes all frames so far, after each batch."""
        self.longest_burst = max(self.longest_burst, sent - self.sent)
        self.unsent = unsent
        self.sent = sent


_Output = Union[MixedOutput, BareOutput]
_Answer = Union[SenderReport, AgentError, OSError, bool]


class Sender:
    """A sending process, seen from the agent. Make it from the agent's only thread, because it is forked.

    Attributes:
        connection: Readable once there is a report.
        is_realtime: Whether the kernel gives it priority over all ordinary processes.
        progress: Its progress with an order that is watched.
    """

    def __init__(self, setup: SenderSetup) -> None:
        context = multiprocessing.get_context("fork")
        self.progress = Progress.from_buffer(mmap.mmap(-1, ctypes.sizeof(Progress)))
        self.progress.begin()
        self._interface = setup.interface
        self._permit = Permit()
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, self._permit, self.progress, setup, os.getpid()), daemon=True
        )
        self._process.start()
        theirs.close()
        self.is_realtime = bool(self._receive())

    def start(self, order: SendOrder) -> None:
        """Begins to transmit; it stops by itself unless it is renewed."""
        self._permit.grant()
        self.progress.begin()
        try:
            self.connection.send(order)
        except BrokenPipeError as error:
            raise self._obituary() from error

    def renew(self) -> None:
        """Lets the transmission continue for a second."""
        self._permit.renew()

    def stop(self) -> None:
        """Ends the transmission, if there is one; a report follows in either case."""
        self._permit.revoke()

    def report(self) -> SenderReport:
        """Waits for the end of the transmission."""
        answer = self._receive()
        if not isinstance(answer, SenderReport):
            raise self._obituary()
        return answer

    def drain(self) -> None:
        """Stops a transmission, and drops its report."""
        self.stop()
        with suppress(EOFError, ConnectionResetError):
            if self.connection.poll(_STOP_SECONDS):
                self.connection.recv()
            else:
                # Its report must not be mistaken for the next one.
                self._process.kill()

    def close(self) -> None:
        """Ends the process, and with it all traffic; its interface sends as before."""
        self.stop()
        with suppress(OSError):
            self.connection.send(None)
        self._process.join(_STOP_SECONDS)
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _receive(self) -> _Answer:
        try:
            answer: _Answer = self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise self._obituary() from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _obituary(self) -> AgentError:
        self._process.join(_STOP_SECONDS)
        status = self._process.exitcode
        if status is not None and status < 0:
            how = f"signal {-status}"
        else:
            how = f"exit status {status}"

        return AgentError(
            "sender_died", f"The process that sends on {self._interface} died ({how}). Configure the generator again."
        )


def _work(orders: Connection, permit: Permit, progress: Progress, setup: SenderSetup, parent: int) -> None:
    is_realtime = _prepare(setup.cpus, parent)
    try:
        output = MixedOutput(setup) if HAS_NUMPY else BareOutput(setup)
    except OSError as error:
        orders.send(error)
        return
    orders.send(is_realtime)
    queue = Queue(socket.if_nametoindex(setup.interface))
    # On a virtual link, a frame leaves the queue as it arrives; hardware has its own queues.
    may_queue = HAS_NUMPY and setup.drops_beyond and not is_realtime
    try:
        while (order := orders.recv()) is not None:
            plan = order.plan
            is_paced = may_queue and order.is_steady and can_be_paced(plan.load, plan.duration, setup.catch_up)
            is_paced = is_paced and queue.begin(plan.load)
            if not is_paced:
                queue.remove()
            output.bypass_queue(not is_paced)
            orders.send(_transmit(output, order, permit, progress, setup.catch_up, queue if is_paced else None))
    finally:
        queue.remove()


def _transmit(
    output: _Output, order: SendOrder, permit: Permit, progress: Progress, catch_up: float, queue: Queue | None
) -> _Answer:
    permit.is_abandoned = False
    plan = order.plan
    probes = output.latency_frames
    dropped_before = output.dropped_beyond + probes.dropped_beyond
    log = SendLog(output.offer, time.monotonic) if plan.locates else None
    offer = output.offer if log is None else log.offer
    note = progress.note if plan.is_watched else None
    if plan.is_burst:
        catch_up = math.inf

    steps = []
    try:
        _begin(output, order, permit.is_over)
        progress.first = output.first
        if queue is None:
            for load, duration in plan.steps:
                is_patient = order.is_patient
                steps.append(
                    transmit(offer, load, duration, permit.is_over, catch_up, is_patient=is_patient, note=note)
                )
        else:
            ring = cast(MixedOutput, output)
            make_up = queue.make_up_for_delays
            steps.append(transmit_ahead(ring, make_up, plan.load, plan.duration, permit.is_over, catch_up))
    except AgentError as error:
        return error
    if permit.is_abandoned:
        return AgentError(
            "abandoned",
            f"The senders stopped because they heard nothing from their agent {permit.circumstances()}. Stop "
            "other programs on this node, or use a lower load.",
        )
    return SenderReport(
        transmission=in_all(steps),
        dropped_beyond=output.dropped_beyond + probes.dropped_beyond - dropped_before,
        first=output.first,
        steps=tuple(steps),
        batches=None if log is None else log.sent_batches(),
        probes=probes.number,
    )


def _begin(output: _Output, order: SendOrder, must_stop: Callable[[], bool]) -> None:
    """Sends the ramp, and prepares the frames that count."""
    if order.plan.ramp:
        output.tag(order.ramp_tag)
    for load, seconds in order.plan.ramp_steps:
        transmit(output.offer, load, seconds, must_stop)
    output.tag(order.tag, order.probe_tag, order.probes)
    if order.replies:
        cast(MixedOutput, output).reply(order.replies, order.length)


def _prepare(cpus: tuple[int, ...], parent: int) -> bool:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(parent)
    # It is woken at the requested time, not some 50 microseconds later.
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.disable()
    # It begins on its own processor and mostly stays there, but may move away from another program's load.
    os.sched_setaffinity(0, cpus[:1])
    os.sched_setaffinity(0, cpus)
    is_realtime = raise_priority(SENDING)
    if not is_realtime:
        be_prompt()
    return is_realtime

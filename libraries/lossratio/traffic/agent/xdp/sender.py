"""A thread that is in the kernel, and sends there, while traffic flows."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, List, Sequence

from lossratio.bpf import BpfError

from ..core.protocol import AgentError
from .send_program import SendProgram

WAKE_SECONDS = 0.0005
"""Seconds between an order and its first frame."""

LONGEST_DEADLINE = 20.0
"""Seconds of traffic up to which nothing else runs on a sender's processor; see `Sender.promote`."""

LINGER_SECONDS = 0.05
"""Seconds after a trial in which senders stay in the kernel: going there takes some milliseconds."""

GUARD_SECONDS = 0.001
"""Seconds after the last frame may leave after which a sender gives its processor back; see `Sender.guard`."""

_SIGNAL = signal.SIGUSR1
_TIMES = 1 << 31
_START_SECONDS = 10.0
_POLL_SECONDS = 0.0002
_RESTING_SECONDS = 0.002
_RESCUE_SECONDS = 0.005
_PRIORITY = 10

AGENT_PRIORITY = 20
"""Priority (SCHED_FIFO) of the agent's own thread, which reads counters in time although all processors are busy."""

_SCHED_DEADLINE, _SCHED_SETATTR = 6, {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_PERIOD_NS, _DEADLINE_TRIES = 1_000_000, 3


class Sender:
    """A program that sends, and the thread that runs it on one processor.

    Between two orders the thread sleeps, or is in the kernel already and waits there (see `rest`).

    Attributes:
        program: The program.
        cpu: The processor.
        batch: How many runs of the program pass before frames are handed over.
        scheduling: ``deadline``, ``fifo`` or ``ordinary``: what the kernel granted for the latest order.
    """

    def __init__(self, program: SendProgram, cpu: int) -> None:
        self.program = program
        self.cpu = cpu
        self.scheduling = "ordinary"
        self.batch = 1
        self._go = threading.Event()
        self._lock = threading.RLock()
        self._is_wanted = self._is_busy = False
        self._is_closed = False
        self._failure: BpfError | None = None
        self._thread_id = 0
        self._guard: threading.Timer | None = None
        self._thread = threading.Thread(target=self._work, name=f"lossratio-send-{cpu}", daemon=True)
        self._thread.start()

    def wake(self, batch: int) -> None:
        """Has the thread go into the kernel, if it is not there with this batch size already."""
        with self._lock:
            if self._is_busy and batch != self.batch:
                self.rest()
            self.batch = batch
            self.program.clear()
            self._is_wanted = True
            self._go.set()

    def wait_until_awake(self) -> None:
        """Waits until the program runs, and lets it go before other work."""
        woken, end = time.monotonic_ns(), time.monotonic() + _START_SECONDS
        while self.program.last_run() < woken:
            self.check()
            if time.monotonic() > end:
                raise AgentError("sender_died", f"The sender on processor {self.cpu} does not start; configure anew.")
            time.sleep(_POLL_SECONDS)

    def promote(self, seconds: float) -> None:
        """Lets the thread go before other work, for traffic of so many seconds.

        A thread of SCHED_FIFO loses its processor for 50 ms in each second to ordinary work that waits for it. One of
        SCHED_DEADLINE does not, but cannot be bound to a processor: it stays on the one where it runs. Traffic that
        lasts long leaves others their share.

        Nothing else runs there, not even the kernel's own work. If that holds a lock of the kernel, the agent may wait
        for it when the traffic has ended, and could not give the processor back: see `guard`.
        """
        # The time of the order before counts as taken for a little while, and the thread may have been moved.
        for _ in range(_DEADLINE_TRIES if seconds <= LONGEST_DEADLINE else 0):
            self._hurry()
            if self._reserve():
                return
            self.relax()
            time.sleep(_RESTING_SECONDS)
        self._hurry()

    def guard(self, last_call: float) -> None:
        """Has a thread that needs no lock give the processor back, soon after no more frame may leave.

        `last_call` is a time of the clock that cannot be set. Only SCHED_DEADLINE needs that.
        """
        if self.scheduling == "deadline":
            self._guard = _after(last_call + GUARD_SECONDS - time.monotonic(), self._step_back)

    def relax(self) -> None:
        """Gives the thread no more of its processor than any other."""
        self._step_back()
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.cancel()
            guard.join()

    def _reserve(self) -> bool:
        """Has the kernel give the thread its processor; returns whether it did.

        The kernel may move it to the processor that this caller runs on, and finds no other one for the caller.
        """
        rescue = _after(_RESCUE_SECONDS, self._step_back)
        self.scheduling = "deadline"
        granted = _set_deadline(self._thread_id)
        time.sleep(_POLL_SECONDS)
        rescue.cancel()
        rescue.join()
        return granted and self.scheduling == "deadline" and self.program.last_processor() == self.cpu

    def _step_back(self) -> None:
        os.sched_setscheduler(self._thread_id, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(self._thread_id, {self.cpu})
        self.scheduling = "ordinary"

    def check(self) -> None:
        """Looks whether the thread is well."""
        if self._failure is not None:
            raise AgentError("sender_died", f"The sender on processor {self.cpu} ended. {self._failure}")

    def rest(self) -> None:
        """Has the thread leave the kernel, and waits until it has."""
        with self._lock:
            self.program.stop()
            self._is_wanted = False
            while self._is_busy:
                # Ordinary again, or others would wait for the processor until all is cleaned up.
                # The first in turn, so that the next order need not wait for the cleaning up.
                self._hurry()
                # A signal that comes before the system call is lost.
                signal.pthread_kill(self._thread.ident or 0, _SIGNAL)
                time.sleep(_RESTING_SECONDS)

    def close(self) -> None:
        """Ends the thread, and gives the program back."""
        self._is_closed = True
        self.rest()
        self._go.set()
        self._thread.join()
        self.program.close()

    def _hurry(self) -> None:
        with suppress(PermissionError):
            os.sched_setscheduler(self._thread_id, os.SCHED_FIFO, os.sched_param(_PRIORITY))
            self.scheduling = "fifo"

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {_SIGNAL})
        self._thread_id = threading.get_native_id()
        os.sched_setaffinity(self._thread_id, {self.cpu})
        while True:
            self._go.wait()
            self._go.clear()
            if self._is_closed:
                return
            self._is_busy = True
            self._hurry()
            try:
                while self._is_wanted:
                    self.program.program.run_live(self.program.template, _TIMES, self.batch)
            except BpfError as error:
                self._failure = error
            self._is_busy = False


class Senders(List[Sender]):
    """The senders of a generator."""

    _timer: threading.Timer | None = None

    def have_finished(self) -> bool:
        """Whether all have sent what they were to send."""
        return all(sender.program.has_finished() for sender in self)

    def stop(self) -> None:
        """Ends their traffic."""
        for sender in self:
            sender.program.stop()

    def relax(self) -> float:
        """Has them give way to others, and leave the kernel if no order comes soon; returns when they gave way."""
        for sender in self:
            sender.relax()
        gave_way = time.monotonic()
        self._timer = _after(LINGER_SECONDS, self.rest)
        return gave_way

    def stay(self) -> None:
        """Keeps those in the kernel that are there yet."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def rest(self) -> None:
        """Has them leave the kernel, and waits until they have."""
        for sender in self:
            sender.rest()

    def close(self) -> None:
        """Ends them all."""
        self.stay()
        for sender in self:
            sender.close()
        self.clear()


def _after(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


def prepare_main_thread() -> None:
    """Makes the agent's main thread ready: for the signal that ends a call of a sender, and for busy processors."""
    signal.signal(_SIGNAL, _ignore)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(AGENT_PRIORITY))


def _ignore(number: int, frame: object) -> None:
    """The handler of a signal that only ends a system call."""


def _set_deadline(tid: int) -> bool:
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        return False
    try:
        # The kernel binds no such thread, and wants it to be free to go anywhere.
        os.sched_setaffinity(tid, range(os.cpu_count() or 1))
    except OSError:
        return False
    attribute = struct.pack("=IIQiIQQQ", 48, _SCHED_DEADLINE, 0, 0, 0, *(_PERIOD_NS,) * 3)
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    granted: int = ctypes.CDLL(None, use_errno=True).syscall(number, tid, buffer, 0)
    return granted == 0


@dataclass(frozen=True)
class Share:
    """A part of a direction's frames that one sender sends."""

    number: int
    """Its number among all streams."""
    direction: int
    """Number of its direction."""
    sender: int
    """Number of its sender."""
    place: int
    """Its number among the sender's streams."""
    share: tuple[int, int]
    """Which part of the direction it is: the first of how many."""


def choose_cpus(directions: int, wanted: Sequence[int] | None, free: Sequence[int]) -> tuple[int, ...]:
    """The processors of the senders: one for each direction where there are enough, else one for all of them.

    `wanted` are processors that the topology names, and `free` the ones that no device needs.
    """
    if wanted is not None:
        allowed = os.sched_getaffinity(0)
        missing = sorted(set(wanted) - allowed)
        if missing or not wanted:
            raise AgentError(
                "bad_request", f"The generator's 'cpus' ask for CPU {missing}, and the agent may use {sorted(allowed)}."
            )
        return tuple(dict.fromkeys(wanted))
    # One is left for everything else.
    return tuple(free[: directions if len(free) > directions else 1])


def share_out(directions: int, senders: int) -> tuple[Share, ...]:
    """Shares directions out among senders: several senders to one direction, or one to several of them."""
    streams: list[Share] = []
    places = [0] * senders
    for direction in range(directions):
        own = [sender for sender in range(senders) if sender % directions == direction] or [direction % senders]
        for part, sender in enumerate(own):
            streams.append(Share(len(streams), direction, sender, places[sender], (part, len(own))))
            places[sender] += 1
    return tuple(streams)

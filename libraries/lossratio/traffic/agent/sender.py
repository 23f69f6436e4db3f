"""A process that transmits in one direction, so that no direction waits for another's turn in Python."""

from __future__ import annotations

import ctypes
import gc
import mmap
import multiprocessing
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Union

from .configuration import TagPlace
from .cycle import FrameCycle
from .pacing import Transmission, ramp_up, transmit
from .priority import SENDING, raise_priority
from .probes import ProbeSocket
from .protocol import AgentError
from .ring import TransmitRing

_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29
_STOP_SECONDS = 2.0


@dataclass(frozen=True)
class SenderSetup:
    """What a sender needs to know.

    Attributes:
        interface: Name of the interface to send on.
        cycle: The frames, in their order.
        tag_place: Where the trial's tag is in each frame.
        drops_beyond: See `lossratio.traffic.agent.ring.TransmitRing`.
        cpu: The processor to begin on.
        catch_up: See `lossratio.traffic.agent.pacing.transmit`.
        probes: Whether its frames measure latency: see `lossratio.traffic.agent.probes`.
    """

    interface: str
    cycle: FrameCycle
    tag_place: TagPlace
    drops_beyond: bool
    cpu: int
    catch_up: float
    probes: bool = False


@dataclass(frozen=True)
class SendOrder:
    """What a sender is to send.

    Attributes:
        load: Frames per second.
        duration: Seconds; None: until it is stopped.
        tag: The tag of all frames that count.
        ramp: Seconds of growing traffic before that, which does not count; 0: none.
        ramp_tag: The tag of its frames.
    """

    load: float
    duration: float | None
    tag: int
    ramp: float = 0.0
    ramp_tag: int = 0


@dataclass(frozen=True)
class SenderReport:
    """What a sender did in one transmission.

    Attributes:
        transmission: What it sent.
        dropped_beyond: How many of the sent frames were lost at the far end of the link.
    """

    transmission: Transmission
    dropped_beyond: int


_Answer = Union[SenderReport, AgentError, OSError, bool]


class Sender:
    """A sending process, from the side of the agent. Make it from the agent's only thread: it is forked.

    Attributes:
        connection: Readable once there is a report.
        is_realtime: Whether the kernel lets it go before all ordinary processes.

    Raises:
        OSError: If the kernel does not give the ring.
    """

    def __init__(self, setup: SenderSetup) -> None:
        context = multiprocessing.get_context("fork")
        self._interface = setup.interface
        self._stop = mmap.mmap(-1, 1)
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._stop, setup, os.getpid()), daemon=True)
        self._process.start()
        theirs.close()
        self.is_realtime = bool(self._receive())

    def start(self, order: SendOrder) -> None:
        """Begins to transmit."""
        self._stop[0] = 0
        try:
            self.connection.send(order)
        except BrokenPipeError as error:
            raise self._obituary() from error

    def stop(self) -> None:
        """Ends the transmission, if there is one; there is a report either way then."""
        self._stop[0] = 1

    def report(self) -> SenderReport:
        """Waits for the end of the transmission.

        Raises:
            AgentError: If it did not end well; ``sender_died`` if the process did not.
        """
        answer = self._receive()
        if not isinstance(answer, SenderReport):
            raise self._obituary()
        return answer

    def drain(self) -> None:
        """Stops a transmission whose report nobody wants any more."""
        self.stop()
        with suppress(EOFError, ConnectionResetError):
            if self.connection.poll(_STOP_SECONDS):
                self.connection.recv()
            else:
                # Its report must not be taken for the next one's.
                self._process.kill()

    def close(self) -> None:
        """Ends the process, and with it all traffic."""
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
        how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
        return AgentError("sender_died", f"The process that sends on {self._interface} died ({how}); configure anew.")


def _work(orders: Connection, stop: mmap.mmap, setup: SenderSetup, parent: int) -> None:
    is_realtime = _prepare(setup.cpu, parent)
    open_output = ProbeSocket if setup.probes else TransmitRing
    try:
        output = open_output(setup.interface, setup.cycle, setup.tag_place.offset, drops_beyond=setup.drops_beyond)
    except OSError as error:
        orders.send(error)
        return
    orders.send(is_realtime)
    while True:
        order: SendOrder = orders.recv()
        orders.send(_transmit(output, order, stop, setup.catch_up))


def _transmit(output: TransmitRing | ProbeSocket, order: SendOrder, stop: mmap.mmap, catch_up: float) -> _Answer:
    def is_stopped() -> bool:
        return stop[0] != 0

    dropped_before = output.dropped_beyond
    try:
        if order.ramp:
            output.tag(order.ramp_tag)
            ramp_up(output.offer, order.load, order.ramp, is_stopped)
        output.tag(order.tag)
        transmission = transmit(output.offer, order.load, order.duration, is_stopped, catch_up)
    except AgentError as error:
        return error
    return SenderReport(transmission, output.dropped_beyond - dropped_before)


def _prepare(cpu: int, parent: int) -> bool:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    # Dies with the agent, however that ends, and is woken when it asked to be, not some 50 microseconds later.
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    gc.disable()
    # It begins on a processor of its own and mostly stays there, but is not kept from fleeing another's load.
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, allowed)
    return raise_priority(SENDING)

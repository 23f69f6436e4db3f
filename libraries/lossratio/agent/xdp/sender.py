# SPDX-License-Identifier: Apache-2.0
"""A thread that sends in the kernel while traffic flows, and gives way to others in between."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack, suppress
from typing import List, Sequence

from lossratio.bpf import BpfError, Table, map_names

from ..core.pacing import raise_priority
from ..core.protocol import AgentError
from .frames import Share
from .send_program import ScheduledProgram

WAKE_SECONDS = 0.0005
"""Seconds between an order and its first frame."""
CPU_SHARE = 0.9
"""The largest share of its processor that a sender takes, unless another one is given. The kernel stops a SCHED_FIFO
thread for 50 ms of a second if it leaves others less than 5 %."""
PERIOD_SECONDS = 0.001
"""Seconds in which a sender gives way once: a frame may be late by the others' share of this time."""
_START_SECONDS = 10.0
_POLL_SECONDS = 0.0002
_FIRST_RUNS, _MOST_RUNS = 1 << 7, 1 << 20
_CLAIM = "lr_sender_"
_PRIORITY = 12
"""Above the senders of `afpacket` and their agent, which may belong to another testbed."""


class Sender:
    """A program that sends, and the thread that runs it on one processor, from one order to the next rest.

    The thread takes `share` of the processor at most. `batch` runs of the program pass before frames are handed over.
    """

    def __init__(self, program: ScheduledProgram, cpu: int, share: float = CPU_SHARE) -> None:
        self.program = program
        self.cpu = cpu
        self.batch = 1
        self._share = share
        self._go, self._is_idle = threading.Event(), threading.Event()
        self._is_idle.set()
        self._is_wanted = self._is_closed = False
        self._failure: BpfError | OSError | None = None
        self._thread = threading.Thread(target=self._work, name=f"lossratio-send-{cpu}", daemon=True)
        self._thread.start()

    def wake(self, batch: int) -> None:
        """Makes the thread run the program, which waits for a schedule."""
        self.rest()
        self.batch = batch
        self.program.clear()
        self._is_wanted = True
        self._is_idle.clear()
        self._go.set()

    def wait_until_awake(self) -> None:
        """Waits until the program runs.

        Raises:
            AgentError: If it has ended, or does not start.
        """
        woken = time.monotonic_ns()
        end = time.monotonic() + _START_SECONDS
        while self.program.last_run() < woken:
            self.check()
            if time.monotonic() > end:
                raise AgentError(
                    "sender_died", f"The sender on processor {self.cpu} did not start. Configure the generator again."
                )
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Checks that the thread runs.

        Raises:
            AgentError: If it has ended.
        """
        if self._failure is not None:
            raise AgentError("sender_died", f"The sender on processor {self.cpu} ended. {self._failure}")

    def rest(self) -> None:
        """Ends the traffic, and waits until the thread has released its processor."""
        self.program.stop()
        self._is_wanted = False
        self._is_idle.wait()

    def close(self) -> None:
        """Ends the thread, and frees the program."""
        self.rest()
        self._is_closed = True
        self._go.set()
        self._thread.join()
        self.program.close()

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        raise_priority(_PRIORITY)
        while True:
            self._go.wait()
            self._go.clear()
            if self._is_closed:
                return
            try:
                # The processor may be offline by now, or denied to the agent.
                os.sched_setaffinity(0, {self.cpu})
                self._run()
            except (BpfError, OSError) as error:
                self._failure = error
            self._is_idle.set()

    def _run(self) -> None:
        """Runs the program in pieces, and sleeps between them for as long as the processor is owed to others.

        A sleep lasts longer than requested, by the time that the kernel needs to wake the thread. The next sleep is
        shorter by that time, but by no more: otherwise, a sender that had waited for another one would then run for
        many periods. The thread does not sleep if that might last beyond the end of the schedule, because the last
        frames would stay unsent.
        """
        runs = float(_FIRST_RUNS)
        of_others = 1.0 / self._share - 1.0
        owed = 0.0
        began = time.monotonic()

        while self._is_wanted:
            self.program.program.run_live(self.program.template, round(runs), self.batch)
            ended = time.monotonic()
            took = ended - began
            runs = min(runs * min(2.0, max(0.5, PERIOD_SECONDS * self._share / took)), _MOST_RUNS)
            owed = max(owed, -PERIOD_SECONDS * (1.0 - self._share)) + took * of_others
            began = ended
            left = self.program.last_call / 1e9 - ended

            if owed > 0.0 and not 0.0 <= left < owed + PERIOD_SECONDS:
                time.sleep(owed)
                began = time.monotonic()
                owed -= began - ended


class Senders(List[Sender]):
    """The senders of a generator."""

    def have_finished(self) -> bool:
        """Whether all have sent what they had to send."""
        return all(sender.program.has_finished() for sender in self)

    def stop(self) -> None:
        """Ends their traffic."""
        for sender in self:
            sender.program.stop()

    def rest(self) -> None:
        """Makes them release their processors, and waits until they have."""
        self.stop()
        for sender in self:
            sender.rest()

    def close(self) -> None:
        """Ends them all."""
        for sender in self:
            sender.close()
        self.clear()


def choose_cpus(
    directions: int,
    wanted: Sequence[int] | None,
    free: Sequence[int],
    taken: Sequence[int] = (),
    for_each: int | None = None,
) -> tuple[int, ...]:
    """The processors of the senders: one for each direction if there are enough, otherwise one for all of them.

    `wanted` are processors that the topology names, `free` those that no device needs, and `taken` those of other
    senders (`sender_cpus`): two senders on one processor wait for each other. With `for_each`, each direction gets that
    many processors, even if none is left for other programs.

    Raises:
        AgentError: If the agent may not use one of `wanted`, or there are not enough for each direction.
    """
    if wanted is not None:
        allowed = os.sched_getaffinity(0)
        missing = sorted(set(wanted) - allowed)
        if missing or not wanted:
            raise AgentError(
                "bad_request",
                f"The generator's 'cpus' name CPU {missing}, but the agent may only use {sorted(allowed)}. "
                "Choose from these.",
            )
        return tuple(dict.fromkeys(wanted))
    least_taken = sorted(free, key=taken.count)
    if for_each is not None:
        count = directions * for_each
        if count > len(least_taken):
            raise AgentError(
                "bad_request",
                f"The generator's 'cpus_per_direction' asks for {count} CPUs ({for_each} for each of {directions}), "
                f"but the agent may use only {len(least_taken)}: {sorted(least_taken)}. Use fewer, or leave it out.",
            )
        return tuple(least_taken[:count])
    # One processor is left for everything else.
    return tuple(least_taken[: directions if len(free) > directions else 1])


def claim_cpus(
    directions: int, wanted: Sequence[int] | None, free: Sequence[int], for_each: int | None = None
) -> dict[int, Table]:
    """Chooses the processors of the senders, and makes each known (`claim`); see `choose_cpus`.

    If two testbeds choose the same processor at the same time, the later one chooses again.
    """
    while True:
        before = sender_cpus()
        with ExitStack() as undo:
            claims: dict[int, Table] = {}
            for cpu in choose_cpus(directions, wanted, free, list(before.values()), for_each):
                claims[cpu] = claim(cpu)
                undo.callback(claims[cpu].close)
            new = {number: cpu for number, cpu in sender_cpus().items() if number not in before and cpu in claims}
            if wanted is not None or all(number >= claims[cpu].number for number, cpu in new.items()):
                undo.pop_all()
                return claims


def sender_cpus() -> dict[int, int]:
    """The processors of all senders of this kind on the machine, by the kernel's number for their map (`claim`)."""
    with suppress(BpfError):
        return {number: int(name[len(_CLAIM) :]) for number, name in map_names().items() if name.startswith(_CLAIM)}
    return {}


def claim(cpu: int) -> Table:
    """Makes a sender's processor known to other testbeds, whose namespaces hide its process, until this is closed."""
    return Table.create("hash", 4, 4, 1, f"{_CLAIM}{cpu}")


def share_out(are_here: Sequence[bool], senders: int, elsewhere: int = 0) -> tuple[Share, ...]:
    """Distributes directions over senders: several senders for one direction, or one for several of them.

    `are_here` says of each direction whether this node sends it; `elsewhere` is the number of senders on the node that
    sends the others.
    """
    streams: list[Share] = []
    places = [0] * senders
    for direction, is_here in enumerate(are_here):
        count = senders if is_here else elsewhere
        number, directions = are_here[:direction].count(is_here), are_here.count(is_here)
        own = [sender for sender in range(count) if sender % directions == number] or [number % count]
        for part, sender in enumerate(own):
            share = (part, len(own))
            if is_here:
                streams.append(Share(len(streams), direction, sender, places[sender], share))
                places[sender] += 1
            else:
                streams.append(Share(len(streams), direction, None, 0, share))
    return tuple(streams)

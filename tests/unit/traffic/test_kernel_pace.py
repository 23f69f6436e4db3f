"""Traffic whose pace the kernel keeps, on a virtual clock and with real frames."""

import errno
import shutil
import socket
import struct

import numpy as np
import pytest
from at_least_one import at_least_one
from hypothesis import given, settings, strategies as st
from local_session import PYTHON, LocalSession
from traffic_lab import configure
from whole_trials import run_trial, whole

from lossratio.agent.afpacket.kernel_pace import HURRY, LEAD, MADE_UP_FOR, Stamps, can_be_paced, transmit_ahead
from lossratio.agent.afpacket.transmit import free_slots
from lossratio.agent.core.pacing import CATCH_UP, frames_within, grace_after
from lossratio.traffic import AgentClient


class Kernel:
    """A queue that lets frames go at its load, and a process that hands them over and stalls at given times.

    The load of the queue is `pace` times the requested one. A device holds back the last `held` frames, in the memory
    that they came in. The queue has two buckets, as HTB has: the first one fills at the load, up to the delay that is
    made up for; the second one allows no more than the fastest rate.
    """

    def __init__(self, stalls=(), room=1 << 30, timer_late=0.0, pace=1.0, held=0, without_stamp=()):
        self.now = 0.0
        self.stamped = 0
        self.left = []
        self._stalls = list(stalls)
        self._room = room
        self._timer_late = timer_late
        self._pace = pace
        self._held = held
        self._without_stamp = without_stamp
        self._stamped = []
        self._read = 0
        self._handed = 0
        self._load = self._due = self._earliest = 0.0
        self._makes_up_for = 0.0
        self._arrived = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds
        if self._stalls and self.now >= self._stalls[0][0]:
            self.now += self._stalls.pop(0)[1]

    def make_up_for_delays(self):
        self._let_go()
        self._makes_up_for = MADE_UP_FOR

    def offer(self, count):
        assert count > 0
        taken = min(count, 128, self._room - self.waiting())
        self._take(taken)
        return taken

    def offer_stamped(self):
        taken = self.offer(1)
        if taken:
            self._stamped.append(self._handed - 1)
            self.stamped += 1
        return taken

    def waiting(self):
        self._let_go()
        return self._handed - max(0, len(self.left) - self._held)

    def stamps(self):
        self._let_go()
        gone = [place for place in self._stamped[self._read :] if place < len(self.left)]
        new = {number: self.left[place] for number, place in enumerate(gone, self._read)}
        self._read += len(new)
        return {number: time for number, time in new.items() if number not in self._without_stamp}

    def transmit(self, load, duration, is_stopped=lambda: False):
        self._load = self._pace * load
        clocks = {"clock": self.clock, "sleep": self.sleep}
        return transmit_ahead(self, self.make_up_for_delays, load, duration, is_stopped, CATCH_UP, **clocks)

    def _take(self, count):
        self._let_go()
        self._arrived += [self.now] * count
        self._handed += count
        self._let_go()

    def _let_go(self):
        while len(self.left) < self._handed:
            leaves = max(self._arrived[len(self.left)], self._due + self._timer_late / self._load, self._earliest)
            if leaves > self.now:
                break
            self.left.append(leaves)
            self._due = max(self._due, leaves - self._makes_up_for) + 1.0 / self._load
            self._earliest = leaves + 1.0 / (self._load * (1.0 + HURRY))


loads = st.floats(1_500.0, 6_000.0)
few = settings(max_examples=20)


@few
@given(loads, st.floats(1.0, 2.0))
def test_every_frame_leaves_in_time_where_nothing_stalls(load, duration):
    kernel = Kernel()
    done = kernel.transmit(load, duration)
    assert done.intended == done.sent == frames_within(duration, load) == len(kernel.left)
    assert kernel.left[-1] - kernel.left[0] == pytest.approx((done.sent - 1) / load, abs=1e-6)
    assert done.elapsed == pytest.approx(duration, abs=1e-6)


def test_frames_that_a_device_holds_back_have_left():
    kernel = Kernel(held=2_000)
    done = kernel.transmit(5_000.0, 1.0)
    assert done.intended == done.sent == 5_000
    assert done.elapsed == pytest.approx(1.0, abs=1e-6)
    assert done.worst_lateness == pytest.approx(0.0, abs=1e-6)
    assert kernel.now < 1.02


@pytest.mark.parametrize("lost", [0, 7, -1])
def test_stamped_frames_that_were_lost_beyond_the_link_make_nobody_late(lost):
    everything = Kernel()
    everything.transmit(5_000.0, 1.0)
    kernel = Kernel(without_stamp={lost % everything.stamped})
    done = kernel.transmit(5_000.0, 1.0)
    assert done.intended == done.sent == 5_000
    assert done.worst_lateness < 0.01
    assert kernel.now < 1.03


@pytest.mark.whole
@few
@given(loads, st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 0.8 * LEAD)), max_size=5))
def test_a_stall_that_is_shorter_than_the_lead_leaves_no_frame_unsent(load, stalls):
    kernel = Kernel(sorted((at + 0.3 * number, length) for number, (at, length) in enumerate(stalls)))
    done = kernel.transmit(load, 2.0)
    assert done.intended == done.sent
    assert kernel.left[-1] - kernel.left[0] == pytest.approx((done.sent - 1) / load, abs=grace_after(2.0, CATCH_UP))


@pytest.mark.parametrize("late", [0.0, 0.005, 0.05])
def test_the_frame_that_is_latest_after_a_stall_is_noticed(late):
    kernel = Kernel([(0.5, LEAD + late)])
    done = kernel.transmit(5_000.0, 1.0)
    lateness = [time - number / 5_000.0 for number, time in enumerate(kernel.left)]
    assert done.worst_lateness == pytest.approx(max(lateness) - lateness[0], abs=1e-4)


@pytest.mark.whole
@few
@given(loads, st.floats(0.0, 0.01))
def test_late_timers_are_made_up_for(load, timer_late):
    kernel = Kernel(timer_late=timer_late)
    done = kernel.transmit(load, 2.0)
    assert done.intended == done.sent
    assert kernel.left[-1] - kernel.left[0] == pytest.approx((done.sent - 1) / load, abs=grace_after(2.0, CATCH_UP))


@pytest.mark.parametrize("pace", [0.9, 1.1])
def test_frames_that_left_at_another_load_count_as_unsent(pace):
    kernel = Kernel(pace=pace)
    done = kernel.transmit(5_000.0, 1.0)
    assert done.sent == len(kernel.left) == 5_000
    assert done.intended - done.sent == pytest.approx(5_000.0 * abs(1.0 / pace - 1.0), rel=0.02)


def test_frames_that_left_too_late_after_a_stall_count_as_unsent():
    done = Kernel([(0.5, 0.5)]).transmit(5_000.0, 1.0)
    assert done.intended - done.sent == pytest.approx(0.4 * 5_000.0, rel=0.2)


def test_frames_for_which_the_socket_had_no_room_in_time_count_as_unsent():
    # It wakes up each 10 ms, and 20 frames leave then.
    kernel = Kernel([(0.01 * number, 0.02) for number in range(100)], room=20)
    done = kernel.transmit(10_000.0, 1.0)
    assert done.sent < 0.9 * done.intended
    assert len(kernel.left) == done.sent


def test_where_it_is_stopped_only_frames_that_were_due_were_intended():
    kernel = Kernel()
    done = kernel.transmit(10_000.0, 10.0, is_stopped=lambda: kernel.now > 1.0)
    assert done.sent == done.intended == pytest.approx(10_000.0 * (1.0 + LEAD), rel=0.05)
    assert done.elapsed < 1.5


@pytest.mark.parametrize(
    ("load", "duration", "is_paced"), [(3_000.0, 1.0, True), (500.0, 1.0, False), (50_000.0, 1.0, False)]
)
def test_loads_at_which_a_frame_or_a_full_socket_matters_are_not_paced(load, duration, is_paced):
    assert can_be_paced(load, duration, CATCH_UP) is is_paced


ORDINARY = ("setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice")
"""Runs a program that the kernel grants no realtime priority."""


class OrdinarySession(LocalSession):
    """A session of a user who may have no realtime priority."""

    def start(self, *command):
        return super().start(*ORDINARY, *command)


@pytest.mark.netns
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not there")
def test_the_kernel_keeps_the_pace_of_a_sender_without_realtime_priority(bridged, tmp_path):
    session = OrdinarySession(bridged, "tg", tmp_path)
    with AgentClient.start(session, python=PYTHON) as agent:
        assert not configure(agent)["realtime"]
        directions = whole(run_trial, agent, 5_000.0, 1.0)
        assert "htb" in bridged.run("tg", "tc", "qdisc", "show", "dev", "tg0").stdout
        # A burst goes past the queue.
        assert run_trial(agent, 50_000.0, 0.1)
        assert "htb" not in bridged.run("tg", "tc", "qdisc", "show", "dev", "tg0").stdout

    for way in directions:
        assert way.intended_frames == way.sent_frames == way.received_frames == 5_000
        assert way.foreign_frames == 0


class StampedTwice:
    """A socket whose stamped frames pass two virtual links, so the kernel reports each frame twice."""

    def __init__(self):
        stamps = [(0, 5, 10_000), (0, 5, 27_000), (1, 6, 1_500_000), (1, 6, 1_502_000)]
        self._reports = [self._report(*stamp) for stamp in stamps]

    def setsockopt(self, *_):
        pass

    def recvmsg(self, *_):
        if not self._reports:
            raise BlockingIOError
        return b"", self._reports.pop(0), 0, None

    def _report(self, number, seconds, nanoseconds):
        stamp = struct.pack("=6q", seconds, nanoseconds, 0, 0, 0, 0)
        origin = struct.pack("=IBBBBII", errno.ENOMSG, 4, 0, 0, 0, 0, number)
        return [(socket.SOL_SOCKET, 37, stamp), (263, 16, origin)]


def test_only_the_first_stamp_of_a_frame_is_from_the_senders_interface():
    stamps = Stamps(StampedTwice())
    assert stamps.read() == pytest.approx({0: 5.000_01, 1: 6.001_5})
    assert stamps.read() == {}


SLOW_QUEUE = """
from lossratio.agent import server
from lossratio.agent.afpacket import kernel_pace
rate_of = kernel_pace._rate
kernel_pace._rate = lambda load: rate_of(0.9 * load)
server.main()
"""
"""An agent whose queue is slower than the load."""


@pytest.mark.netns
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not there")
def test_frames_that_leave_too_late_count_as_unsent(bridged, tmp_path):
    process = OrdinarySession(bridged, "tg", tmp_path).start(PYTHON, "-c", SLOW_QUEUE)
    with AgentClient("TG", process) as agent:
        configure(agent)
        directions = run_trial(agent, 5_000.0, 1.0)

    for way in at_least_one(directions):
        assert 0 < way.sent_frames <= 5_000
        assert way.sent_frames + way.unsent_frames > 5_000


def test_slots_are_counted_while_the_kernel_empties_them(monkeypatch):
    status = np.array([0, 0, 1, 0, 1], dtype=np.uint32)
    look = np.flatnonzero

    def look_while_a_frame_leaves(array):
        counted = np.count_nonzero(array)
        status[2] = 0
        if np.count_nonzero(array) != counted:
            raise RuntimeError("number of non-zero array elements changed during function execution.")
        return look(array)

    monkeypatch.setattr(np, "flatnonzero", look_while_a_frame_leaves)
    assert free_slots(status) == 2
    assert free_slots(status) == 4
    status[:] = 0
    assert free_slots(status) == 5

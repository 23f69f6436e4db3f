"""When the programs inside the kernel send: schedules, calls that were missed, and the share of a processor."""

from __future__ import annotations

import errno
import os
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
from bpf_objects import run_once
from frame_samples import DESTINATION_MAC, SOURCE_MAC, spec
from waiting import PATIENCE
from xdp_bench import BURST, TAG, Bench, needs_bpf

from lossratio.agent.core.protocol import AgentError
from lossratio.agent.xdp import sender
from lossratio.agent.xdp.constants import FOREVER
from lossratio.agent.xdp.frames import FramePlan, Share
from lossratio.agent.xdp.receive_program import Reception
from lossratio.agent.xdp.send_program import Segment, SendProgram
from lossratio.agent.xdp.sender import Sender


@pytest.mark.whole
@needs_bpf
def test_a_schedule_is_sent_segment_by_segment_and_then_ends():
    first = Segment(0.0, 3, 0.0, float("inf"), float("inf"), TAG)
    on_time = Segment(0.0, 2, 0.0, float("inf"), float("inf"), TAG, renumbers=False)
    other = Segment(0.0, 2, 0.0, float("inf"), float("inf"), TAG + 0x100)
    with Bench(spec()) as bench:
        bench.begin(first, on_time, other)
        frames = [bench.send() for _ in range(7)]
        assert bench.send() is None
        assert bench.sender.has_finished()
        numbers = [(int.from_bytes(frame[42:46], "big") - TAG, int.from_bytes(frame[46:50], "big")) for frame in frames]
        assert numbers == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0x100, 0), (0x100, 1)]
        assert [bench.sender.sent(0, number).sent for number in range(3)] == [3, 2, 2]


@pytest.mark.whole
@needs_bpf
def test_nothing_is_sent_before_it_is_due_or_after_the_last_call_or_without_leave():
    later = replace(BURST, begin=60e9)
    missed = Segment(1000.0, 500, 0.0, last_call=1.0, catch_up=float("inf"), tag=TAG)
    with Bench(spec()) as bench:
        bench.begin(later)
        assert bench.send() is None
        bench.begin(missed)
        assert bench.send() is None
        assert bench.sender.has_finished()
        assert (bench.sender.sent(0, 0).sent, bench.sender.sent(0, 0).unsent) == (0, 500)
        bench.begin()
        bench.sender.stop()
        assert bench.send() is None
        bench.sender.renew(time.monotonic_ns() - 1)
        assert bench.send() is None


@pytest.mark.whole
@needs_bpf
def test_times_and_numbers_of_traffic_that_lasts_for_days_do_not_wrap():
    days_later = replace(BURST, begin=2.0**44, renumbers=False)
    with Bench(spec()) as bench:
        bench.begin(replace(BURST, frames=1), days_later)
        assert bench.send() is not None
        assert bench.send() is None
        bench.begin()
        last = (1 << 32) - 3
        bench.sender._shared.schedules[0].number = bench.reception._shared.streams[0].orders[0].next = last
        frames = [bench.send() for _ in range(6)]
        bench.arrive(*frames[:2], frames[4], frames[3])
        assert bench.counts() == {"arrived": 4, "intact": 4, "reordered": 1}
        assert bench.reception.received(0).displacement == 1


@pytest.mark.whole
@needs_bpf
@pytest.mark.parametrize(("share", "most"), [(0.5, 0.75), (0.1, 0.3)])
def test_a_sender_takes_no_more_than_its_share_of_its_processor(share, most):
    plan, reception = FramePlan(spec(), SOURCE_MAC, DESTINATION_MAC), Reception(1, 1)
    sending = Sender(SendProgram([(plan, 1, Share())], reception.times), max(os.sched_getaffinity(0)), share)
    clock = time.pthread_getcpuclockid(sending._thread.ident)
    try:
        sending.wake(1)
        sending.wait_until_awake()
        began, used = time.monotonic(), time.clock_gettime(clock)
        time.sleep(0.5)
        # However late the machine wakes it up, it only gets less.
        assert 0 < time.clock_gettime(clock) - used < most * (time.monotonic() - began)
        sending.rest()
        ran = sending.program.last_run()
        time.sleep(0.01)
        assert sending.program.last_run() == ran
    finally:
        sending.close()
        reception.close()


@pytest.mark.parametrize("last_call", range(10_000_000, 11_000_000, 50_000))
def test_a_sender_does_not_sleep_through_the_end_of_its_schedule(monkeypatch, last_call):
    """A model of the processor: a run takes 20 us for each of its 64, and a sleep lasts .3 ms too long."""
    clock = SimpleNamespace(now=0.0, runs=[])
    clock.monotonic = lambda: clock.now

    def run_live(template, runs, batch):
        clock.runs.append((clock.now, clock.now + runs * 20e-6 / 64))
        clock.now = clock.runs[-1][1]
        sending._is_wanted = clock.now < 0.02

    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds + 0.0003)
    program = SimpleNamespace(program=SimpleNamespace(run_live=run_live), template=b"", last_call=last_call)
    program.stop = program.close = lambda: None
    sending = Sender(program, min(os.sched_getaffinity(0)))
    try:
        monkeypatch.setattr(sender, "time", clock)
        sending._is_wanted = True
        sending._run()
    finally:
        sending.close()
    end = last_call / 1e9
    assert any(begin <= end <= ended for begin, ended in clock.runs)
    # Far from the end others have their share.
    pauses = [
        second[0] - first[1]
        for first, second in zip(clock.runs, clock.runs[1:], strict=False)
        if second[0] < end - 0.002
    ]
    assert sum(pauses) > 0.05 * (end - 0.002)


@pytest.mark.whole
@needs_bpf
def test_frames_that_are_too_late_stay_unsent_and_the_next_one_is_on_time():
    with Bench(spec()) as bench:
        bench.reception.watch(TAG)
        late = Segment(1e6, 10_000, 0.0, float("inf"), catch_up=2e6, tag=TAG)
        bench.sender.schedule(time.monotonic_ns() - 5_000_000_000, [[late]])
        bench.sender.renew(FOREVER)
        assert bench.send() is None
        unsent = bench.sender.sent(0, 0).unsent
        assert 4_990 <= unsent < 10_000
        while bench.send() is None:
            pass
        assert bench.sender.sent(0, 0).lateness >= 4.99


@needs_bpf
def test_the_stream_that_is_due_first_goes_first_so_that_all_are_late_alike():
    plan = FramePlan(spec(), SOURCE_MAC, DESTINATION_MAC)
    with ExitStack() as stack:
        reception = Reception(2, 1)
        stack.callback(reception.close)
        sender = SendProgram([(plan, 1, Share(number)) for number in range(2)], reception.times)
        stack.callback(sender.close)
        schedules = [[Segment(interval, 3000, 0.0, float("inf"), float("inf"), TAG)] for interval in (1000.0, 2000.0)]
        sender.schedule(time.monotonic_ns() - 10_000_000_000, schedules)
        sender.renew(FOREVER)
        for _ in range(600):
            run_once(sender.program, sender.template)
        assert [sender.sent(stream, 0).sent for stream in range(2)] == [400, 200]


def test_a_sender_whose_processor_is_gone_is_an_error_and_can_be_closed(monkeypatch):
    program = SimpleNamespace(clear=lambda: None, stop=lambda: None, close=lambda: None, last_run=lambda: 0)

    def refuse(thread, cpus):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(sender.os, "sched_setaffinity", refuse)
    sending = Sender(program, 999)
    sending.wake(1)
    with pytest.raises(AgentError, match=r"The sender on processor 999 ended. .* Invalid argument"):
        sending.wait_until_awake()
    closing = threading.Thread(target=sending.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    assert not closing.is_alive()

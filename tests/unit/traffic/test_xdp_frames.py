"""The programs that send and receive inside the kernel: the kernel runs them on single frames, which go nowhere."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from bpf_objects import XdpAction, run_once
from frame_samples import DESTINATION_MAC, SOURCE_MAC, cycle, smallest_size, spec
from hypothesis import given, settings, strategies as st

from lossratio.bpf import why_impossible
from lossratio.topology.addressing import EAST, WEST
from lossratio.traffic import profile_names
from lossratio.traffic.agent.afpacket.frames import FrameOrder, number_bytes, number_parts, tag_bytes
from lossratio.traffic.agent.core.protocol import AgentError
from lossratio.traffic.agent.xdp import histogram, sender
from lossratio.traffic.agent.xdp.constants import FOREVER
from lossratio.traffic.agent.xdp.frames import FramePlan, Share, permutation
from lossratio.traffic.agent.xdp.receive_program import (
    MOST_GAPS,
    MOST_TRAFFIC,
    TAGS_OF_TRAFFIC,
    ReceiveProgram,
    ReceiveWay,
    Reception,
)
from lossratio.traffic.agent.xdp.send_program import Segment, SendProgram
from lossratio.traffic.agent.xdp.sender import Sender

needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")

TAG = 0xA1B2C300
BURST = Segment(interval=0.0, frames=1 << 40, begin=0.0, last_call=float("inf"), catch_up=float("inf"), tag=TAG)


class Bench:
    """A sender and a receiver of one stream, which are run by hand."""

    def __init__(self, description, first=0, step=1, counts_flows=False):
        self.plan = FramePlan(description, SOURCE_MAC, DESTINATION_MAC)
        self.reception = Reception(1, 64, self.plan.flows if counts_flows else 0)
        stream = Share(share=(first, step))
        self.sender = SendProgram([(self.plan, 1, stream)], self.reception.times)
        self.template = self.sender.template
        flows = 0 if counts_flows else None
        way = ReceiveWay(self.plan, DESTINATION_MAC, stream, flows=flows)
        self.receiver = ReceiveProgram(self.reception, [way])
        self.begin()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for one in (self.sender, self.receiver, self.reception):
            one.close()

    def begin(self, *segments):
        self.reception.watch(TAG)
        self.sender.schedule(time.monotonic_ns() - 1, [segments or [BURST]])
        self.sender.renew(FOREVER)

    def send(self):
        verdict, frame = run_once(self.sender.program, self.template)
        return frame if verdict == XdpAction.REDIRECT.value else None

    def arrive(self, *frames):
        return [XdpAction(run_once(self.receiver.program, frame)[0]) for frame in frames]

    def counts(self):
        received = vars(self.reception.received(0))
        names = ("arrived", "wrong_length", "wrong_mac", "corrupted", "readdressed", "duplicated", "stale")
        return {name: received[name] for name in (*names, "reordered", "intact") if received[name]}


def as_afpacket_sends(description, numbers, first=0):
    """Frames by their sequence numbers."""
    data, lengths = cycle(description).frames(np.asarray(numbers) + first)
    place = description.tag_place
    data[:, place.offset : place.offset + 8] = np.frombuffer(tag_bytes(TAG), dtype=np.uint8)
    if place.is_numbered:
        for (start, width), part in zip(
            number_parts(place), number_bytes(place, TAG, np.asarray(numbers)), strict=True
        ):
            data[:, start : start + width] = part
    return [row[:length].tobytes() for row, length in zip(data, lengths, strict=True)]


@pytest.mark.long
@needs_bpf
@pytest.mark.parametrize("profile", profile_names())
def test_frames_are_those_of_the_embedded_generator_and_come_back_intact(profile, monkeypatch):
    # A million flows have the same random order in frames of all sizes.
    monkeypatch.setattr("lossratio.traffic.agent.xdp.frames.permutation", cache(permutation))
    smallest = smallest_size(profile)
    sizes = (smallest, 570, 1518) if smallest > 64 and "ip6" not in profile else (smallest, 1518, "IMIX_v4_1")
    for size in sizes:
        description = spec(profile, size)
        first = max(0, description.flows - 20)
        with Bench(description, first=first) as bench:
            sent = [bench.send() for _ in range(40)]
            assert sent == as_afpacket_sends(description, range(40), first)
            assert bench.arrive(*sent) == [XdpAction.DROP] * 40
            assert bench.counts() == {"arrived": 40, "intact": 40}


@pytest.mark.parametrize(("profile", "size"), [("ethip4-udp", 64), ("ethip4-udp", "IMIX_v4_1"), ("ethip4-ip4base", 64)])
@pytest.mark.parametrize("frames", [0, 1, 100, 1524, 5000, 12345])
def test_frames_of_each_flow_are_known_by_the_number_of_all(profile, size, frames):
    description = spec(profile, size)
    flows = FrameOrder(description).flow_numbers(np.arange(frames))
    expected = np.bincount(flows, minlength=description.flows).tolist()
    plan = FramePlan(description, SOURCE_MAC, DESTINATION_MAC)
    assert plan.sent_by_flow(frames) == expected
    # Three senders, of which the last one was slower.
    parts = [(-(-frames // 3), (0, 3)), (-(-max(0, frames - 1) // 3), (1, 3)), (frames // 9, (2, 3))]
    numbers = np.concatenate([share[0] + share[1] * np.arange(count) for count, share in parts])
    shared = np.bincount(FrameOrder(description).flow_numbers(numbers), minlength=description.flows)
    by_share = [plan.sent_by_flow(count, share) for count, share in parts]
    assert [sum(column) for column in zip(*by_share, strict=True)] == shared.tolist()


@needs_bpf
def test_received_frames_are_counted_by_flow():
    description = spec()
    with Bench(description, counts_flows=True) as bench:
        frames = [bench.send() for _ in range(300)]
        bench.arrive(*(frame for number, frame in enumerate(frames) if number not in (3, 257)), frames[5])
        counts = bench.reception.flows.memory[: 4 * description.flows].cast("I").tolist()
        expected = bench.plan.sent_by_flow(300)
        assert [flow for flow in range(254) if counts[flow] < expected[flow]] == [3]
        assert sum(expected) - sum(counts) == 2


@needs_bpf
def test_the_other_direction_has_frames_of_its_own():
    description = spec("ethip4-udp", 64, EAST, WEST)
    with Bench(description) as bench:
        assert [bench.send() for _ in range(300)] == as_afpacket_sends(description, range(300))


@needs_bpf
def test_streams_of_one_direction_share_its_frames():
    description = spec("ethip4-udp", "IMIX_v4_1")
    whole = as_afpacket_sends(description, range(60))
    with Bench(description, first=1, step=3) as bench:
        sent = [bench.send() for _ in range(20)]
        start = description.tag_offset
        assert [frame[:start] for frame in sent] == [frame[:start] for frame in whole[1::3]]
        bench.arrive(*sent)
        assert bench.counts() == {"arrived": 20, "intact": 20}


@needs_bpf
def test_a_frame_is_written_anew_whatever_its_memory_holds():
    with Bench(spec("ethip4-udp", 1518)) as bench:
        right = bench.send()
        bench.template = bytes(len(right))
        bench.begin()
        assert bench.send() == right


def changed(frame, place):
    other = bytearray(frame)
    other[place] ^= 0x10
    return bytes(other)


@needs_bpf
@pytest.mark.parametrize("size", [64, 1518, "IMIX_v4_1"])
@pytest.mark.parametrize(
    ("fault", "counted"),
    [
        (lambda frame: changed(frame, -1), "corrupted"),
        (lambda frame: changed(frame, 54), "corrupted"),
        (lambda frame: changed(frame, 49), "corrupted"),
        (lambda frame: changed(frame, 46), "corrupted"),
        (lambda frame: changed(frame, 24), "corrupted"),
        (lambda frame: changed(frame, 41), "corrupted"),
        (lambda frame: changed(frame, 12), "corrupted"),
        (lambda frame: changed(frame, 23), "corrupted"),
        (lambda frame: frame[:26] + frame[30:34] + frame[26:30] + frame[34:], "readdressed"),
        (lambda frame: changed(frame, 0), "wrong_mac"),
        (lambda frame: changed(frame, 5), "wrong_mac"),
        (lambda frame: frame[:-4], "wrong_length"),
        (lambda frame: frame + bytes(6), "wrong_length"),
        (lambda frame: frame[:50], "wrong_length"),
    ],
)
def test_each_fault_of_a_frame_has_its_counter(fault, counted, size):
    with Bench(spec("ethip4-udp", size)) as bench:
        frames = [bench.send() for _ in range(3)]
        bench.arrive(frames[0], fault(frames[1]), frames[2])
        assert bench.counts() == {"arrived": 3, counted: 1, "intact": 2}


@needs_bpf
def test_a_router_may_change_mac_addresses_time_to_live_and_header_checksum():
    with Bench(spec("ethip4-udp", 64)) as bench:
        frame = bench.send()
        checksum = int.from_bytes(frame[24:26], "big") + 0x0100
        checksum = (checksum & 0xFFFF) + (checksum >> 16)
        routed = frame[:6] + bytes(6) + frame[12:22] + bytes([frame[22] - 1, frame[23]])
        bench.arrive(routed + checksum.to_bytes(2, "big") + frame[26:])
        assert bench.counts() == {"arrived": 1, "intact": 1}


@needs_bpf
@pytest.mark.parametrize("profile", ["dot1q-ip4base", "dot1ad-ip4base"])
def test_a_frame_may_have_lost_the_tag_of_its_vlan(profile):
    with Bench(spec(profile, 128)) as bench:
        frames = [bench.send() for _ in range(3)]
        bench.arrive(frames[0], frames[1][:12] + frames[1][16:], changed(frames[2][:12] + frames[2][16:], -1))
        assert bench.counts() == {"arrived": 3, "intact": 2, "corrupted": 1}


@needs_bpf
def test_copies_and_the_order_are_seen():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(8)]
        bench.arrive(*(frames[number] for number in (0, 1, 1, 4, 2, 3, 5, 4, 7)))
        assert bench.counts() == {"arrived": 9, "duplicated": 2, "reordered": 2, "intact": 7}
        received = bench.reception.received(0)
        # 2 came behind 4, and 3 came two frames after it.
        assert (received.displacement, received.extent) == (2, 2)


@needs_bpf
def test_extent_and_late_time_are_counted_from_the_first_frame_with_a_higher_number():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(60)]
        # Three frames come after three later ones, and then two of three are missing again and again.
        order = [*range(10), *range(13, 16), 10, 11, 12, *range(16, 60, 3)]
        bench.arrive(*(frames[number] for number in order))
        received = bench.reception.received(0)
        assert (received.reordered, received.displacement, received.extent) == (3, 5, 5)
        bench.arrive(frames[41])
        assert bench.reception.received(0).extent == len(order) - order.index(43)
        before = bench.reception.received(0)
        # Both are the largest so far, and a busy machine may have been slow with an earlier frame.
        wait = before.late_offset + 20_000_000
        time.sleep(wait / 1e9)
        bench.arrive(frames[56])
        after = bench.reception.received(0)
        assert after.late_offset >= wait
        assert after.extent == before.extent


@needs_bpf
def test_of_a_gap_long_ago_neither_extent_nor_late_time_is_known():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(2 * MOST_GAPS + 3)]
        bench.arrive(*frames[::2], frames[1])
        received = bench.reception.received(0)
        assert (received.reordered, received.displacement) == (1, 2 * MOST_GAPS + 1)
        assert (received.extent, received.late_offset) == (0, 0)
        # The gap after it is the oldest of those that are kept.
        bench.arrive(frames[3])
        assert bench.reception.received(0).extent == MOST_GAPS + 1


@needs_bpf
@given(late=st.lists(st.integers(0, 59), max_size=12, unique=True), seed=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_extent_is_that_of_its_definition_whatever_is_late(late, seed):
    """RFC 4737: arrivals from the first one with a higher number on to the frame that is reordered."""
    order = [number for number in range(60) if number not in late]
    for number in late:
        order.insert(seed.randint(0, len(order)), number)
    extents = [
        place - next(earlier for earlier, before in enumerate(order) if before > number)
        for place, number in enumerate(order)
        if any(before > number for before in order[:place])
    ]
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(60)]
        bench.arrive(*(frames[number] for number in order))
        received = bench.reception.received(0)
    assert (received.reordered, received.extent) == (len(extents), max(extents, default=0))


@needs_bpf
def test_a_number_that_was_never_sent_is_a_corrupted_frame():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(4)]
        bench.begin()
        bench.send()
        bench.reception.times.memory[:] = bytes(len(bench.reception.times.memory))
        bench.arrive(frames[3])
        assert bench.counts() == {"arrived": 1, "corrupted": 1}


@needs_bpf
def test_a_frame_that_a_whole_ring_of_later_ones_overtook_is_neither_intact_nor_a_copy():
    with Bench(spec()) as bench:
        old = bench.send()
        bench.reception.times.memory[:8] = (time.monotonic_ns() << 16 & FOREVER | 2).to_bytes(8, "little")
        bench.arrive(old)
        assert bench.counts() == {"arrived": 1, "stale": 1}


@needs_bpf
def test_foreign_frames_pass_and_those_of_other_trials_are_counted_apart():
    with Bench(spec()) as bench:
        mine, late = bench.send(), bench.send()
        arp = bytes.fromhex("ffffffffffff0200000000010806").ljust(60, b"\0")
        assert bench.arrive(arp, arp[:20], b"\x33\x33" + mine[2:42] + bytes(18)) == [XdpAction.PASS] * 3
        assert bench.reception.received(0).arrived == 0
        bench.reception.watch(TAG + 0x200)
        stray, ramp = (tagged(mine, TAG + more) for more in (0x205, 0x100))
        assert bench.arrive(late, stray, ramp) == [XdpAction.DROP] * 3
        assert (bench.reception.others(0), bench.counts()) == ((1, 0), {})
        assert bench.reception.arrived_of(TAG, 0) == 1


def tagged(frame, tag):
    return frame[:42] + tag.to_bytes(4, "big") + frame[46:]


@needs_bpf
def test_late_frames_are_of_the_traffic_whose_tag_they_have_however_much_came_after():
    # The tags begin anew meanwhile.
    tags = [(0xFFFFFB00 + number * TAGS_OF_TRAFFIC) & 0xFFFFFFFF for number in range(3 * MOST_TRAFFIC)]
    with Bench(spec()) as bench:
        frame = bench.send()
        expected = {}
        for number, tag in enumerate(tags):
            bench.reception.watch(tag)
            # One in time, and so many late ones of the traffic before and of the oldest that is counted.
            oldest = tags[max(0, number - MOST_TRAFFIC + 1)]
            seen = [tag, *([tags[number - 1]] * 2 if number else []), oldest]
            for each in seen:
                expected[each] = expected.get(each, 0) + 1
            ramp = tagged(frame, tag - 0x100 & 0xFFFFFFFF)
            assert bench.arrive(*(tagged(frame, each) for each in seen), ramp) == [XdpAction.DROP] * (len(seen) + 1)
            known = tags[max(0, number - MOST_TRAFFIC + 1) : number + 1]
            assert {each: bench.reception.arrived_of(each, 0) for each in known} == {
                each: expected[each] for each in known
            }
        # A frame of even older traffic is foreign.
        too_old = tagged(frame, tags[-MOST_TRAFFIC - 1])
        assert bench.arrive(too_old) == [XdpAction.PASS]
        assert bench.reception.arrived_of(tags[-MOST_TRAFFIC - 1], 0) == 0
        assert bench.reception.others(0) == (0, 1)


@needs_bpf
def test_latency_and_jitter_are_those_of_the_clock():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(5)]
        time.sleep(0.02)
        bench.arrive(*frames)
        received = bench.reception.received(0)
        assert 20e6 <= received.latencies.least <= received.latencies.most
        assert received.latencies.least * 5 <= received.latencies.sum <= received.latencies.most * 5
        assert received.jitter_count == 4
        assert received.jitter_sum >= received.latencies.most - received.latencies.least
        values = [
            value for value, _ in histogram.filled(received.latencies.histogram, received.latencies.least, 1 << 40)
        ]
        assert received.latencies.least <= values[0] < received.latencies.least * (1 + 1 / 128)
        assert sum(received.latencies.histogram) == 5


@pytest.mark.parametrize("value", [0, 1, 99, 127, 128, 129, 255, 256, 1000, 123_456, 10**9, (1 << 34) - 1])
def test_an_interval_is_at_most_one_percent_wide(value):
    edges = [histogram.edge(interval) for interval in range(histogram.INTERVALS)]
    assert edges == sorted(set(edges))
    below = max(edge for edge in edges if edge <= value)
    above = min((edge for edge in edges if edge > value), default=1 << 34)
    assert above - below <= max(1, 0.01 * value)


def test_percentiles_are_those_of_all_frames():
    counts = [0] * histogram.INTERVALS
    counts[100], counts[200], counts[histogram.INTERVALS - 1] = 50, 49, 1
    values = list(histogram.filled(counts, 100, 1 << 40))
    assert [histogram.percentile(values, percent) for percent in (1, 50, 50.1, 99)] == [100, 100, 200, 200]
    assert histogram.percentile(values, 100) == pytest.approx(1 << 34, rel=0.005)


def test_no_percentile_is_beyond_the_smallest_or_the_largest_latency():
    counts = [0] * histogram.INTERVALS
    least, most = 50_010_000, 50_100_000
    counts[max(range(histogram.INTERVALS), key=lambda one: (histogram.edge(one) <= least) * one)] = 100
    values = list(histogram.filled(counts, least, most))
    assert all(least <= histogram.percentile(values, percent) <= most for percent in (1, 50, 99, 100))


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


@pytest.mark.parametrize(("seed", "count"), [(1, 1), (2, 7), (70000, 254), (3, 5000)])
def test_a_random_order_is_that_of_the_embedded_generator(seed, count):
    assert permutation(seed, count) == np.random.RandomState(seed).permutation(count).tolist()


def test_frames_that_no_page_has_room_for_are_refused_with_the_way_out():
    with pytest.raises(AgentError, match=r"Frames of 9000 bytes do not fit .* Use 'kind: afpacket'"):
        FramePlan(spec("ethip4-udp", 9000), SOURCE_MAC, DESTINATION_MAC)


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

"""The programs that send and receive inside the kernel: the kernel runs them on single frames, which go nowhere."""

from __future__ import annotations

import time
from collections import Counter
from functools import cache

import numpy as np
import pytest
from at_least_one import at_least_one
from bpf_objects import XdpAction
from frame_samples import DESTINATION_MAC, SOURCE_MAC, cycle, of_each_kind, smallest_size, spec
from hypothesis import given, settings, strategies as st
from xdp_bench import TAG, Bench, needs_bpf

from lossratio.agent.afpacket.frames import MOST_HEADERS, number_bytes, number_parts, tag_bytes
from lossratio.agent.core.frames_spec import permutation
from lossratio.agent.core.protocol import AgentError
from lossratio.agent.xdp import histogram
from lossratio.agent.xdp.constants import FOREVER
from lossratio.agent.xdp.frames import FramePlan
from lossratio.agent.xdp.receive_program import MOST_GAPS, MOST_TRAFFIC, TAGS_OF_TRAFFIC
from lossratio.topology.addressing import EAST, WEST
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration


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


@pytest.mark.whole
@needs_bpf
@pytest.mark.parametrize("profile", of_each_kind())
def test_frames_are_those_of_the_embedded_generator_and_come_back_intact(profile, monkeypatch):
    # A million flows have the same random order in frames of all sizes.
    monkeypatch.setattr("lossratio.agent.core.frames_spec.permutation", cache(permutation))
    smallest = smallest_size(profile)
    sizes = (smallest, 570, 1518) if smallest > 64 and "ip6" not in profile else (smallest, 1518, "IMIX_v4_1")
    described = [spec(profile, size) for size in sizes]
    # The embedded generator, with which they are compared, refuses the most flows in three sizes.
    for description in at_least_one(one for one in described if one.flows * len(one.sizes) <= MOST_HEADERS):
        first = max(0, description.flows - 20)
        with Bench(description, first=first) as bench:
            sent = [bench.send() for _ in range(40)]
            assert sent == as_afpacket_sends(description, range(40), first)
            assert bench.arrive(*sent) == [XdpAction.DROP] * 40
            assert bench.counts() == {"arrived": 40, "intact": 40}


@pytest.mark.whole
@needs_bpf
def test_the_other_direction_has_frames_of_its_own():
    description = spec("ethip4-udp", 64, EAST, WEST)
    with Bench(description) as bench:
        assert [bench.send() for _ in range(300)] == as_afpacket_sends(description, range(300))


@pytest.mark.whole
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


@pytest.mark.whole
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


FAULTS = (
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
)
"""Faults of a frame, and the counter of each."""


@pytest.mark.whole
@needs_bpf
@pytest.mark.parametrize("size", [64, 1518, "IMIX_v4_1"])
def test_each_fault_of_a_frame_has_its_counter(size):
    with Bench(spec("ethip4-udp", size)) as bench:
        expected = Counter()
        for fault, counted in FAULTS:
            frames = [bench.send() for _ in range(3)]
            bench.arrive(frames[0], fault(frames[1]), frames[2])
            expected.update({"arrived": 3, counted: 1, "intact": 2})
            assert bench.counts() == expected


OPTIONS = """
format: lossratio-traffic-profile/1
name: options
ipv4: {options: "0101010094040000"}
udp: {}
"""


@pytest.mark.whole
@needs_bpf
@pytest.mark.parametrize("has_options", [False, True])
def test_a_router_may_change_mac_addresses_time_to_live_and_header_checksum(tmp_path, has_options):
    profile = tmp_path / "options.yaml"
    profile.write_text(OPTIONS)
    with Bench(spec(str(profile) if has_options else "ethip4-udp", 128)) as bench:
        frame = bench.send()
        assert frame[14] == 0x45 + 2 * has_options
        checksum = int.from_bytes(frame[24:26], "big") + 0x0100
        checksum = (checksum & 0xFFFF) + (checksum >> 16)
        routed = frame[:6] + bytes(6) + frame[12:22] + bytes([frame[22] - 1, frame[23]])
        bench.arrive(routed + checksum.to_bytes(2, "big") + frame[26:])
        assert bench.counts() == {"arrived": 1, "intact": 1}


@pytest.mark.whole
@needs_bpf
@pytest.mark.parametrize("profile", ["dot1q-ip4base", "dot1ad-ip4base"])
def test_a_frame_may_have_lost_the_tag_of_its_vlan(profile):
    with Bench(spec(profile, 128)) as bench:
        frames = [bench.send() for _ in range(3)]
        bench.arrive(frames[0], frames[1][:12] + frames[1][16:], changed(frames[2][:12] + frames[2][16:], -1))
        assert bench.counts() == {"arrived": 3, "intact": 2, "corrupted": 1}


@pytest.mark.whole
@needs_bpf
def test_copies_and_the_order_are_seen():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(8)]
        bench.arrive(*(frames[number] for number in (0, 1, 1, 4, 2, 3, 5, 4, 7)))
        assert bench.counts() == {"arrived": 9, "duplicated": 2, "reordered": 2, "intact": 7}
        received = bench.reception.received(0)
        # 2 came behind 4, and 3 came two frames after it.
        assert (received.displacement, received.extent) == (2, 2)


@pytest.mark.whole
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


@pytest.mark.whole
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


@pytest.mark.whole
@needs_bpf
@given(late=st.lists(st.integers(0, 59), max_size=12, unique=True), seed=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
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


@pytest.mark.whole
@needs_bpf
def test_a_number_that_was_never_sent_is_a_corrupted_frame():
    with Bench(spec()) as bench:
        frames = [bench.send() for _ in range(4)]
        bench.begin()
        bench.send()
        bench.reception.times.memory[:] = bytes(len(bench.reception.times.memory))
        bench.arrive(frames[3])
        assert bench.counts() == {"arrived": 1, "corrupted": 1}


@pytest.mark.whole
@needs_bpf
def test_a_frame_that_a_whole_ring_of_later_ones_overtook_is_neither_intact_nor_a_copy():
    with Bench(spec()) as bench:
        old = bench.send()
        bench.reception.times.memory[:8] = (time.monotonic_ns() << 16 & FOREVER | 2).to_bytes(8, "little")
        bench.arrive(old)
        assert bench.counts() == {"arrived": 1, "stale": 1}


@pytest.mark.whole
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
        assert bench.reception.arrived_of([0], TAG) == 1


def tagged(frame, tag):
    return frame[:42] + tag.to_bytes(4, "big") + frame[46:]


@pytest.mark.smoke
@pytest.mark.whole
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
            assert {each: bench.reception.arrived_of([0], each) for each in known} == {
                each: expected[each] for each in known
            }
        # A frame of even older traffic is foreign.
        too_old = tagged(frame, tags[-MOST_TRAFFIC - 1])
        assert bench.arrive(too_old) == [XdpAction.PASS]
        assert bench.reception.arrived_of([0], tags[-MOST_TRAFFIC - 1]) == 0
        assert bench.reception.others(0) == (0, 1)


@pytest.mark.whole
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


@pytest.mark.parametrize(("seed", "count"), [(1, 1), (2, 7), (70000, 254), (3, 5000)])
def test_a_random_order_is_that_of_the_embedded_generator(seed, count):
    assert permutation(seed, count) == np.random.RandomState(seed).permutation(count).tolist()


def test_frames_that_no_page_has_room_for_are_refused_with_the_way_out():
    with pytest.raises(AgentError, match=r"Frames of 9000 bytes do not fit .* Use 'kind: afpacket'"):
        FramePlan(spec("ethip4-udp", 9000), SOURCE_MAC, DESTINATION_MAC)


def test_headers_whose_checksum_changes_within_another_checksum_are_refused():
    pair = PortPair(TrafficPort("port0", "west"), TrafficPort("port1", "east"))
    profile = load_profile("ethip4-geneve1", frame_size=64)
    east, west = (direction.frames for direction in make_configuration(profile, [pair], settle_time=0.1).directions)
    FramePlan(east, SOURCE_MAC, DESTINATION_MAC)
    with pytest.raises(AgentError, match="over another checksum that changes"):
        FramePlan(west, SOURCE_MAC, DESTINATION_MAC)

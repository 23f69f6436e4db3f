"""Where lost frames sit, from the numbers of these frames: against a count one by one, and with real devices."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from traffic_lab import EAST, WEST, drop
from whole_trials import run_trial

from lossratio.agent.core.frame_order import FrameOrder
from lossratio.agent.core.frames_spec import FramesSpec, SteppingField
from lossratio.agent.core.losses import MOST_FLOWS, Fates, LossTables
from lossratio.agent.xdp.constants import RING, RING_BITS, WRAP_BITS
from lossratio.agent.xdp.fates import CHUNK, MOST_CHUNKS, FateLog, fates_of
from lossratio.bpf import why_impossible
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import Losses, read_counts, read_record

MIX = ((64, 7), (570, 4), (1518, 1))


def spec(flows: int = 1, sizes: tuple[tuple[int, int], ...] = ((64, 1),)) -> FramesSpec:
    """IPv4 and UDP, whose flows differ in their destination addresses."""
    profile = load_profile("ethip4-udp", frame_size=64)
    ports = PortPair(TrafficPort("west", "west"), TrafficPort("east", "east"))
    found = make_configuration(profile, [ports], settle_time=0.1).directions[0].frames
    fields = (SteppingField(offset=30, width=4, first=0xC6120001, count=flows),) if flows > 1 else ()
    return FramesSpec(**{**vars(found), "fields": fields, "sizes": sizes})


def losses(frames: FramesSpec, fates: Fates, first: int = 0, duration: float = 1.0) -> Losses | None:
    """The record as it comes from the agent."""
    message = LossTables(frames).of(fates, first, duration)
    return None if message is None else read_record(Losses, json.dumps(message))


def whole(sent: int, lost: list[int]) -> Fates:
    return Fates(sent, np.zeros(1, dtype=np.int64), sent, np.array(lost, dtype=np.int64))


def test_without_a_lost_frame_there_is_no_record():
    assert losses(spec(8), whole(1000, [])) is None


@pytest.mark.whole
@settings(max_examples=60, deadline=None)
@given(
    flows=strategies.sampled_from([1, 2, 7, 12, 254]),
    sizes=strategies.sampled_from([((64, 1),), MIX]),
    first=strategies.integers(0, 5000),
    sent=strategies.integers(1, 6000),
    run=strategies.sampled_from([None, 16]),
    seed=strategies.integers(0, 1 << 32),
)
def test_the_tables_are_those_of_a_count_frame_by_frame(flows, sizes, first, sent, run, seed):
    random = np.random.default_rng(seed)
    frames = spec(flows, sizes)
    order = FrameOrder(frames)
    starts = np.zeros(1, dtype=np.int64)
    if run is not None:
        starts = np.flatnonzero(random.random(-(-sent // run)) < 0.5) * run
    known = [number for start in starts.tolist() for number in range(start, min(start + (run or sent), sent))]
    lost = sorted(number for number in known if random.random() < 0.2)
    fates = Fates(sent, starts, run or sent, np.array(lost, dtype=np.int64))
    found = losses(frames, fates, first)
    assert fates.known == len(known)
    assert fates.numbers().tolist() == known
    if not lost:
        assert found is None
        return

    assert (found.known_frames, found.lost_frames, found.flows) == (len(known), len(lost), flows)
    flow_of = order.flow_numbers(np.array(known) + first).tolist()
    if flows > 1:
        assert read_counts(found.flows_known) == tuple(Counter(flow_of)[flow] for flow in range(flows))
        by_flow = np.array(read_counts(found.flows_lost)).reshape(found.blocks, flows).sum(axis=0)
        lost_flows = Counter(order.flow_numbers(np.array(lost) + first).tolist())
        assert by_flow.tolist() == [lost_flows[flow] for flow in range(flows)]
    if len(sizes) > 1:
        assert found.sizes_bytes == tuple(order.pattern.tolist())
        places = Counter((number + first) % len(order.pattern) for number in lost)
        by_place = np.array(read_counts(found.sizes_lost)).reshape(found.blocks, -1).sum(axis=0)
        assert by_place.tolist() == [places[place] for place in range(len(order.pattern))]
    steps = Counter(int(number / sent / found.step_s) for number in lost)
    assert sum(read_counts(found.steps_lost)) == sum(steps.values())
    assert sum(read_counts(found.steps_known)) == len(known)


def test_blocks_are_parts_of_the_trial_with_as_many_frames_each():
    found = losses(spec(4), whole(1600, [*range(100, 200), 1599]))
    table = np.array(read_counts(found.flows_lost)).reshape(found.blocks, 4)
    assert found.blocks == 16
    assert table.sum(axis=1).tolist() == [0, 100, *[0] * 13, 1]


def test_events_and_the_beginning_are_counted():
    found = losses(spec(), whole(100, [0, 1, 2, 10, 20, 21]))
    assert read_counts(found.events) == (1, 2)
    assert found.leading_frames == 3


def test_an_event_of_a_sample_ends_where_nobody_knows_more():
    fates = Fates(64, np.array([16, 48]), 16, np.array([30, 31, 48]))
    found = losses(spec(), fates)
    assert read_counts(found.events) == (1, 1)
    assert (found.run_frames, found.leading_frames) == (16, 0)


def test_of_very_many_flows_the_first_ones_are_counted():
    found = losses(spec(5000), whole(20_000, list(range(20_000))))
    assert found.flows == 5000
    assert set(read_counts(found.flows_known)) == {4}
    assert len(read_counts(found.flows_known)) == MOST_FLOWS


def test_the_hash_for_queues_is_microsoft_s():
    """The document's own example: 66.9.149.187, port 2794, to 161.142.100.80, port 1766."""
    header = bytes.fromhex(spec().header)
    header = header[:26] + bytes([66, 9, 149, 187, 161, 142, 100, 80]) + bytes.fromhex("0aea06e6") + header[38:]
    fields = (SteppingField(offset=36, width=2, first=1766, count=2),)
    frames = FramesSpec(**{**vars(spec()), "header": header.hex(), "fields": fields})
    found = losses(frames, whole(100, [1]))
    assert read_counts(found.flow_hashes)[0] == 0x51CCC178 & 0x7F


def test_fields_with_few_values_make_classes():
    fields = (
        SteppingField(offset=30, width=4, first=0xC6120001, count=12),
        SteppingField(offset=36, width=2, first=80, count=3, values=(443, 80, 8080)),
    )
    found = losses(FramesSpec(**{**vars(spec()), "fields": fields}), whole(100, [1]))
    (classes,) = found.classes
    assert (classes.field, classes.values) == ("UDP destination port", (443, 80, 8080))


@pytest.mark.parametrize(
    ("text", "problem"), [("no base 64!", "base64"), ("AAAA", "list of counts"), ("eJxjAAAAAQAB", "each count takes 4")]
)
def test_counts_that_are_none_are_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_counts(text)


class Ring:
    """A stream's ring of times, as a sender and a receiver leave it."""

    def __init__(self) -> None:
        self.words = np.zeros(RING, dtype=np.uint64)

    def send(self, numbers: np.ndarray, is_lost: np.ndarray) -> None:
        rounds = (numbers >> RING_BITS) + 1
        times = np.where(is_lost, numbers + 1000, 0)
        self.words[numbers % RING] = (times << WRAP_BITS | rounds).astype(np.uint64)

    def view(self) -> memoryview:
        return memoryview(self.words)


def test_the_ring_leaves_the_lost_frames_of_traffic_that_is_longer_than_it():
    random = np.random.default_rng(1)
    ring, sent, step = Ring(), 3 * RING + 12_345, 1 << 18
    log = FateLog(ring.view)
    lost = random.random(sent) < 0.01
    for start in range(0, sent, step):
        numbers = np.arange(start, min(start + step, sent))
        ring.send(numbers, lost[numbers])
        log.note(int(numbers[-1]) + 1)
    fates = fates_of([log], [sent], int(lost.sum()))
    assert fates.is_whole
    assert fates.lost.tolist() == np.flatnonzero(lost).tolist()


@pytest.mark.whole
def test_the_latest_frames_are_known_if_nobody_looked_before():
    ring, sent = Ring(), 2 * RING
    numbers = np.arange(sent)
    ring.send(numbers, numbers % 1000 == 0)
    fates = fates_of([FateLog(ring.view)], [sent], int((numbers % 1000 == 0).sum()))
    assert fates.is_whole
    assert fates.first == sent - RING
    assert fates.lost.tolist() == [number for number in range(sent - RING, sent) if number % 1000 == 0]


def test_two_streams_are_one_direction():
    rings = [Ring(), Ring()]
    lost = [np.arange(1000) == 5, np.arange(1000) == 7]
    for ring, of_stream in zip(rings, lost, strict=True):
        ring.send(np.arange(1000), of_stream)
    fates = fates_of([FateLog(ring.view) for ring in rings], [1000, 1000], 2)
    assert fates.lost.tolist() == [10, 15]


def test_losses_that_the_counters_do_not_agree_with_are_not_located():
    ring = Ring()
    ring.send(np.arange(1000), np.arange(1000) < 10)
    assert fates_of([FateLog(ring.view)], [1000], 9) is None


def test_memory_is_bounded_in_traffic_without_an_end():
    ring = Ring()
    log = FateLog(ring.view)
    for number in range(1, 3 * MOST_CHUNKS):
        log.note(number * CHUNK)
    assert len(log.chunks) <= MOST_CHUNKS
    strides = np.diff(sorted(log.chunks))
    assert set(strides.tolist()) == {4}


GENERATORS = [
    "afpacket",
    pytest.param("xdp", marks=pytest.mark.skipif(why_impossible() is not None, reason="no BPF here")),
]


@pytest.mark.netns
@pytest.mark.parametrize("generator", GENERATORS)
class TestRealDevices:
    """nftables drop a part of the frames."""

    def trial(self, lab, agent, generator, condition, profile="ethip4-udp", frame_size=64, load=4000.0):
        for interface in ("dut0", "dut1"):
            lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
        drop(lab, "dut0", condition)
        loaded = load_profile(profile, frame_size=frame_size)
        configuration = make_configuration(loaded, [PortPair(WEST, EAST)], settle_time=0.2)
        agent.configure(configuration, generator=generator, options={"catch_up": 10.0})
        return run_trial(agent, load, 0.5)

    def test_the_flows_of_one_address(self, bridged, agent, generator):
        condition = "ip saddr & 0.0.0.7 == 0.0.0.3"
        there, back = self.trial(bridged, agent, generator, condition, "ethip4-ip4base")
        found = there.losses
        assert back.losses is None
        assert found.lost_frames == there.lost
        assert found.known_frames == there.sent_frames
        by_flow = np.array(read_counts(found.flows_lost)).reshape(found.blocks, -1).sum(axis=0)
        known = np.array(read_counts(found.flows_known))
        is_whole = by_flow == known
        assert (by_flow[~is_whole] == 0).all()
        assert int(is_whole.sum()) == 32

    def test_frames_of_one_size(self, bridged, agent, generator):
        there, _ = self.trial(bridged, agent, generator, "meta length 1500-1600", frame_size="IMIX_v4_1")
        found = there.losses
        by_place = np.array(read_counts(found.sizes_lost)).reshape(found.blocks, -1).sum(axis=0)
        assert {size for size, lost in zip(found.sizes_bytes, by_place, strict=True) if lost} == {1518}
        assert found.lost_frames == there.lost

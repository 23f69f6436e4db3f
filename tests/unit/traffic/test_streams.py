"""Streams of a traffic profile: shares, sizes, marks and flows of their own, and the loss of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from at_least_one import at_least_one
from hypothesis import given, settings, strategies
from traffic_lab import EAST, WEST, drop
from whole_trials import run_latency, run_trial, whole

from lossratio.agent.afpacket.frames import build_frames
from lossratio.agent.core.frame_order import FrameOrder
from lossratio.bpf import why_impossible
from lossratio.errors import ProfileError, SearchError
from lossratio.measurements.throughput import SearchRequest
from lossratio.mlrsearch import NDR, MLRsearch, SearchGoal
from lossratio.topology import addressing, load_topology
from lossratio.traffic import PortPair, TrafficMeasurer, check_sends_streams, load_profile, make_configuration
from lossratio.traffic.frame_headers import frames_spec
from lossratio.trials import run_search

PROFILE = """
format: lossratio-traffic-profile/1
name: classes
dot1q: {id: 7}
ipv4:
  source: {first: 1, count: 4}
  destination: {first: 1}
udp: {}
streams:
"""
TWO = """
  - {name: voice, share: 1, dscp: 46, priority: 5, frame_size: 128}
  - {name: data, share: 3}
"""


def profile_of(path, streams, head=PROFILE, frame_size=512, **options):
    file = path / "classes.yaml"
    file.write_text(head + streams)
    return load_profile(file, frame_size=frame_size, **options)


def frames_of(profile, count):
    spec = frames_spec(profile.directions[0], addressing.WEST, addressing.EAST)
    cycle = build_frames(spec, b"\2" * 6, b"\4" * 6)
    data, lengths = cycle.frames(np.arange(count))
    return spec, [row[:length].tobytes() for row, length in zip(data, lengths.tolist(), strict=True)]


def test_every_stream_has_its_share_size_and_marks(tmp_path):
    profile = profile_of(tmp_path, TWO)
    spec, frames = frames_of(profile, 400)
    seen = Counter((len(frame) + 4, frame[14] >> 5, frame[19] >> 2) for frame in frames)
    assert seen == {(128, 5, 46): 100, (512, 0, 0): 300}
    assert [spec.order.names[stream] for stream in spec.order.streams[:5]] == ["data", "voice", "data", "data", "data"]
    assert profile.size_weights == {128: 2 * 0.25, 512: 2 * 0.75}


def test_a_size_of_a_stream_may_have_its_unit(tmp_path):
    profile = profile_of(tmp_path, "  - {name: a, share: 1, frame_size: 128B}\n  - {name: b, share: 1}\n")
    assert profile.size_weights == {128: 1.0, 512: 1.0}


def test_a_goal_of_an_unknown_stream_is_refused_in_words(tmp_path):
    goal = replace(NDR, name="gold", stream="vioce")
    with pytest.raises(
        SearchError, match=r"'vioce', but the profile classes has no such stream; its streams: voice, data"
    ):
        SearchRequest(goals=(goal,), profile=profile_of(tmp_path, TWO))


def test_every_flow_of_a_stream_comes_as_often(tmp_path):
    streams = """
  - {name: web, share: 2, dscp: 8, headers: {dot1q: {id: 7}, ipv4: {source: {first: 9, count: 3}}, udp: {}}}
  - {name: rest, share: 5, frame_size: IMIX_v4_1}
"""
    spec, frames = frames_of(profile_of(tmp_path, streams), 0)
    _, frames = frames_of(profile_of(tmp_path, streams), spec.period)
    web = Counter(frame[30:34] for frame in frames if frame[19] >> 2 == 8)
    assert len(web) == 3
    assert len(set(web.values())) == 1
    rest = Counter((frame[30:34], len(frame) + 4) for frame in frames if not frame[19])
    for size, weight in ((64, 28), (570, 16), (1518, 4)):
        of_size = [count for (_, length), count in rest.items() if length == size]
        assert len(of_size) == 4
        assert len(set(of_size)) == 1
        assert sum(of_size) * 48 == sum(rest.values()) * weight


@pytest.mark.whole
@settings(max_examples=40, deadline=None)
@given(strategies.integers(0, 9999), strategies.integers(0, 9999))
def test_frames_of_each_stream_are_counted_as_one_by_one(tmp_path_factory, first, count):
    spec, _ = frames_of(profile_of(tmp_path_factory.getbasetemp(), TWO), 1)
    order = spec.order
    streams = [order.streams[number % len(order.streams)] for number in range(first, first + count)]
    assert order.count(first, count) == [streams.count(0), streams.count(1)]
    for part in range(3):
        assert order.count(first + part, len(streams[part::3]), 3) == [streams[part::3].count(name) for name in (0, 1)]


def test_a_rate_is_a_proportion(tmp_path):
    rates = "  - {name: one, rate: 12500, dscp: 1}\n  - {name: two, rate: 37500}\n"
    spec, _ = frames_of(profile_of(tmp_path, rates), 1)
    assert Counter(spec.order.streams) == {0: len(spec.order.streams) // 4, 1: len(spec.order.streams) * 3 // 4}


def test_the_order_repeats_as_its_streams_do(tmp_path):
    spec, _ = frames_of(profile_of(tmp_path, TWO), 1)
    order = FrameOrder(spec)
    assert order.period == spec.flows == len(spec.order.streams)
    assert order.flow_numbers(np.arange(2 * order.period)).tolist() == [*range(order.period)] * 2


@pytest.mark.parametrize(
    ("streams", "head", "problem"),
    [
        ("  - {name: one, share: 1}\n  - {name: one, share: 2}\n", PROFILE, "several have the same name: one"),
        ("  - {name: one}\n", PROFILE, "one needs a 'share' or a 'rate'"),
        ("  - {name: one, share: 1, rate: 2}\n", PROFILE, "one has both a 'share' and a 'rate'"),
        (
            "  - {name: one, share: 1}\n  - {name: two, share: 1, frame_size: 32}\n",
            PROFILE,
            r"classes\.yaml:11: streams\.1: two has wrong sizes: 32 is not between 64 and 9000 bytes",
        ),
        (
            "  - {name: one, share: 1, frame_size: IMXI}\n",
            PROFILE,
            r"classes\.yaml:10: streams\.0: one has wrong sizes: 'IMXI' is neither a size",
        ),
        ("  - {name: one, share: 1}\n  - {name: two, rate: 2}\n", PROFILE, "some have a 'share', and others a 'rate'"),
        ("  - {name: one, share: 1}\n  - {name: two, share: 0.33333}\n", PROFILE, "repeat after 133333 frames"),
        (
            "  - {name: one, share: 1, priority: 3}\n",
            PROFILE.replace("dot1q: {id: 7}\n", ""),
            "one has a 'priority', but its frames have no VLAN tag",
        ),
        (
            "  - {name: one, share: 1}\n  - {name: two, share: 1, headers: {ipv6: {}, udp: {}}}\n",
            PROFILE,
            "one and two have different headers",
        ),
        (TWO, PROFILE.replace("udp: {}", "udp: {}\nbroadcast_share: 0.01"), "cannot have 'broadcast_share'"),
        (TWO, PROFILE.replace("udp: {}", "tcp: {connects: true}"), "cannot open connections"),
        (TWO, PROFILE.replace("count: 4", "count: 65521"), "repeat after"),
    ],
)
def test_streams_that_cannot_be_sent_are_refused(tmp_path, streams, head, problem):
    with pytest.raises(ProfileError, match=problem):
        profile_of(tmp_path, streams, head)


def test_streams_between_two_nodes_are_refused_before_they_are_sent(tmp_path):
    profile = profile_of(tmp_path, TWO)
    local = load_topology("local")
    check_sends_streams(local, profile)
    second = local.nodes["TG"].model_copy(update={"generator": None})
    nodes = {"TG1": local.nodes["TG"], "TG2": second, "DUT1": local.nodes["DUT1"]}
    two = local.model_copy(update={"nodes": nodes})
    with pytest.raises(ProfileError, match=r"this testbed has 2 nodes of type TG: TG1, TG2\. Give both ports to one"):
        check_sends_streams(two, profile)
    check_sends_streams(two, load_profile("ethip4-udp", frame_size=64))


def test_a_simulated_testbed_refuses_streams(tmp_path):
    with pytest.raises(ProfileError, match="of a simulated testbed does not send the 'streams' of traffic profile"):
        check_sends_streams(load_topology("simulated"), profile_of(tmp_path, TWO))


def test_a_profile_without_streams_is_described_as_before():
    described = load_profile("ethip4-udp", frame_size=64).description_in_full()
    assert "streams" not in described


GENERATORS = [
    "afpacket",
    pytest.param("xdp", marks=pytest.mark.skipif(why_impossible() is not None, reason="no BPF here")),
]
ALIKE = TWO.replace("priority: 5, ", "").replace("share: 3", "share: 3, frame_size: 128")
FRAME = 124
"""Bytes of each of these frames, without FCS."""
UNTAGGED = PROFILE.replace("dot1q: {id: 7}\n", "")


class WholeTrials:
    """Measures each trial again in which not all frames could be sent."""

    def __init__(self, measurer):
        self._measurer = measurer

    def measure(self, trial):
        return whole(self._measurer.measure, trial)


def configured(lab, agent, generator, path, streams, head=UNTAGGED, catch_up=10.0):
    for interface in ("dut0", "dut1"):
        lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
    profile = profile_of(path, streams, head)
    configuration = make_configuration(profile, [PortPair(WEST, EAST)], settle_time=0.2)
    agent.configure(configuration, generator=generator, options={"catch_up": catch_up})


def searched(agent, duration):
    """The results of a search with a goal for each stream, by its name."""
    goals = {
        name: SearchGoal(0.005, 0.5, duration, 3 * duration, 0.02, duration, name=name, stream=name)
        for name in ("voice", "data")
    }
    search = MLRsearch(goals.values(), 500.0, 8000.0)
    found = run_search(search, WholeTrials(TrafficMeasurer(agent, idle_time=0.05, tolerance=0.0)))
    return {name: found[goal] for name, goal in goals.items()}


def make_slow(lab, rate, queue):
    """Makes the link behind the bridge carry so many frames a second, voice before data."""
    hook = 'type filter hook ingress device "dut0" priority 0;'
    marks = "meta priority set 0:2\nip dscp 46 meta priority set 0:6\n"
    lab.run("dut1", "nft", "-f", "-", input=f"table netdev classes {{\nchain in {{\n{hook}\n{marks}}}\n}}\n")
    lab.run("dut1", "ip", "link", "set", "dev", "dut1", "txqueuelen", str(queue))
    slow = ("tbf", "rate", f"{8 * FRAME * rate}bit", "burst", f"{2 * FRAME}", "limit", "1m")
    lab.run("dut1", "tc", "qdisc", "add", "dev", "dut1", "root", "handle", "1:", *slow)
    # Three queues, of which the first one that is not empty is served.
    lab.run("dut1", "tc", "qdisc", "add", "dev", "dut1", "parent", "1:1", "handle", "10:", "pfifo_fast")


@pytest.mark.netns
@pytest.mark.parametrize("generator", GENERATORS)
class TestRealFrames:
    @pytest.mark.parametrize("head", [UNTAGGED, PROFILE])
    def test_all_frames_of_all_streams_come_back(self, bridged, agent, generator, tmp_path, head):
        streams = TWO if head == PROFILE else TWO.replace("priority: 5, ", "")
        configured(bridged, agent, generator, tmp_path, streams, head)
        for ramp in (0.0, 0.05):
            for way in at_least_one(run_trial(agent, 3000.0, 0.3, ramp=ramp)):
                assert way.received_frames == way.sent_frames
                assert (way.faulty, way.foreign_frames) == (0, 0)
                assert [stream.name for stream in way.by_stream] == ["voice", "data"]
                assert sum(stream.sent_frames for stream in way.by_stream) == way.sent_frames
                assert all(stream.received_frames == stream.sent_frames for stream in way.by_stream)
                voice, data = (stream.sent_frames for stream in way.by_stream)
                assert abs(3 * voice - data) <= 4

    def test_the_loss_of_one_class_is_that_of_its_stream(self, bridged, agent, generator, tmp_path):
        drop(bridged, "dut0", "ip dscp 0 numgen inc mod 10 0")
        configured(bridged, agent, generator, tmp_path, TWO.replace("priority: 5, ", ""))
        there, back = run_trial(agent, 3000.0, 0.4)
        voice, data = there.by_stream
        assert voice.sent_frames == voice.received_frames
        assert data.sent_frames - data.received_frames == there.lost
        assert abs(there.lost - data.sent_frames / 10) <= 1
        assert all(stream.received_frames == stream.sent_frames for stream in back.by_stream)

    def test_each_class_has_a_latency_of_its_own(self, bridged, agent, generator, tmp_path):
        rate, queue = 1000, 20
        make_slow(bridged, rate, queue)
        configured(bridged, agent, generator, tmp_path, ALIKE)
        # Data waits behind a full queue, and voice behind one frame.
        output = whole(run_latency, agent, 2.0 * rate, 1.0)
        east, west = output.latency
        for way in (east, west):
            assert [one.stream for one in way.by_stream] == ["voice", "data"]
            assert sum(one.sent_frames for one in way.by_stream) == way.sent_frames
            assert sum(one.received_frames for one in way.by_stream) == way.received_frames
        voice, data = east.by_stream
        assert voice.received_frames == voice.sent_frames
        assert data.received_frames < data.sent_frames
        assert data.mean_us > 2.0 * voice.mean_us


# Stalls of more than a millisecond leave frames unsent, in nearly each trial beside other work. That each generator
# counts the classes apart is tested above.
@pytest.mark.netns
@pytest.mark.quiet
def test_one_search_finds_what_is_policed_in_each_class(bridged, agent, tmp_path):
    """A policer of rate N and burst B passes N T + B - 1 frames of a class in T seconds."""
    duration, rates, burst = 0.25, {"voice": 1000, "data": 1500}, 10
    rules = "".join(
        f"ip dscp {dscp} limit rate over {rates[name]}/second burst {burst} packets drop\n"
        for name, dscp in (("voice", 46), ("data", 0))
    )
    hook = 'type filter hook ingress device "dut0" priority 0;'
    bridged.run("dut1", "nft", "-f", "-", input=f"table netdev classes {{\nchain in {{\n{hook}\n{rules}}}\n}}\n")
    # A longer stall is no burst, for which the policers have no room: its frames stay unsent.
    configured(bridged, agent, "afpacket", tmp_path, TWO.replace("priority: 5, ", ""), catch_up=1e-3)
    found = searched(agent, duration)
    for name, share in (("voice", 0.25), ("data", 0.75)):
        truth = (rates[name] + (burst - 1) / duration) / share
        result = found[name]
        assert result.regular
        assert result.relevant_lower_bound <= 1.02 * truth
        assert result.relevant_upper_bound >= 0.99 * truth


# As above.
@pytest.mark.netns
@pytest.mark.quiet
def test_strict_priority_on_a_slow_link_is_a_limit_of_each_class(bridged, agent, tmp_path):
    """Voice loses frames where it alone is more than the link carries, data where both are."""
    duration, rate, queue = 0.25, 1000, 10
    make_slow(bridged, rate, queue)
    configured(bridged, agent, "afpacket", tmp_path, ALIKE, catch_up=1e-3)
    found = searched(agent, duration)
    for name, share in (("voice", 0.25), ("data", 1.0)):
        truth = (rate + (queue + 2) / duration) / share
        result = found[name]
        assert result.regular
        assert result.relevant_lower_bound <= 1.03 * truth
        assert result.relevant_upper_bound >= 0.97 * truth

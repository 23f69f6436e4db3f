from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from at_least_one import at_least_one
from frame_samples import SCALED, SOURCE_MAC, UNSCALED, cycle, frames, smallest_size, spec, with_fields_of_scapy
from hypothesis import given, settings, strategies as st
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN

from lossratio.agent.afpacket.frames import FrameOrder, Numbering, tag_bytes
from lossratio.agent.core.frame_order import values_of
from lossratio.agent.core.frames_spec import SteppingField, size_pattern
from lossratio.agent.core.protocol import AgentError
from lossratio.errors import TrafficError
from lossratio.topology.addressing import EAST, WEST, split_sides
from lossratio.traffic import load_profile
from lossratio.traffic.frame_headers import frames_spec, received_spec


@pytest.mark.parametrize("profile", UNSCALED)
@pytest.mark.parametrize("frame_size", [118, 119, 570, 1518, 9000])
def test_lengths_and_checksums_are_those_that_scapy_computes(profile, frame_size):
    built = frames(spec(profile, frame_size))[:: 7 if frame_size < 1000 else 43]
    assert [with_fields_of_scapy(frame) for frame in built] == built
    assert {len(frame) for frame in built} == {frame_size - 4}


@pytest.mark.whole
@pytest.mark.parametrize("profile", ["ethip4-udp", "ethip4-ip4base", "ethip4-tcp", "ethip6-udp", "ethip6-ip6base"])
def test_so_are_those_of_a_mix_and_of_the_smallest_frames(profile):
    smallest = 78 if "6" in profile else 66 if "tcp" in profile else 64
    for frame_size in (smallest, *(["IMIX_v4_1"] if "tcp" not in profile else [])):
        built = frames(spec(profile, frame_size))[::7]
        assert [with_fields_of_scapy(frame) for frame in built] == built


def test_a_frame_is_what_its_profile_says():
    packet = Ether(frames(spec())[2])
    assert (packet.src, packet.dst, packet.type) == ("02:00:00:00:00:01", "02:00:00:00:00:02", 0x0800)
    assert (packet[IP].src, packet[IP].dst) == ("198.18.0.3", "198.19.0.1")
    assert (packet[IP].ttl, packet[IP].proto, packet[IP].flags) == (64, 17, 0)
    assert (packet[UDP].sport, packet[UDP].dport) == (1024, 1024)
    assert packet[UDP].payload.load == tag_bytes(0) + bytes(2) + bytes(range(52, 60))


def test_protocol_61_has_its_payload_right_behind_the_ip_header():
    packet = Ether(frames(spec("ethip4-ip4base"))[0])
    assert (packet[IP].proto, bytes(packet[IP].payload)) == (61, tag_bytes(0) + bytes(range(42, 60)))


def test_ipv6_frames_have_addresses_for_benchmarking():
    packet = Ether(frames(spec("ethip6-udp", 78))[253])
    assert (packet.type, packet[IPv6].src, packet[IPv6].dst) == (0x86DD, "2001:2::fe", "2001:2:0:8000::1")
    assert (packet[IPv6].hlim, packet[IPv6].nh, packet[IPv6].plen) == (64, 17, 78 - 4 - 14 - 40)
    assert packet[UDP].sport == 1024


def test_tcp_frames_are_acknowledgements():
    packet = Ether(frames(spec("ethip4-tcp", 66))[0])
    assert (packet[TCP].sport, packet[TCP].dport, packet[TCP].flags, packet[TCP].dataofs) == (1024, 80, "A", 5)


def test_hosts_have_mac_addresses_of_their_own_side():
    there, back = (
        frames(spec("eth-l2bdscale10k", source=source, destination=sink))
        for source, sink in ((WEST, EAST), (EAST, WEST))
    )
    assert len({frame[6:12] for frame in there}) == len({frame[:6] for frame in there}) == 5000
    assert {frame[6:12] for frame in there} == {frame[:6] for frame in back}
    assert not {frame[6:12] for frame in there} & {frame[6:12] for frame in back}
    assert {frame[0] for frame in there + back} == {2}


def test_tags_are_between_the_mac_addresses_and_the_rest():
    packet = Ether(frames(spec("dot1q-ip4base"))[0])
    assert (packet.type, packet[Dot1Q].vlan, packet[Dot1Q].prio, packet[Dot1Q].type) == (0x8100, 100, 0, 0x0800)
    packet = Ether(frames(spec("dot1ad-ip4base"))[0])
    assert (packet.type, packet[Dot1AD].vlan, packet[Dot1AD].type) == (0x88A8, 200, 0x8100)
    assert (packet[Dot1Q].vlan, packet[IP].src) == (100, "198.18.0.1")


def test_a_tunnel_carries_whole_frames():
    packet = Ether(frames(spec("dot1q-ip4vxlan-ip4base", 118))[5])
    assert (packet[Dot1Q].vlan, packet[IP].src, packet[UDP].dport, packet[UDP].chksum) == (100, "198.18.0.1", 4789, 0)
    assert (packet[VXLAN].vni, packet[VXLAN].flags.value) == (24, 8)
    inner = packet[VXLAN].payload
    assert (inner[Ether].src, inner[Ether].dst) == ("02:00:c6:12:00:00", "02:00:c6:13:00:00")
    assert (inner[IP].src, inner[IP].dst, inner[IP].proto) == ("198.18.0.6", "198.19.0.1", 61)
    assert len(inner) == 64 - 4


@pytest.mark.parametrize(("source", "destination", "network"), [(WEST, EAST, "198.18."), (EAST, WEST, "198.19.")])
def test_a_direction_has_254_flows_with_addresses_of_its_own_side(source, destination, network):
    sources = {Ether(frame)[IP].src for frame in frames(spec(source=source, destination=destination))}
    assert sources == {f"{network}0.{host}" for host in range(1, 255)}


def test_parallel_paths_have_addresses_of_their_own():
    direction = load_profile("ethip4-udp", frame_size=64).directions[0]
    first = [Ether(frames(frames_spec(direction, west, east))[0])[IP] for west, east in split_sides(3)]
    assert [(packet.src, packet.dst) for packet in first] == [
        ("198.18.0.1", "198.19.0.1"),
        ("198.18.64.1", "198.19.64.1"),
        ("198.18.128.1", "198.19.128.1"),
    ]
    direction = load_profile("ethip4-ip4scale120k", frame_size=64).directions[0]
    with pytest.raises(TrafficError, match=r"no address 60000 in 198\.19\.0\.0/17"):
        frames_spec(direction, *split_sides(2)[0])


def test_the_mix_has_its_weights_in_every_dozen_of_frames():
    sizes = [len(frame) + 4 for frame in frames(spec(frame_size="IMIX_v4_1"))]
    for start in at_least_one(range(0, len(sizes), 12)):
        assert Counter(sizes[start : start + 12]) == {64: 7, 570: 4, 1518: 1}


def test_every_flow_of_the_mix_comes_in_every_size():
    flows = {(frame[26:30], len(frame)) for frame in frames(spec(frame_size="IMIX_v4_1"))}
    assert len(flows) == 254 * 3


@pytest.mark.whole
@given(st.dictionaries(st.integers(64, 1518), st.integers(1, 40), min_size=1, max_size=5))
def test_a_pattern_of_sizes_has_exactly_its_weights(weights):
    sizes = list(weights)
    counted = Counter(sizes[number] for number in size_pattern(list(weights.values())))
    assert {size: counted[size] * sum(weights.values()) for size in weights} == {
        size: weight * counted.total() for size, weight in weights.items()
    }


UNTAGGED = frames(spec())[7]


@given(st.integers(0, 2**32 - 1))
def test_no_tag_changes_a_checksum(tag):
    tagged = UNTAGGED[:42] + tag_bytes(tag) + UNTAGGED[50:]
    assert with_fields_of_scapy(tagged) == tagged


@pytest.mark.whole
@pytest.mark.parametrize(
    ("profile", "frame_size"), [*((name, "smallest") for name in UNSCALED), ("ethip4-udp", 1518), ("ethip4-tcp", 1518)]
)
@settings(max_examples=10)
@given(tag=st.integers(0, 2**32 - 1), first=st.integers(0, 2**32 - 1))
def test_the_smallest_frames_of_all_profiles_have_sequence_numbers_that_change_no_checksum(
    profile, frame_size, tag, first
):
    description = spec(profile, smallest_size(profile) if frame_size == "smallest" else frame_size)
    assert description.is_numbered
    memory = np.stack([np.frombuffer(frame, dtype=np.uint8) for frame in frames(description)[:3]]).copy()
    numbering = Numbering(memory, 0, description.tag_place)
    numbering.begin(tag)
    count = numbering.write(0, first, len(memory))
    written = [row.tobytes() for row in memory[:count]]
    start = description.tag_offset
    assert {frame[start : start + 4] for frame in written} == {tag.to_bytes(4, "big")}
    numbers = [int.from_bytes(frame[start + 4 : start + 8], "big") for frame in written]
    assert numbers == [(first + number) % 2**32 for number in range(count)]
    assert [with_fields_of_scapy(frame) for frame in written] == written


@pytest.mark.whole
@given(st.integers(0, 20_000), st.integers(1, 128))
def test_numbers_are_right_wherever_a_batch_begins(first, count):
    memory = np.zeros((128, 60), dtype=np.uint8)
    numbering = Numbering(memory, 0, spec().tag_place)
    numbering.begin(7)
    done = numbering.write(0, first, count)
    assert 1 <= done <= count
    numbers = np.ascontiguousarray(memory[:done, 46:50]).view(">u4")[:, 0]
    assert numbers.tolist() == list(range(first, first + done))


def test_frames_without_room_for_a_sequence_number_have_the_tag_alone():
    description = spec("ethip6-udp", 78)
    narrow = frames_spec(
        load_profile("ethip6-udp", frame_size=78).directions[0].model_copy(update={"size_weights": {74: 1}}), WEST, EAST
    )
    assert (description.is_numbered, narrow.is_numbered) == (True, False)


def test_a_udp_checksum_of_zero_is_sent_as_ones():
    ports = SteppingField(offset=34, width=2, first=0, count=65536)
    checksums = {frame[40:42] for frame in frames(replace(spec(), fields=(ports,)))}
    assert b"\0\0" not in checksums
    assert b"\xff\xff" in checksums


def patched(description, numbers):
    """Frames far from the first ones, as a ring that cannot hold all of them has them."""
    built = cycle(description)
    frames = []
    for number in numbers:
        row = built.data[number % len(built.data)].copy()
        for place, table in built.patches.parts if built.patches else ():
            part = table.take(built.patches.rows(number, 1))
            row[place : place + table.itemsize] = np.frombuffer(part.tobytes(), dtype=np.uint8)
        frames.append(row[: built.lengths[number % len(built.data)]].tobytes())
    return frames


@pytest.mark.whole
@pytest.mark.parametrize("profile", SCALED)
def test_frames_of_many_flows_differ_by_what_is_patched_in_and_have_right_checksums(profile):
    description = spec(profile, 1000)
    built = patched(description, range(0, description.flows, description.flows // 50))
    assert [with_fields_of_scapy(frame) for frame in built] == built
    assert len(set(built)) == len(built)


@pytest.mark.whole
def test_each_of_a_million_flows_has_a_header_of_its_own():
    built = cycle(spec("ethip4-udp-1mflows"))
    ((place, table),) = built.patches.parts
    addresses_and_ports = np.frombuffer(table.tobytes(), dtype=np.uint8).reshape(1_000_000, -1)[:, 2:12]
    assert place == 24
    assert len(np.unique(addresses_and_ports.copy().view("V10"))) == 1_000_000


@pytest.mark.parametrize(("sizes", "flows"), [(((64, 1),), 5), (((64, 7), (570, 4), (1518, 1)), 30), (((64, 2),), 7)])
def test_runs_of_flows_cover_the_order(sizes, flows):
    field = SteppingField(offset=26, width=4, first=1, count=flows)
    order = FrameOrder(replace(spec(), fields=(field,), sizes=sizes))
    numbers = np.arange(2 * order.period)
    expected = order.flow_numbers(numbers).tolist()
    number = 0
    while number < len(numbers):
        flow, run = order.run(number)
        assert expected[number : number + run] == list(range(flow, flow + run))[: len(numbers) - number]
        number += run


def test_many_flows_of_a_mix_have_the_lengths_of_their_slots():
    description = spec("ethip4-udp-100kflows", "IMIX_v4_1")
    built = patched(description, range(90_000, 90_036))
    assert [with_fields_of_scapy(frame) for frame in built] == built
    assert Counter(len(frame) + 4 for frame in built) == {64: 21, 570: 12, 1518: 3}


def test_a_random_order_has_every_value_once_and_is_the_same_each_time():
    description = spec("ethip4-ip4scale20k-rnd")
    destinations = [frame[30:34] for frame in frames(description)]
    assert destinations != sorted(destinations)
    assert sorted(destinations) == sorted(frame[30:34] for frame in frames(spec("ethip4-ip4scale20k")))
    assert destinations == [frame[30:34] for frame in frames(description)]
    other = replace(description, fields=tuple(replace(field, seed=field.seed + 1) for field in description.fields))
    assert destinations != [frame[30:34] for frame in frames(other)]


def test_more_headers_than_fit_beside_a_ring_are_refused():
    description = replace(spec("ethip6-ip6scale2m", 78), sizes=tuple((size, 1) for size in range(80, 90)))
    with pytest.raises(AgentError, match="1000000 flows in 10 sizes, but the generator afpacket keeps") as caught:
        cycle(description)
    assert caught.value.kind == "unsupported"


def test_a_frame_without_room_for_the_tag_is_refused():
    with pytest.raises(AgentError, match="smallest frame has 53 bytes, but these headers need 54"):
        cycle(replace(spec(), sizes=((53, 1),)))


@pytest.mark.parametrize(
    ("profile", "frame_size", "mtu"),
    [("ethip4-udp", 9000, 8982), ("dot1q-ip4base", 1518, 1496), ("dot1ad-ip4base", 1522, 1500)],
)
def test_one_tag_needs_no_larger_mtu(profile, frame_size, mtu):
    assert spec(profile, frame_size).mtu == mtu


def test_frames_leave_with_the_mac_address_of_their_port():
    assert {frame[6:12] for frame in frames(spec("ethip6-udp", 78))} == {SOURCE_MAC}


def test_a_range_with_a_step_a_repetition_and_rounds_that_slip_is_listed(tmp_path):
    path = tmp_path / "listed.yaml"
    path.write_text(
        "format: lossratio-traffic-profile/1\nname: listed\n"
        "ipv4: {source: {first: 0, count: 3, step: 256}, destination: {first: 1, count: 3, slips: true}}\n"
        "udp: {source_port: {first: 7, count: 2, repeat: 3}}\n"
    )
    direction = load_profile(path, frame_size=64).directions[0]
    found = frames_spec(direction, WEST, EAST)
    start = int(WEST.ipv4[0]), int(EAST.ipv4[1])
    assert [
        tuple(value - first for value in field.values) for field, first in zip(found.fields, (*start, 7), strict=True)
    ] == [(0, 256, 512), (0, 1, 2, 1, 2, 0, 2, 0, 1), (0, 0, 0, 1, 1, 1)]
    assert (direction.flows, found.flows) == (18, 18)


@pytest.mark.whole
def test_random_pairs_of_rounds_that_slip_meet_each_pair_once_and_arrive_as_they_were_sent():
    profile = load_profile("dot1q-vlan100-vlan200", frame_size=64)
    for direction, sides in zip(profile.directions, ((WEST, EAST), (EAST, WEST)), strict=True):
        sent = frames_spec(direction, *sides)
        columns = [np.array(values_of(field))[np.arange(sent.flows) % field.count].tolist() for field in sent.fields]
        assert len(set(zip(*columns, strict=True))) == sent.flows == 254 * 254
        assert [field.values for field in received_spec(direction, sent, *sides).fields] == [
            field.values for field in sent.fields
        ]

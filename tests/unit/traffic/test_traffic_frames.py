from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from lossratio.addressing import EAST, WEST
from lossratio.traffic import load_profile
from lossratio.traffic.agent.configuration import SteppingField
from lossratio.traffic.agent.frames import build_frames, size_pattern, tag_bytes
from lossratio.traffic.agent.protocol import AgentError
from lossratio.traffic.layers import frames_spec

SOURCE_MAC = bytes.fromhex("020000000001")
DESTINATION_MAC = bytes.fromhex("020000000002")


def spec(profile="ethip4-udp", frame_size=64, source=WEST, destination=EAST):
    return frames_spec(load_profile(profile, frame_size=frame_size), source, destination)


def frames(description):
    cycle = build_frames(description, SOURCE_MAC, DESTINATION_MAC)
    return [row[:length].tobytes() for row, length in zip(cycle.data, cycle.lengths, strict=True)]


def with_checksums_of_scapy(frame):
    packet = Ether(frame)
    del packet[IP].chksum
    del packet[IP].len
    if UDP in packet:
        del packet[UDP].chksum
        del packet[UDP].len
    return packet.build()


@pytest.mark.parametrize("profile", ["ethip4-udp", "ethip4-ip4base"])
@pytest.mark.parametrize("frame_size", [64, 65, 570, 1517, 1518, "IMIX_v4_1"])
def test_lengths_and_checksums_are_those_that_scapy_computes(profile, frame_size):
    built = frames(spec(profile, frame_size))[::7]
    assert [with_checksums_of_scapy(frame) for frame in built] == built


def test_a_frame_is_what_its_profile_says():
    packet = Ether(frames(spec())[2])
    assert (packet.src, packet.dst, packet.type) == ("02:00:00:00:00:01", "02:00:00:00:00:02", 0x0800)
    assert (packet[IP].src, packet[IP].dst) == ("198.18.0.3", "198.19.0.1")
    assert (packet[IP].ttl, packet[IP].proto, packet[IP].flags) == (64, 17, 0)
    assert (packet[UDP].sport, packet[UDP].dport) == (1024, 1024)
    assert packet[UDP].payload.load == tag_bytes(0) + bytes(10)


def test_protocol_61_has_its_payload_right_behind_the_ip_header():
    packet = Ether(frames(spec("ethip4-ip4base"))[0])
    assert (packet[IP].proto, bytes(packet[IP].payload)) == (61, tag_bytes(0) + bytes(18))


@pytest.mark.parametrize(("source", "destination", "network"), [(WEST, EAST, "198.18."), (EAST, WEST, "198.19.")])
def test_a_direction_has_254_flows_with_addresses_of_its_own_side(source, destination, network):
    sources = {Ether(frame)[IP].src for frame in frames(spec(source=source, destination=destination))}
    assert sources == {f"{network}0.{host}" for host in range(1, 255)}


@pytest.mark.parametrize("frame_size", [64, 1518])
def test_frames_have_their_size_less_the_frame_check_sequence(frame_size):
    assert {len(frame) for frame in frames(spec(frame_size=frame_size))} == {frame_size - 4}


def test_the_mix_has_its_weights_in_every_dozen_of_frames():
    sizes = [len(frame) + 4 for frame in frames(spec(frame_size="IMIX_v4_1"))]
    for start in range(0, len(sizes), 12):
        assert Counter(sizes[start : start + 12]) == {64: 7, 570: 4, 1518: 1}


def test_every_flow_of_the_mix_comes_in_every_size():
    flows = {(frame[26:30], len(frame)) for frame in frames(spec(frame_size="IMIX_v4_1"))}
    assert len(flows) == 254 * 3


@given(st.dictionaries(st.integers(64, 1518), st.integers(1, 40), min_size=1, max_size=5))
def test_a_pattern_of_sizes_has_exactly_its_weights(weights):
    counted = Counter(size_pattern(tuple(weights.items())))
    assert {size: counted[size] * sum(weights.values()) for size in weights} == {
        size: weight * counted.total() for size, weight in weights.items()
    }


UNTAGGED = frames(spec())[7]


@given(st.integers(0, 2**32 - 1))
def test_no_tag_changes_a_checksum(tag):
    tagged = UNTAGGED[:42] + tag_bytes(tag) + UNTAGGED[50:]
    assert with_checksums_of_scapy(tagged) == tagged


def test_a_udp_checksum_of_zero_is_sent_as_ones():
    ports = SteppingField(offset=34, width=2, first=0, count=65536)
    checksums = {frame[40:42] for frame in frames(replace(spec(), fields=(ports,)))}
    assert b"\0\0" not in checksums
    assert b"\xff\xff" in checksums


def test_too_many_different_frames_are_refused():
    ports = SteppingField(offset=34, width=2, first=1, count=65535)
    description = spec()
    with pytest.raises(AgentError, match="repeat only after") as caught:
        frames(replace(description, fields=(*description.fields, ports)))
    assert caught.value.kind == "unsupported"


def test_a_frame_without_room_for_the_tag_is_refused():
    with pytest.raises(AgentError, match="53 bytes is too small: these headers need 54"):
        frames(replace(spec(), sizes=((53, 1),)))

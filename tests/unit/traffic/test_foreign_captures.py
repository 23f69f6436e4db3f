"""Captures and streams of trafficgen as traffic profiles."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import pytest
from foreign_files import capture, converted, loaded, problem, udp_frame
from hypothesis import given, strategies

from lossratio.errors import ProfileError
from lossratio.traffic import PROFILE_READERS

STREAM = {
    "flows": 8,
    "frame_size": 128,
    "flow_mods": "function:create_flow_mod_object(use_src_ip_flows=True, use_dst_port_flows=True)",
    "rate": 1000,
}


def test_streams_of_trafficgen_are_streams_and_those_that_only_teach_are_left_out(tmp_path):
    teaching = {**STREAM, "stream_types": ["teaching_warmup"], "frame_type": "icmp"}
    voice = {**STREAM, "stream_id": "voice", "rate": 3000, "frame_size": 64}
    off = {**STREAM, "enabled": False, "offset": 9}
    profile = loaded(tmp_path, "trafficgen", json.dumps({"streams": [teaching, voice, STREAM, off]}))
    streams = profile.directions[0].streams
    assert [(one.name, one.weight, one.size_weights) for one in streams] == [
        ("voice", 3, {64: 1}),
        ("stream2", 1, {128: 1}),
    ]
    assert {one.headers.ipv4.source.count for one in streams} == {8}
    assert {one.headers.ipv4.destination.count for one in streams} == {1}
    assert {one.headers.udp.destination_port.count for one in streams} == {8}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"offset": 5}, "streams[0].offset: all streams begin together"),
        ({"duration": 5}, "streams[0].duration"),
        ({"frame_type": "garp"}, "streams[0].frame_type: 'garp' frames are not supported, only 'generic' ones"),
        ({"rate": 0}, "streams[0].rate: 0 is not a number of at least 1"),
        ({"flows": True}, "streams[0].flows: True is not a number"),
        ({"protocol": "SCTP"}, "streams[0].protocol: 'SCTP' is not supported"),
        ({"the_packet": "scapy:Ether()/IP()/ICMP()"}, "ICMP: this header is not supported"),
        ({"the_packet": "scapy:open('x')"}, "streams[0].the_packet, open: a foreign profile cannot use files"),
        ({"the_packet": "scapy:7"}, "streams[0].the_packet: only packets"),
        ({"flow_mods": "function:create(use_vlan_flows=True)"}, "flow_mods: use_vlan_flows is not known"),
        ({"burst": 3}, "streams[0].burst: the field is not known"),
        ({"traffic_direction": "revunidirectional"}, "the first port sends nothing"),
    ],
)
def test_a_field_of_trafficgen_that_cannot_be_had_is_refused_with_its_place(tmp_path, change, told):
    assert told in problem(tmp_path, "trafficgen", json.dumps({"streams": [{**STREAM, **change}]}))


def test_of_several_profiles_of_trafficgen_the_default_one_is_read(tmp_path):
    profiles = [{"name": "a", "streams": [STREAM]}, {"name": "b", "streams": [{**STREAM, "frame_size": 256}]}]
    assert converted(tmp_path, "trafficgen", json.dumps({"profiles": profiles})).frame_size == 128
    text = json.dumps({"profiles": profiles, "default_profile": "b"})
    assert converted(tmp_path, "trafficgen", text).frame_size == 256


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_each_kind_of_frame_in_a_capture_is_a_stream_with_its_sizes(tmp_path, order, magic):
    frames = [udp_frame(53, 60), udp_frame(53, 60), udp_frame(53, 124), udp_frame(80, 60)]
    profile = loaded(tmp_path, "pcap", capture(*frames, order=order, magic=magic))
    (direction,) = profile.directions
    first, second = direction.streams
    assert (first.weight, first.size_weights) == (3, {64: 2, 128: 1})
    assert (second.weight, second.size_weights) == (1, {64: 1})
    ipv4 = second.headers.ipv4
    assert (ipv4.source.first, ipv4.destination.first) == (2 * 256 + 3, 8 * 256 + 7)
    assert (ipv4.ttl, ipv4.dscp, second.headers.udp.destination_port.first) == (63, 46, 80)


def test_tags_of_a_capture_are_headers(tmp_path):
    tag = struct.pack(">HH", 0x8100, 5 << 13 | 7)
    profile = loaded(tmp_path, "pcap", capture(udp_frame(53, 64, tags=tag)))
    assert (profile.dot1q.id, profile.dot1q.priority) == (7, 5)
    assert profile.size_weights == {68: 1.0}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is not in a format of libpcap"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "pcapng. Convert it, e.g. with editcap"),
        (capture(), "it has no frames"),
        (capture(udp_frame(53, 60), link=113), "no Ethernet frames (link type 113)"),
        (capture(udp_frame(53, 60))[:-1], "frame 1: its length: it is not whole. Capture whole frames"),
        (capture(udp_frame(53, 60)[:30]), "frame 1: its length: it ends within its headers"),
        (capture(udp_frame(53, 60, fragment=0x2000)), "frame 1: IPv4: fragments are not supported"),
        (capture(bytes(60)), "frame 1: Ethernet: the protocol that follows (EtherType 0x0000) is not supported"),
    ],
)
def test_a_capture_that_cannot_be_had_is_refused(tmp_path, content, told):
    assert told in problem(tmp_path, "pcap", content)


@pytest.mark.whole
@given(content=strategies.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    for tool in PROFILE_READERS:
        for whole in (content, capture(content), capture(udp_frame(53, 60) + content)):
            with suppress(ProfileError):
                converted(folder, tool, whole)

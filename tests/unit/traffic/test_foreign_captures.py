"""Captures as traffic profiles."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from foreign_files import capture, converted, loaded, problem, udp_frame
from hypothesis import given, strategies

from lossratio.errors import ProfileError
from lossratio.traffic import PROFILE_READERS


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
        (capture(udp_frame(53, 60))[:-1], "frame 1: its length: it was cut short. Capture whole frames"),
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

"""Captures: files that other programs read, bounds of memory, and what is missing."""

from __future__ import annotations

import io

import pytest
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import PcapReader

from lossratio.agent.core.packets import StampedFrame
from lossratio_otg import captures
from lossratio_otg.captures import CapturedFrames, read_captures
from lossratio_otg.packets import FieldError

STAMP = 1_700_000_000_123_456_789


def kept(count: int, size: int = 60) -> CapturedFrames:
    """Frames whose first bytes are their numbers, each a microsecond after the one before."""
    store = CapturedFrames()
    for number in range(count):
        store.add(StampedFrame(STAMP + 1000 * number, number.to_bytes(4, "big") + bytes(size - 4)))
    return store


def test_pcap_has_the_frames_without_fcs_and_their_times():
    file = kept(3, size=61).file()
    packets = list(PcapReader(io.BytesIO(file)))
    assert [bytes(packet)[:4] for packet in packets] == [number.to_bytes(4, "big") for number in range(3)]
    assert [len(packet) for packet in packets] == [61, 61, 61]
    assert [int(1e9 * packet.time) for packet in packets] == [STAMP + 1000 * number for number in range(3)]


def test_frames_are_cut_to_the_packet_size():
    (packet,) = PcapReader(io.BytesIO(kept(1, size=1000).file(64)))
    assert (len(packet), packet.wirelen) == (64, 1000)


def test_memory_is_bounded_and_what_had_no_room_is_counted(monkeypatch):
    monkeypatch.setattr(captures, "MOST_BYTES", 10 * (60 + captures._FRAME_COST))
    store = kept(100)
    packets = list(PcapReader(io.BytesIO(store.file())))
    assert [bytes(packet)[3] for packet in packets] == list(range(90, 100))
    assert store.left_out == 90


def test_a_frame_with_a_tag_is_read_by_others():
    tagged = bytes(Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") / Dot1Q(vlan=7) / (b"x" * 46))
    store = CapturedFrames()
    store.add(StampedFrame(STAMP, tagged))
    (packet,) = PcapReader(io.BytesIO(store.file()))
    assert packet[Dot1Q].vlan == 7


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([{"name": "c", "port_names": ["x"]}], r"captures\[0\]\.port_names: there is no port 'x'"),
        (
            [{"name": "c", "port_names": ["a"]}, {"name": "d", "port_names": ["b", "a"]}],
            r"captures\[1\]\.port_names: the port 'a' has two captures",
        ),
    ],
)
def test_each_port_has_one_capture(given, problem):
    config = {"ports": [{"name": "a"}, {"name": "b"}], "captures": given}
    with pytest.raises(FieldError, match=problem):
        read_captures(config)

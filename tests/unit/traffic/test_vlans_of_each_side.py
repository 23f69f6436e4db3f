"""Frames come back with the tags that the port there sends with, and everything else stays where it was behind them."""

import pytest
from at_least_one import at_least_one

from lossratio.agent.afpacket.frames import build_frames
from lossratio.agent.core.wire import behind_tags
from lossratio.traffic import load_profile, make_configuration
from lossratio.traffic.configuration import PortPair, TrafficPort

PAIR = PortPair(TrafficPort("west", "tg0"), TrafficPort("east", "tg1"))
TAGS = {
    "untagged": "",
    "VLAN 100": "dot1q: {id: 100}",
    "VLAN 200": "dot1q: {id: 200, priority: 3}",
    "VLAN 100 within 7": "dot1q: {id: 100}\ndot1ad: {id: 7}",
}


def directions(path, west, east, **more):
    headers = "ipv4: {source: {count: 254}}\nudp: {source_port: {count: 3, first: 9}}\n"
    indented = "".join(f"    {line}\n" for line in (headers + TAGS[east]).splitlines())
    text = f"format: lossratio-traffic-profile/1\nname: sides\n{headers}{TAGS[west]}\nreverse:\n  headers:\n{indented}"
    (path / "sides.yaml").write_text(text)
    profile = load_profile(path / "sides.yaml", frame_size=128, **more)
    return profile, make_configuration(profile, [PAIR], settle_time=0.0).directions


def tags_of(spec):
    header = bytes.fromhex(spec.header)
    return header[12 : behind_tags(header) - 2]


def frame_of(spec):
    return build_frames(spec, b"\1" * 6, b"\2" * 6).data[5].tobytes()


@pytest.mark.parametrize("west", TAGS)
@pytest.mark.parametrize("east", TAGS)
def test_frames_arrive_with_the_tags_of_the_port_there(tmp_path, west, east):
    profile, both = directions(tmp_path, west, east)
    for direction, there, grown in at_least_one(zip(both, reversed(both), profile.growth, strict=True)):
        sent, arriving = direction.frames, direction.arriving
        assert tags_of(arriving) == tags_of(there.frames)
        assert arriving.sizes == ((128 + grown, 1),)
        assert direction.arriving_tag.offset == sent.tag_offset + grown
        assert direction.arriving_tag.behind_vlan is (tags_of(there.frames) != b"")
        before, after = 12 + len(tags_of(sent)), 12 + len(tags_of(arriving))
        wanted, built = frame_of(sent), frame_of(arriving)
        # The headers, with their lengths and checksums, are where they must be; the last one covers the payload.
        checksum = sent.checksums[-1].offset
        assert arriving.checksums[-1].offset == checksum + grown
        assert built[after : checksum + grown] == wanted[before:checksum]
        assert built[12:after] == tags_of(there.frames)


def test_the_same_vlan_with_another_priority_comes_back_as_it_was_sent(tmp_path):
    text = "format: lossratio-traffic-profile/1\nname: p\ndot1q: {id: 7, priority: 3}\nipv4: {}\n"
    (tmp_path / "p.yaml").write_text(text + "reverse: {headers: {dot1q: {id: 7}, ipv4: {}}}\n")
    profile = load_profile(tmp_path / "p.yaml", frame_size=64)
    both = make_configuration(profile, [PAIR], settle_time=0.0).directions
    assert [each.arriving_frames for each in both] == [None, None]


def test_the_far_side_is_known_also_where_it_does_not_send(tmp_path):
    profile, (eastward,) = directions(tmp_path, "VLAN 100", "untagged", bidirectional=False)
    assert (tags_of(eastward.arriving), profile.growth) == (b"", (-4, 0))


def test_a_reflector_sends_frames_back_in_the_vlans_of_their_own_port(tmp_path):
    profile, _ = directions(tmp_path, "VLAN 100", "untagged", bidirectional=False)
    reflected = PortPair(PAIR.west, PAIR.east, is_reflected=True)
    (only,) = make_configuration(profile, [reflected], settle_time=0.0).directions
    assert only.arriving_frames is None


def test_an_mtu_must_have_room_for_the_frames_with_the_tags_that_they_come_back_with(tmp_path):
    _, (_, westward) = directions(tmp_path, "VLAN 100 within 7", "untagged")
    assert (westward.frames.mtu, westward.mtu) == (110, 114)

"""One comparison says which fields of a frame came back changed, for trials and for looks at single frames alike."""

import numpy as np
import pytest
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from lossratio.agent import changed_fields
from lossratio.agent.afpacket.examination import _ExpectedFrames
from lossratio.agent.afpacket.frames import build_frames
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import fields_in_words, ways_to_expect

PAIR = PortPair(TrafficPort("west", "tg0"), TrafficPort("east", "tg1"))
WEST, EAST = b"\2\0\0\0\0\1", b"\2\0\0\0\0\2"
HEAD = "format: lossratio-traffic-profile/1\nname: mine\n"
PROFILES = {
    "untagged": "ipv4: {}\nudp: {}",
    "marked": "ipv4: {is_marked: true}\nudp: {}",
    "segment": "ipv4: {}\ntcp: {}",
    "IPv6": "ipv6: {}\nudp: {}",
    "IPv6 marked": "ipv6: {is_marked: true}\nudp: {}",
    "VLAN": "dot1q: {id: 100}\nipv4: {}",
    "VLAN marked": "dot1q: {id: 100, is_marked: true}\nipv4: {}",
    "two tags": "dot1ad: {id: 7, is_marked: true}\ndot1q: {id: 100}\nipv4: {}",
    "trunk to access": "dot1q: {id: 100}\nipv4: {}\nreverse: {headers: {ipv4: {}}}",
    "access to trunk": "ipv4: {}\nreverse: {headers: {dot1q: {id: 100}, ipv4: {}}}",
    "any MAC": "ipv4: {}\nudp: {}\nany_mac: true",
    "tunnel": "ipv4: {}\nvxlan: {inner: {ipv4: {}}}",
    "tags in a tunnel": "ipv4: {}\nvxlan: {inner: {dot1q: {id: 9}, ipv4: {}}}",
    "labels": "mpls: [{label: 20}, {label: 30}]\nipv4: {}\nudp: {}",
    "QinQ edge": "dot1q: {id: 100}\nipv4: {}\nreverse: {headers: {dot1ad: {id: 7}, dot1q: {id: 100}, ipv4: {}}}",
    "MPLS edge": "ipv4: {}\nudp: {}\nreceived: {mpls: [{label: 20}, {label: 30}], ipv4: {}, udp: {}}",
    "MPLS pop": "mpls: [{label: 20}]\nipv6: {}\nudp: {}\nreverse: {headers: {ipv6: {}, udp: {}}}",
    "tunnel edge": "ethernet: {}\nipv4: {}\nudp: {}\nreverse: {headers: {ipv4: {destination: {first: 99}}, "
    "vxlan: {vni: 42, inner: {ethernet: {}, ipv4: {}, udp: {}}}}}",
    "routed tunnel edge": "ipv4: {}\nreverse: {headers: {ipv6: {}, vxlan: {inner: {ipv4: {}}}}}",
    "tunnel end": "ipv4: {}\nvxlan: {inner: {ethernet: {}, ipv4: {}}}\nreverse: {headers: {ethernet: {}, ipv4: {}}}",
    "marks": "ipv4: {}\nudp: {}\nreceived: {ipv4: {dscp: 46}, udp: {}}",
    "IPv6 marks": "ipv6: {dscp: 5}\nreceived: {ipv6: {dscp: 46}}",
}


@pytest.fixture
def direction(request, tmp_path):
    (tmp_path / "mine.yaml").write_text(HEAD + PROFILES[request.param])
    profile = load_profile(tmp_path / "mine.yaml", frame_size=128)
    return make_configuration(profile, [PAIR], settle_time=0.0).directions[0]


def first_frame(spec):
    cycle = build_frames(spec, WEST, EAST)
    return cycle.data[0][: cycle.lengths[0]].tobytes()


def changes_in(direction, got):
    """The changed fields of what the first frame has become."""
    return changed_fields(direction, first_frame(direction.arriving), got, EAST, sent=first_frame(direction.frames))


def mended(packet):
    """A packet with a new checksum of IPv4."""
    del packet[IP].chksum
    return bytes(packet)


def marked(frame):
    packet = Ether(frame)
    packet[IP].tos = 40
    return mended(packet)


def routed(frame):
    packet = Ether(frame)
    packet[IP].ttl -= 1
    return mended(packet)


def translated(frame):
    packet = Ether(frame)
    packet[IP].src = "198.18.7.7"
    return mended(packet)


def congested(frame):
    packet = Ether(frame)
    packet[IP].tos = 3
    return mended(packet)


def of_class(frame):
    packet = Ether(frame)
    packet[IPv6].tc = 184
    return bytes(packet)


def in_vlan(frame, vlan=100, priority=0):
    packet = Ether(frame)
    packet[Dot1Q].vlan, packet[Dot1Q].prio = vlan, priority
    return bytes(packet)


def with_tag(frame):
    return frame[:12] + b"\x81\0\0\7" + frame[12:]


def without_tag(frame):
    return frame[:12] + frame[16:]


def same(frame):
    return frame


@pytest.mark.parametrize(
    ("direction", "change", "words"),
    [
        ("untagged", same, None),
        ("untagged", routed, None),
        ("untagged", marked, "only the IPv4 DSCP differs: 0 before, 10 after"),
        ("marked", marked, None),
        ("untagged", congested, "only the IPv4 ECN differs: 0 before, 3 after"),
        ("untagged", translated, "only the IPv4 source address differs: 198.18.0.1 before, 198.18.7.7 after"),
        ("IPv6", of_class, "only the IPv6 DSCP differs: 0 before, 46 after"),
        ("IPv6 marked", of_class, None),
        ("untagged", with_tag, "only the VLAN tag differs: untagged before, VLAN 7 with priority 0 after"),
        ("VLAN", without_tag, "only the VLAN tag differs: VLAN 100 with priority 0 before, untagged after"),
        (
            "VLAN",
            lambda frame: in_vlan(frame, priority=5),
            "only the VLAN tag differs: VLAN 100 with priority 0 before, VLAN 100 with priority 5 after",
        ),
        ("VLAN marked", lambda frame: in_vlan(frame, priority=5), None),
        (
            "VLAN marked",
            lambda frame: in_vlan(frame, vlan=101),
            "only the VLAN tag differs: VLAN 100 with priority 0 before, VLAN 101 with priority 0 after",
        ),
        ("trunk to access", without_tag, None),
        ("trunk to access", lambda frame: marked(without_tag(frame)), "only the IPv4 DSCP differs: 0 before, 10 after"),
        (
            "trunk to access",
            same,
            "only the VLAN tag differs: VLAN 100 with priority 0 before, "
            "VLAN 100 with priority 0 (expected: untagged) after",
        ),
        ("untagged", lambda frame: frame + bytes(4), "only the length differs: 124 bytes before, 128 bytes after"),
        ("any MAC", lambda frame: b"\4" + frame[1:], None),
        (
            "untagged",
            lambda frame: frame[:14] + b"\x46" + frame[15:],
            "only the IPv4 header length differs: 5 before, 6 after",
        ),
        (
            "segment",
            lambda frame: frame[:47] + b"\x12" + frame[48:],
            "only the TCP flag SYN differs: 0 before, 1 after",
        ),
        (
            "untagged",
            lambda frame: b"\4" + frame[1:],
            "only the destination MAC address differs: 02:00:00:00:00:02 before, 04:00:00:00:00:02 after",
        ),
        (
            "untagged",
            lambda frame: frame[:24] + b"\0" + frame[25:],
            "only the IPv4 header checksum differs: right before, wrong after",
        ),
    ],
    indirect=["direction"],
)
def test_a_changed_field_is_named_with_its_values(direction, change, words):
    changes = changes_in(direction, change(first_frame(direction.frames)))
    assert (fields_in_words(changes) if changes else None) == words


@pytest.mark.parametrize("direction", ["untagged"], indirect=True)
def test_several_fields_are_listed_and_more_are_counted(direction):
    sent = first_frame(direction.frames)
    changes = changes_in(direction, with_tag(marked(translated(sent))))
    assert fields_in_words(changes) == (
        "VLAN tag (untagged before, VLAN 7 with priority 0 after), IPv4 DSCP (0 before, 10 after), "
        "IPv4 source address (198.18.0.1 before, 198.18.7.7 after) differ"
    )
    everything = changes_in(direction, sent[:14] + bytes(len(sent) - 14))
    assert fields_in_words(everything).endswith(" more fields differ")


@pytest.mark.parametrize("direction", ["untagged"], indirect=True)
def test_what_expects_a_change_is_said(direction):
    sent = first_frame(direction.frames)

    def ways(change):
        return " ".join(ways_to_expect(changes_in(direction, change(sent))))

    assert "'is_marked: true'" in ways(marked)
    assert "'reverse' has 'headers'" in ways(with_tag)
    assert "integrity=off" in ways(translated)
    assert ways(lambda frame: frame[:-1] + b"\0") == ""


@pytest.mark.parametrize("direction", PROFILES, indirect=True)
def test_trials_and_single_frames_are_compared_alike(direction):
    expected = _ExpectedFrames(direction, build_frames(direction.arriving, WEST, EAST))
    wanted, sizes = expected.frames(0x12345600, np.array([5]), 0)
    arrived = wanted[0].tobytes()
    assert changed_fields(direction, arrived, arrived) == []
    for place in range(12, len(arrived)):
        got = wanted.copy()
        got[0, place] ^= 0x11
        changes = changed_fields(direction, arrived, got[0].tobytes())
        assert bool(changes) == expected.differ(got, wanted, sizes)[0], place


@pytest.mark.parametrize("name", ["VLAN", "IPv6", "untagged"])
def test_results_of_earlier_versions_describe_the_same_traffic(name, tmp_path):
    (tmp_path / "mine.yaml").write_text(HEAD + PROFILES[name])
    described = load_profile(tmp_path / "mine.yaml", frame_size=128).description_in_full()
    assert "any_mac" not in described
    assert "is_marked" not in (described["ipv6"] or {})
    assert "is_marked" not in (described["dot1q"] or {})


@pytest.mark.parametrize("direction", ["tags in a tunnel"], indirect=True)
def test_a_tag_within_a_tunnel_is_named_by_its_fields(direction):
    got = bytearray(first_frame(direction.frames))
    place = got.index(b"\x81\x00\x00\x09")
    got[place + 2 : place + 4] = bytes([0x60, 7])
    changes = changes_in(direction, bytes(got))
    assert [(change.name, change.before, change.after) for change in changes] == [
        ("inner VLAN priority", "0", "3"),
        ("inner VLAN", "9", "7"),
    ]
    assert "trunk" in ways_to_expect(changes)[0]


@pytest.mark.parametrize("direction", ["labels"], indirect=True)
def test_a_reflector_swaps_the_addresses_behind_labels(direction):
    sent, back = (bytes.fromhex(spec.header) for spec in (direction.frames, direction.frames.reflected()))
    first = direction.frames.addresses[0][0]
    assert back[first : first + 4] == sent[first + 4 : first + 8]
    assert back[first + 4 : first + 8] == sent[first : first + 4]
    assert back[:first] == sent[:first]
    assert back[first + 8 :] == sent[first + 8 :]

import json
import re

import pytest

from lossratio.errors import ProfileError, TrafficError
from lossratio.traffic import load_profile, profile_names
from lossratio.traffic.profile import addresses, frame_format, ip_versions, modifiers

GOOD = """\
format: lossratio-traffic-profile/1
name: mine
ipv4:
  source: {first: 1, count: 10}
udp:
  source_port: {first: 1000, count: 4}
"""


@pytest.mark.parametrize("name", profile_names())
@pytest.mark.parametrize("frame_size", [118, 570, 9000])
def test_every_profile_that_comes_along_can_be_read(name, frame_size):
    is_one_way = re.search("-connections|-hN-p63$", name)
    # Names of these have a number.
    name = re.sub("N(?=$|-p63)", "256", name)
    profile = load_profile(name, frame_size=frame_size)
    assert profile.name == name
    assert profile.flows >= 253
    assert profile.transmitting_directions == (1 if is_one_way else 2)


@pytest.mark.parametrize(
    ("given", "size"), [(64, 64), ("64B", 64), ("1518", 1518), ("imix_V4_1", "IMIX_v4_1"), ("IMIX", "IMIX_v4_1")]
)
def test_frame_sizes_are_bytes_or_the_name_of_a_mix(given, size):
    assert load_profile("ethip4-udp", frame_size=given).frame_size == size


def test_the_average_of_the_mix_is_the_known_one():
    assert load_profile("ethip4-udp", frame_size="IMIX_v4_1").average_frame_size == pytest.approx(353.8333, abs=1e-4)


@pytest.mark.parametrize("frame_size", [63, 9001, 0, -64, "64.5", "MIX", ""])
def test_an_impossible_frame_size_is_refused(frame_size):
    with pytest.raises(TrafficError, match="frame size"):
        load_profile("ethip4-udp", frame_size=frame_size)


def test_a_profile_can_be_sent_one_way_only():
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    assert profile.transmitting_directions == 1
    assert addresses(profile) == "198.18.0.1-198.18.0.254 to 198.19.0.1"


def test_an_unknown_name_says_which_ones_there_are():
    with pytest.raises(ProfileError, match=r"no traffic profile 'ethip5'. Similar names are .*ethip"):
        load_profile("ethip5", frame_size=64)


def test_a_file_of_ones_own_is_given_by_its_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    profile = load_profile(str(path), frame_size=64)
    assert profile.flows == 20
    assert modifiers(profile) == "10 source addresses in turn, 4 source ports in turn"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: mine", "name: mine\ncolour: red", r"mine\.yaml:3: colour: unknown field"),
        ("count: 10", "count: 0", r"mine\.yaml:4: ipv4\.source\.count: .*at least 1"),
        (
            "first: 1, count: 10",
            "first: 65000, count: 1000",
            r"mine\.yaml:3: ipv4: address 65999 is not in the benchmarking network",
        ),
        (
            "first: 1000, count: 4",
            "first: 65535, count: 2",
            r"mine\.yaml:6: udp\.source_port: a port can be at most 65535, not 65536",
        ),
        ("name: mine", "", r"mine\.yaml:1: name: this field is required"),
        ("profile/1", "profile/9", r"mine\.yaml:1: format: "),
        ("ipv4:", "ipv4: [", r"mine\.yaml:\d+: not YAML"),
    ],
)
def test_a_broken_file_is_refused_with_line_and_field(tmp_path, old, new, problem):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(TrafficError, match=problem):
        load_profile(path, frame_size=64)


def test_hosts_and_ports_of_csits_names_make_as_many_connections():
    for hosts in (64, 1024, 65_536):
        profile = load_profile(f"ethip4-udp-h{hosts}-p63", frame_size=64)
        assert (profile.name, profile.flows) == (f"ethip4-udp-h{hosts}-p63", 63 * hosts)


def test_a_missing_file_is_named():
    with pytest.raises(TrafficError, match=r"Cannot read nowhere/mine\.yaml"):
        load_profile("nowhere/mine.yaml", frame_size=64)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ("", r"frames need an 'ipv4' or an 'ipv6' header; add one of them"),
        ("ipv4: {}\nipv6: {}", r"frames have either 'ipv4' or 'ipv6'; leave out one of them"),
        ("ipv4: {}\nudp: {}\ntcp: {}", r"frames have either 'udp' or 'tcp'; leave out one of them"),
        ("ipv4: {}\nudp: {}\nvxlan: {inner: {ipv4: {}}}", r"'vxlan' brings its own UDP header"),
        ("ipv4: {}\nvxlan: {inner: {ipv4: {}, vxlan: {}}}", r"mine\.yaml:4: vxlan\.inner\.vxlan: unknown field"),
        ("ipv4: {}\ndot1q: {id: 4095}", r"mine\.yaml:4: dot1q\.id: .*at most 4,094"),
        ("ipv6: {source: {count: 1048577}}", r"ipv6\.source\.count: .*at most 1,048,576"),
        ("ipv4: {source: {order: shuffled}}", r"ipv4\.source\.order: .*'increment' or 'random'"),
        ("ipv4: {}\nload_share: 1.5", r"mine\.yaml:4: load_share: .*at most 1"),
        ("ipv4: {}\nmixes: {Imix: {64: 1}}", r"mine\.yaml:4: mixes: 'Imix' cannot be the name of a mix: it is in use"),
        ("ipv4: {}\nmixes: {64B: {64: 1}}", r"'64B' cannot be the name of a mix"),
        ("ipv4: {}\nreverse: {load: 1}", r"mine\.yaml:4: reverse\.load: unknown field"),
    ],
)
def test_headers_that_do_not_go_together_are_refused(tmp_path, headers, problem):
    path = tmp_path / "mine.yaml"
    path.write_text(f"format: lossratio-traffic-profile/1\nname: mine\n{headers}\n")
    with pytest.raises(TrafficError, match=problem):
        load_profile(path, frame_size=128)


@pytest.mark.parametrize(
    ("rest", "frame_size", "problem"),
    [
        ("ipv6: {}", 77, r"frame size 77: 77 is not between 78 and 9000 bytes"),
        ("ipv6: {}\ntcp: {}", 85, r"frames of 85 bytes are too small: these headers need 86 bytes"),
        ("ipv4: {}\nmixes: {m: {64: 1, 9001: 1}}", "m", r"9001 is not between 64 and 9000"),
        ("ipv4: {}\nmixes: {m: {64: 4096, 570: 1}}", "m", r"mix m: its sizes repeat only after 4097 frames"),
        (
            f"ipv4: {{}}\nmixes: {{m: {dict.fromkeys(range(64, 129), 1)}}}",
            "m",
            r"it has 65 sizes, but at most 64 are supported",
        ),
        ("ipv4: {}\nmixes: {m: {64: 0}}", "m", r"mix m: it needs sizes, each with a weight of 1 or more"),
        ("ipv4: {}\nmixes: {m: {64: 1}}", "n", r"'n' is neither a size .* Known mixes: IMIX_v4_1, m"),
        (
            "ipv4: {}\nload_share: 0.5\nreverse: {load_share: 0.4}",
            64,
            r"one direction must have 1, but the largest is 0\.5",
        ),
        ("ipv4: {source: {count: 1025}, destination: {count: 4099}}", 64, r"4201475 flows, but at most 4194304"),
        ("ipv4: {}\nreverse: {frame_size: 60}", 64, r"60 is not between 64 and 9000"),
        ("ipv4: {}\nreverse: {headers: {ipv6: {}}}", 64, r"64 is not between 78 and 9000"),
    ],
)
def test_traffic_that_cannot_be_sent_is_refused_before_anything_is_touched(tmp_path, rest, frame_size, problem):
    path = tmp_path / "mine.yaml"
    path.write_text(f"format: lossratio-traffic-profile/1\nname: mine\n{rest}\n")
    with pytest.raises(TrafficError, match=problem):
        load_profile(path, frame_size=frame_size)


def test_a_profile_may_have_mixes_of_its_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD + "mixes:\n  halves: {64: 1, 1518: 1}\n")
    profile = load_profile(path, frame_size="halves")
    assert profile.average_frame_size == 791
    assert profile.description_in_full()["directions"][0]["size_weights"] == {"64": 1, "1518": 1}


def test_the_mix_has_frames_of_78_bytes_where_ipv6_has_no_smaller_ones():
    profile = load_profile("ethip6-ip6base", frame_size="IMIX_v4_1")
    assert profile.directions[0].size_weights == {78: 28, 570: 16, 1518: 4}


ASYMMETRIC = """\
format: lossratio-traffic-profile/1
name: mine
ipv4: {}
load_share: 0.25
reverse:
  frame_size: 1500
  headers: {ipv6: {source: {count: 3}}}
"""


def test_directions_may_differ_and_the_load_is_the_larger_one_s(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(ASYMMETRIC)
    profile = load_profile(path, frame_size=100)
    assert (profile.load_factor, profile.transmitting_directions, profile.flows) == (1.25, 2, 3)
    assert profile.average_frame_size == (0.25 * 100 + 1500) / 1.25
    assert profile.size_weights == {100: 0.25, 1500: 1.0}
    assert ip_versions(profile) == {"IPv4": 0.2, "IPv6": 0.8}
    assert frame_format(profile) == ("Ethernet II, IPv4, IP protocol 61; back: Ethernet II, IPv6, IP protocol 61")
    assert addresses(profile) == "198.18.0.1 to 198.19.0.1; 2001:2:0:8000::1-2001:2:0:8000::3 to 2001:2::1"
    with pytest.raises(TrafficError, match="load_share"):
        load_profile(path, frame_size=100, bidirectional=False)


def test_results_get_the_profile_in_full():
    full = json.loads(json.dumps(load_profile("ethip4-udp", frame_size="IMIX_v4_1").description_in_full()))
    share = {"size_weights": {"64": 28, "570": 16, "1518": 4}, "load_share": 1.0}
    assert full["directions"] == [share, share]
    assert full["ipv4"]["source"] == {"first": 1, "count": 254, "order": "increment"}
    assert (full["flows"], full["transmitting_directions"], full["load_factor"]) == (254, 2, 2.0)


def test_a_profile_can_be_put_in_words():
    profile = load_profile("ethip4-udp", frame_size=64)
    assert frame_format(profile) == "Ethernet II, IPv4, UDP"
    assert frame_format(load_profile("ethip4-ip4base", frame_size=64)) == "Ethernet II, IPv4, IP protocol 61"
    assert modifiers(profile) == "254 source addresses in turn"
    assert ip_versions(profile) == {"IPv4": 1.0}
    assert addresses(profile) == ("198.18.0.1-198.18.0.254 to 198.19.0.1; 198.19.0.1-198.19.0.254 to 198.18.0.1")


def test_tunnels_tags_and_random_orders_can_be_put_in_words():
    profile = load_profile("dot1q-ip4vxlan-ip4base", frame_size=118, bidirectional=False)
    assert frame_format(profile) == ("Ethernet II, IEEE 802.1Q, IPv4, UDP, VXLAN, Ethernet II, IPv4, IP protocol 61")
    assert modifiers(profile) == "254 inner source addresses in turn"
    assert addresses(profile) == ("198.18.0.1 to 198.19.0.1, within 198.18.0.1-198.18.0.254 to 198.19.0.1")
    random = load_profile("ethip6-ip6scale2m-rnd", frame_size=78)
    assert modifiers(random) == "1000000 destination addresses in random order"
    assert ip_versions(random) == {"IPv6": 1.0}

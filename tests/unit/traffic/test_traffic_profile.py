import json

import pytest

from lossratio.errors import TrafficError
from lossratio.traffic import load_profile, profile_names, wording

GOOD = """\
format: lossratio-traffic-profile/1
name: mine
ipv4:
  source: {first: 1, count: 10}
udp:
  source_port: {first: 1000, count: 4}
"""


@pytest.mark.parametrize("name", profile_names())
@pytest.mark.parametrize("frame_size", [64, 570, 1518, "IMIX_v4_1"])
def test_every_profile_that_comes_along_can_be_read(name, frame_size):
    profile = load_profile(name, frame_size=frame_size)
    assert profile.name == name
    assert profile.flows == 254
    assert profile.transmitting_directions == 2


@pytest.mark.parametrize(("given", "size"), [(64, 64), ("64B", 64), ("1518", 1518), ("IMIX_v4_1", "IMIX_v4_1")])
def test_frame_sizes_are_bytes_or_the_name_of_a_mix(given, size):
    assert load_profile("ethip4-udp", frame_size=given).frame_size == size


def test_the_average_of_the_mix_is_the_known_one():
    assert load_profile("ethip4-udp", frame_size="IMIX_v4_1").average_frame_size == pytest.approx(353.8333, abs=1e-4)


@pytest.mark.parametrize("frame_size", [63, 1519, 0, -64, "64.5", "IMIX", ""])
def test_an_impossible_frame_size_is_refused(frame_size):
    with pytest.raises(TrafficError, match="frame size"):
        load_profile("ethip4-udp", frame_size=frame_size)


def test_a_profile_can_be_sent_one_way_only():
    profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    assert profile.transmitting_directions == 1
    assert wording.addresses(profile) == "198.18.0.1-198.18.0.254 to 198.19.0.1"


def test_an_unknown_name_says_which_ones_there_are():
    with pytest.raises(TrafficError, match=r"no traffic profile 'ethip5'; there are .*ethip4-udp"):
        load_profile("ethip5", frame_size=64)


def test_a_file_of_ones_own_is_given_by_its_path(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    profile = load_profile(str(path), frame_size=64)
    assert profile.flows == 20
    assert wording.modifiers(profile) == "10 source addresses in turn, 4 source ports in turn"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: mine", "name: mine\ncolour: red", r"mine\.yaml:3: colour: unknown field"),
        ("count: 10", "count: 0", r"mine\.yaml:4: ipv4\.source\.count: .*greater than or equal to 1"),
        ("first: 1, count: 10", "first: 65000, count: 1000", r"mine\.yaml:4: ipv4\.source: address 65999 is not in"),
        ("first: 1000, count: 4", "first: 65535, count: 2", r"mine\.yaml:6: udp\.source_port: there is no port 65536"),
        ("name: mine", "", r"mine\.yaml:1: name: field required"),
        ("profile/1", "profile/9", r"mine\.yaml:1: format: "),
        ("ipv4:", "ipv4: [", r"mine\.yaml:\d+: not YAML"),
    ],
)
def test_a_broken_file_is_refused_with_line_and_field(tmp_path, old, new, problem):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(TrafficError, match=problem):
        load_profile(path, frame_size=64)


def test_a_missing_file_is_named():
    with pytest.raises(TrafficError, match=r"Cannot read nowhere/mine\.yaml"):
        load_profile("nowhere/mine.yaml", frame_size=64)


def test_results_get_the_profile_in_full():
    full = json.loads(json.dumps(load_profile("ethip4-udp", frame_size="IMIX_v4_1").description_in_full()))
    assert full["size_weights"] == {"64": 28, "570": 16, "1518": 4}
    assert full["ipv4"]["source"] == {"first": 1, "count": 254}
    assert (full["flows"], full["transmitting_directions"]) == (254, 2)


def test_a_profile_can_be_put_in_words():
    profile = load_profile("ethip4-udp", frame_size=64)
    assert wording.frame_format(profile) == "Ethernet II, IPv4, UDP"
    assert wording.frame_format(load_profile("ethip4-ip4base", frame_size=64)) == "Ethernet II, IPv4, IP protocol 61"
    assert wording.modifiers(profile) == "254 source addresses in turn"
    assert wording.ip_versions(profile) == {"IPv4": 1.0}
    assert wording.addresses(profile) == (
        "198.18.0.1-198.18.0.254 to 198.19.0.1; 198.19.0.1-198.19.0.254 to 198.18.0.1"
    )

from __future__ import annotations

import pytest
import yaml
from measurement_examples import SIMULATED

from lossratio.dut import linux_bridge
from lossratio.results.conditions import LoadOrigin
from lossratio.testbed.loads import load_limits, load_range
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

DOWNLOAD = """
format: lossratio-traffic-profile/1
name: mine
ipv4: {}
load_share: 0.5
reverse: {frame_size: 80}
"""


@pytest.fixture
def testbed(tmp_path):
    """Opens a simulated testbed whose ports have these fields, by node and port; `max_rate` is the generator's."""

    def build(ports, max_rate=None, duts=1, **options):
        data = yaml.safe_load(SIMULATED.read_text())
        data["nodes"]["TG"]["generator"] = {"kind": "simulated", "max_rate": max_rate}
        if duts == 2:
            data["nodes"]["DUT1"]["interfaces"]["port1"]["link"] = "inner"
            data["nodes"]["DUT2"] = {
                "type": "DUT",
                "interfaces": {"port0": {"link": "inner"}, "port1": {"link": "link1"}},
            }
        for (node, port), fields in ports.items():
            data["nodes"][node]["interfaces"][port] |= fields
        data["nics"] = {"Slow-NIC": {"max_frame_rate": "50 kfps"}, "Thin-NIC": {"max_bit_rate": "1 Gbps"}}
        file = tmp_path / "topology.yaml"
        file.write_text(yaml.safe_dump(data))
        return open_testbed(file, **options)

    return build


def limits_of(testbed, frame_size=64, profile="ethip4-udp", **options):
    return [
        (limit.origin.value, round(limit.load), limit.reason)
        for limit in load_limits(testbed, load_profile(profile, frame_size=frame_size, **options))
    ]


def test_nothing_known_is_no_limit(testbed):
    assert limits_of(testbed({})) == []


def test_a_link_carries_what_fits_its_speed(testbed):
    slow = testbed({("TG", "port1"): {"speed": "10 Gbps"}, ("DUT1", "port1"): {"speed": "1 Gbps"}})
    assert limits_of(slow) == [
        (
            "link",
            1_488_095,
            "link link1, 1.0000 Gbit/s per interface / ((64 + 20) bytes x 8) = 1.4881 Mfps per interface",
        ),
        (
            "link",
            14_880_952,
            "link link1, 10.000 Gbit/s per interface / ((64 + 20) bytes x 8) = 14.881 Mfps per interface",
        ),
    ]
    assert [load for _, load, _ in limits_of(slow, 1518)] == [81_274, 812_744]
    assert limits_of(slow, "IMIX_v4_1")[0][2].startswith(
        "link link1, 1.0000 Gbit/s per interface / ((353.833 + 20) bytes x 8)"
    )


def test_a_nic_of_a_known_model_limits_frames_and_bits(testbed):
    limits = limits_of(testbed({("DUT1", "port0"): {"model": "Intel-XL710"}}))
    assert limits == [
        ("nic", 18_750_000, "NIC Intel-XL710, 18.750 Mfps per interface"),
        (
            "nic",
            36_458_333,
            "NIC Intel-XL710, 24.500 Gbit/s per interface / ((64 + 20) bytes x 8) = 36.458 Mfps per interface",
        ),
    ]
    assert limits_of(testbed({("DUT1", "port0"): {"model": "Slow-NIC"}})) == [
        ("nic", 50_000, "NIC Slow-NIC, 50.000 kfps per interface")
    ]
    assert limits_of(testbed({("DUT1", "port0"): {"model": "Unheard-Of"}})) == []


def test_the_smallest_of_generator_link_and_nic_is_the_maximum_load(testbed):
    ports = {("DUT1", "port0"): {"model": "Slow-NIC", "speed": "1 Gbps"}}
    for max_rate, origin in (("40 kfps", LoadOrigin.GENERATOR), ("60 kfps", LoadOrigin.NIC)):
        loads = load_range(
            load_limits(testbed(ports, max_rate), load_profile("ethip4-udp", frame_size=64)),
            min_load=None,
            max_load=None,
        )
        assert loads.origin is origin
        assert [limit.load for limit in loads.limits] == sorted(limit.load for limit in loads.limits)


def test_the_direction_with_more_bits_counts(testbed, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(DOWNLOAD)
    slow = testbed({("TG", "port0"): {"speed": "1 Gbps"}})
    assert limits_of(slow, 1500, str(path)) == [
        (
            "link",
            164_474,
            "link link0, 1.0000 Gbit/s per interface / (0.5 x (1500 + 20) bytes x 8) = 164.47 kfps per interface",
        )
    ]
    assert limits_of(slow, 80, str(path))[0][1] == 1_250_000


def test_the_headroom_of_a_profile_stays_free_with_each_frame_on_every_link(testbed, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(DOWNLOAD + "headroom: 4\n")
    slow = testbed({("TG", "port0"): {"speed": "1 Gbps"}})
    assert limits_of(slow, 1500, str(path)) == [
        (
            "link",
            164_042,
            "link link0, 1.0000 Gbit/s per interface / (0.5 x (1500 + 20 + 4 of headroom) bytes x 8) "
            "= 164.04 kfps per interface",
        )
    ]


def test_bytes_of_encapsulation_count_between_duts_only(testbed, monkeypatch):
    monkeypatch.setattr(linux_bridge.BridgeOptions, "encapsulation_overhead", 50, raising=False)
    ports = {("TG", "port0"): {"speed": "1 Gbps"}, ("DUT1", "port1"): {"speed": "1 Gbps"}}
    limits = limits_of(testbed(ports, duts=2, dut="linux_bridge", options={"police": "50 kfps"}))
    assert limits == [
        (
            "link",
            932_836,
            "link inner, 1.0000 Gbit/s per interface / ((64 + 20 + 50 of encapsulation) bytes x 8) "
            "= 932.84 kfps per interface",
        ),
        (
            "link",
            1_488_095,
            "link link0, 1.0000 Gbit/s per interface / ((64 + 20) bytes x 8) = 1.4881 Mfps per interface",
        ),
    ]


def test_headers_that_reach_the_tester_count_on_its_links(testbed):
    ports = {("TG", "port0"): {"speed": "1 Gbps"}, ("TG", "port1"): {"speed": "1 Gbps"}}
    ended = testbed(ports, dut="vpp", options={"forwarding": "ip4", "geneve": 4})
    east, west = (text.partition(" / ")[2].partition(" =")[0] for _, _, text in limits_of(ended, 64, "ethip4-geneve4"))
    assert (west, east) == ("((64 + 20) bytes x 8)", "((64 + 20 + 50 of encapsulation) bytes x 8)")
    load = load_profile("ethip4-geneve4", frame_size=64).described_load([("port0", "port1")], growth=(50, -50))
    words = "frames port0>port1 come back 50 bytes longer, frames port1>port0 come back 50 bytes shorter"
    assert load.growth_in_words == words

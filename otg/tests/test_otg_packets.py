"""Headers of the Open Traffic Generator's models: the same frames in both directions, and refusals by name."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from lossratio.agent.afpacket.frames import build_frames
from lossratio.errors import TrafficError
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration, profile_names
from lossratio_otg.flows import read_flows
from lossratio_otg.headers import MOST_LISTED
from lossratio_otg.models import checked
from lossratio_otg.packets import FieldError, read_packet
from lossratio_otg.written_packets import write_packet

PAIR = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))
WEST, EAST = "02:00:00:00:00:01", "02:00:00:00:00:02"
IPV4 = [{"choice": "ethernet", "ethernet": {}}, {"choice": "ipv4", "ipv4": {}}]


def frames_of(name):
    try:
        profile = load_profile(name, frame_size=128)
    except TrafficError:
        pytest.skip("larger frames only")
    return make_configuration(profile, [PAIR], settle_time=0.0).directions[0].frames


@pytest.mark.whole
@pytest.mark.parametrize(
    "name",
    [name for name in profile_names() if not re.search("vxlan|00k-rnd|2m-rnd|l2bdscale|tcp-(connections|h)", name)],
)
def test_the_models_and_back_give_the_same_frames(name):
    spec = frames_of(name)
    packet = write_packet(spec, WEST, EAST)
    flow = {"name": "f", "tx_rx": {"port": {"tx_name": "a"}}, "packet": packet, "size": {"fixed": 128}}
    assert checked("Config", {"flows": [flow]})["flows"][0]["packet"] == packet
    (read,) = read_flows({"ports": [{"name": "a"}], "flows": [flow]}, {"a": "tg0"})
    assert (read.direction.source_mac, read.direction.destination_mac) == (WEST, EAST)
    back = read_packet(packet, "packet").spec(spec.sizes)
    # Devices on the way are not checked here.
    same = {"rewritable": (), "addresses": (), "fields": ()}
    assert replace(back, **same) == replace(spec, **same)
    numbers = [0, 1, 2, 1000, 65_537]
    ours, theirs = (build_frames(each, bytes(6), bytes(6)).frames for each in (spec, back))
    assert (ours(as_array(numbers))[0] == theirs(as_array(numbers))[0]).all()


def as_array(numbers):
    import numpy as np

    return np.array(numbers)


def spec_of(packet, size=128):
    return read_packet(packet, "packet").spec(((size, 1),))


def udp_from(pattern):
    return [*IPV4, {"choice": "udp", "udp": {"src_port": pattern}}]


@pytest.mark.whole
@given(st.lists(st.integers(0, 0xFFFF), min_size=2, max_size=40))
def test_listed_values_go_round_in_their_order(values):
    spec = spec_of(udp_from({"choice": "values", "values": values}))
    numbers = as_array(range(2 * len(values)))
    ports = build_frames(spec, bytes(6), bytes(6)).frames(numbers)[0][:, 34:36]
    assert [int(high) << 8 | int(low) for high, low in ports] == values * 2


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(2, 300), st.sampled_from(["increment", "decrement"]))
def test_counters_go_round_within_their_bits(start, step, count, choice):
    spec = spec_of(udp_from({"choice": choice, choice: {"start": start, "step": step, "count": count}}))
    sign = 1 if choice == "increment" else -1
    ports = build_frames(spec, bytes(6), bytes(6)).frames(as_array(range(count)))[0][:, 34:36]
    assert [int(high) << 8 | int(low) for high, low in ports] == [
        (start + sign * number * step) % 0x10000 for number in range(count)
    ]


def test_a_field_that_is_no_whole_byte_steps_beside_constant_bits():
    vlan = {"choice": "vlan", "vlan": {"priority": {"choice": "value", "value": 5}}}
    vlan["vlan"]["id"] = {"choice": "increment", "increment": {"start": 100, "step": 1, "count": 3}}
    frames = build_frames(spec_of([IPV4[0], vlan, IPV4[1]]), bytes(6), bytes(6)).frames(as_array([0, 1, 2, 3]))[0]
    assert [bytes(row[12:18]).hex() for row in frames] == [
        f"8100{5 << 13 | vlan_id:04x}0800" for vlan_id in (100, 101, 102, 100)
    ]


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        ([], "packet: a flow needs headers"),
        ([IPV4[1]], r"packet\[0\]: 'ipv4' cannot come here; possible: ethernet"),
        ([*IPV4, {"choice": "gre"}], r"packet\[2\]: 'gre' cannot come here; possible: tcp, udp"),
        ([IPV4[0], {"choice": "udp"}], r"packet\[1\]: 'udp' cannot come here"),
        (udp_from({"choice": "random", "random": {}}), r"packet\[2\]\.udp\.src_port: 'random' is not supported"),
        (
            udp_from({"choice": "value", "value": 65_536}),
            r"packet\[2\]\.udp\.src_port: its values must fit into 16 bits",
        ),
        (
            udp_from({"choice": "values", "values": list(range(0, 2 * MOST_LISTED + 2, 2))}),
            r"packet\[2\]\.udp\.src_port: it has 65,537 values, but may have at most 65,536, or ",
        ),
        (
            udp_from({"choice": "increment", "increment": {"start": 1, "step": 2, "count": 4_000_000_000}}),
            "it has 4,000,000,000 values, but may have at most 65,536, or ",
        ),
        (
            [IPV4[0], {"choice": "ipv4", "ipv4": {"src": {"choice": "value", "value": "10.0.0"}}}],
            r"packet\[1\]\.ipv4\.src: '10\.0\.0' is not a value of this field",
        ),
        (
            [IPV4[0], {"choice": "ipv6", "ipv6": {"src": {"choice": "values", "values": ["2001:2::1", "2001:3::1"]}}}],
            r"packet\[1\]\.ipv6\.src: its values may differ in the last 32 bits only",
        ),
        (
            [
                IPV4[0],
                {
                    "choice": "vlan",
                    "vlan": {
                        "id": {"choice": "values", "values": [1, 2]},
                        "priority": {"choice": "values", "values": [1, 2]},
                    },
                },
            ],
            "another field in the same byte also changes",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_name(packet, message):
    with pytest.raises(FieldError, match=message):
        spec_of(packet)

"""What features of VPP do at the beginning, in the middle and at the end of a path through several VPPs."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_network

import pytest
from at_least_one import at_least_one

from lossratio.dut.vpp import Vpp
from lossratio.dut.vpp.features.feature import both_ports
from lossratio.errors import DutError

PLACES = {"only": (False, False), "first": (False, True), "middle": (True, True), "last": (True, False)}


def given(options: dict, place: str) -> list[str]:
    """The commands of a VPP there."""
    sides = both_ports(("west", "east"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    ports = (replace(port, faces_dut=faces) for port, faces in zip(sides, PLACES[place], strict=True))
    return [command.text for command in Vpp.all_options()(**options).forwarding_commands(*ports)]


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ({"classify": True}, "set interface input acl intfc {} ip4-table 0"),
        ({"allowlist": True}, "adl interface {}"),
        ({"mark": "AF22"}, "set policer classify interface {} ip4-table 0"),
    ],
)
@pytest.mark.parametrize(
    ("place", "interfaces"), [("only", ["west", "east"]), ("first", ["west"]), ("middle", []), ("last", ["east"])]
)
def test_frames_meet_a_filter_once_where_they_enter_the_path(options, use, place, interfaces):
    commands = given({"forwarding": "ip4", **options}, place)
    without = given({"forwarding": "ip4"}, place)
    used = [command for command in commands if re.fullmatch(re.escape(use).replace(r"\{\}", r"\S+"), command)]
    # FD.io CSIT has an allow list in the west of a single VPP.
    where = interfaces[:1] if "allowlist" in options else interfaces
    assert used == [use.format(interface) for interface in where]
    assert (commands == without) is (place == "middle")


@pytest.mark.parametrize("options", [{"classify": True}, {"mark": "AF22"}])
def test_a_filter_knows_the_destinations_of_the_frames_that_enter_there(options):
    first, last = (" ".join(given({"forwarding": "ip4", **options}, place)) for place in ("first", "last"))
    assert ("dst 198.19.0.1" in first, "dst 198.18.0.1" in first) == (True, False)
    assert ("dst 198.19.0.1" in last, "dst 198.18.0.1" in last) == (False, True)


@pytest.mark.parametrize(
    ("version", "networks"), [(4, ("198.18.0.0/16", "198.19.0.0/16")), (6, ("2001:2::/49", "2001:2:0:8000::/49"))]
)
def test_the_first_vpp_has_rules_that_miss_and_those_that_permit(version, networks):
    options = {"forwarding": f"ip{version}", "acl": 50}
    (line,) = [line for line in given(options, "first") if line.startswith("set acl-plugin acl")]
    sources = re.findall(r"permit src (\S+) dst", line)
    assert tuple(sources[50:]) == networks
    missing = [ip_network(source) for source in sources[:50]]
    assert len(set(missing)) == 50
    assert not any(one.overlaps(ip_network(network)) for one in missing for network in networks)
    assert not any("acl-plugin" in line for place in ("middle", "last") for line in given(options, place))


def bits_looked_at(lines, address):
    """How many bits of the address VPP's lookup of 16, 8 and 8 bits looks at."""
    routes = [ip_network(found) for line in lines for found in re.findall(r"ip route add (\S+/\d+) ", line)]
    bits = 16
    while any(
        ip_network(f"{address}/{bits}", strict=False).supernet_of(each) for each in routes if each.prefixlen > bits
    ):
        bits += 8
    return bits


@pytest.mark.parametrize(
    ("options", "place", "address", "bits"),
    [
        ({}, "only", "198.19.0.1", 32),
        ({}, "first", "198.19.0.1", 24),
        ({}, "last", "198.19.0.1", 32),
        ({"acl": 1}, "only", "198.19.0.10", 32),
        ({"process": "memif"}, "only", "198.19.0.1", 24),
        ({"ipsec": 2}, "first", "198.18.0.1", 16),
        ({"ipsec": 2}, "first", "242.0.0.1", 32),
        ({"wireguard": 2}, "first", "240.0.1.0", 16),
        ({"wireguard": 2}, "last", "246.0.0.1", 32),
        ({"wireguard": 2}, "last", "240.0.1.0", 24),
        ({"gtpu": True}, "last", "246.0.0.0", 32),
        ({"geneve": 2}, "only", "244.0.1.9", 24),
        ({"nat": "nat44-ed"}, "only", "198.18.3.9", 24),
        ({"nat": "nat44-ed", "nat_sessions": 4_128_768}, "only", "198.18.3.9", 16),
    ],
)
def test_vpp_looks_at_as_many_bits_of_an_ipv4_address_as_in_csit(options, place, address, bits):
    text = "\n".join(given({"forwarding": "ip4", **options}, place))
    assert bits_looked_at(text.splitlines(), address) == bits


@pytest.mark.parametrize("options", [{}, {"srv6": 2}, {"srv6_proxy": "static"}])
def test_vpp_looks_for_ipv6_addresses_in_at_most_two_lengths_of_prefixes_besides_that_of_both_networks(options):
    for place in ("first", "last"):
        lines = given({"forwarding": "ip6", **options}, place)
        used = [line for line in lines if line.startswith(("set interface ip address", "ip route", "sr steer"))]
        lengths = {int(length) for line in used for length in re.findall(r"/(\d+)", line)}
        assert lengths <= {128, 64, 49}
        assert (64 in lengths) is bool(options)
    assert any(line.startswith("ip route add 2001:2::1/128 via") for line in given({"forwarding": "ip6"}, "first"))


def test_tunnels_between_interfaces_have_one_end_in_the_second_vpp():
    first, last = (" ".join(given({"forwarding": "ip4", "ipsec": 3}, place)) for place in ("first", "last"))
    ends = [re.findall(r"create ipip tunnel src (\S+) dst (\S+)", text) for text in (first, last)]
    assert [(source, sink) for sink, source in ends[1]] == ends[0]
    assert [len(set(side)) for side in zip(*ends[0], strict=True)] == [3, 1]


def test_a_wireguard_peer_first_allows_the_network_of_its_tunnel():
    text = " ".join(given({"forwarding": "ip4", "wireguard": 2}, "first"))
    assert re.findall(r"allowed-ip (\S+) allowed-ip 198.19.0.0/17", text) == ["244.0.0.0/24", "244.0.1.0/24"]


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (
            {"vlan": 100},
            {"only": ["west.100", "east.100"], "first": ["west.100", "east.100"], "last": ["west.100", "east.100"]},
        ),
        (
            {"vlan": 100, "vlan_east": 200},
            {"only": ["west.100", "east.200"], "first": ["west.100", "east.100"], "last": ["west.100", "east.200"]},
        ),
        ({"vlan": 100, "vlan_between": True}, {"only": [], "first": ["east.100"], "middle": ["west.100", "east.100"]}),
    ],
)
def test_tags_are_on_the_links_that_the_options_name(options, made):
    for place, names in at_least_one(made.items()):
        commands = given({"forwarding": "l2bd", **options}, place)
        assert [line.split()[3] for line in commands if line.startswith("set interface state") and "." in line] == names
        assert [line.split()[4] for line in commands if "tag-rewrite" in line] == names


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ({"police": "10 Mbps"}, "policer input name police-west {}"),
        ({"acl": 5}, "set acl-plugin interface {} input acl 0"),
    ],
)
@pytest.mark.parametrize(
    ("tags", "interface"),
    [
        ({}, "west"),
        ({"vlan": 100}, "west.100"),
        ({"vlan": 100, "vlan_between": True}, "west"),
        ({"vxlan": True}, "west"),
    ],
)
def test_tagged_frames_meet_a_policer_and_rules_on_the_interface_of_their_vlan(options, use, tags, interface):
    assert use.format(interface) in given({"forwarding": "l2bd", **options, **tags}, "first")


def test_a_filter_that_cannot_look_behind_a_tag_may_stand_before_it():
    options = {"forwarding": "ip4", "vlan": 100, "vlan_between": True, "classify": True}
    assert "set interface input acl intfc west ip4-table 0" in given(options, "first")


def test_a_tunnel_between_two_vpps_has_the_same_ends_and_number_on_both():
    options = {"forwarding": "l2bd", "vxlan_between": True}
    pattern = re.compile(r"create vxlan tunnel src (\S+) dst (\S+) vni (\d+) instance (\d+)")
    (first,), (last,) = (pattern.findall("\n".join(given(options, place))) for place in ("first", "last"))
    assert first[:3] == (last[1], last[0], last[2])
    assert len({instance for *_, instance in pattern.findall("\n".join(given(options, "middle")))}) == 2
    assert not [line for line in given(options, "only") if "vxlan" in line]


def test_the_second_vpp_connects_what_the_first_one_has_as_a_client():
    options = Vpp.all_options()(forwarding="ip4", process="memif", container=True)
    sides = both_ports(("west", "east"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    ports = tuple(replace(port, queues=4) for port in sides)
    own = [command.text for command in options.forwarding_commands(*ports) if "create interface memif" in command.text]
    others = [command.text for command in options.commands_of("contained", ports)]
    assert all(line.endswith("rx-queues 4 tx-queues 4 slave") for line in own)
    assert [line.split()[-1] for line in others if "create interface memif" in line] == ["master", "master"]
    assert [line for line in others if "xconnect" in line] == [
        "set interface l2 xconnect memif1/0 memif2/0",
        "set interface l2 xconnect memif2/0 memif1/0",
    ]
    assert not options.programs("/run")


@pytest.mark.parametrize(
    ("options", "overhead"),
    [({"vlan": 100}, 0), ({"vlan": 100, "vlan_between": True}, 4), ({"vxlan": True}, 0), ({"vxlan_between": True}, 50)],
)
def test_frames_are_longer_between_duts_by_headers_that_they_have_only_there(options, overhead):
    assert Vpp.all_options()(forwarding="l2bd", **options).encapsulation_overhead == overhead


@pytest.mark.whole
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vlan_east": 200}, "also set vlan"),
        ({"vlan_between": True}, "also set vlan"),
        ({"vlan": 100, "vlan_east": 200, "vlan_between": True}, "leave one of them out"),
        ({"vxlan": True, "vxlan_between": True}, "leave one of them out"),
        ({"forwarding": "ip4", "vlan": 100, "classify": True}, "classify would have no effect, .*: leave vlan out"),
        ({"forwarding": "ip4", "vlan": 100, "allowlist": True}, "allowlist would have no effect, .*: leave vlan out"),
        ({"forwarding": "ip4", "vlan": 100, "mark": "AF22"}, "mark would have no effect, .*: leave vlan out"),
        ({"container": True}, "also set process=memif or srv6_proxy"),
        ({"container": True, "process": "vhost"}, "also set process=memif or srv6_proxy"),
    ],
)
def test_what_does_not_go_together_is_an_error(dut_lab, options, message):
    with pytest.raises(DutError, match=message):
        dut_lab.create("vpp", **{"forwarding": "l2bd", **options})


@pytest.mark.parametrize(
    ("options", "shown", "not_shown"),
    [
        (
            {"acl": 50},
            "   100   acl-plugin-in-ip4-fa   checked packets   error",
            "     0   acl-plugin-in-ip4-fa   checked packets   error",
        ),
        (
            {"police": "1 Mbps"},
            "conform 0 packets, 0 bytes\nexceed 12 packets, 720 bytes",
            "conform 0 packets, 0 bytes\nexceed 0 packets, 0 bytes",
        ),
    ],
)
def test_a_list_and_a_policer_name_the_counter_that_proves_that_frames_met_them(options, shown, not_shown):
    chosen = Vpp.all_options()(forwarding="ip4", **options)
    ports = both_ports(("host-a", "host-b"), ("", ""))
    (proof,) = chosen.shown_in("proved", ports)
    assert re.search(proof.pattern, shown)
    assert not re.search(proof.pattern, not_shown)

"""Pairs of VPP's options: both keep all their commands, or the pair is refused."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest

from lossratio.dut import parse_options
from lossratio.dut.vpp.features.feature import both_ports
from lossratio.errors import DutError

OPTIONS = (
    {"acl": 3},
    {"classify": True},
    {"allowlist": True},
    {"police": "50 Mbps"},
    {"mark": "EF"},
    {"vlan": 7},
    {"vlan": 7, "vlan_between": True},
    {"vxlan": True},
    {"vxlan_between": True},
    {"macs": 10},
    {"routes": 10},
    {"ipsec": 2},
    {"ipsec": 2, "ipsec_lookup": "policy"},
    {"wireguard": 2},
    {"process": "memif"},
    {"process": "vhost"},
    {"process": "memif", "container": True},
    {"det44_hosts": 4},
    {"nat": "nat44-ed"},
    {"sfdp": "l4ip4"},
    {"srv6": 2},
    {"srv6_proxy": "static"},
    {"geneve": 2},
    {"gtpu": True},
    {"bond": True},
)
WEST, EAST = both_ports(("host-a", "host-b"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
LINKS = {"alone": (WEST, EAST), "first of two": (WEST, replace(EAST, faces_dut=True, other_end="02:00:00:00:00:03"))}


def given(links, **options):
    """How many commands begin with the same two words; None: the options are refused.

    Not those about MAC addresses, which a bridge behind a tunnel learns.
    """
    try:
        made = parse_options("vpp", options)
    except DutError:
        return None
    needed = {kind.needs.duts for kind in made.features} - {0}
    if needed not in (set(), {1}, {2}):
        return None
    commands = [*made.forwarding_commands(*LINKS[links]), *made.commands_of("connected", LINKS[links])]
    lines = (line.split() for command in commands for line in command.text.splitlines())
    return Counter(" ".join(words[:2]) for words in lines if words[0] != "l2fib")


@pytest.mark.whole
@pytest.mark.parametrize("links", LINKS)
@pytest.mark.parametrize("forwarding", ["l2xc", "l2bd", "ip4", "ip6"])
def test_both_of_two_features_have_all_their_commands_or_the_pair_is_refused(forwarding, links):
    plain = given(links, forwarding=forwarding)
    alone = {}
    for number, options in enumerate(OPTIONS):
        own = given(links, forwarding=forwarding, **options)
        if own is not None:
            alone[number] = own

    together = 0
    for one, other in combinations(alone, 2):
        if not OPTIONS[one].keys().isdisjoint(OPTIONS[other]):
            continue
        both = given(links, forwarding=forwarding, **OPTIONS[one], **OPTIONS[other])
        if both is not None:
            together += 1
            lost = alone[one] + alone[other] - plain - both
            assert not lost, (OPTIONS[one], OPTIONS[other])
    assert together > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forwarding": "ip4", "routes": 10, "nat": "nat44-ed"}, "routes and nat both decide the routes of a router"),
        ({"forwarding": "ip4", "process": "memif", "gtpu": True}, "process and gtpu both decide the routes"),
        ({"forwarding": "l2xc", "vlan": 7, "bond": True}, "vlan and bond both decide the interfaces on links"),
        ({"forwarding": "ip4", "classify": True, "mark": "EF"}, "both need VPP's first table of packets"),
        ({"forwarding": "ip4", "classify": True, "sfdp": "ip4"}, "classify would have no effect"),
        ({"forwarding": "ip4", "acl": 1, "geneve": 2}, "acl looks at addresses other than those of the geneve tunnels"),
        ({"forwarding": "ip4", "mark": "EF", "det44_hosts": 4}, "mark would have no effect"),
    ],
)
def test_two_features_that_decide_the_same_are_refused(options, message):
    with pytest.raises(DutError, match=message):
        parse_options("vpp", options)


def test_a_process_behind_a_bridge_leaves_its_links_to_a_vlan():
    assert parse_options("vpp", {"forwarding": "l2bd", "process": "memif", "vlan": 7}).vlan == 7

"""grout, or a stand-in where none is installed, in a network namespace: its commands, and real frames through it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from lossratio.dut import parse_options
from lossratio.errors import DutError, NotMeasuredHereError

STAND_IN = str(Path(__file__).with_name("grout_stand_in"))
HOMES = [pytest.param(STAND_IN, id="stand-in")]
if "GROUT_HOME" in os.environ:
    HOMES.append(pytest.param(os.environ["GROUT_HOME"], id="grout"))

pytestmark = pytest.mark.netns


@pytest.fixture(params=HOMES)
def set_up(dut_lab, request):
    with dut_lab.setting_up("grout", home=request.param) as set_up:
        yield set_up


@pytest.mark.parametrize("version", [4, 6])
def test_frames_are_routed_both_ways_and_tear_down_brings_back_what_was_there(dut_lab, set_up, version):
    before = dut_lab.snapshot()
    dut = set_up(ip_version=version)
    dut_lab.assert_accounted_for(dut, version, routed=True)
    assert dut.describe()["version"].startswith("grout v")
    with dut.telemetry() as report:
        pass
    assert report["stats show"]
    (daemon,) = dut.daemons
    dut.tear_down()
    assert not daemon.is_alive()
    assert dut_lab.snapshot() == before


@pytest.mark.smoke
def test_it_is_configured_by_the_commands_of_its_manual(dut_lab, set_up):
    dut = set_up(routes=2, poll=False)
    dut.reconfigure(2)
    west, east = dut_lab.macs
    written = Path(dut.daemons[0].directory, "commands").read_text().splitlines()
    commands = [command for command in written if command != "interface show"]
    assert commands[0].startswith("affinity cpus set control ")
    assert commands[1:] == [
        f"interface add port west devargs net_tap0,iface={dut.stem}.0,remote=dut0 rxqs 1 qsize 1024 mtu 1500",
        f"interface add port east devargs net_tap1,iface={dut.stem}.1,remote=dut1 rxqs 1 qsize 1024 mtu 1500",
        "address add 198.18.255.254/30 iface west",
        f"nexthop add l3 iface west address 198.18.255.253 mac {west}",
        "route add 198.18.0.1/32 via 198.18.255.253",
        "address add 198.19.255.254/30 iface east",
        f"nexthop add l3 iface east address 198.19.255.253 mac {east}",
        "route add 198.19.0.1/32 via 198.19.255.253",
        "route add 198.18.255.252/32 via 198.18.255.253",
        "route add 198.19.255.252/32 via 198.19.255.253",
    ]
    with pytest.raises(DutError, match="a side has room for 65000 hosts"):
        dut.reconfigure(140_000)


TAGGED = """
interface add vlan west.100 parent west vlan_id 100
interface add vlan east.200 parent east vlan_id 200
address add 198.18.255.254/30 iface west.100
nexthop add l3 iface west.100 address 198.18.255.253 mac WEST
route add 198.18.0.0/16 via 198.18.255.253
address add 198.19.255.254/30 iface east.200
nexthop add l3 iface east.200 address 198.19.255.253 mac EAST
route add 198.19.0.0/16 via 198.19.255.253
"""
BRIDGED = """
interface add bridge bridge
address add 198.19.0.2/32 iface west
nexthop add l3 iface west id 1001 address 198.18.0.1 mac WEST
route add 198.18.0.1/32 via id 1001
interface add vxlan tunnel.west vni 24 local 198.19.0.2 domain bridge
flood vtep add 198.18.0.1 vni 24
address add 198.18.0.2/32 iface east
nexthop add l3 iface east id 1002 address 198.19.0.1 mac EAST
route add 198.19.0.1/32 via id 1002
interface add vxlan tunnel.east vni 25 local 198.18.0.2 domain bridge
flood vtep add 198.19.0.1 vni 25
"""
BOTH_VERSIONS = """
address add 198.18.255.254/30 iface west
nexthop add l3 iface west address 198.18.255.253 mac WEST
route add 198.18.0.0/16 via 198.18.255.253
address add 198.19.255.254/30 iface east
nexthop add l3 iface east address 198.19.255.253 mac EAST
route add 198.19.0.0/16 via 198.19.255.253
address add 2001:2:0:7fff:ffff:ffff:ffff:fffe/126 iface west
nexthop add l3 iface west address 2001:2:0:7fff:ffff:ffff:ffff:fffd mac WEST
route add 2001:2::/49 via 2001:2:0:7fff:ffff:ffff:ffff:fffd
address add 2001:2:0:ffff:ffff:ffff:ffff:fffe/126 iface east
nexthop add l3 iface east address 2001:2:0:ffff:ffff:ffff:ffff:fffd mac EAST
route add 2001:2:0:8000::/49 via 2001:2:0:ffff:ffff:ffff:ffff:fffd
"""
# The first grout has the TG in the west, and the other grout in the east.
SEGMENTS = """
address add 198.18.255.254/30 iface west
nexthop add l3 iface west address 198.18.255.253 mac WEST
route add 198.18.0.0/16 via 198.18.255.253
address add 2001:2:0:ffff:ffff:ffff:ffff:fffe/126 iface east
nexthop add l3 iface east address 2001:2:0:ffff:ffff:ffff:ffff:fffd mac EAST
nexthop add srv6 seglist 2001:2:0:8100:: encap h.encaps id 1001
route add 198.19.0.0/16 via id 1001
route add 2001:2:0:8100::/64 via 2001:2:0:ffff:ffff:ffff:ffff:fffd
nexthop add srv6-local behavior end.dt4 id 1002
route add 2001:2:0:100::/64 via id 1002
"""
# The second one, with compressed segments.
COMPRESSED = """
address add 2001:2:0:7fff:ffff:ffff:ffff:fffe/126 iface west
nexthop add l3 iface west address 2001:2:0:7fff:ffff:ffff:ffff:fffd mac WEST
nexthop add srv6 seglist 2001:2:0:200:100:: encap h.encaps.red id 1001
route add 2001:2::/49 via id 1001
route add 2001:2:0:200::/64 via 2001:2:0:7fff:ffff:ffff:ffff:fffd
nexthop add srv6-local behavior end.dt6 id 1002
route add 2001:2:0:8100::/64 via id 1002
nexthop add srv6-local behavior end flavor next-csid block-bits 48 csid-bits 16 id 1003
route add 2001:2:0:8200::/64 via id 1003
address add 2001:2:0:ffff:ffff:ffff:ffff:fffe/126 iface east
nexthop add l3 iface east address 2001:2:0:ffff:ffff:ffff:ffff:fffd mac EAST
route add 2001:2:0:8000::/49 via 2001:2:0:ffff:ffff:ffff:ffff:fffd
"""
# The second one passes to its next segment first.
TWO_SEGMENTS = """
address add 2001:2:0:7fff:ffff:ffff:ffff:fffe/126 iface west
nexthop add l3 iface west address 2001:2:0:7fff:ffff:ffff:ffff:fffd mac WEST
nexthop add srv6 seglist 2001:2:0:200:: 2001:2:0:100:: encap h.encaps id 1001
route add 198.18.0.0/16 via id 1001
route add 2001:2:0:200::/64 via 2001:2:0:7fff:ffff:ffff:ffff:fffd
nexthop add srv6-local behavior end.dt4 id 1002
route add 2001:2:0:8100::/64 via id 1002
nexthop add srv6-local behavior end id 1003
route add 2001:2:0:8200::/64 via id 1003
address add 198.19.255.254/30 iface east
nexthop add l3 iface east address 198.19.255.253 mac EAST
route add 198.19.0.0/16 via 198.19.255.253
"""
# Both ports of the other grout are those of this one.
BRIDGED_BETWEEN = """
address add 2001:2::2/128 iface east
nexthop add l3 iface east id 1001 address 2001:2:0:8000::2 mac OWN_WEST
route add 2001:2:0:8000::2/128 via id 1001
interface add bridge bridge
interface add vxlan tunnel vni 24 local 2001:2::2 domain bridge
interface set port west domain bridge
flood vtep add 2001:2:0:8000::2 vni 24
"""
ROUTED_BETWEEN = """
address add 198.19.0.2/32 iface west
nexthop add l3 iface west id 1001 address 198.18.0.2 mac OWN_EAST
route add 198.18.0.2/32 via id 1001
interface add vrf customer rib4-routes 1024 rib6-routes 1024
interface add vxlan tunnel vni 24 local 198.19.0.2 mac 02:00:00:00:02:00 mtu 1500 vrf customer
interface set port east vrf customer
address add 198.19.255.254/30 iface east
nexthop add l3 iface east address 198.19.255.253 mac EAST
route add 198.19.0.0/16 via 198.19.255.253 vrf customer
nexthop add l3 iface tunnel id 1002 address 198.18.0.2 mac 02:00:00:00:01:00 remote
route add 198.18.0.0/16 via id 1002 vrf customer
"""


@pytest.mark.parametrize(
    ("options", "place", "commands"),
    [
        ({"vlan": 100, "vlan_east": 200}, None, TAGGED),
        ({"vxlan": True}, None, BRIDGED),
        ({"vxlan_between": "bridged", "underlay": 6}, 0, BRIDGED_BETWEEN),
        ({"vxlan_between": "routed"}, 1, ROUTED_BETWEEN),
        ({"dual_stack": True}, None, BOTH_VERSIONS),
        ({"srv6": "encaps"}, 0, SEGMENTS),
        ({"srv6": "end"}, 1, TWO_SEGMENTS),
        ({"srv6": "usid", "ip_version": 6}, 1, COMPRESSED),
    ],
)
def test_scenarios_of_its_authors_are_configured_by_commands_that_its_command_line_has(
    dut_lab, options, place, commands
):
    dut = dut_lab.create("grout", home=STAND_IN, **options)
    own = dut.own_macs()
    if place is not None:
        other = SimpleNamespace(own_macs=lambda: own)
        dut.chain = ((dut, other), (other, dut))[place]
    try:
        dut.set_up(*dut_lab.macs)
        written = Path(dut.daemons[0].directory, "commands").read_text().splitlines()
    finally:
        dut.tear_down()
    west, east = dut_lab.macs
    for name, mac in {"OWN_WEST": own.from_west, "OWN_EAST": own.from_east, "WEST": west, "EAST": east}.items():
        commands = commands.replace(name, mac)
    given = [command for command in written if command != "interface show"]
    assert given[3:] == commands.split("\n")[1:-1]
    # With the outer header, packets are larger.
    mtu = 1500 + dut.options.encapsulation_overhead
    assert all(command.endswith(f" mtu {mtu}") for command in given[1:3])


def test_frames_that_it_would_drop_are_refused_with_the_largest_size(dut_lab):
    dut = dut_lab.create("grout", home=STAND_IN, srv6="encaps")
    dut.check_frames(1518)
    with pytest.raises(DutError, match=r"at most 1518 bytes, .* 9000 bytes.* largest_frame=9000"):
        dut.check_frames(9000)


def test_larger_frames_pass_if_it_is_started_for_them(dut_lab, set_up):
    for name in ("dut0", "dut1"):
        dut_lab.lab.run("dut", "ip", "link", "set", "dev", name, "mtu", "9216")
    dut = set_up(largest_frame=9000)
    dut.check_frames(9000)
    program = dut_lab.lab.run("dut", "cat", f"/proc/{dut_lab.pid(dut.daemons[0])}/cmdline").stdout
    assert "-u\x008982" in program


def test_frames_are_addressed_to_it_also_as_a_bridge_of_tunnels_on_both_links_but_not_as_a_bridge_of_one(dut_lab):
    own = tuple(dut_lab.lab.mac("dut", name) for name in ("dut0", "dut1"))
    west, east = dut_lab.macs
    for options, expected in (({}, own), ({"vxlan": True}, own), ({"vxlan_between": "bridged"}, (east, west))):
        macs = dut_lab.create("grout", home=STAND_IN, **options).destination_macs(*dut_lab.macs)
        assert (macs.from_west, macs.from_east) == expected


@pytest.mark.parametrize("options", [{"vxlan": True}, {"vxlan_between": "routed"}, {"srv6": "encaps"}])
def test_tunnels_have_no_table_for_new_routes(dut_lab, options):
    with pytest.raises(DutError, match="has no table for 2 new entries"):
        dut_lab.create("grout", home=STAND_IN, **options).check_reconfigure(2)


@pytest.mark.parametrize("options", [{"srv6": "encaps"}, {"vxlan_between": "bridged"}])
def test_what_is_between_two_of_them_needs_two_of_them(dut_lab, options):
    needs = f"{next(iter(options))} needs a path through 2 DUTs, but this one goes through 1"
    with pytest.raises(NotMeasuredHereError, match=needs):
        dut_lab.create("grout", home=STAND_IN, **options).check()


@pytest.mark.parametrize(
    ("options", "is_router", "overhead"),
    [
        ({}, True, 0),
        ({"vxlan": True}, False, 0),
        ({"vxlan_between": "bridged"}, False, 50),
        ({"vxlan_between": "routed", "underlay": 6}, True, 70),
        ({"srv6": "encaps"}, True, 64),
        ({"srv6": "end"}, True, 80),
        ({"srv6": "usid"}, True, 40),
    ],
)
def test_a_bridge_is_no_router_and_the_outer_header_counts_on_its_link(options, is_router, overhead):
    parsed = parse_options("grout", options)
    assert (parsed.is_router, parsed.encapsulation_overhead) == (is_router, overhead)


def test_a_command_that_it_refuses_is_named_and_the_set_up_is_undone(dut_lab, tmp_path):
    before = dut_lab.snapshot()
    (tmp_path / "bin").mkdir()
    for name in ("grout", "grcli"):
        text = Path(STAND_IN, "bin", name).read_text().replace("address add", "adress add")
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    with pytest.raises(DutError, match=r"error: address add 198\.18\.255\.254/30 iface west: invalid arguments"):
        dut_lab.create("grout", home=str(tmp_path)).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


def test_a_missing_grout_is_named(dut_lab):
    with pytest.raises(DutError, match=r"DUT1 lacks /nowhere/bin/grout"):
        dut_lab.create("grout", home="/nowhere").check()


@pytest.mark.parametrize(
    "options",
    [
        {"home": "grout"},
        {"ip_version": 5},
        {"routes": 3},
        {"poll": "perhaps"},
        {"vlan_east": 7},
        {"vxlan": True, "vlan": 7},
        {"vxlan": True, "ip_version": 6},
        {"srv6": "encaps", "dual_stack": True},
        {"srv6": "encaps", "routes": 2},
        {"srv6": "tunnel"},
        {"srv6": "end", "vxlan_between": "routed"},
        {"vxlan_between": "switched"},
        {"vxlan_between": "routed", "routes": 2},
        {"underlay": 6},
        {"underlay": 6, "srv6": "end"},
        {"largest_frame": 64},
    ],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(DutError, match=next(iter(options))):
        parse_options("grout", options)

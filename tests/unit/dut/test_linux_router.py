"""A real router in a network namespace, and real frames through it."""

from __future__ import annotations

import pytest
from dut_lab import NamespaceShell, hop

from lossratio.dut import create_dut
from lossratio.dut.linux.addressing import count_host_routes
from lossratio.errors import DutError
from lossratio.nodes import CommandResult

pytestmark = pytest.mark.netns

TTL_OFFSET = {4: 14 + 8, 6: 14 + 7}


class OlderKernelShell(NamespaceShell):
    """A shell on a kernel that cannot forward IPv6 on some interfaces only (before 6.17)."""

    def run(self, *command, **options):
        done = super().run(*command, **options)
        lines = (line for line in done.stdout.splitlines(keepends=True) if "/force_forwarding:" not in line)
        return CommandResult(done.command, done.exit_status, "".join(lines), done.stderr)


@pytest.fixture
def set_up(dut_lab):
    def set_up(**options):
        dut = dut_lab.create("linux_router", **options)
        dut.set_up(*dut_lab.macs)
        return dut

    return set_up


def assert_routes_both_ways(dut_lab, router, *, version, hops=1):
    macs = router.destination_macs(*dut_lab.macs)
    assert macs.from_west == dut_lab.lab.mac("dut", "dut0")
    assert macs.from_east == dut_lab.lab.mac("dut", "dut1")
    for entry, destination, opposite in (("west", macs.from_west, 1), ("east", macs.from_east, 0)):
        flooded = dut_lab.flood(entry, destination, frames=100, version=version)
        assert (flooded.sent, flooded.received) == (100, 100)
        assert flooded.first[:6].hex(":") == dut_lab.macs[opposite]
        assert flooded.first[6:12].hex(":") == dut_lab.lab.mac("dut", f"dut{opposite}")
        assert flooded.first[TTL_OFFSET[version]] == 64 - hops


@pytest.mark.smoke
@pytest.mark.parametrize("version", [4, 6])
def test_frames_are_routed_both_ways(dut_lab, set_up, version):
    assert_routes_both_ways(dut_lab, set_up(ip_version=version), version=version)


@pytest.mark.parametrize("options", [{"ip_version": 4, "police": "50 kfps"}, {"ip_version": 6, "rules": 3}])
def test_tear_down_brings_back_exactly_what_was_there(dut_lab, set_up, options):
    before = dut_lab.snapshot()
    router = set_up(**options)
    assert dut_lab.snapshot() != before
    router.tear_down()
    assert dut_lab.snapshot() == before


def test_an_older_kernel_forwards_ipv6_and_its_other_interfaces_are_restored(dut_lab):
    dut_lab.on_dut("sysctl", "-qw", "net.ipv6.conf.lo.forwarding=1")
    before = dut_lab.snapshot()
    router = create_dut("linux_router", OlderKernelShell(dut_lab.lab, "dut"), hop(), {"ip_version": 6})
    router.set_up(*dut_lab.macs)
    assert_routes_both_ways(dut_lab, router, version=6)
    router.tear_down()
    assert dut_lab.snapshot() == before


def test_an_older_kernel_is_not_robbed_of_its_default_route(dut_lab):
    dut_lab.lab.veth("dut", "mgmt0", "tg", "mgmt1")
    dut_lab.on_dut("sysctl", "-qw", "net.ipv6.conf.mgmt0.disable_ipv6=0")
    dut_lab.on_dut("ip", "-6", "route", "add", "default", "dev", "mgmt0", "proto", "ra")
    router = create_dut("linux_router", OlderKernelShell(dut_lab.lab, "dut"), hop(), {"ip_version": 6})
    with pytest.raises(DutError, match="default route through mgmt0 comes from router advertisements"):
        router.check()


@pytest.mark.parametrize("version", [4, 6])
def test_frames_to_single_hosts_are_routed_by_routes_to_these(dut_lab, set_up, version):
    before = dut_lab.snapshot()
    router = set_up(ip_version=version, routes=2000)
    assert count_host_routes(router.node) == {"dut0": 1000, "dut1": 1000}
    assert_routes_both_ways(dut_lab, router, version=version)
    router.tear_down()
    assert dut_lab.snapshot() == before


def test_many_routes_are_set_up_and_taken_away(dut_lab, set_up):
    router = set_up(routes=20_000)
    assert count_host_routes(router.node) == {"dut0": 10_000, "dut1": 10_000}
    assert_routes_both_ways(dut_lab, router, version=4)
    router.verify()
    router.tear_down()
    assert count_host_routes(router.node) == {}


def test_a_router_that_has_lost_one_of_its_many_routes_does_not_verify(dut_lab, set_up):
    router = set_up(routes=20)
    dut_lab.on_dut("ip", "route", "delete", "198.19.0.7")
    with pytest.raises(DutError, match=r"interface dut1 had 10 routes to single hosts, and now has 9"):
        router.verify()


def test_a_router_whose_forwarding_was_switched_off_does_not_verify(dut_lab, set_up):
    router = set_up()
    router.verify()
    dut_lab.on_dut("sysctl", "-qw", "net.ipv4.conf.dut0.forwarding=0")
    with pytest.raises(DutError, match="/proc/sys/net/ipv4/conf/dut0/forwarding was 1, and is now 0"):
        router.verify()


def test_reconfiguration_adds_routes_that_go_with_the_rest(dut_lab, set_up):
    before = dut_lab.snapshot()
    router = set_up()
    router.reconfigure(501)
    assert count_host_routes(router.node) == {"dut0": 251, "dut1": 250}
    assert_routes_both_ways(dut_lab, router, version=4)
    with pytest.raises(DutError, match="Add fewer routes"):
        router.reconfigure(200_000)
    router.tear_down()
    assert dut_lab.snapshot() == before


def test_a_router_with_many_routes_verifies_after_its_reconfiguration(dut_lab, set_up):
    router = set_up(routes=20)
    router.reconfigure(10)
    router.verify()
    dut_lab.on_dut("ip", "route", "delete", "198.19.0.7")
    with pytest.raises(DutError, match=r"interface dut1 had 15 routes to single hosts, and now has 14"):
        router.verify()


@pytest.mark.parametrize("version", [4, 6])
def test_with_rules_to_walk_frames_are_still_routed_both_ways(dut_lab, set_up, version):
    router = set_up(ip_version=version, rules=3)
    assert_routes_both_ways(dut_lab, router, version=version, hops=2)
    assert router.options.modelled_as() is None


def test_with_enough_rules_the_router_loses_frames_by_itself_and_says_where(dut_lab, set_up):
    router = set_up(rules=5_000)
    before = router.read_counters()
    flooded = dut_lab.flood("west", router.destination_macs(*dut_lab.macs).from_west, frames=2000)
    counted = router.read_counters().since(before)
    assert flooded.received < flooded.sent == counted.received["west"]
    assert counted.dropped["queue west>east"] == flooded.sent - flooded.received
    assert counted.unaccounted == 0
    assert not any(entry.get("rule", {}).get("chain") == "walk" for entry in router.describe()["nftables"])


def test_a_full_bucket_passes_its_burst_in_each_direction(dut_lab, set_up):
    router = set_up(police="1 fps", burst=200)
    macs = router.destination_macs(*dut_lab.macs)
    assert dut_lab.flood("west", macs.from_west, frames=300).received == pytest.approx(200, abs=5)
    assert dut_lab.flood("east", macs.from_east, frames=300).received == pytest.approx(200, abs=5)
    assert router.read_counters().dropped["policer east>west"] == pytest.approx(100, abs=5)


def test_networks_of_test_traffic_that_the_node_has_a_use_for_are_refused(dut_lab):
    dut_lab.lab.veth("dut", "other0", "tg", "other1")
    dut_lab.on_dut("ip", "address", "add", "198.18.7.1/24", "dev", "other0")
    with pytest.raises(DutError, match=r"address clash.* 198\.18\.0\.0/16.* 198\.18\.7\.\S+ through other0"):
        dut_lab.create("linux_router").check()
    dut_lab.create("linux_bridge").check()


def test_a_router_whose_routes_went_with_its_interface_does_not_verify(dut_lab, set_up):
    router = set_up()
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "down")
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "up")
    dut_lab.wait_for_links()
    with pytest.raises(DutError, match=r"route to 198\.19\.0\.0/16 dev dut1 table main no longer exists"):
        router.verify()


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_that_was_restarted_routes_as_before(dut_lab, set_up, version):
    router = set_up(ip_version=version)
    router.restart()
    router.verify()
    assert_routes_both_ways(dut_lab, router, version=version, hops=1)

"""FRR's daemons in a network namespace, routes that they learn, and real frames along these."""

from __future__ import annotations

import shutil
import time

import pytest
from waiting import wait_until

from lossratio.dut import parse_options
from lossratio.errors import DutError

needs_frr = pytest.mark.skipif(
    shutil.which("zebra", path="/usr/lib/frr") is None or shutil.which("vtysh") is None,
    reason="no FRR here; Debian's package is frr",
)
pytestmark = [pytest.mark.netns, needs_frr]


@pytest.fixture
def set_up(dut_lab):
    with dut_lab.setting_up("frr") as set_up:
        yield set_up


def routes(dut_lab):
    return dut_lab.on_dut("ip", "route", "show", "proto", "bgp").splitlines()


@pytest.mark.smoke
def test_frames_take_routes_that_were_learned_and_tear_down_brings_back_what_was_there(dut_lab, set_up):
    before = dut_lab.snapshot()
    router = set_up(peers=2)
    assert [line.split(" nhid")[0] for line in routes(dut_lab)] == ["198.18.0.0/16", "198.19.0.0/16"]
    dut_lab.assert_accounted_for(router)
    router.verify()
    facts = router.describe()
    assert facts["learned_routes"] == 2
    assert " neighbor 198.19.255.242 remote-as 65000" in facts["configuration"]
    daemons = (*router._daemons, *router._router)
    router.tear_down()
    assert not any(daemon.is_alive() for daemon in daemons)
    assert dut_lab.snapshot() == before
    assert dut_lab.on_dut("ip", "nexthop") == ""


def test_a_reconfiguration_adds_routes_that_no_test_traffic_takes(dut_lab, set_up):
    router = set_up(routes=400)
    assert len(routes(dut_lab)) == 400
    router.reconfigure(1000)
    assert len(routes(dut_lab)) == 1400
    router.verify()
    with pytest.raises(DutError, match=r"a side has room for 65000 hosts\. Add fewer routes"):
        router.reconfigure(130_000)


def test_withdrawn_routes_come_back_after_the_outage_and_a_second_peer_has_them_meanwhile(dut_lab, set_up):
    router = set_up(peers=2, reconfiguration="withdraw", outage="0.3 s")
    first = routes(dut_lab)
    seen = []
    asked = router._ask

    def ask(*arguments):
        seen.append((time.monotonic(), routes(dut_lab)))
        return asked(*arguments)

    router._ask = ask
    router.reconfigure(1)
    (withdrawn, _), (announced, meanwhile) = seen
    assert announced - withdrawn > 0.3
    assert ["198.18.255.252" in line or "198.19.255.252" in line for line in meanwhile] == [True, True]
    assert [line.split(" dev")[0].split("via")[1] for line in routes(dut_lab)] == [
        line.split(" dev")[0].split("via")[1] for line in first
    ]
    router.verify()


def test_one_that_was_killed_or_has_lost_routes_is_one_error_and_nothing_of_it_stays(dut_lab, set_up):
    before = dut_lab.snapshot()
    router = set_up()
    # zebra puts a route back that somebody else removes from the kernel, but not one that its peer withdraws.
    steps = ("configure terminal", "router bgp 65000", "address-family ipv4 unicast", "no network 198.18.0.0/16")
    router._ask(router._peers[0].directory, *(part for step in steps for part in ("-c", step)))
    wait_until(lambda: len(routes(dut_lab)) == 1)
    with pytest.raises(DutError, match=r"DUT1: the kernel has 1 of the 2 routes that frr learned from its peer"):
        router.verify()
    for daemon in reversed(router._router):
        dut_lab.kill(daemon)
    with pytest.raises(DutError, match=r"DUT1: zebra has died .* Its last output: .*set it up again"):
        router.verify()
    router.tear_down()
    assert dut_lab.snapshot() == before
    assert dut_lab.on_dut("ip", "nexthop") == ""


def test_a_restart_takes_the_routes_away_and_brings_them_back(dut_lab, set_up):
    router = set_up()
    zebra = router._router[0].program
    before = dut_lab.on_dut("cat", f"{zebra.files}pid")
    router.restart()
    assert dut_lab.on_dut("cat", f"{zebra.files}pid") != before
    router.verify()
    dut_lab.assert_accounted_for(router)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"outage": "1 s"}, "also set reconfiguration=withdraw"),
        ({"peers": 3}, "peers: "),
        ({"routes": 3}, "routes: "),
        ({"reconfiguration": "flap"}, "reconfiguration: "),
    ],
)
def test_wrong_options_are_named(options, error):
    with pytest.raises(DutError, match=error):
        parse_options("frr", options)

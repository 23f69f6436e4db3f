"""A private Open vSwitch in a network namespace, and real frames through it."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest

from lossratio.bpf import why_impossible
from lossratio.dut.daemon import READY_TIMEOUT
from lossratio.dut.ovs import OvsConnections
from lossratio.dut.ovs_programs import OvsControl, parse_coverage, parse_meters, parse_ports, parse_socket_drops
from lossratio.errors import DutError
from lossratio.nodes import COMMAND_SECONDS, DutNode

WHY_NOT = None
if shutil.which("ovs-vswitchd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
    WHY_NOT = "no Open vSwitch here; Debian's package is openvswitch-switch"
elif os.geteuid() != 0:
    WHY_NOT = "Open vSwitch's userspace datapath takes root (TAP devices)"
needs_ovs = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
pytestmark = pytest.mark.netns


@pytest.fixture
def set_up(dut_lab):
    with dut_lab.setting_up("ovs") as set_up:
        yield set_up


@pytest.mark.smoke
@needs_ovs
@pytest.mark.parametrize(
    "options", [{}, {"rules": 100}, {"forwarding": "learning"}, pytest.param({"sockets": "af_xdp"}, marks=needs_bpf)]
)
def test_frames_pass_both_ways_and_every_one_is_accounted_for(dut_lab, set_up, options):
    dut_lab.assert_accounted_for(set_up(**options))


@needs_ovs
def test_a_full_bucket_passes_its_burst_and_the_meter_says_what_it_dropped(dut_lab, set_up):
    dut = set_up(police="1 fps", burst=200)
    macs = dut.destination_macs(*dut_lab.macs)
    before = dut.read_counters()
    flooded = dut_lab.flood("west", macs.from_west, frames=300)
    counted = dut.read_counters().since(before)
    assert flooded.received == pytest.approx(200, abs=5)
    assert counted.dropped["meter west>east"] + counted.dropped["west socket, full"] == 300 - flooded.received
    assert counted.unaccounted == 0


@needs_ovs
@pytest.mark.parametrize("options", [{}, pytest.param({"sockets": "af_xdp"}, marks=needs_bpf)])
def test_telemetry_has_the_load_of_the_thread_that_forwards(dut_lab, set_up, options):
    dut = set_up(**options)
    macs = dut.destination_macs(*dut_lab.macs)
    dut_lab.flood("west", macs.from_west, frames=5)
    with dut.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=40)
    (worker,) = report["workers"]
    assert worker["worker"].startswith("pmd thread" if options else "main thread")
    assert worker["frames"] == 40
    assert worker["queues"] == ([f"{name} queue 0" for name in ("dut0", "dut1")] if options else [])


@needs_ovs
def test_a_command_that_waits_for_the_switch_gives_up_before_the_node_ends_it(dut_lab, set_up, monkeypatch):
    """Its own message says what it waited for. Cards take longest: each command has as long as a start may take."""
    limits = {}
    run = dut_lab.shell.run

    def recorded(*command, timeout=COMMAND_SECONDS, **others):
        own = [word for word in command if word.startswith("--timeout=")]
        if own:
            limits["add-port" if "add-port" in command else command[-1]] = int(own[0].partition("=")[2]), timeout
        return run(*command, timeout=timeout, **others)

    monkeypatch.setattr(dut_lab.shell, "run", recorded)
    set_up().describe()
    assert {"init", "add-port", "show", "version"} <= set(limits)
    assert all(own < of_node for own, of_node in limits.values())
    assert limits["add-port"][0] >= READY_TIMEOUT


@needs_ovs
def test_reconfiguration_adds_rules(set_up):
    dut = set_up()
    before = dut.describe()["number_of_rules"]
    dut.reconfigure(300)
    assert dut.describe()["number_of_rules"] == before + 300


@needs_ovs
def test_a_switch_that_was_restarted_forwards_as_before_with_other_programs(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up(police="50 kfps")
    programs = dut.daemons
    dut.restart()
    assert not any(daemon.is_alive() for daemon in programs)
    assert all(daemon.is_alive() for daemon in dut.daemons)
    dut.verify()
    dut_lab.assert_accounted_for(dut)
    programs = dut.daemons
    dut.tear_down()
    assert dut_lab.snapshot() == before
    assert not any(daemon.is_alive() for daemon in programs)


@needs_ovs
def test_a_switch_that_was_killed_is_one_error_and_the_next_set_up_is_fresh(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up(forwarding="learning")
    (switch,) = (daemon for daemon in dut.daemons if daemon.name == "ovs-vswitchd")
    dut_lab.kill(switch)
    with pytest.raises(DutError, match=r"DUT1: ovs-vswitchd has died"):
        dut.verify()
    with pytest.raises(DutError, match="ovs-vswitchd has died"):
        dut.read_counters()
    dut.tear_down()
    assert dut_lab.snapshot() == before
    dut.set_up(*dut_lab.macs)
    dut.verify()


@needs_ovs
def test_a_second_userspace_switch_on_the_node_is_refused(dut_lab):
    dut_lab.on_dut("ip", "tuntap", "add", "dev", "ovs-netdev", "mode", "tap")
    with pytest.raises(DutError, match="a userspace Open vSwitch already runs there"):
        dut_lab.create("ovs").check()


def test_learning_and_rules_do_not_go_together(dut_lab):
    with pytest.raises(DutError, match="leave them out with forwarding=learning"):
        dut_lab.create("ovs", forwarding="learning", rules=5)


def test_connections_of_tcp_live_a_day_and_those_that_open_or_end_as_long_as_udp():
    table = OvsConnections(OvsControl(DutNode(SimpleNamespace(name="DUT1")), "/tmp"), most=None)
    states = (None, "syn_recv", "established", "time_wait", "close")
    assert [table.timeout_of(state) for state in states] == [30.0, 30.0, 86_400.0, 30.0, 30.0]


def test_counters_are_read_as_open_vswitch_prints_them():
    ports = (
        "OFPST_PORT reply (OF1.3) (xid=0x2): 2 ports\n"
        "  port  dut0: rx pkts=7, bytes=570, drop=1, errs=0, frame=0, over=0, crc=0\n"
        "           tx pkts=5, bytes=90, drop=2, errs=0, coll=0\n           duration=1.2s\n"
    )
    assert parse_ports(ports)["dut0"]["rx"]["pkts"] == 7
    assert parse_ports(ports)["dut0"]["tx"]["drop"] == 2
    meters = (
        "OFPST_METER reply (OF1.3) (xid=0x2):\nmeter:1 flow_count:1 packet_in_count:9 byte_in_count:0 "
        "duration:0.1s bands:\n0: packet_count:4 byte_count:0\n"
    )
    assert parse_meters(meters) == {1: 4}
    coverage = "datapath_drop_meter   0.0/sec  0.0/sec  0.0/sec   total: 8\n"
    coverage += "drop_action_of_pipeline   0.0/sec  0.0/sec  0.0/sec   total: 3\nflow_extract 1.0/sec total: 5\n"
    assert parse_coverage(coverage) == {"drop_action_of_pipeline": 3}
    memory = "skmem:(r0,rb212992,t0,tb212992,f0,w0,o176,bl0,d"
    sockets = f"p_raw 0 0 *:dut0 * {memory}6)\np_raw 0 0 *:dut1 * {memory}9)\n"
    assert parse_socket_drops(sockets, "dut0") == 6

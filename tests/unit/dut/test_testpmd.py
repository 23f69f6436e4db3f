"""DPDK's testpmd on packet sockets in a network namespace, and real frames through it."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from lossratio.bpf import why_impossible
from lossratio.dut.changes import Changes
from lossratio.dut.linux.program_dut import detach_afterwards
from lossratio.errors import DutError
from lossratio.measurements.telemetry import QueueLoad, describe_drops

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="no testpmd here; Debian's package is dpdk-dev"),
]


@pytest.fixture
def set_up(dut_lab):
    with dut_lab.setting_up("testpmd") as set_up:
        yield set_up


@pytest.mark.smoke
@pytest.mark.parametrize("mode", ["io", "mac", "5tswap"])
def test_frames_pass_both_ways_and_every_one_is_accounted_for(dut_lab, set_up, mode):
    dut_lab.assert_accounted_for(set_up(mode=mode))


@pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
def test_frames_pass_sockets_of_xdp_and_the_program_of_these_goes_when_testpmd_was_killed(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up(sockets="af_xdp")
    dut_lab.assert_accounted_for(dut)
    assert all("xdp" in dut_lab.links()[name] for name in ("dut0", "dut1"))
    with pytest.raises(DutError, match=r"interface dut0 already has an XDP program \(\d+\), but AF_XDP needs"):
        detach_afterwards(Changes(dut.node), dut.node, ["dut0"])
    with pytest.raises(DutError, match="sockets=af_xdp needs kernel interfaces, but the topology file has cards"):
        detach_afterwards(Changes(dut.node), dut.node, [])
    dut_lab.kill(*dut.daemons)
    dut.tear_down()
    assert dut_lab.snapshot() == before


def test_an_mtu_that_is_too_large_for_af_xdp_is_refused_with_the_way_out(dut_lab, set_up):
    dut_lab.on_dut("ip", "link", "set", "dev", "dut1", "mtu", "9216")
    with pytest.raises(
        DutError, match=r"dut1 has an MTU of 9216, .* Set the MTU to at most 3400 at both ends .* field mtu"
    ):
        set_up(sockets="af_xdp")


def test_telemetry_has_the_frames_of_each_receive_queue(dut_lab, set_up):
    dut = set_up()
    macs = dut.destination_macs(*dut_lab.macs)
    dut_lab.flood("west", macs.from_west, frames=5)
    with dut.telemetry() as report:
        dut_lab.flood("west", macs.from_west, frames=40)
    frames = {(load["interface"], load["queue"]): load["frames"] for load in report["queues"]}
    assert sum(count for (side, _), count in frames.items() if side == "west") == 40
    assert frames["east", 0] == 0


@pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
def test_telemetry_has_the_queue_that_dropped_frames_where_the_kernel_counts_them(dut_lab, set_up):
    dut = set_up(sockets="af_xdp")
    macs = dut.destination_macs(*dut_lab.macs)
    (daemon,) = dut.daemons
    pid = dut_lab.pid(daemon)
    with dut.telemetry() as report:
        os.kill(pid, signal.SIGSTOP)
        # No ring has so much room.
        arrived = dut_lab.flood("west", macs.from_west, frames=20_000).received
        os.kill(pid, signal.SIGCONT)
    assert arrived == 0
    (load,) = (QueueLoad(**load) for load in report["queues"] if load["interface"] == "dut0")
    assert load.frames >= 20_000
    assert 10_000 < load.dropped_frames <= load.frames
    assert list(describe_drops([load])) == [f"receive queues dropped {load.dropped_frames:,} in queue 0 of dut0"]


def test_one_that_was_killed_is_one_error_and_the_next_set_up_is_fresh_and_leaves_nothing(dut_lab, set_up):
    before = dut_lab.snapshot()
    dut = set_up()
    dut_lab.kill(*dut.daemons)
    with pytest.raises(DutError, match=r"DUT1: testpmd has died .*dpdk-testpmd.* Its last output: .*set it up again"):
        dut.verify()
    dut.tear_down()
    dut.set_up(*dut_lab.macs)
    dut.set_up(*dut_lab.macs)
    dut.verify()
    (daemon,) = dut.daemons
    dut.tear_down()
    dut.tear_down()
    assert dut_lab.snapshot() == before
    assert not daemon.is_alive()
    assert dut_lab.on_dut("sh", "-c", f"ls -d {daemon.directory} 2>&1 || true").startswith("ls: cannot access")


def test_one_that_was_restarted_is_another_program_that_forwards_as_before(dut_lab, set_up):
    dut = set_up(mode="mac", burst=64)
    dut_lab.assert_restarts(dut)
    facts = dut.describe()
    assert facts["version"].startswith("DPDK ")
    assert "--burst=64" in facts["dpdk"]["/eal/app_params"]
    assert len(facts["cores"]["workers"]) >= 1

"""DPDK's programs on cards that vfio-pci takes from the kernel, behind an IOMMU; and how the kernel gets them back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from layouts import lab_file, set_up, wait_for_links
from machines import wait_until
from measuring import FRAMES, count_frames, received

from lossratio.errors import NodeError
from lossratio.nodes import NodeSession
from lossratio.testbed.undo import execute_last_wills
from lossratio.topology import load_topology

KILLED = """
import os, signal, sys
from lossratio.testbed import open_testbed
open_testbed(sys.argv[1], dut=sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A controller that is killed when it has set up the DUT."""
WITH_DPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"


@pytest.fixture
def bed(lab):
    """A topology file whose DUT gives two cards of vmxnet3 to programs."""
    dut = lab["DUT1"]
    set_up(dut)
    wait_for_links(dut)
    return lab_file(lab, "dpdk", "afpacket", 0, 1, uio_driver="vfio-pci")


def state(dut):
    """Drivers, names, MTUs and states of the cards, and free hugepages."""
    slots = " ".join(dut.pci_address(number) for number, _ in enumerate(dut.plan.cards))
    cards = f"cd /sys/bus/pci/devices; for slot in {slots}; do readlink $slot/driver; done"
    links = "ip -o link | grep -E ' enp0s(1[6-9]|2[01])' | cut -d' ' -f2-5 | sort"
    return dut.shell(f"{cards}; {links}; grep -E 'HugePages_(Free|Total)' /proc/meminfo; pgrep -l testpmd; true")


def test_a_program_forwards_every_frame_between_cards_and_gives_them_back(lab, bed, tmp_path):
    before = state(lab["DUT1"])
    assert received(count_frames(bed, tmp_path, "testpmd")) == [(FRAMES, FRAMES)]
    assert state(lab["DUT1"]) == before


def test_cards_that_open_vswitch_gives_back_hear_frames_at_once(lab, bed, tmp_path):
    """It ends without stopping its cards. Debian does not choose its program with DPDK."""
    lab["DUT1"].run("update-alternatives", "--set", "ovs-vswitchd", WITH_DPDK)
    before = state(lab["DUT1"])
    assert received(count_frames(bed, tmp_path / "ovs", "ovs")) == [(FRAMES, FRAMES)]
    assert state(lab["DUT1"]) == before
    assert received(count_frames(bed, tmp_path / "next", "linux_bridge")) == [(FRAMES, FRAMES)]


def test_the_next_controller_gives_the_cards_of_a_killed_one_back(lab, bed):
    dut = lab["DUT1"]
    before = state(dut)
    command = [sys.executable, "-c", KILLED, str(bed), "testpmd"]
    died = subprocess.run(command, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    assert died.returncode == -signal.SIGKILL
    assert state(dut) != before
    with NodeSession.connect("DUT1", load_topology(bed).nodes["DUT1"]) as session:
        wait_until(lambda: _is_undone(session), "the undo of a controller that is dead")
    assert state(dut) == before


def _is_undone(session):
    """A busy machine takes longer than the next controller waits; then its user is asked to start it again."""
    try:
        execute_last_wills(session)
    except NodeError as error:
        if "set-up of an earlier run is still being undone" not in str(error):
            raise
        return False
    return True

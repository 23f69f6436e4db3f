"""Cards that VPP was given and does not drive are named, with what VPP says about them."""

from __future__ import annotations

import re

import pytest

from lossratio.dut.daemon import Daemon
from lossratio.dut.vpp.control import VppControl
from lossratio.dut.vpp.startup import Card
from lossratio.errors import DutError
from lossratio.nodes import CommandResult, DutNode

LOG = """2026/11/28 19:50:31:001 notice     dpdk           EAL: Detected CPU lcores: 4
2026/11/28 19:50:31:002 notice     dpdk           EAL: Cannot set up DMA remapping, error 12 (Cannot allocate memory)
2026/11/28 19:50:31:003 err        buffer         another part of VPP
"""
OUTPUT = "pci: Skipping PCI device 0000:18:00.1: missing kernel VFIO or UIO driver\n"


def vpp_that_drives(*interfaces, log=LOG):
    """A VPP with these interfaces."""
    heading = "Name  Idx  State  MTU (L3/IP4/IP6/MPLS)  Counter  Count"
    lines = [f"{name}  {number}  down  9000/0/0/0" for number, name in enumerate(interfaces, start=1)]
    answers = {("show", "interface"): "\n".join([heading, *lines]), ("show", "log"): log}

    class Node:
        name = "DUT1"

        def run(self, *command, **_):
            return CommandResult(command, 0, OUTPUT if "tail" in command else answers[command[-2:]], "")

    node = DutNode(Node())
    return VppControl(node, "/usr", "/run/one"), Daemon(node, "/run/one", "vpp", ("vpp",))


def error_about_cards(*interfaces, log=LOG):
    """What is said if VPP drives only these of the cards west and east."""
    control, daemon = vpp_that_drives(*interfaces, log=log)
    with pytest.raises(DutError) as caught:
        control.check_cards([Card("0000:18:00.0", "west", 1, 1024), Card("0000:18:00.1", "east", 1, 1024)], daemon)
    return str(caught.value)


def test_cards_that_dpdk_in_vpp_drives_are_in_order():
    control, daemon = vpp_that_drives("west", "east")
    control.check_cards([Card("0000:18:00.0", "west", 1, 1024)], daemon)


def test_a_card_that_dpdk_in_vpp_does_not_drive_is_named_with_what_vpp_logs_and_writes():
    assert error_about_cards("west") == (
        "DUT1: VPP has started without the PCI device 0000:18:00.1. DPDK in VPP says: "
        "2026/11/28 19:50:31:001 notice dpdk EAL: Detected CPU lcores: 4 | "
        "2026/11/28 19:50:31:002 notice dpdk EAL: Cannot set up DMA remapping, error 12 (Cannot allocate memory). "
        "Its last output: pci: Skipping PCI device 0000:18:00.1: missing kernel VFIO or UIO driver."
    )


def test_dpdk_in_vpp_is_quoted_with_its_last_lines():
    log = "".join(f"2026/11/28 19:50:31:0{number} notice     dpdk     EAL: step {number}\n" for number in range(10, 20))
    said = error_about_cards("west", log=log)
    assert "EAL: step 11 |" not in said
    assert re.search(r"says: \S+ 19:50:31:012 notice dpdk EAL: step 12 \| .* EAL: step 19\. Its last", said)

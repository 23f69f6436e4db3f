"""Cards of three models leave the kernel for a driver of user space, and come back."""

from __future__ import annotations

import pytest
from layouts import topologies, wait_for_links

from lossratio.dut import Changes
from lossratio.dut.linux import bind, check_pci
from lossratio.nodes import DutNode, NodeSession, read_hardware
from lossratio.testbed.undo import LastWill
from lossratio.topology import load_topology

USER_SPACE = "uio_pci_generic"
"""A driver for programs that needs no IOMMU; Debian's kernels have no mode of vfio-pci without one."""
MODELS = {0: "vmxnet3", 2: "virtio-pci", 3: "e1000e"}
"""Cards, and the drivers that their PCI devices have."""


@pytest.fixture
def session(lab):
    """A log-in as lossratio's, on a machine whose cards are up, and have MTUs of their own."""
    dut = lab["DUT1"]
    dut.run("modprobe", USER_SPACE)
    for number in MODELS:
        dut.run("ip", "link", "set", dut.interface(number), "mtu", str(1600 + number), "up")
    with NodeSession.connect("DUT1", load_topology(topologies(lab)["mixed"]).nodes["DUT1"]) as opened:
        yield opened
    for number in MODELS:
        dut.run("ip", "link", "set", dut.interface(number), "mtu", "1500")
    wait_for_links(dut)


def state(dut):
    """Names, drivers, MTUs and states of the cards' interfaces."""
    names = " ".join(map(dut.interface, MODELS))
    lines = (
        "echo $name; cat mtu; readlink -f device/driver device/../driver; (ip -o link show dev $name | grep -o [,]UP)"
    )
    return dut.shell(f"for name in {names}; do cd /sys/class/net/$name && {lines}; done")


def drivers(session, dut):
    """The driver of each card."""
    cards = read_hardware(session, list(map(dut.pci_address, MODELS))).cards
    return [card.driver for card in cards.values()]


def test_cards_come_back_as_they_were(lab, session):
    dut = lab["DUT1"]
    before = state(dut)
    node = DutNode(session)
    node.will = LastWill(session)
    changes = Changes(node)
    assert drivers(session, dut) == [*MODELS.values()]
    for number in MODELS:
        check_pci(node, dut.pci_address(number), USER_SPACE)
        bind(changes, node, dut.pci_address(number), USER_SPACE)
    assert drivers(session, dut) == [USER_SPACE] * len(MODELS)
    changes.roll_back()
    assert state(dut) == before

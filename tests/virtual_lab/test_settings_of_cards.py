"""Rings, interrupts and NUMA nodes of a machine's cards: in results, and after a program had the cards."""

from __future__ import annotations

import pytest
from layouts import for_tests, machine_on_taps, tap_lab_file
from measuring import FRAMES, count_frames, received

RINGS = {"rx": 512, "tx": 1024}


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine, whose first two cards have rings of other sizes, and interrupt its second CPU."""
    with for_tests(machine_on_taps) as lab:
        machine = lab["DUT1"]
        for number in (0, 1):
            name = machine.interface(number)
            machine.shell(
                f"ethtool -G {name} rx {RINGS['rx']} tx {RINGS['tx']}; ip link set {name} up; "
                f"for irq in $(ls /sys/class/net/{name}/device/msi_irqs); do "
                "echo 1 >/proc/irq/$irq/smp_affinity_list; done"
            )
        yield lab


def rings(machine):
    """What ethtool says about the rings of these cards."""
    names = " ".join(map(machine.interface, (0, 1)))
    return machine.shell(f"for name in {names}; do ethtool -g $name | sed -n '/^Current/,$p'; done")


def test_results_say_sizes_of_rings_and_cpus_of_interrupts(dut, tmp_path):
    result = count_frames(tap_lab_file(dut, "bridge", 0), tmp_path, "linux_bridge")
    assert received(result) == [(FRAMES, FRAMES)]
    interfaces = result.conditions.duts["DUT1"]["interfaces"]
    cards = [interfaces[dut["DUT1"].interface(number)] for number in (0, 1)]
    assert [card["rings"] for card in cards] == [RINGS] * 2
    assert [set(card["interrupt_cpus"]) for card in cards] == [{"1"}] * 2


def test_rings_have_their_sizes_again_after_a_program_of_dpdk(dut, tmp_path):
    before = rings(dut["DUT1"])
    bed = tap_lab_file(dut, "testpmd", 0, uio_driver="vfio-pci")
    assert received(count_frames(bed, tmp_path, "testpmd")) == [(FRAMES, FRAMES)]
    assert rings(dut["DUT1"]) == before

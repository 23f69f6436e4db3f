"""Cards on the second socket of a machine: programs get its processors and its memory."""

from __future__ import annotations

import pytest
from layouts import for_tests, machine_on_taps, tap_lab_file
from measuring import FRAMES, count_frames, received

NODE = 1
CPUS = {2, 3}
"""The processors of that node."""


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine with two sockets. Its firmware does not say which one the cards are on."""
    with for_tests(machine_on_taps, cpus=4, sockets=2) as lab:
        for number in (0, 1):
            lab["DUT1"].shell(f"echo {NODE} >/sys/bus/pci/devices/{lab['DUT1'].pci_address(number)}/numa_node")
        yield lab


def test_a_program_runs_on_the_node_of_its_cards(dut, tmp_path):
    bed = tap_lab_file(dut, "testpmd", 0, uio_driver="vfio-pci")
    result = count_frames(bed, tmp_path, "testpmd")
    assert received(result) == [(FRAMES, FRAMES)]
    facts = result.conditions.duts["DUT1"]
    assert {card["numa_node"] for card in facts["cards"].values()} == {str(NODE)}
    assert set(facts["cores"]["workers"]) | {facts["cores"]["main"]} <= CPUS, facts

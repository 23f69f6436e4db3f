"""NDR of a machine whose kernel polices what its PCI cards forward. The host is the TG."""

from __future__ import annotations

import pytest
from layouts import for_tests, machine_on_taps, tap_lab_file
from measuring import bounds, search

FPS, BURST = 500, 250
"""Frames per second that the policer passes in each direction, and frames that its bucket holds."""


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine."""
    with for_tests(machine_on_taps) as lab:
        yield lab


@pytest.mark.parametrize(("cards", "west"), [("vmxnet3", 0), ("virtio", 2)])
def test_the_bounds_of_ndr_enclose_what_a_policer_of_the_kernel_passes(dut, tmp_path, cards, west):
    bed = tap_lab_file(dut, f"policer-{cards}", west)
    search(bed, tmp_path, "linux_bridge", {"police": f"{FPS} fps", "burst": BURST})
    lower, upper = bounds(tmp_path, FPS, BURST)
    assert lower <= 1.0 <= upper

"""NDR of a machine whose kernel polices what its PCI cards forward. The host is the TG."""

from __future__ import annotations

import pytest
from images import CannotBuildError
from layouts import machine_on_taps, tap_lab_file
from measuring import NDR, bounds

FPS, BURST = 500, 250
"""Frames per second that the policer passes in each direction, and frames that its bucket holds."""
SUITE = f"""*** Settings ***
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    ${{TOPOLOGY}}    dut=linux_bridge    police={FPS} fps    burst={BURST}
Suite Teardown    Tear Down Testbed

*** Test Cases ***
Policer
    Find Conditional Throughput    {NDR}    frame_size=128B    max_load=2 kfps    min_load=100 fps
"""


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine."""
    try:
        lab = machine_on_taps()
    except CannotBuildError as error:
        pytest.skip(f"no laboratory of virtual machines here: {error}")
    with lab:
        yield lab


@pytest.mark.parametrize(("cards", "west"), [("vmxnet3", 0), ("virtio", 2)])
def test_the_bounds_of_ndr_enclose_what_a_policer_of_the_kernel_passes(dut, lossratio, tmp_path, cards, west):
    (tmp_path / "policer.robot").write_text(SUITE)
    lossratio("run", "--topology", tap_lab_file(dut, f"policer-{cards}", west), "--output", "out", "policer.robot")
    lower, upper = bounds(tmp_path / "out", FPS, BURST)
    assert lower <= 1.0 <= upper

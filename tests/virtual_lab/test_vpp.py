"""VPP with DPDK on cards that vfio-pci takes from the kernel, as in FD.io CSIT's labs. The host is the TG.

It needs a VPP for any x86-64 processor (for example built with ``-DVPP_PLATFORM=nehalem``): those of the machines are
emulated.
"""

from __future__ import annotations

import pytest
from layouts import for_tests, machine_on_taps, tap_lab_file
from measuring import FRAMES, GOAL, bounds, count_frames, received
from programs import home_of, lend

HOME = home_of("VPP_HOME")
pytestmark = pytest.mark.skipif(HOME is None, reason="needs a VPP: set VPP_HOME")
WEST = {"vmxnet3": 0, "virtio": 2}
SMALL = {"main_heap_size": "512M", "statseg_size": "64M", "buffers_per_numa": 16384}
"""Memory of a machine that has little."""
FPS, BURST = 500, 250
"""Frames per second that the policer passes in each direction, and frames that its bucket holds."""
METERED = 124
"""Bytes of a frame that the policer meters: all but the FCS."""
SUITE = f"""*** Settings ***
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    ${{TOPOLOGY}}    dut=vpp    cores=1    forwarding=l2xc    home={HOME}
...                   police={FPS * METERED * 8 // 1000} kbps    burst={BURST * METERED}
Suite Teardown    Tear Down Testbed

*** Test Cases ***
Policer
    Find Conditional Throughput    {GOAL}    frame_size=128B    max_load=2 kfps    min_load=100 fps
"""


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine, which has VPP."""
    with for_tests(machine_on_taps, programs=(HOME,)) as lab:
        lend(lab["DUT1"], HOME)
        yield lab


@pytest.fixture
def bed(dut, cards):
    """A topology file whose DUT gives cards of a model to VPP."""
    return tap_lab_file(dut, f"vpp-{cards}", WEST[cards], uio_driver="vfio-pci", vpp=SMALL)


def state(machine):
    """Drivers, names, MTUs and states of the cards, and hugepages."""
    slots = " ".join(machine.pci_address(number) for number, _ in enumerate(machine.plan.cards))
    drivers = f"cd /sys/bus/pci/devices; for slot in {slots}; do readlink $slot/driver; done"
    links = "ip -o link | grep -E ' enp0s1[6-9]' | cut -d' ' -f2-5 | sort"
    return machine.shell(f"{drivers}; {links}; grep -E 'HugePages_(Free|Total)' /proc/meminfo; pgrep -l vpp; true")


@pytest.mark.parametrize("cards", WEST)
def test_vpp_forwards_every_frame_between_cards_and_gives_them_back(dut, bed, tmp_path):
    before = state(dut["DUT1"])
    result = count_frames(bed, tmp_path, "vpp", options={"home": str(HOME), "forwarding": "l2xc"})
    assert received(result) == [(FRAMES, FRAMES)]
    assert state(dut["DUT1"]) == before


@pytest.mark.parametrize("cards", ["vmxnet3"])
def test_the_bounds_of_ndr_enclose_what_a_policer_in_vpp_passes(bed, tmp_path, lossratio):
    (tmp_path / "policer.robot").write_text(SUITE)
    lossratio("run", "--topology", bed, "--output", "out", "policer.robot")
    lower, upper = bounds(tmp_path / "out", FPS, BURST)
    assert lower <= 1.0 <= upper

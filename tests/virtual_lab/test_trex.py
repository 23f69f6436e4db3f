"""TRex drives cards of a machine through vfio-pci, as in FD.io CSIT's labs, and gives them back. The host is the DUT.

It needs a TRex whose DPDK has drivers of these cards.
"""

from __future__ import annotations

import pytest
from layouts import for_tests, machine_on_taps, turned_tap_lab_file
from measuring import FRAMES, bounds, count_frames, received, search
from programs import home_of, lend

from lossratio.measurements.throughput.limits import UNSENT_LIMIT

HOME = home_of("TREX_HOME")
pytestmark = pytest.mark.skipif(HOME is None, reason="needs TRex: set TREX_HOME")
WEST = {"vmxnet3": 0, "virtio": 2}
TREX = {
    "kind": "trex",
    "directory": str(HOME),
    "max_rate": "6 kfps",
    "limit_memory": 512,
    "start_timeout": "300 s",
    "settle": "4 s",
    "late_end": "4 s",
}
FPS, BURST = 500, 250
"""Frames per second that the policer passes in each direction, and frames that its bucket holds."""
UNEVEN = 0.1
"""Share by which the policer passes more or fewer frames, because TRex sends late in a machine that stands still."""


@pytest.fixture(scope="module")
def tester():
    """A laboratory of one machine, which has TRex."""
    with for_tests(machine_on_taps, programs=(HOME,)) as lab:
        lend(lab["DUT1"], HOME)
        yield lab


@pytest.fixture
def bed(tester, cards):
    """A topology file whose TG gives cards of a model to TRex."""
    return turned_tap_lab_file(tester, f"trex-{cards}", WEST[cards], generator=TREX, uio_driver="vfio-pci")


def state(machine, cards):
    """Drivers of two cards, and free hugepages."""
    slots = [machine.pci_address(number) for number in (WEST[cards], WEST[cards] + 1)]
    links = " ".join(f"/sys/bus/pci/devices/{slot}/driver" for slot in slots)
    return machine.shell(f"readlink {links}; grep HugePages_Free /proc/meminfo; pgrep -l t-rex; true")


@pytest.mark.parametrize("cards", WEST)
def test_trex_sends_and_counts_every_frame_on_cards_and_gives_them_back(tester, bed, tmp_path, cards):
    before = state(tester["DUT1"], cards)
    assert received(count_frames(bed, tmp_path, "linux_bridge")) == [(FRAMES, FRAMES)]
    assert state(tester["DUT1"], cards) == before


@pytest.mark.parametrize("cards", ["vmxnet3"])
def test_the_bounds_of_ndr_enclose_what_a_policer_passes(bed, tmp_path):
    """A machine that stands still for a second sends too slowly, and lossratio says so."""
    search(bed, tmp_path, "linux_bridge", {"police": f"{FPS} fps", "burst": BURST})
    lower, upper = bounds(tmp_path, FPS, BURST, UNSENT_LIMIT)
    assert lower <= 1.0 + UNEVEN
    assert upper >= 1.0 - UNEVEN

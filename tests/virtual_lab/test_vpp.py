"""VPP with DPDK on cards that vfio-pci takes from the kernel, as in FD.io CSIT's labs. The host is the TG.

It needs a VPP for any x86-64 processor (for example built with ``-DVPP_PLATFORM=nehalem``): those of the machines are
emulated.
"""

from __future__ import annotations

import pytest
from images import CannotBuildError
from layouts import machine_on_taps, tap_lab_file
from measuring import FRAMES, count_frames, received
from programs import home_of, lend

HOME = home_of("VPP_HOME")
pytestmark = pytest.mark.skipif(HOME is None, reason="needs a VPP: set VPP_HOME")
SMALL = {"main_heap_size": "512M", "statseg_size": "64M", "buffers_per_numa": 16384}
"""Memory of a machine that has little."""


@pytest.fixture(scope="module")
def dut():
    """A laboratory of one machine, which has VPP."""
    try:
        lab = machine_on_taps(programs=(HOME,))
    except CannotBuildError as error:
        pytest.skip(f"no laboratory of virtual machines here: {error}")
    with lab:
        lend(lab["DUT1"], HOME)
        yield lab


def state(machine):
    """Drivers, names, MTUs and states of the cards, and hugepages."""
    slots = " ".join(machine.pci_address(number) for number, _ in enumerate(machine.plan.cards))
    drivers = f"cd /sys/bus/pci/devices; for slot in {slots}; do readlink $slot/driver; done"
    links = "ip -o link | grep -E ' enp0s1[6-9]' | cut -d' ' -f2-5 | sort"
    return machine.shell(f"{drivers}; {links}; grep -E 'HugePages_(Free|Total)' /proc/meminfo; pgrep -l vpp; true")


def test_vpp_forwards_every_frame_between_cards_and_gives_them_back(dut, tmp_path):
    bed = tap_lab_file(dut, "vpp", 0, uio_driver="vfio-pci", vpp=SMALL)
    before = state(dut["DUT1"])
    result = count_frames(bed, tmp_path, "vpp", options={"home": str(HOME), "forwarding": "l2xc"})
    assert received(result) == [(FRAMES, FRAMES)]
    assert state(dut["DUT1"]) == before

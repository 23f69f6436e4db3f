"""Two DUTs on parallel links of one node: they live side by side, or the second one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from dut_lab import hop

from lossratio.dut import create_dut
from lossratio.errors import DutError

pytestmark = pytest.mark.netns

STAND_IN = str(Path(__file__).with_name("vpp_stand_in"))


@pytest.fixture
def both(dut_lab):
    """Makes a DUT of a kind on each of two pairs of interfaces."""
    for number in (2, 3):
        dut_lab.lab.veth("tg", f"tg{number}", "dut", f"dut{number}")
    dut_lab.wait_for_links()
    duts = []

    def both(kind, **options):
        first = create_dut(kind, dut_lab.shell, hop(), options)
        second = create_dut(kind, dut_lab.shell, hop("dut2", "dut3"), options)
        duts.extend((second, first))
        return first, second

    yield both
    for dut in duts:
        dut.tear_down()


@pytest.mark.parametrize(("kind", "options"), [("linux_bridge", {"police": "1 kfps"}), ("vpp", {"home": STAND_IN})])
def test_they_live_side_by_side(dut_lab, both, kind, options):
    before = dut_lab.snapshot()
    first, second = both(kind, **options)
    first.set_up(*dut_lab.macs)
    second.set_up(dut_lab.lab.mac("tg", "tg2"), dut_lab.lab.mac("tg", "tg3"))
    second.verify()
    assert dut_lab.flood("west", first.destination_macs(*dut_lab.macs).from_west, frames=10).received == 10
    first.tear_down()
    second.verify()
    second.tear_down()
    assert dut_lab.snapshot() == before


def test_a_second_router_is_refused_for_its_addresses(dut_lab, both):
    first, second = both("linux_router")
    first.set_up(*dut_lab.macs)
    with pytest.raises(DutError, match="DUT1: address clash"):
        second.check()
    first.verify()

"""The how-to's examples are installed as its reader would install them, and forward real frames."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dut_lab import hop
from examples import examples_in

from lossratio.dut import Dut, create_dut
from lossratio.errors import DutError

pytestmark = pytest.mark.netns

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "add-a-dut.md").read_text()


def examples(language):
    return examples_in(TEXT, language)


@pytest.fixture(autouse=True)
def _installed(install_package):
    (entry_points,) = examples("toml")
    *_, group, entry = entry_points.strip().splitlines()
    assert group == '[project.entry-points."lossratio.dut"]'
    entries = [entry.replace('"', ""), "filtering_bridge = our_duts:FilteringBridge"]
    install_package("our_duts", {"lossratio.dut": entries}, our_duts="\n\n".join(examples("python")))


def test_the_appliance_is_addressed_as_its_options_say(dut_lab):
    dut_lab.lab.bridge("dut", "br0", "dut0", "dut1")
    dut_lab.wait_for_links()
    options = {"west_mac": dut_lab.macs[1], "east_mac": dut_lab.macs[0], "holds_frames_for": "0.02"}
    dut = create_dut("appliance", dut_lab.shell, hop(), options)
    dut.check()
    dut.set_up(*dut_lab.macs)
    dut.verify()
    macs = dut.destination_macs(*dut_lab.macs)
    assert dut_lab.flood("west", macs.from_west, frames=10).received == 10
    assert (dut.settle_time, dut.recovery_time, dut.options.modelled_as()) == (0.02, 0.0, None)
    assert dut.describe()["system"].startswith("Linux ")
    dut.tear_down()


def test_the_appliances_options_are_checked(dut_lab):
    with pytest.raises(
        DutError, match=r"appliance cannot be set up: west_mac: this field is required; .*holds_frames_for: "
    ):
        create_dut("appliance", dut_lab.shell, hop(), {"east_mac": "x", "holds_frames_for": "lots"})


def test_the_filtering_bridge_forwards_and_is_undone(dut_lab):
    before = dut_lab.snapshot()
    dut = create_dut("filtering_bridge", dut_lab.shell, hop(), {"rules": "5", "police": "1 kfps"})
    dut.set_up(*dut_lab.macs)
    dut.reset()
    assert dut_lab.on_dut("nft", "list", "ruleset").count("meta mark") == 5
    assert dut_lab.flood("west", dut.destination_macs(*dut_lab.macs).from_west, frames=10).received == 10
    dut.tear_down()
    assert dut_lab.snapshot() == before


def test_every_method_that_a_kind_must_have_is_in_the_table():
    documented = set(re.findall(r"^\| `(\w+)`", TEXT, flags=re.MULTILINE))
    assert set(Dut.__abstractmethods__) <= documented

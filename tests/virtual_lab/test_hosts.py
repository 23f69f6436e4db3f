"""What lossratio says of real hosts: their cards, drivers, links and cables."""

from __future__ import annotations

import pytest
import yaml
from layouts import set_up, topologies


@pytest.mark.parametrize(("cards", "west", "east"), [("vmxnet3", *["vmxnet3"] * 2), ("mixed", "virtio_net", "e1000e")])
def test_a_check_logs_in_and_names_each_driver(lab, lossratio, cards, west, east):
    said = lossratio("check", topologies(lab)[cards], "--connect")
    assert "PROBLEM" not in said
    assert [said.count(f", {driver}, 52:54:") for driver in {west, east}] == [4 // len({west, east})] * len(
        {west, east}
    )


@pytest.mark.parametrize("cards", ["vmxnet3", "mixed"])
def test_a_probe_finds_frames_at_cards_that_nobody_has_set_up(lab, lossratio, cards):
    set_up(lab["DUT1"])
    said = lossratio("check", topologies(lab)[cards], "--connect", "--probe")
    assert "PROBLEM" not in said
    assert "TG.west > TG.east: the frames arrive at DUT1.west but do not come out" in said
    assert "TG.east > TG.west: the frames arrive at DUT1.east but do not come out" in said


def test_cards_that_have_no_name_in_the_file_are_found_by_their_pci_addresses(lab, lossratio):
    file = yaml.safe_load(topologies(lab)["mixed"].read_text())
    for node in file["nodes"].values():
        for port in node["interfaces"].values():
            del port["name"]
            port["pci_address"] = port["pci_address"].upper()
    said = lossratio("check", lab.topology("by-pci-address", file["nodes"]), "--connect")
    assert "PROBLEM" not in said
    tg = lab["TG"]
    assert f"west: {tg.interface(2)}, virtio_net, {tg.mac(2)}" in said
    assert f"east: {tg.interface(3)}, e1000e, {tg.mac(3)}" in said

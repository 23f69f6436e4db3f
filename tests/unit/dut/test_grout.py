"""grout, or a stand-in where none is installed, in a network namespace: its commands, and real frames through it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lossratio.dut import parse_options
from lossratio.errors import DutError

STAND_IN = str(Path(__file__).with_name("grout_stand_in"))
HOMES = [pytest.param(STAND_IN, id="stand-in")]
if "GROUT_HOME" in os.environ:
    HOMES.append(pytest.param(os.environ["GROUT_HOME"], id="grout"))

pytestmark = pytest.mark.netns


@pytest.fixture(params=HOMES)
def set_up(dut_lab, request):
    with dut_lab.setting_up("grout", home=request.param) as set_up:
        yield set_up


@pytest.mark.parametrize("version", [4, 6])
def test_frames_are_routed_both_ways_and_tear_down_brings_back_what_was_there(dut_lab, set_up, version):
    before = dut_lab.snapshot()
    dut = set_up(ip_version=version)
    macs = dut.destination_macs(*dut_lab.macs)
    counted = dut.read_counters()
    for entry, destination, opposite in (("west", macs.from_west, 1), ("east", macs.from_east, 0)):
        flooded = dut_lab.flood(entry, destination, frames=100, version=version)
        assert (flooded.sent, flooded.received) == (100, 100)
        assert flooded.first[:6].hex(":") == dut_lab.macs[opposite]
    counted = dut.read_counters().since(counted)
    assert counted.received == counted.transmitted == {"west": 100, "east": 100}
    assert set(counted.dropped.values()) == {0}
    assert dut.describe()["version"].startswith("grout v")
    with dut.telemetry() as report:
        pass
    assert report["stats show"]
    (daemon,) = dut.daemons
    dut.tear_down()
    assert not daemon.is_alive()
    assert dut_lab.snapshot() == before


@pytest.mark.smoke
def test_it_is_configured_by_the_commands_of_its_manual(dut_lab, set_up):
    dut = set_up(routes=2, poll=False)
    dut.reconfigure(2)
    west, east = dut_lab.macs
    written = Path(dut.daemons[0].directory, "commands").read_text().splitlines()
    commands = [command for command in written if command != "interface show"]
    assert commands[0].startswith("affinity cpus set control ")
    assert commands[1:] == [
        f"interface add port west devargs net_tap0,iface={dut.stem}.0,remote=dut0 rxqs 1 qsize 1024",
        f"interface add port east devargs net_tap1,iface={dut.stem}.1,remote=dut1 rxqs 1 qsize 1024",
        "address add 198.18.255.254/30 iface west",
        f"nexthop add l3 iface west address 198.18.255.253 mac {west}",
        "route add 198.18.0.1/32 via 198.18.255.253",
        "address add 198.19.255.254/30 iface east",
        f"nexthop add l3 iface east address 198.19.255.253 mac {east}",
        "route add 198.19.0.1/32 via 198.19.255.253",
        "route add 198.18.255.252/32 via 198.18.255.253",
        "route add 198.19.255.252/32 via 198.19.255.253",
    ]
    with pytest.raises(DutError, match="a side has room for 65000 hosts"):
        dut.reconfigure(140_000)


def test_a_command_that_it_refuses_is_named_and_the_set_up_is_undone(dut_lab, tmp_path):
    before = dut_lab.snapshot()
    (tmp_path / "bin").mkdir()
    for name in ("grout", "grcli"):
        text = Path(STAND_IN, "bin", name).read_text().replace("address add", "adress add")
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    with pytest.raises(DutError, match=r"error: address add 198\.18\.255\.254/30 iface west: invalid arguments"):
        dut_lab.create("grout", home=str(tmp_path)).set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


def test_a_missing_grout_is_named(dut_lab):
    with pytest.raises(DutError, match=r"DUT1 lacks /nowhere/bin/grout"):
        dut_lab.create("grout", home="/nowhere").check()


@pytest.mark.parametrize("options", [{"home": "grout"}, {"ip_version": 5}, {"routes": 3}, {"poll": "perhaps"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(DutError, match=next(iter(options))):
        parse_options("grout", options)

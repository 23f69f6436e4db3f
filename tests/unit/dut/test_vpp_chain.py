"""Two VPPs in a row, each in a namespace of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dut_lab import DutLab, NamespaceShell

from lossratio.dut import create_dut
from lossratio.errors import DutError
from lossratio.nodes import Core
from lossratio.testbed.set_up import address_path
from lossratio.topology import Hop, Interface, Port

STAND_IN = Path(__file__).with_name("vpp_stand_in")
HOME = os.environ.get("VPP_HOME", "")

pytestmark = pytest.mark.netns
needs_vpp = [pytest.mark.vpp, pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")]


class Chain(DutLab):
    """Namespaces ``tg``, ``DUT1`` and ``DUT2`` in a row, and the VPPs on them, which are set up."""

    def __init__(self, lab, home: str, **options) -> None:
        self.lab = lab
        for namespace in ("tg", "DUT1", "DUT2"):
            lab.namespace(namespace)
        lab.veth("tg", "tg0", "DUT1", "dut0")
        lab.veth("DUT1", "dut1", "DUT2", "dut0")
        lab.veth("DUT2", "dut1", "tg", "tg1")
        self.macs = (lab.mac("tg", "tg0"), lab.mac("tg", "tg1"))
        self.duts = tuple(self._dut(name, {"home": home, "forwarding": "ip4", **options}) for name in ("DUT1", "DUT2"))
        for dut in self.duts:
            dut.chain = self.duts

    def _dut(self, name: str, options):
        shell = NamespaceShell(self.lab, name)
        shell.name = name
        ports = (Port(name, f"port{number}", Interface(name=f"dut{number}", link=f"link{number}")) for number in (0, 1))
        return create_dut("vpp", shell, Hop(name, *ports), options)

    def set_up(self, undo: ExitStack) -> None:
        for dut in self.duts:
            dut.check()
        addressing = address_path(self.duts, *self.macs)
        for dut, neighbours in zip(self.duts, addressing.neighbours, strict=True):
            undo.callback(dut.tear_down)
            dut.set_up(neighbours.west, neighbours.east)
        self.entrances = {"west": addressing.from_tg.from_west, "east": addressing.from_tg.from_east}

    def send(self, frames: int, destinations: int = 1) -> list[int]:
        """Frames that arrived, eastward and westward."""
        flooded = (self.flood(e, mac, frames=frames, destinations=destinations) for e, mac in self.entrances.items())
        return [one.received for one in flooded]


@pytest.fixture
def chain(netns_lab) -> Iterator:
    with ExitStack() as undo:

        def set_up(home: str = HOME, **options) -> Chain:
            chain = Chain(netns_lab, home, **options)
            chain.set_up(undo)
            return chain

        yield set_up


@pytest.mark.parametrize("home", [str(STAND_IN), pytest.param(HOME, marks=needs_vpp)])
def test_frames_pass_two_vpps_and_every_one_is_accounted_for(chain, home):
    duts = (lab := chain(home)).duts
    before = [dut.read_counters() for dut in duts]
    assert lab.send(100) == [100, 100]
    for dut, earlier in zip(duts, before, strict=True):
        counted = dut.read_counters().since(earlier)
        assert counted.received == counted.transmitted == {"west": 100, "east": 100}
    assert duts[0].describe()["cores"]["beside"] == []
    assert len({dut.daemons[0].directory for dut in duts}) == 2


def test_programs_that_poll_never_share_cpus_with_another_dut_of_the_machine(netns_lab, monkeypatch):
    cores = [Core((number,), numa_node=0) for number in range(4)]
    monkeypatch.setattr("lossratio.dut.linux.program_dut.read_cores", lambda node: tuple(cores))
    _, second = Chain(netns_lab, str(STAND_IN), sockets="af_xdp").duts
    assert second.cpus == (0, 3)
    cores.pop()
    with pytest.raises(DutError, match=r"there are 0\..* DUT1 on the same machine has the others"):
        _ = second.cpus
    _, second = Chain(netns_lab, str(STAND_IN)).duts
    assert second._choose_cores().beside == ("DUT1",)

"""Interfaces that are missing, and names of those that the topology file knows by their PCI address."""

from __future__ import annotations

import pytest

from lossratio.errors import TopologyError
from lossratio.testbed.inspection import InterfaceState, PortState, check_presence, with_names
from lossratio.topology import load_topology

LAB = """\
format: lossratio-topology/1
name: lab
nodes:
  TG:
    type: TG
    host: tg
    generator: {kind: afpacket}
    interfaces:
      p0: {pci_address: "0000:3b:00.0", link: a}
      p1: {name: eth7, link: b}
  DUT1:
    type: DUT
    host: dut
    interfaces:
      west: {pci_address: "0000:5e:00.0", link: a}
      east: {pci_address: "0000:5e:00.1", driver: vfio-pci, link: b}
"""


NODES = {"TG", "DUT1"}


@pytest.fixture
def lab(tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(LAB)
    return file, load_topology(file).path()


def interfaces_of(path, **names):
    """What nodes say that have these interfaces: Linux names by port."""
    states = {name: InterfaceState(name, "", "02:00:00:00:00:01", "up", None) for name in names.values()}
    ports = {str(port).replace(".", "_"): port for port in path.ports}
    return [PortState(ports[port], states[name]) for port, name in names.items()]


def test_linux_names_of_pci_addresses_are_asked_from_the_nodes(lab):
    _, path = lab
    named = with_names(path, interfaces_of(path, TG_p0="ens1", TG_p1="eth7", DUT1_west="ens2", DUT1_east="ens3"))
    assert [port.interface.name for port in named.ports] == ["ens1", "ens2", None, "eth7"]
    assert [str(port) for port in named.ports] == [str(port) for port in path.ports]


def test_an_interface_that_the_kernel_does_not_have_gets_no_name(lab):
    _, path = lab
    named = with_names(path, interfaces_of(path, TG_p0="", TG_p1="eth7", DUT1_west="", DUT1_east=""))
    assert [port.interface.name for port in named.ports] == [None, None, None, "eth7"]


def test_every_missing_interface_is_named_with_file_line_and_field(lab):
    file, path = lab
    with pytest.raises(TopologyError) as caught:
        check_presence(file, path, interfaces_of(path, TG_p0="ens1", DUT1_west="ens2"), NODES)
    assert str(caught.value).splitlines() == [
        f"{file}:16: nodes.DUT1.interfaces.east.pci_address: node DUT1 has no interface '0000:5e:00.1'; "
        "correct it in the topology file",
        f"{file}:10: nodes.TG.interfaces.p1.name: node TG has no interface 'eth7'; correct it in the topology file",
    ]


def test_interfaces_of_a_node_that_nobody_asked_are_not_missing(lab):
    file, path = lab
    check_presence(file, path, interfaces_of(path, TG_p0="ens1", TG_p1="eth7"), {"TG"})


def test_where_none_is_missing_there_is_nothing_to_say(lab):
    file, path = lab
    check_presence(
        file, path, interfaces_of(path, TG_p0="ens1", TG_p1="eth7", DUT1_west="ens2", DUT1_east="ens3"), NODES
    )

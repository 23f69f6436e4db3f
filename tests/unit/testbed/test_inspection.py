"""Looking at real nodes: namespaces with an sshd each."""

from __future__ import annotations

import os
import sys

import pytest
from local_testbeds import LOCAL, local_topology, needs_testbed, own_state

from lossratio.commands.main import main
from lossratio.errors import TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed.inspection import describe_node, inspect_nodes
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology
from lossratio.traffic import AfPacket

pytestmark = [pytest.mark.netns, needs_testbed]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A local testbed as if it were a lab: reached by what its topology says, and not built."""
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("inspection"), "inspection")
        with LocalTestbed.up(load_topology(file)) as testbed:
            yield testbed.topology.model_copy(update={"testbed": "lab"})


def changed(topology, node, **fields):
    node_changed = topology.nodes[node].model_copy(update=fields)
    return topology.model_copy(update={"nodes": {**topology.nodes, node: node_changed}})


def with_port(topology, node, port, **fields):
    interfaces = topology.nodes[node].interfaces
    return changed(topology, node, interfaces={**interfaces, port: interfaces[port].model_copy(update=fields)})


def problems_of(topology, node):
    (problems,) = (report.problems for report in inspect_nodes(topology) if report.name == node)
    return problems


@pytest.mark.smoke
def test_nodes_report_versions_and_links(lab):
    tg, dut = inspect_nodes(lab)
    assert (tg.problems, dut.problems) == ((), ())
    assert (dut.interfaces["port0"].name, dut.interfaces["port0"].state) == ("dut0", "up")
    line = describe_node(dut)
    assert line.startswith("DUT1: ")
    assert f"kernel {os.uname().release}" in line
    assert "Gbit/s" in line


def test_an_interface_that_is_not_there_is_named(lab):
    (problem,) = problems_of(with_port(lab, "DUT1", "port1", name="eth99"), "DUT1")
    assert problem.startswith("port port1: there is no interface 'eth99'")


def test_a_port_that_carries_the_nodes_way_out_is_refused(lab):
    with NodeSession.connect("DUT1", lab.nodes["DUT1"]) as session:
        session.run("ip", "route", "add", "default", "dev", "dut0")
        try:
            (problem,) = problems_of(lab, "DUT1")
        finally:
            session.run("ip", "route", "delete", "default", "dev", "dut0")
    assert problem.startswith(
        "DUT1: interface dut0 carries the default route. Test traffic on it would cut off the node"
    )
    assert problems_of(lab, "DUT1") == ()


@pytest.mark.parametrize("node", ["TG", "DUT1"])
def test_a_port_that_carries_the_ssh_session_is_refused_also_under_sudo(lab, node, monkeypatch):
    # A server in a namespace has its sessions over lo; here the client is beyond the first port.
    port = {"TG": "tg0", "DUT1": "dut0"}[node]
    connection = f"SSH_CONNECTION=fe80::9%{port} 50000 fe80::1%{port} 22"
    as_sudo = ("sh", "-c", 'env -i PATH="$PATH" sh -c "$1"; true', "sh")
    run = NodeSession.run

    def behind_the_port(session, *command, **options):
        before = ("env", connection, *as_sudo) if "SSH_CONNECTION" in command[-1] else command[:-1]
        return run(session, *before, command[-1], **options)

    monkeypatch.setattr(NodeSession, "run", behind_the_port)
    (problem,) = problems_of(lab, node)
    assert f"interface {port} carries the SSH session" in problem


def test_a_wrong_mac_address_and_a_slow_link_are_reported(lab):
    (problem,) = problems_of(with_port(lab, "TG", "port0", mac_address="02:00:00:00:00:01"), "TG")
    assert "not 02:00:00:00:00:01" in problem
    (problem,) = problems_of(with_port(lab, "TG", "port0", speed=100e9), "TG")
    assert "has 10.000 Gbit/s, not 100.00 Gbit/s" in problem


def test_a_missing_python_is_reported(lab):
    generator = lab.nodes["TG"].generator.model_copy(update={"python": "python-nowhere"})
    (problem,) = problems_of(changed(lab, "TG", generator=generator), "TG")
    assert problem == "python-nowhere is not Python 3.8 or later"


def test_what_would_be_chosen_is_that_of_the_paths_asked_for(lab, monkeypatch):
    asked = []

    def choices(settings, session, ports, cpus):
        asked.append([port.name for port in ports])
        return ["a choice"]

    monkeypatch.setattr(AfPacket, "choices", staticmethod(choices))
    tg, _ = inspect_nodes(lab)
    assert tg.choices == ("a choice",)
    cable = with_port(lab, "TG", "port1", link="loop")
    cable = with_port(cable, "TG", "port0", link="loop")
    inspect_nodes(cable, duts=0)
    assert asked == [["port0", "port1"]] * 2
    with pytest.raises(TopologyError):
        inspect_nodes(lab, 2)


def test_a_dut_on_cards_has_the_cpus_that_programs_would_get(lab, monkeypatch):
    asked = []

    def cores(node, hop):
        asked.append((hop.node_name, hop.west.name))
        return ["cores=1: main thread 1"]

    monkeypatch.setattr("lossratio.testbed.inspection.core_choices", cores)
    _, dut = inspect_nodes(lab)
    assert asked == [("DUT1", "port0")]
    assert "\n  cores=1: main thread 1" in describe_node(dut)


def test_a_node_that_lacks_programs_is_inspected_nevertheless(lab, monkeypatch):
    run = NodeSession.run

    def without_programs(session, *command, **options):
        words = ("missing" if word in ("ip", "lscpu") else word for word in command)
        return run(session, *words, **options)

    monkeypatch.setattr(NodeSession, "run", without_programs)
    assert problems_of(lab, "DUT1") == ()
    cards = with_port(with_port(lab, "DUT1", "port0", driver="vfio-pci"), "DUT1", "port1", driver="vfio-pci")
    (problem,) = problems_of(cards, "DUT1")
    assert problem.startswith("DUT1: lscpu --json --online --extended=CPU,CORE,SOCKET,NODE failed: ")


def test_a_node_with_another_host_key_is_not_reached(lab):
    (problem,) = problems_of(changed(lab, "DUT1", host_key=lab.nodes["TG"].host_key), "DUT1")
    assert "host key" in problem


def test_the_command_fails_when_a_node_cannot_be_reached(tmp_path, capsys, monkeypatch):
    text = LOCAL.read_text().replace("testbed: local", "testbed: lab")
    for kind in ("TG", "DUT"):
        text = text.replace(f"    type: {kind}\n", f"    type: {kind}\n    host: 127.0.0.1\n    port: 1\n")
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["lossratio", "check", str(file), "--connect"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 69
    written = capsys.readouterr()
    assert "TG: not reached" in written.out
    assert "There are problems on TG, DUT1" in written.err

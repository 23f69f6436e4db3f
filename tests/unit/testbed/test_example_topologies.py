"""The example topologies: each is loaded, and what TRex and VPP would be started with is as the file beside it says.

After a change that is meant, write the files anew: ``python tests/unit/testbed/test_example_topologies.py``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from lossratio.commands.testbed import check
from lossratio.dut.linux.cores import choose_cores, choose_cores_of_both
from lossratio.dut.vpp.configuration import card_commands, placement_commands
from lossratio.dut.vpp.startup import both_cards, startup_configuration
from lossratio.errors import TopologyError
from lossratio.nodes import Card, Core, Hardware
from lossratio.topology import TrexGenerator, load_topology
from lossratio.traffic.generators.trex import server_arguments, server_configuration
from lossratio.traffic.generators.trex_choice import choose_server

EXAMPLES = Path(__file__).parents[3] / "topologies" / "examples"
GENERATED = EXAMPLES / "generated"
FILES = sorted(EXAMPLES.glob("*.yaml"))
CORES = tuple(Core((number, number + 64), number // 32) for number in range(64))
"""Two sockets of 32 cores with two threads each, as in a usual server."""


VM = Hardware(tuple(Core((number,), 0) for number in range(4)), {0: 1024}, {})
"""A virtual machine of four CPUs."""


def numa_node(address):
    """Servers have the first half of the PCI buses on the first socket."""
    return int(int(address.split(":")[1], 16) >= 0x80)


def trex_files(topology):
    """TRex's configuration and its arguments, on such a server with 16 GB of hugepages for each socket or on the VM."""
    generator = topology.nodes[topology.tg_name].generator
    if not isinstance(generator, TrexGenerator):
        return {}
    files = {f"{topology.name}.trex_cfg": trex_file(topology, topology.paths(1))}
    with suppress(TopologyError):
        files[f"{topology.name}.2-links.trex_cfg"] = trex_file(topology, topology.paths(2))
    return files


def trex_file(topology, paths):
    generator = topology.nodes[topology.tg_name].generator
    ports = [port for path in paths for port in (path.west, path.east)]
    cards = {
        address: Card(address, numa_node(address), "vfio-pci", None, None, "1", None, None, None)
        for port in ports
        if (address := port.interface.pci_address) is not None
    }
    server = VM if topology.name.startswith("vm-") else Hardware(CORES, {0: 16_384, 1: 16_384}, {})
    cpus = sum(len(core.cpus) for core in server.cores)
    choice = choose_server(generator, ports, cpus, replace(server, cards=cards))
    macs = [port.interface.mac_address for port in ports]
    arguments = server_arguments(generator, "/run/lossratio/trex-default/config.yaml", choice, "--stl")
    reasons = "".join(f"# {reason}\n" for reason in choice.because)
    return f"{reasons}# arguments: {' '.join(arguments)}\n{server_configuration(generator, ports, macs, choice)}"


def vpp_files(topology):
    """VPP's start-up configuration on each DUT, and the commands that give it cards by its own drivers."""
    files = {}
    for hop in topology.path().hops:
        addresses = tuple(port.interface.pci_address for port in hop.ports)
        cards, cores = (), choose_cores(CORES, 1, 0, where=hop.node_name)
        if all(map(hop.is_card, hop.ports)):
            numa_nodes = tuple(map(numa_node, addresses))
            if len(set(numa_nodes)) > 1:
                cores = choose_cores_of_both(CORES, 2, numa_nodes, where=hop.node_name)
            cards = both_cards(addresses, cores, queues=None, descriptors=1024)
        text = startup_configuration("/run/lossratio/vpp-1", cores, cards, hop.vpp)
        files[f"{topology.name}.{hop.node_name}.startup.conf"] = text
        names = [port.interface.name for port in hop.ports]
        commands = [
            command.text
            for card, name in zip(cards, names, strict=False)
            for command in card_commands(hop.vpp.driver, card, name, "02:00:00:00:00:01")
        ]
        commands += [command.text for command in placement_commands(cards)]
        if commands:
            files[f"{topology.name}.{hop.node_name}.vppctl"] = "".join(f"{command}\n" for command in commands)
    return files


def generated(file):
    topology = load_topology(file)
    return {**trex_files(topology), **vpp_files(topology)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_gives_the_configurations_beside_it(file):
    files = generated(file)
    assert files
    for name, text in files.items():
        assert (GENERATED / name).read_text() == text


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_check_finds_an_example_in_order_and_says_what_is_missing_here(file, monkeypatch):
    monkeypatch.delenv("TREX_HOME", raising=False)
    answer = CliRunner().invoke(check, [str(file)])
    assert answer.exit_code == 0, answer.output
    assert "The file is valid." in answer.output
    missing = (
        "MISSING: the directory of TRex on TG is not known. Set the generator's 'directory', or set TREX_HOME here"
    )
    assert (missing in answer.output) is (file.stem == "csit-2n")
    monkeypatch.setenv("TREX_HOME", "/opt/trex")
    assert "MISSING" not in CliRunner().invoke(check, [str(file)]).output


def test_there_is_no_configuration_without_an_example():
    assert {path.name for path in GENERATED.iterdir()} == {name for file in FILES for name in generated(file)}


if __name__ == "__main__":
    GENERATED.mkdir(exist_ok=True)
    for example in FILES:
        for name, text in generated(example).items():
            (GENERATED / name).write_text(text)

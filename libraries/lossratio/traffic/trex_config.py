"""What a TRex server is started with: its configuration file and its command line, from the topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lossratio.errors import TopologyError
from lossratio.topology import Port, TrexGenerator

PROGRAM = "_t-rex-64"
"""The server's program. The script ``t-rex-64`` around it kills other programs by name, and binds cards anew."""

_RING = "blocksz=65536,framesz=2048,framecnt=16384"
_LARGEST_FRAME = 1900
_JUMBO_RING = "blocksz=73728,framesz=9216,framecnt=4096"
_LARGEST_JUMBO_FRAME = 9000
_FEW_CPUS = 3


@dataclass(frozen=True)
class ServerPort:
    """A port of the server.

    Attributes:
        port: The port in the topology.
        mac_address: Its own MAC address.
        peer_mac_address: The MAC address that its frames go to unless a stream says otherwise.
    """

    port: Port
    mac_address: str
    peer_mac_address: str


def port_name(generator: TrexGenerator, port: Port) -> str:
    """What TRex takes the port by: the Linux interface in software mode, else the PCI address.

    Raises:
        TopologyError: If the topology does not have it.
    """
    if generator.software:
        field, name = "name", port.interface.name
    else:
        field, name = "pci_address", port.interface.pci_address
    if name is None:
        mode = "in software mode" if generator.software else "(unless 'software: true')"
        raise TopologyError(f"{port}: TRex {mode} needs the port's {field!r} in the topology file.")
    return name


def largest_frame(generator: TrexGenerator) -> int:
    """Bytes, with FCS, of the largest frame that the server has room for."""
    return _LARGEST_FRAME if generator.software and not generator.jumbo else _LARGEST_JUMBO_FRAME


def is_low_end(generator: TrexGenerator, cpus: int) -> bool:
    """Whether TRex has to share its CPUs with others: then it sleeps between its frames instead of waiting for them."""
    return not generator.cores and cpus < _FEW_CPUS


def server_configuration(generator: TrexGenerator, ports: Sequence[ServerPort], cpus: int) -> str:
    """The server's configuration file.

    Args:
        generator: The generator as the topology has it.
        ports: Its ports, in TRex's order: an even number of them.
        cpus: How many CPUs the node has.

    Raises:
        TopologyError: If there are too few CPUs, or not the CPUs of each pair of ports.
    """
    _check_cores(generator, len(ports), cpus)
    fields: dict[str, Any] = {
        "version": 2,
        "interfaces": [_interface(generator, number, each.port) for number, each in enumerate(ports)],
        "port_info": [{"src_mac": each.mac_address, "dest_mac": each.peer_mac_address} for each in ports],
        "zmq_rpc_port": generator.rpc_port,
        "zmq_pub_port": generator.publisher_port,
    }
    if generator.prefix is not None:
        fields["prefix"] = generator.prefix
    if generator.cores:
        fields["c"] = len(generator.cores[0].threads)
        fields["platform"] = {
            "master_thread_id": generator.master_core,
            "latency_thread_id": generator.latency_core,
            "dual_if": [{"socket": pair.socket, "threads": list(pair.threads)} for pair in generator.cores],
        }
    elif is_low_end(generator, cpus):
        fields["low_end"] = True
    return yaml.safe_dump([fields], sort_keys=False)


def server_arguments(generator: TrexGenerator, configuration: str) -> tuple[str, ...]:
    """The server's command line behind its program.

    Args:
        generator: The generator as the topology has it.
        configuration: Path of the configuration file on the node.
    """
    software = ("--software",) if generator.software else ()
    fixed = ("-i", "--stl", "--cfg", configuration, "--no-scapy-server", "--hdrh", "--iom", "0")
    return (*fixed, *software, *generator.arguments)


def _interface(generator: TrexGenerator, number: int, port: Port) -> str:
    name = port_name(generator, port)
    if not generator.software:
        return name
    # With the interface's name alone TRex takes rings of 256 frames, and drops from 50,000 frames/s.
    ring = _JUMBO_RING if generator.jumbo else _RING
    return f"--vdev=net_af_packet{number},iface={name},{ring}"


def _check_cores(generator: TrexGenerator, ports: int, cpus: int) -> None:
    if not generator.cores:
        return
    if len(generator.cores) != ports // 2:
        raise TopologyError(
            f"The generator's 'cores' are those of {len(generator.cores)} pairs of ports, and the traffic uses "
            f"{ports // 2}. Give an entry for each pair."
        )
    threads = [thread for pair in generator.cores for thread in pair.threads]
    largest = max(*threads, generator.master_core or 0, generator.latency_core or 0)
    if largest >= cpus:
        raise TopologyError(
            f"Not enough cores: the generator's 'cores' ask for CPU {largest}, and the TG has {cpus} (0 to {cpus - 1})."
        )

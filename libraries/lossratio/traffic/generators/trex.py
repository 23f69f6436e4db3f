"""TRex on the controller's side: the configuration of its server, and the options of its program for the agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lossratio.errors import LossRatioError, TopologyError, TrafficError
from lossratio.nodes import NodeSession
from lossratio.topology import Port, TrexGenerator
from lossratio.traffic.agent.trex.connection import TrexSettings
from lossratio.traffic.generators.base import Generator, GeneratorNode, linux_mac_address
from lossratio.traffic.trex_server import (
    ServerPlan,
    TrexServer,
    configuration_path,
    installation_problem,
    log_path,
    state_directory,
)

TREX_HOME = "TREX_HOME"
"""Environment variable with TRex's directory on the TG, for topologies that do not have it."""

_DEFAULT_NAME = "default"
_CONNECT_SECONDS = 10.0
_PYTHON = "import sys; sys.exit(not (3, 8) <= sys.version_info[:2] < (3, 13))"
_FITS = '"$1" -c "$2" 2>/dev/null && echo yes || true'
_RING = "blocksz=65536,framesz=2048,framecnt=16384"
_LARGEST_FRAME = 1900
_JUMBO_RING = "blocksz=73728,framesz=9216,framecnt=4096"
_LARGEST_JUMBO_FRAME = 9000
_FEW_CPUS = 3


class Trex(Generator[TrexGenerator]):
    """TRex in its stateless mode. See `Generator` for the arguments."""

    settings_type = TrexGenerator

    def __init__(self, settings: TrexGenerator, node: GeneratorNode, ports: Sequence[Port]) -> None:
        super().__init__(settings, node, ports)
        self._directory = trex_directory(settings, node.session.name)
        state = state_directory(settings.prefix or _DEFAULT_NAME)
        self._plan = ServerPlan(
            directory=self._directory,
            configuration=server_configuration(settings, self._server_ports(), node.cpus),
            arguments=server_arguments(settings, configuration_path(state)),
            state=state,
            rpc_port=settings.rpc_port,
            software=settings.software,
            sleeps=is_low_end(settings, node.cpus),
            start_timeout=settings.start_timeout,
        )
        self._server = TrexServer(node.session, self._plan)
        self._has_started = False

    @classmethod
    def needs(cls, settings: TrexGenerator, session: NodeSession) -> Iterator[str]:
        """An installation, hugepages for cards, and a Python for TRex's client."""
        try:
            directory = trex_directory(settings, session.name)
        except TopologyError as error:
            yield str(error)
        else:
            problem = installation_problem(session, directory, software=settings.software)
            if problem is not None:
                yield problem
        if not session.run("sh", "-c", _FITS, "fits", settings.python, _PYTHON).stdout.strip():
            yield f"{settings.python} is no Python 3.8 to 3.12; TRex's client needs one: set the generator's 'python'"

    def ready(self) -> Mapping[str, Any]:
        """See `GeneratorAccess.ready`. A server that died is started anew; one that was refused stays refused."""
        if not self._has_started or not self._server.is_running():
            self._has_started = False
            self._server.ensure()
            self._has_started = True
        options = TrexSettings(
            directory=self._directory,
            ports={self.port_name(port): number for number, port in enumerate(self.ports)},
            rpc_port=self.settings.rpc_port,
            publisher_port=self.settings.publisher_port,
            uses_linux=self.settings.software,
            connect_timeout=_CONNECT_SECONDS,
            late_end=self.settings.allowed_late_end,
            largest_frame=largest_frame(self.settings),
            log=log_path(self._plan.state),
            is_ours=self._server.is_ours,
        )
        return options.to_json()

    def port_name(self, port: Port) -> str:
        """See `GeneratorAccess.port_name`."""
        return port_name(self.settings, port)

    def mac_address(self, port: Port) -> str:
        """That of the Linux interface; of a card that DPDK drives, the one in the topology file."""
        if self.settings.software:
            return linux_mac_address(port, self.node.interfaces)
        if port.interface.mac_address is None:
            raise TopologyError(f"{port}: TRex needs the port's 'mac_address' in the topology file.")
        return port.interface.mac_address.lower()

    def explain(self, error: TrafficError) -> None:
        """See `GeneratorAccess.explain`: a server that has ended is the cause, unless it never started."""
        try:
            if not self._has_started or self._server.is_running():
                return
            last_words = self._server.last_words()
        except LossRatioError:
            # Without a connection to the node the cause stays unknown.
            return
        raise TrafficError(f"{error} The TRex server has ended; its last words: {last_words}") from error

    def close(self) -> None:
        """Stops the server, unless it ran before; logs in again for that if the connection was lost."""
        self._has_started = False
        if self._server.is_ours:
            self.node.session.restore()
            self._server.stop()

    def _server_ports(self) -> list[ServerPort]:
        macs = [self.mac_address(port) for port in self.ports]
        # The other port of a pair has the number that differs in the last bit.
        return [ServerPort(port, macs[number], macs[number ^ 1]) for number, port in enumerate(self.ports)]


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
    """Name by which TRex takes the port: the Linux interface in software mode, else the PCI address.

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
        "interfaces": [_interface(generator, number, port.port) for number, port in enumerate(ports)],
        "port_info": [{"src_mac": port.mac_address, "dest_mac": port.peer_mac_address} for port in ports],
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


def trex_directory(generator: TrexGenerator, node_name: str) -> str:
    """The place of TRex on a TG.

    Raises:
        TopologyError: If neither the topology nor the environment names it.
    """
    directory = generator.directory or os.environ.get(TREX_HOME)
    if not directory:
        raise TopologyError(
            f"Node {node_name}: nobody says where TRex is there. Set the generator's 'directory' in the topology file, "
            f"or the environment variable {TREX_HOME}."
        )
    return directory

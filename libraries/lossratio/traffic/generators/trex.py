"""TRex on the controller's side: the configuration and arguments of its server, and the options of its program."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import yaml

from lossratio.agent import Configuration
from lossratio.agent.trex import FULL, SERVER_LOST, TrexSettings
from lossratio.errors import LossRatioError, TopologyError, TrafficError
from lossratio.nodes import Hardware, NodeSession, read_hardware
from lossratio.topology import TREX_HOME, Port, TrexGenerator
from lossratio.traffic.client import AgentClient, AgentRefusalError
from lossratio.traffic.configuration import questions_of_ports
from lossratio.traffic.generators.base import Generator, GeneratorNode
from lossratio.traffic.generators.trex_choice import (
    MBUF_FACTOR_ARGUMENT,
    ServerChoice,
    choose_server,
)
from lossratio.traffic.trex_server import (
    STATES,
    ServerPlan,
    TrexServer,
    configuration_path,
    installation_problem,
)

_SAME_SETTINGS = frozenset(
    {"rpc_port", "publisher_port", "promiscuous", "force", "flow_statistics"}
)
_VERSION = "import sys; print(*sys.version_info[:3], sep='.')"
_OLDEST_PYTHON, _TOO_NEW_PYTHON = (3, 8), (3, 13)
_RING = "blocksz=65536,framesz=2048,framecnt=16384"
_LARGEST_FRAME = 1900
_LARGEST_JUMBO_FRAME = 9000


class Trex(Generator[TrexGenerator]):
    """TRex, stateless, or with a stack (ASTF) if all trials open connections. See `Generator` for the arguments."""

    settings_type = TrexGenerator
    has_single_frames = True
    runs_schedules = locates_running_losses = False

    def __init__(self, settings: TrexGenerator, node: GeneratorNode, ports: Sequence[Port]) -> None:
        super().__init__(settings, node, ports)
        # It counts everything that a port receives, but flow statistics use fields of the outer header.
        self.follows_growth = not settings.flow_statistics
        self._directory = trex_directory(settings, node.session.name)
        state = f"{STATES}/trex-{settings.prefix or 'default'}"
        macs = [self.mac_address(port) for port in ports]
        self._hardware = _read_hardware(settings, node.session, ports)
        self._choice = choose_server(settings, ports, node.cpus, self._hardware)
        self._plan = ServerPlan(
            directory=self._directory,
            configuration=server_configuration(settings, ports, macs, self._choice),
            arguments=server_arguments(settings, configuration_path(state), self._choice, "--stl"),
            state=state,
            settings=settings,
            sleeps=self._choice.low_end,
        )
        self._server = TrexServer(node.session, self._plan)
        self._has_started = False
        self._neighbours: tuple[dict[str, str], ...] = ()

    @classmethod
    def needs(cls, settings: TrexGenerator, session: NodeSession) -> Iterator[str]:
        """An installation, hugepages for cards, and a Python for TRex's client."""
        try:
            directory = trex_directory(settings, session.name)
        except TopologyError as error:
            yield str(error)
        else:
            # Hugepages that the topology file requests are reserved for each run.
            without = settings.software or settings.hugepages is not None
            problem = installation_problem(session, directory, software=without)
            if problem is not None:
                yield problem
        problem = _python_problem(settings.python, session)
        if problem is not None:
            yield problem

    @classmethod
    def check_python(cls, settings: TrexGenerator, session: NodeSession) -> None:
        """TRex's client needs Python 3.8 to 3.12.

        Raises:
            TopologyError: If the node has no such Python.
        """
        problem = _python_problem(settings.python, session)
        if problem is not None:
            raise TopologyError(f"Node {session.name}: {problem}")

    @classmethod
    def connections_problem(cls, settings: TrexGenerator, connections: int) -> str | None:
        """It reserves memory for a number of connections when its server starts."""
        most = int(FULL * settings.most_connections)
        if connections <= most:
            return None
        return (
            f"TRex has room for {most:,} connections, but the measurement needs {connections:,} "
            "at once. Set the generator's 'most_connections' in the topology file to "
            f"{math.ceil(connections / FULL)} or more, or use a traffic profile with fewer hosts, "
            "or a smaller max_load."
        )

    @classmethod
    def choices(
        cls, settings: TrexGenerator, session: NodeSession, ports: Sequence[Port], cpus: int
    ) -> Iterator[str]:
        """Cores and memory of the server, and the reasons."""
        hardware = _read_hardware(settings, session, ports)
        choice = choose_server(settings, ports, cpus, hardware)
        if choice.master is not None:
            pairs = "; ".join(
                f"{', '.join(map(str, threads))} (NUMA node {node})"
                for node, threads in choice.pairs
            )
            yield f"TRex's CPUs: main thread {choice.master}, latency {choice.latency}, ports {pairs}"

        yield from choice.because
        for card in () if hardware is None else hardware.cards.values():
            facts = {
                "driver": card.driver,
                "link": {None: None, True: "up", False: "DOWN"}[card.has_link],
                "NUMA node": card.numa_node,
                "PCIe": card.pcie,
                "IOMMU group": card.iommu_group,
                "firmware": card.firmware,
            }
            yield f"card {card.address}: " + ", ".join(
                f"{name} {fact}" for name, fact in facts.items() if fact is not None
            )

    def configure(self, agent: AgentClient, configuration: Configuration) -> Mapping[str, Any]:
        """See `Generator.configure`; with the configuration of the server, and the reasons for it.

        Our server in the other mode is stopped; a running server that does not answer is restarted once.

        Raises:
            TrafficError: If flow statistics would not recognize frames that come back, or as for `Generator.configure`.
        """
        if self.settings.flow_statistics and any(
            direction.arriving.tag_offset != direction.frames.tag_offset
            for direction in configuration.directions
        ):
            raise TrafficError(
                "Frames of this traffic profile come back with other headers, but TRex's flow "
                "statistics need a header field at a fixed place. Use 'kind: afpacket', which "
                "also compares the frames. Or set 'flow_statistics: false': then TRex counts all "
                "frames of a port."
            )
        self._take_mode("--astf" if configuration.connects else "--stl")
        if not self.settings.software:
            questions = questions_of_ports(self.ports, configuration, self.port_name)
            self._neighbours = tuple(asdict(question) for question in questions)
            # The kernel, which would otherwise answer for them, does not have the ports.
            configuration = replace(configuration, speakers=())

        try:
            facts = super().configure(agent, configuration)
        except AgentRefusalError as error:
            if error.kind != SERVER_LOST or not self._server.is_ours:
                raise
            self._server.stop()
            facts = super().configure(agent, configuration)

        cards = {} if self._hardware is None else self._hardware.cards
        server = {
            "configuration": yaml.safe_load(self._plan.configuration)[0],
            "arguments": list(self._plan.arguments),
            "because": list(self._choice.because),
            "cards": {address: asdict(card) for address, card in cards.items()},
        }
        return {**facts, "server": server}

    def ready(self) -> Mapping[str, Any]:
        """See `Generator.ready`. A server that died is restarted; a refused server stays refused."""
        if not self._has_started or not self._server.is_running():
            self._has_started = False
            self._server.ensure()
            self._has_started = True

        # Record: the settings of the generator on the node.
        options = TrexSettings(
            **{name: value for name, value in self.settings if name in _SAME_SETTINGS},
            directory=self._directory,
            ports={self.port_name(port): number for number, port in enumerate(self.ports)},
            uses_linux=self.settings.software,
            connect_timeout=10.0,
            late_end=self.settings.allowed_late_end,
            largest_frame=largest_frame(self.settings),
            log=self._server.program.log,
            is_ours=self._server.is_ours,
            pin_cores=self._choice.pin_cores,
            neighbours=self._neighbours,
            most_connections=self.settings.most_connections,
        )
        return asdict(options)

    def single_frames(self) -> Mapping[str, Any] | None:
        """See `Generator.single_frames`: with cards, through the server, which is started for this."""
        if self.settings.software:
            return None
        self._take_mode("--stl")
        return {"generator": self.settings.kind, "options": self.ready()}

    def port_name(self, port: Port) -> str:
        """See `Generator.port_name`."""
        return port_name(self.settings, port)

    def mac_address(self, port: Port) -> str:
        """The address of the Linux interface; for a card that DPDK drives, the one in the topology file.

        Raises:
            TopologyError: If the topology file does not say it.
        """
        if self.settings.software:
            return super().mac_address(port)
        if port.interface.mac_address is None:
            raise TopologyError(
                f"{port}: TRex needs the port's 'mac_address' in the topology file."
            )
        return port.interface.mac_address.lower()

    def explain(self, error: TrafficError) -> None:
        """See `Generator.explain`: if the server has ended, that is the cause, unless it never started.

        Raises:
            TrafficError: If the server has ended; the message has its last words.
        """
        try:
            if not self._has_started or self._server.is_running():
                return
            last_words = self._server.last_words()
        except LossRatioError:
            # Without a connection to the node, the cause remains unknown.
            return
        raise TrafficError(
            f"{error} The TRex server has ended. Its last output: {last_words}"
        ) from error

    def close(self) -> None:
        """Stops the server, unless it ran before; logs in again for that if the connection was lost."""
        self._has_started = False
        if self._server.is_ours:
            self.node.session.restore()
            self._server.stop()

    def _take_mode(self, mode: str) -> None:
        if mode not in self._plan.arguments:
            self.close()
            state = configuration_path(self._plan.state)
            self._plan = replace(
                self._plan, arguments=server_arguments(self.settings, state, self._choice, mode)
            )
            self._server = TrexServer(self.node.session, self._plan)


def _python_problem(python: str, session: NodeSession) -> str | None:
    """Why TRex's client cannot run with a Python of the TG, and the remedy; None: it can."""
    asked = session.run(python, "-c", _VERSION, check=False)
    way_out = "Set the generator's 'python' in the topology file to the path of a Python from 3.8 to 3.12 there."
    version = re.fullmatch(r"(\d+)\.(\d+)\.\d+", asked.stdout.strip())
    if version is None:
        words = (asked.stderr.strip().splitlines() or [f"exit status {asked.exit_status}"])[-1]
        return f"{python!r} cannot run TRex's client ({words}). {way_out}"
    if _OLDEST_PYTHON <= (int(version[1]), int(version[2])) < _TOO_NEW_PYTHON:
        return None
    return f"{python!r} is Python {version[0]}, but TRex's client does not run with it. {way_out}"


def port_name(generator: TrexGenerator, port: Port) -> str:
    """The port's name for TRex: the Linux interface in software mode, otherwise the PCI address.

    Raises:
        TopologyError: If the topology file does not say it.
    """
    if generator.software:
        field = "name"
        name = port.interface.name
    else:
        field = "pci_address"
        name = port.interface.pci_address
    if name is None:
        mode = "in software mode" if generator.software else "(unless 'software: true')"
        raise TopologyError(f"{port}: TRex {mode} needs the port's {field!r} in the topology file.")
    return name


def _read_hardware(
    generator: TrexGenerator, session: NodeSession, ports: Sequence[Port]
) -> Hardware | None:
    """The TG's hardware with the cards of the ports; None in software mode."""
    if generator.software:
        return None
    # As Linux writes PCI addresses.
    return read_hardware(session, [port_name(generator, port).lower() for port in ports])


def largest_frame(generator: TrexGenerator) -> int:
    """Bytes, with FCS, of the largest frame that the server has room for."""
    if generator.software:
        return _LARGEST_FRAME
    return _LARGEST_JUMBO_FRAME


def server_configuration(
    generator: TrexGenerator, ports: Sequence[Port], macs: Sequence[str], choice: ServerChoice
) -> str:
    """The server's configuration file, for an even number of ports in TRex's order with their MAC addresses."""
    names = [port_name(generator, port) for port in ports]
    if generator.software:
        # With the interface's name alone, TRex uses rings of 256 frames, and drops frames from 50,000 frames/s on.
        names = [
            f"--vdev=net_af_packet{number},iface={name},{_RING}"
            for number, name in enumerate(names)
        ]

    fields: dict[str, Any] = {
        "version": 2,
        "interfaces": names,
        # The other port of a pair has the number that differs in the last bit; streams may override this.
        "port_info": [
            {"src_mac": mac, "dest_mac": macs[number ^ 1]} for number, mac in enumerate(macs)
        ],
        "zmq_rpc_port": generator.rpc_port,
        "zmq_pub_port": generator.publisher_port,
    }
    settings = ("prefix", "port_mtu", "rx_desc", "tx_desc")
    fields |= {name: value for name in settings if (value := getattr(generator, name)) is not None}
    if "most_connections" in generator.model_fields_set:
        fields["memory"] = {"dp_flows": generator.most_connections}
    if choice.limit_memory is not None:
        fields["limit_memory"] = choice.limit_memory

    if choice.master is not None:
        fields["c"] = len(choice.pairs[0][1])
        fields["platform"] = {
            "master_thread_id": choice.master,
            "latency_thread_id": choice.latency,
            "dual_if": [
                {"socket": node, "threads": list(threads)} for node, threads in choice.pairs
            ],
        }
    elif choice.low_end:
        fields["low_end"] = True

    if not generator.software:
        fields["ext_dpdk_opt"] = list(_options_of_dpdk(choice))
    return yaml.safe_dump([fields], sort_keys=False)


def _options_of_dpdk(choice: ServerChoice) -> Iterator[str]:
    """What TRex hands on to DPDK."""
    # Otherwise hugepages stay in files when the server has ended, and nobody else gets them.
    yield "--huge-unlink"
    if choice.low_end and choice.limit_memory is not None:
        # In this mode, TRex ignores its own field.
        yield from ("-m", str(choice.limit_memory))


def server_arguments(
    generator: TrexGenerator, configuration: str, choice: ServerChoice, mode: str
) -> tuple[str, ...]:
    """The server's arguments, after its program: its mode, and the path of the configuration file on the node."""
    software = ("--software",) if generator.software else ()
    buffers: tuple[str, ...] = ()
    if choice.mbuf_factor is not None:
        buffers = (MBUF_FACTOR_ARGUMENT, f"{choice.mbuf_factor:g}")

    fixed = ("-i", mode, "--cfg", configuration, "--no-scapy-server", "--hdrh", "--iom", "0")
    return (*fixed, *software, *buffers, *generator.arguments)


def trex_directory(generator: TrexGenerator, node_name: str) -> str:
    """The place of TRex on a TG.

    Raises:
        TopologyError: If it is not given, or is not an absolute path.
    """
    directory = generator.home
    if directory is None:
        raise TopologyError(
            f"Node {node_name}: the directory of TRex is not known. Set the generator's 'directory' in the topology "
            f"file, or the environment variable {TREX_HOME}."
        )
    if not directory.startswith("/"):
        raise TopologyError(
            f"Node {node_name}: {TREX_HOME} is {directory!r}, which is not an absolute path. Set it to TRex's "
            "directory on that node, for example /opt/trex/v3.08."
        )
    return directory

"""TRex on a TG: its server, and what the agent must know about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lossratio.errors import LossRatioError, TopologyError, TrafficError
from lossratio.nodes import NodeSession
from lossratio.topology import Port, TrexGenerator
from lossratio.traffic.agent.trex_settings import TrexSettings
from lossratio.traffic.generator_access import linux_mac_address
from lossratio.traffic.trex_config import (
    ServerPort,
    is_low_end,
    largest_frame,
    port_name,
    server_arguments,
    server_configuration,
)
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


class TrexAccess:
    """TRex on a TG.

    Args:
        generator: The generator as the topology has it.
        session: The log-in on the TG.
        interfaces: MAC addresses of the TG's network interfaces, by name.
        cpus: How many CPUs the TG has.
        ports: Its ports on the way of the traffic: pairs, west before east.

    Raises:
        TopologyError: If the topology says too little about it, or asks for what the TG does not have.
    """

    name = "trex"

    def __init__(
        self,
        generator: TrexGenerator,
        session: NodeSession,
        interfaces: Mapping[str, str],
        cpus: int,
        ports: Sequence[Port],
    ) -> None:
        self._generator = generator
        self._interfaces = interfaces
        self._ports = ports
        self._directory = trex_directory(generator, session.name)
        state = state_directory(generator.prefix or _DEFAULT_NAME)
        self._session = session
        self._plan = ServerPlan(
            directory=self._directory,
            configuration=server_configuration(generator, self._server_ports(), cpus),
            arguments=server_arguments(generator, configuration_path(state)),
            state=state,
            rpc_port=generator.rpc_port,
            software=generator.software,
            sleeps=is_low_end(generator, cpus),
            start_timeout=generator.start_timeout,
        )
        self._server = TrexServer(session, self._plan)
        self._has_started = False

    def ready(self) -> Mapping[str, Any]:
        """See `GeneratorAccess.ready`. A server that died is started anew; one that was refused stays refused."""
        if not self._has_started or not self._server.is_running():
            self._has_started = False
            self._server.ensure()
            self._has_started = True
        settings = TrexSettings(
            directory=self._directory,
            ports={self.port_name(port): number for number, port in enumerate(self._ports)},
            rpc_port=self._generator.rpc_port,
            publisher_port=self._generator.publisher_port,
            uses_linux=self._generator.software,
            connect_timeout=_CONNECT_SECONDS,
            late_end=self._generator.allowed_late_end,
            largest_frame=largest_frame(self._generator),
            log=log_path(self._plan.state),
            is_ours=self._server.is_ours,
        )
        return settings.to_json()

    def port_name(self, port: Port) -> str:
        """See `GeneratorAccess.port_name`."""
        return port_name(self._generator, port)

    def mac_address(self, port: Port) -> str:
        """As the node tells it; of a card that DPDK drives, as the topology has it."""
        if self._generator.software:
            return linux_mac_address(port, self._interfaces)
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
            # Without a connection to the node nothing more can be said.
            return
        raise TrafficError(f"{error} The TRex server has ended; its last words: {last_words}") from error

    def close(self) -> None:
        """Stops the server, unless it ran before; logs in again for that if the connection was lost."""
        self._has_started = False
        if self._server.is_ours:
            self._session.restore()
            self._server.stop()

    def _server_ports(self) -> list[ServerPort]:
        macs = [self.mac_address(port) for port in self._ports]
        # The other port of a pair has the number that differs in the last bit.
        return [ServerPort(port, macs[number], macs[number ^ 1]) for number, port in enumerate(self._ports)]


def trex_problems(generator: TrexGenerator, session: NodeSession) -> Iterator[str]:
    """What a TG lacks for TRex, and the way out; nothing is started or changed."""
    try:
        directory = trex_directory(generator, session.name)
    except TopologyError as error:
        yield str(error)
    else:
        problem = installation_problem(session, directory, software=generator.software)
        if problem is not None:
            yield problem
    if not session.run("sh", "-c", _FITS, "fits", generator.python, _PYTHON).stdout.strip():
        yield f"{generator.python} is no Python 3.8 to 3.12; TRex's client needs one: set the generator's 'python'"


def trex_directory(generator: TrexGenerator, node_name: str) -> str:
    """Where TRex is on a TG.

    Raises:
        TopologyError: If nobody says it.
    """
    directory = generator.directory or os.environ.get(TREX_HOME)
    if not directory:
        raise TopologyError(
            f"Node {node_name}: nobody says where TRex is there. Set the generator's 'directory' in the topology file, "
            f"or the environment variable {TREX_HOME}."
        )
    return directory

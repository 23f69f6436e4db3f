"""The controller's side of every generator: settings, needs on the node, ports, and a program for the agent."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from lossratio.agent import Configuration, program_module
from lossratio.errors import TopologyError, TrafficError
from lossratio.nodes import NodeSession, read_sources
from lossratio.topology import Port, RealGenerator
from lossratio.traffic.client import AgentClient
from lossratio.traffic.two_ends import port_at

SettingsT = TypeVar("SettingsT", bound=RealGenerator)


@dataclass(frozen=True)
class GeneratorNode:
    """The TG, as a generator finds it."""

    session: NodeSession
    """The log-in on the TG."""
    interfaces: Mapping[str, str]
    """MAC addresses of its network interfaces, by name."""
    cpus: int
    """How many CPUs it has."""
    device_cpus: tuple[int, ...] = ()
    """CPUs on which devices under test on the same machine forward, where a sender would get no time."""


class Generator(ABC, Generic[SettingsT]):
    """A generator of a TG. Close it at the end.

    Another package adds a generator as a subclass with an entry point of the group ``lossratio.generator``. The class
    and its methods raise a `TopologyError` if the topology says too little about the generator, or requests something
    that the TG does not have; and another `LossRatioError` if the generator cannot be used.

    Attributes:
        settings_type: Model of its settings in the topology file.
        settings: These settings, which class methods also get.
        node: The TG; class methods get the log-in on it as `session`.
        ports: Its ports on the way of the traffic: pairs, west before east.
        has_single_frames: Whether `single_frames` works with cards that it has taken from the kernel.
        sends_streams: Whether it sends the streams of a traffic profile, and counts the frames of each.
        ends_trials_early: Whether its program can end trials when their verdict is certain.
        runs_schedules: Whether its program runs more steps than a burst.
        locates_running_losses: Whether its program locates losses of running traffic.
        follows_growth: Whether it recognizes frames that come back longer or shorter than they were sent.
        program: Name of the Python module or package that the agent runs for it on the TG; it has a function
            ``make_generator(configuration, options)``. None: the agent has the program already.
        distribution: Name and version of the distribution that it comes with; None: lossratio itself. Results state it
            as the generator's version, unless its program reports another one.
    """

    settings_type: ClassVar[type[RealGenerator]]
    has_single_frames: ClassVar[bool] = False
    ends_trials_early: ClassVar[bool] = False
    sends_streams: ClassVar[bool] = False
    runs_schedules: ClassVar[bool] = True
    locates_running_losses: ClassVar[bool] = True
    follows_growth: bool = False
    program: ClassVar[str | None] = None

    def __init__(self, settings: SettingsT, node: GeneratorNode, ports: Sequence[Port]) -> None:
        self.settings: SettingsT = settings
        self.node = node
        self.ports = ports
        self.distribution: str | None = None

    @classmethod
    @abstractmethod
    def needs(cls, settings: SettingsT, session: NodeSession) -> Iterator[str]:
        """Finds what the TG lacks for it, and how to get that. Nothing is started or changed on the TG."""

    @classmethod
    def check_python(cls, settings: SettingsT, session: NodeSession) -> None:
        """Checks the Python of its program before the agent starts with it. By default, none is refused."""

    @classmethod
    def choices(
        cls, settings: SettingsT, session: NodeSession, ports: Sequence[Port], cpus: int
    ) -> Iterator[str]:
        """What it would choose by itself on a TG with this many CPUs, and why, or do without, a sentence each.

        Nothing is changed on the TG.
        """
        yield from ()

    @classmethod
    def connections_problem(cls, settings: SettingsT, connections: int) -> str | None:
        """Why it cannot keep this many connections at once with these settings, and the remedy; None: it can."""
        return None

    @abstractmethod
    def ready(self) -> Mapping[str, Any]:
        """Makes sure that it can be used, and returns the options of its program, as JSON data."""

    def options(self, configuration: Configuration) -> Mapping[str, Any]:
        """The options of its program for a configuration: by default, those of `ready`.

        A class with options of its own must call `ready` here, too.
        """
        return self.ready()

    def port_name(self, port: Port) -> str:
        """The name of a port in its configuration: the Linux interface's, with its node if the TG has two.

        Raises:
            TopologyError: If the topology file does not say it.
        """
        if port.interface.name is None:
            raise TopologyError(
                f"{port}: the generator needs the 'name' of its Linux interface in the topology file."
            )
        if len({each.node_name for each in self.ports}) > 1:
            return port_at(port.node_name, port.interface.name)
        return port.interface.name

    def mac_address(self, port: Port) -> str:
        """MAC address of a port: the Linux interface's.

        Raises:
            TopologyError: If the node has no such interface.
        """
        name = self.port_name(port)
        interfaces = self.node.interfaces
        if name not in interfaces:
            raise TopologyError(
                f"{port}: node {port.node_name} has no interface {name!r}; it has {', '.join(sorted(interfaces))}. "
                f"Correct its name in the topology file."
            )
        return interfaces[name]

    def single_frames(self) -> Mapping[str, Any] | None:
        """How the agent sends single frames, such as questions for gateways: `AgentClient.resolve`'s ``through``."""
        return None

    def check_growth(self, growth: tuple[int, int]) -> None:
        """Makes sure that it recognizes frames that come back longer or shorter.

        Args:
            growth: Bytes that the DUTs add to frames eastward, and westward.

        Raises:
            TrafficError: If it does not.
        """
        if any(growth) and not self.follows_growth:
            raise TrafficError(
                f"The DUTs change the length of frames by {growth[0]:+} bytes eastward and {growth[1]:+} westward, but "
                f"the generator {self.settings.kind} does not recognize such frames with its present settings. Use "
                "'kind: afpacket', or 'kind: trex' without 'flow_statistics'."
            )

    def explain(self, error: TrafficError) -> None:
        """Looks for the cause of an error that occurred while it was used; if it is known, raises both as one."""

    def close(self) -> None:
        """Ends everything that was started for it; a second call changes nothing."""

    def configure(self, agent: AgentClient, configuration: Configuration) -> Mapping[str, Any]:
        """Prepares the agent for trials with it, and returns what its program reports about itself and the ports.

        Raises:
            TrafficError: If the agent refuses the configuration or does not answer, or its program cannot be read.
        """
        options = self.options(configuration)
        program = None if self.program is None else self._program_sources(self.program)
        facts = agent.configure(
            configuration, generator=self.settings.kind, options=options, program=program
        )
        if self.distribution is None:
            return facts
        return {"version": self.distribution, **facts}

    def _program_sources(self, name: str) -> dict[str, str]:
        """Sources of its program by the names of its modules on the node; not imported, because they need the agent."""
        kind = self.settings.kind
        try:
            spec = find_spec(name)
        except ImportError:
            spec = None
        if spec is None or spec.origin is None:
            text = f"The generator {kind!r} has no program for the agent: there is no Python module {name!r}."
            raise TrafficError(text)
        origin = Path(spec.origin)
        module = program_module(kind)
        if spec.submodule_search_locations is None:
            return {module: origin.read_text(encoding="utf-8")}
        return read_sources(origin.parent, module)

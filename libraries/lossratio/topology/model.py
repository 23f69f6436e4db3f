"""A testbed as its file describes it: nodes, the links between them, the way of the test traffic, and a drawing."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.errors import NotMeasuredHereError, TopologyError
from lossratio.files import Problem
from lossratio.topology import quantities
from lossratio.topology.addressing import Side, split_sides
from lossratio.topology.generators import Generator, GeneratorSettings, RealGenerator
from lossratio.topology.hooks import Hooks
from lossratio.topology.path import Interface, Port, TrafficPath, find_paths
from lossratio.topology.vpp import VppStart
from lossratio.values import (
    RESOLVED,
    FileModel,
    FilePath,
    did_you_mean,
    format_bit_rate,
    format_frame_rate,
)

WAYS_IN = ("host", "netns", "container", "pod")
"""The fields of a node that say how it is reached."""


class Node(FileModel):
    """A machine, namespace or container of the testbed, and how to reach it."""

    type: Literal["TG", "DUT", "reflector"]
    """TG (traffic generator), DUT (device under test), or reflector: the far end of the path, on another machine than
    the TG, whose XDP program sends the frames back. A second TG has the other end of the path: one TG sends the frames,
    and the other counts them."""
    host: quantities.HostName | None = None
    """Host name or address of its sshd. It may be missing on a TG whose generator uses the ports of a tester: the TG is
    then this machine."""
    netns: quantities.NamespaceName | None = None
    """Network namespace of this machine, instead of a host: a name in ``/run/netns``, e.g. ``clab-lab1-r1``."""
    container: quantities.NamespaceName | None = None
    """Container of docker, podman or containerd on this machine, instead of a host: commands run in its network
    namespace."""
    pod: quantities.PodName | None = None
    """Pod of Kubernetes, instead of a host: ``[NAMESPACE/]POD`` or ``NAMESPACE/POD/CONTAINER``. Commands are run in it
    by ``kubectl exec``, so its image needs Python."""
    port: quantities.TcpPort = 22
    """TCP port of its sshd."""
    username: quantities.UserName | None = None
    """User to log in as. Default: the user who runs the suite."""
    key_file: FilePath | None = None
    """Private key to log in with. By default, the SSH agent and the user's default keys are tried."""
    sudo: bool = False
    """Whether commands on the node need ``sudo -n`` in front of them."""
    host_key: str | None = None
    """The node's public host key, as a line ``ssh-ed25519 AAAA...``."""
    known_hosts: FilePath | None = None
    """File with the node's host key, if it is not in the user's known_hosts."""
    connect_timeout: quantities.Duration = 10.0
    """Seconds that a log-in may take."""
    arch: quantities.Label | None = None
    """Architecture of its CPUs, e.g. ``x86_64``."""
    model: quantities.Label | None = None
    """Model of the machine."""
    uio_driver: quantities.DriverName | None = None
    """Driver that PCI devices are bound to if the DUT takes them from the kernel, e.g. ``vfio-pci``."""
    generator: Generator | None = None
    """On a TG: the traffic generator. With two TGs, the first one names the generator of both."""
    sut: Annotated[dict[str, Any] | None, RESOLVED] = None
    """On a DUT of a simulated testbed: the model of the SUT (``model: ...`` and its parameters)."""
    hooks: Hooks = Hooks()
    """On a DUT that lossratio does not set up: how to reset it, read its counters, change it and describe it."""
    vpp: VppStart = VppStart()
    """On a DUT: how VPP is started there."""
    interfaces: dict[quantities.Label, Interface] = Field(min_length=1)
    """Interfaces by port name."""
    other: Annotated[dict[str, JsonValue], RESOLVED] = Field(default_factory=dict)
    """Further facts about it, which every result states."""

    @property
    def place(self) -> str:
        """How the node is reached, in a few words; empty if it cannot be reached."""
        if self.host is not None:
            return f"{self.host}:{self.port}"
        named = {"namespace": self.netns, "container": self.container, "pod": self.pod}
        reached = (f"{kind} {name}" for kind, name in named.items() if name is not None)
        return next(reached, "this machine" if self.is_here else "")

    @property
    def ways_in(self) -> list[str]:
        """The fields that say how it is reached; a usable node has one of them at most."""
        return [way for way in WAYS_IN if getattr(self, way) is not None]

    @property
    def is_here(self) -> bool:
        """Whether its programs run on this machine: it has no address, and its ports are on a tester."""
        return self.has_tester and not self.ways_in

    @property
    def has_tester(self) -> bool:
        """Whether its ports are on a tester, and the node only runs the program that controls the tester."""
        return self.generator is not None and self.generator.has_tester

    @model_validator(mode="before")
    @classmethod
    def _no_passwords(cls, data: Any) -> Any:
        for field in ("password", "passphrase"):
            if isinstance(data, dict) and field in data:
                raise ValueError(
                    f"remove the {field}, which does not belong in a file; "
                    "use a key, or the environment variable LOSSRATIO_PASSWORD"
                )
        return data


@dataclass(frozen=True)
class NicModel:
    """The limits of one port of a NIC model, in each direction."""

    name: str
    """The model's name, e.g. ``Intel-E810CQ``."""
    max_frame_rate: float | None
    """Frames per second, for any frame size; None: only the bit rate limits it."""
    max_bit_rate: float | None
    """Bits per second on the wire (layer 1); None: only the frame rate limits it."""

    @property
    def tag(self) -> str:
        """The tag of tests on this NIC in FD.io CSIT's taxonomy, e.g. ``nic_intel-e810cq``."""
        return f"nic_{self.name.lower()}"


# Table: CSIT's limits of network cards.
_MODELS = (
    NicModel("Intel-X520-DA2", 14_880_952, 10e9),
    NicModel("Intel-X710", 14_880_952, 10e9),
    NicModel("Intel-XL710", 18_750_000, 24.5e9),
    NicModel("Intel-XXV710", 18_750_000, 24.5e9),
    NicModel("Intel-E810XXV", 29_000_000, 24.5e9),
    NicModel("Intel-E822CQ", 29_000_000, 24.5e9),
    NicModel("Intel-E823C", 29_000_000, 24.5e9),
    NicModel("Intel-E810CQ", 58_500_000, 100e9),
    NicModel("Mellanox-CX556A", 148_809_523, 100e9),
    NicModel("Mellanox-CX6DX", 148_809_523, 100e9),
    NicModel("Mellanox-CX7VEAT", 297_619_046, 200e9),
    NicModel("Cavium-A063-100G", 195_312_500, 100e9),
    NicModel("Amazon-Nitro-50G", 1_500_000, 10e9),
    NicModel("Amazon-Nitro-100G", 3_000_000, 10e9),
    NicModel("Amazon-Nitro-200G", 6_000_000, 16e9),
    NicModel("virtual", 14_880_952, 100e6),
)
NIC_MODELS: Mapping[str, NicModel] = {model.name.lower(): model for model in _MODELS}
"""NIC models by their name in lower case, with the limits that FD.io CSIT uses, so that numbers are comparable."""


class NicLimits(FileModel):
    """The limits of one port of one of the lab's NIC models, in each direction."""

    max_frame_rate: quantities.FrameRate | None = None
    """Frames per second, for any frame size."""
    max_bit_rate: quantities.BitRate | None = None
    """Bits per second on the wire."""


class Reservation(FileModel):
    """How a testbed is reserved on its TG node, so that two runs never measure on it at once."""

    name: quantities.ReservationName = "testbed"
    """Name of the reservation. Topologies that share a TG, but no interface and no DUT, have different names."""
    lease: quantities.Duration = 60.0
    """Seconds after which the TG frees the testbed if it hears nothing from the run; a living run reports four times in
    this period."""
    directory: quantities.NodePath | None = None
    """Its directory on the TG, writable for all users who reserve it. Default: ``/var/tmp/lossratio``."""


class Topology(FileModel):
    """A testbed. Read it with `load_topology`."""

    format: Literal["lossratio-topology/1"]
    """Format of the file."""
    name: quantities.FileName
    """Name of the testbed; it is in every result."""
    description: str = ""
    """Remarks about it."""
    testbed: Literal["lab", "local", "simulated"] = "lab"
    """lab: the nodes exist. local: network namespaces are built on this machine. simulated: nothing is real."""
    addresses: Literal["benchmark", "lab"] = "benchmark"
    """benchmark: test traffic only has addresses of 198.18.0.0/15 and 2001:2::/48. lab: it has the addresses that the
    TG's interfaces state, for routers that keep the lab's own addresses."""
    nics: dict[quantities.Label, NicLimits] = Field(default_factory=dict)
    """NIC models of the lab's own, by the name that interfaces give as their model."""
    mtu: quantities.Mtu | None = None
    """MTU of all links of a local testbed, bytes. Default: 9216."""
    nodes: dict[quantities.FileName, Node] = Field(min_length=1)
    """Nodes by name, e.g. TG, DUT1."""
    reservation: Reservation | None = Reservation()
    """How it is reserved; null: not at all, for a testbed that only one user has."""

    @property
    def tg_name(self) -> str:
        """Name of the node that generates the traffic."""
        return self.tg_names[0]

    @property
    def tg_names(self) -> tuple[str, ...]:
        """Names of the nodes that generate the traffic: one node, or the two at the ends of the path."""
        return tuple(name for name, node in self.nodes.items() if node.type == "TG")

    @property
    def generator(self) -> GeneratorSettings | None:
        """Settings of the generator."""
        return self.nodes[self.tg_name].generator

    @property
    def end_name(self) -> str:
        """Name of the node at the far end of the path: the reflector, the second TG, or the TG itself."""
        reflectors = (name for name, node in self.nodes.items() if node.type == "reflector")
        return next(reflectors, self.tg_names[-1])

    @property
    def dut_names(self) -> tuple[str, ...]:
        """Names of the DUTs, in the order of the file."""
        return tuple(name for name, node in self.nodes.items() if node.type == "DUT")

    def links(self) -> dict[str, tuple[Port, ...]]:
        """The ends of every link, by the link's name."""
        links: dict[str, tuple[Port, ...]] = {}
        for node_name, node in self.nodes.items():
            for name, interface in node.interfaces.items():
                if interface.link is None:
                    continue
                links[interface.link] = (
                    *links.get(interface.link, ()),
                    Port(node_name, name, interface),
                )
        return links

    def path(self, *, duts: int | None = None, nic: str | None = None) -> TrafficPath:
        """The way of the test traffic: at each hop, the first unused common link in the file's order. See `paths`.

        Raises:
            NotMeasuredHereError: If the testbed has no such way.
            TopologyError: If a number is too small, or the NIC model is misspelt.
        """
        return self.paths(1, duts=duts, nic=nic)[0]

    def paths(
        self, count: int, *, duts: int | None = None, nic: str | None = None
    ) -> tuple[TrafficPath, ...]:
        """This many parallel ways of the test traffic, which have no link in common.

        Each goes through this many DUTs, in the order of the file (None: through all), whose ports are of a NIC model,
        e.g. ``Intel-E810CQ`` (None: any).

        Raises:
            NotMeasuredHereError: If the testbed has fewer of these ways, or none. The message says how many it has.
            TopologyError: If a number is too small, or the NIC model is misspelt.
        """
        if count < 1:
            raise TopologyError(
                f"Topology {self.name}: {count} parallel links were requested. Use 1 or more."
            )

        names = self.dut_names
        if duts is not None and duts < 0:
            raise TopologyError(
                f"Topology {self.name}: a path through {duts} DUTs was requested. Use 0 or more."
            )
        if duts is not None and duts > len(names):
            raise NotMeasuredHereError(
                f"Topology {self.name}: a path through {duts} DUTs was requested, but the topology has {len(names)} "
                f"({', '.join(names) or 'none'}). Ask for fewer, or choose a topology with more."
            )

        if nic is not None and duts != 0:
            self.check_model(nic)
        try:
            paths = find_paths(
                self.links(), (self.tg_name, *names[:duts], self.end_name), nic, count
            )
        except NotMeasuredHereError as error:
            raise NotMeasuredHereError(f"Topology {self.name}: {error}") from error

        return tuple(
            self._completed(path, number if count > 1 else None)
            for number, path in enumerate(paths, start=1)
        )

    def check_model(self, nic: str) -> None:
        """Refuses a NIC model that nobody knows, and any model if the file does not say what its cards are.

        Raises:
            TopologyError: If no port can be of the model.
        """
        models = [port.model for node in self.nodes.values() for port in node.interfaces.values()]
        own = list(dict.fromkeys(filter(None, models)))
        names = [*(model.name for model in _MODELS), *self.nics, *own]
        if nic.casefold() not in map(str.casefold, names):
            hint = did_you_mean(nic, names) or (
                f" The models of its ports are: {', '.join(own) or 'none'}. "
                "List a model of your own under 'nics'."
            )
            raise TopologyError(f"Topology {self.name}: there is no NIC model {nic!r}.{hint}")
        if not own:
            raise TopologyError(
                f"Topology {self.name}: no port can be of the NIC model {nic!r}, because the file gives no port a "
                "'model'. Add it to the DUTs' ports, or leave nic out."
            )

    def sides(
        self, paths: Sequence[TrafficPath], versions: Collection[int]
    ) -> tuple[tuple[Side, Side], ...]:
        """The networks west and east of each path.

        Args:
            paths: The ways of the traffic.
            versions: Versions of IP that the traffic has: 4, 6, or both.

        Raises:
            TopologyError: If a port has no address of such a version of IP.
        """
        return tuple(
            (self._side(path.west, versions, west), self._side(path.east, versions, east))
            for path, (west, east) in zip(paths, split_sides(len(paths)), strict=True)
        )

    def _side(self, port: Port, versions: Collection[int], unused: Side) -> Side:
        interface = port.interface
        if self.addresses == "benchmark":
            return replace(unused, taken=interface.gateway)
        known = {value.version for value in (*interface.address, *interface.network)}
        missing = sorted(set(versions) - known)
        if missing:
            raise TopologyError(
                f"Topology {self.name}: with 'addresses: lab', this traffic needs an IPv{missing[0]} address of "
                f"{port}, which has none. Give the port an 'address' (or a 'network'), or use another profile."
            )
        return interface.side(unused)

    def _completed(self, path: TrafficPath, link: int | None) -> TrafficPath:
        hops = []
        for hop in path.hops:
            node = self.nodes[hop.node_name]
            hops.append(
                replace(hop, uio_driver=node.uio_driver, link=link, hooks=node.hooks, vpp=node.vpp)
            )
        is_reflected = self.nodes[path.east.node_name].type == "reflector"
        return replace(path, hops=tuple(hops), is_reflected=is_reflected)

    def generator_problems(self, ports: Iterable[Port], pairs: int) -> Iterator[Problem]:
        """Finds the reasons in the file for which the generator could not send."""
        if isinstance(self.generator, RealGenerator):
            for where, text in self.generator.problems(
                {port.name: port.interface for port in ports}, pairs
            ):
                yield ("nodes", self.tg_name, *where), text

    def twin_problems(self) -> Iterator[Problem]:
        """Finds interfaces that have the same address, although each needs its own."""
        addresses: dict[tuple[str, str], Port] = {}
        for port in (port for ports in self.links().values() for port in ports):
            interface = port.interface
            own: dict[str, str] = {}
            if interface.pci_address is not None:
                own["pci_address"] = f"{port.node_name} {interface.pci_address.lower()}"
            if interface.mac_address is not None:
                own["mac_address"] = interface.mac_address.lower()

            for field, address in own.items():
                other = addresses.setdefault((field, address), port)
                if other is not port:
                    where = ("nodes", port.node_name, "interfaces", port.name, field)
                    yield where, f"{other} has the same {field}"

    def nic_model(self, port: Port) -> NicModel | None:
        """The limits of a port; None: its model is not given, or not known."""
        name = port.interface.model
        if name is None:
            return None
        own = {nic.casefold(): limits for nic, limits in self.nics.items()}.get(name.casefold())
        if own is not None:
            return NicModel(name, own.max_frame_rate, own.max_bit_rate)
        return NIC_MODELS.get(name.lower())


def draw_topology(topology: Topology, paths: Sequence[TrafficPath]) -> str:
    """Draws the paths of the test traffic from top to bottom, and lists unused links and interfaces below them."""
    width = max(len(name) for name in topology.nodes)
    lines = []
    for number, path in enumerate(paths, start=1):
        lines += [f"  parallel link {number} of {len(paths)}:"] if len(paths) > 1 else []
        for west, east in zip(path.ports[::2], path.ports[1::2], strict=True):
            lines += [
                _end(topology, west, width),
                f"    |  {west.interface.link}",
                _end(topology, east, width),
            ]
    spare = list(_spare(topology, {str(port) for path in paths for port in path.ports}))
    return "\n".join([*lines, *(["  not on the path:"] if spare else []), *spare])


def _end(topology: Topology, port: Port, width: int) -> str:
    interface = port.interface
    known = (interface.name, interface.pci_address, interface.mac_address, interface.model)
    facts = [fact for fact in known if fact is not None]
    if interface.speed is not None:
        facts.append(format_bit_rate(interface.speed))
    facts += _limits(topology, port)
    return f"  {port.node_name:<{width}}  {port.name}{': ' if facts else ''}{', '.join(facts)}"


def _limits(topology: Topology, port: Port) -> Iterator[str]:
    model = topology.nic_model(port)
    if model is None:
        if port.interface.model is not None:
            yield "limits of this model not known"
        return
    if model.max_frame_rate is not None:
        yield f"at most {format_frame_rate(model.max_frame_rate)}"
    if model.max_bit_rate is not None:
        yield f"at most {format_bit_rate(model.max_bit_rate)}"


def _spare(topology: Topology, on_path: set[str]) -> Iterator[str]:
    for link, ports in topology.links().items():
        if not on_path.intersection(map(str, ports)):
            yield f"    {link}: {' -- '.join(map(str, ports))}"
    for node_name, node in topology.nodes.items():
        for name, interface in node.interfaces.items():
            if interface.link is None:
                yield f"    {node_name}.{name}: wired to nothing"

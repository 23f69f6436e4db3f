"""What a feature of VPP can say: its options, what it goes with and needs, its commands, and what VPP then shows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, Literal, get_args

from pydantic.fields import FieldInfo

from lossratio.dut.linux.addressing import EAST_VNI, WEST_VNI, RouterSide, Tunnel
from lossratio.dut.linux.program_dut import SocketOptions
from lossratio.dut.vpp.virtual_machine import Guest
from lossratio.topology import EAST, WEST, Side

Forwarding = Literal["l2xc", "l2bd", "l2patch", "ip4", "ip6"]
"""How VPP forwards; see `Feature.forwarding`."""


@dataclass(frozen=True)
class Command:
    """A command to VPP."""

    text: str
    """The command, or a command in each line, of which VPP then reads a file."""
    answer: str = ""
    """Regular expression of VPP's answer to a command that succeeds."""
    seconds: float = 30.0
    """Seconds that it may take."""
    is_secret: bool = False
    """Whether it has keys: then it is in no record, and only in a file that VPP reads and that is gone afterwards."""


@dataclass(frozen=True)
class Shown:
    """Something that VPP must show."""

    command: str
    """The command that shows it."""
    pattern: str
    """Regular expression of a part of the answer."""
    meaning: str
    """What it says, in words."""
    within: float = 0.0
    """Seconds in which VPP must come to show it."""


@dataclass(frozen=True)
class VppPort:
    """One side of VPP."""

    link: str
    """VPP's name of its interface on the link."""
    interface: str
    """The interface that forwards: that one, or one that a feature makes upon it."""
    neighbour_mac: str
    """MAC address of the neighbour at the other end of the link; empty: a bridge learns it."""
    side: Side
    """Networks behind the neighbour."""
    opposite: Side
    """Networks behind the other neighbour."""
    vni: int
    """VXLAN network identifier of the tunnel on this link, if there is one."""
    other_end: str = ""
    """MAC address of the interface at the other end of the link; empty: it is the neighbour's. A bridge's neighbour is
    the one beyond the next bridge."""
    directory: str = ""
    """VPP's directory on the node."""
    table: int = 0
    """Number of the table of routes for frames that enter here."""
    faces_dut: bool = False
    """Whether the neighbour is another DUT of the path, and not the TG."""
    secret: bytes = field(default=b"", repr=False)
    """Made for this set-up; all DUTs of the path derive their keys from it."""

    def destination(self, ip_version: int) -> IPv4Address | IPv6Address:
        """The first host of the other side, which is the destination of frames that enter here."""
        return (self.opposite.ipv4 if ip_version == 4 else self.opposite.ipv6)[1]

    def routed(self, ip_version: int) -> RouterSide:
        """Its addresses and those of its neighbour, as a router."""
        return RouterSide(self.interface, self.side.ipv4 if ip_version == 4 else self.side.ipv6)

    @property
    def tunnel(self) -> Tunnel:
        """Its end of the tunnel on this link."""
        return Tunnel(
            self.link, f"vxlan_tunnel{self.vni}", self.side.ipv4, self.opposite.ipv4, self.vni
        )


Ports = tuple[VppPort, VppPort]
"""Both sides of VPP, west and east."""


def entrances(ports: Ports) -> tuple[VppPort, ...]:
    """The ports by which test traffic enters the path: both, one at each end of several DUTs, or none in between."""
    return tuple(port for port in ports if not port.faces_dut)


def both_ports(interfaces: tuple[str, str], neighbours: tuple[str, str]) -> Ports:
    """Both sides of VPP, with their interfaces and their neighbours' MAC addresses."""
    return (
        VppPort(interfaces[0], interfaces[0], neighbours[0], WEST, EAST, WEST_VNI),
        VppPort(interfaces[1], interfaces[1], neighbours[1], EAST, WEST, EAST_VNI),
    )


@dataclass(frozen=True)
class Needs:
    """What a feature needs, and what belongs to it."""

    forwarding: tuple[Forwarding, ...] = get_args(Forwarding)
    """With which forwarding it goes."""
    plugins: Mapping[str, str] = field(default_factory=dict)
    """VPP's plugins that it needs, each with the version since which it is a plugin; empty: it always was."""
    version: str = ""
    """The first version of VPP that has it; empty: all have it."""
    shows: tuple[str, ...] = ()
    """Commands whose answers are kept with trials."""
    tags: tuple[str, ...] = ()
    """FD.io CSIT's tags: a suite with it has one of them."""
    duts: int = 0
    """How many DUTs in a row it needs; 0: any number."""


IDLE_SECONDS = 300.0
"""Time after which VPP forgets an idle UDP connection, unless told otherwise."""


@dataclass(frozen=True)
class Table:
    """A table of sessions."""

    ends: tuple[str, ...]
    """The commands that end all sessions."""
    shows: str
    """The command that shows the number of sessions."""
    pattern: str
    """Regular expression of that number, and of the number of those that have timed out."""
    room: int
    """Most sessions."""
    ports: int | None = None
    """Ports of all addresses of a NAT; None: it is none."""
    is_shared: bool = True
    """Whether sessions with different destinations may share a port."""
    timeout: float = IDLE_SECONDS
    """Seconds after which it forgets an idle UDP connection."""
    of_tcp: tuple[float, float, float] = (7440.0, 240.0, 240.0)
    """The same of TCP, for a connection that is established, that is being opened, and that has ended."""


class Feature(SocketOptions):
    """A feature of VPP, which is on if one of its own fields differs from its default.

    The options of VPP inherit from every feature, and call the methods of those that are on as
    ``Kind.method(options)``. So a method sees the options of all features. A property that two features may have calls
    ``super()``.
    """

    forwarding: Forwarding = "l2xc"
    """``l2xc`` (cross-connect; the default), ``l2bd`` (bridge domain, which learns), ``l2patch`` (a cross-connect that
    does not look at frames), ``ip4`` or ``ip6``."""

    needs: ClassVar[Needs] = Needs()
    """What it needs."""

    @classmethod
    def own_fields(cls) -> dict[str, FieldInfo]:
        """Its own options."""
        return {
            name: field
            for name, field in cls.model_fields.items()
            if name not in Feature.model_fields
        }

    @classmethod
    def given(cls, options: "Feature") -> list[str]:
        """Its own options that are not as by default."""
        return [
            name
            for name, field in cls.own_fields().items()
            if getattr(options, name) != field.default
        ]

    @classmethod
    def mismatch(cls, options: "Feature") -> str | None:
        """The reason why it does not go with the options' forwarding; None: it does."""
        if options.forwarding in cls.needs.forwarding:
            return None
        option, *_ = cls.given(options)
        verb = "go" if option.endswith("s") else "goes"
        return f"{option} {verb} with forwarding={' or '.join(cls.needs.forwarding)}"

    @property
    def is_router(self) -> bool:  # type: ignore[override]
        """Whether it forwards by IP addresses."""
        return self.forwarding in ("ip4", "ip6")

    @property
    def ip_version(self) -> int:
        """IP version that it routes."""
        if self.forwarding == "ip6":
            return 6
        return 4

    @property
    def is_addressed(self) -> bool:
        """Whether frames are addressed to VPP itself."""
        return self.is_router

    @property
    def is_contained(self) -> bool:
        """Whether a second VPP in a container is in the place of testpmd."""
        return False

    @property
    def guest(self) -> Guest | None:
        """What forwards in a virtual machine in the place of testpmd; None: there is no such machine."""
        return None

    @property
    def entries(self) -> int:
        """Entries of its largest table."""
        return 0

    @property
    def police_kilobits(self) -> int | None:
        """Rate of its policers in kbit/s; None: there are none."""
        return None

    @property
    def table(self) -> Table | None:
        """Its table of sessions; None: there is none."""
        return None

    def problem(self) -> str | None:
        """The reason why its options do not go together; None: they do. No machine has been touched yet."""
        return None

    @classmethod
    def plugin_lines(cls) -> list[tuple[str, str]]:
        """Lines of startup.conf that enable its plugins, each with its section."""
        return [("plugins", f"plugin {name}_plugin.so {{ enable }}") for name in cls.needs.plugins]

    def startup(self) -> Iterable[tuple[str, str]]:
        """Further lines of startup.conf, each with its section."""
        return ()

    def below(self, port: VppPort) -> tuple[VppPort, Iterable[Command]]:
        """A port as it forwards, with an interface that the feature makes, and the commands that make it."""
        return port, ()

    def pairs(self, ports: Ports) -> tuple[Ports, ...] | None:
        """The pairs of ports that forward to each other; None: both ports do."""
        return None

    def programs(self, directory: str) -> Iterator[tuple[str, ...]]:
        """Arguments of testpmd, but for its CPUs, where it runs beside VPP with its files in the directory."""
        yield from ()

    def contained(self, ports: Ports) -> Iterator[Command]:
        """The commands to a second VPP, which runs in a container beside this one; none: there is no such VPP."""
        yield from ()

    def connected(self, ports: Ports) -> Iterator[Command]:
        """The commands once these programs run."""
        yield from ()

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """The routes to the networks behind a port; None: one to its network."""
        return None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The commands after forwarding has been configured."""
        yield from ()

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """What VPP must show after its set-up, and later."""
        yield from ()

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """What VPP must show after the trial with telemetry, for which counters of errors begin at zero."""
        yield from ()

    def reset_commands(self, ports: Ports) -> Iterator[str]:
        """The commands that undo what trials leave behind."""
        yield from ()

"""What a VPP feature declares: its options, what it needs and works with, its commands, and what VPP then shows."""

from collections.abc import Mapping
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
LOOKING: tuple[Forwarding, ...] = ("l2xc", "l2bd", "ip4", "ip6")
"""The kinds of forwarding that look at frames: a patch hands them on before they meet a policer or an access list."""


ROUTES = "the routes of a router"
LINKS = "the interfaces on links"
_ENDS = 1 << 25
_SEGMENTS = 1 << 64


@dataclass(frozen=True)
class Command:
    """A command to VPP."""

    text: str
    """The command; or a command on each line, which VPP then reads from a file."""
    answer: str = ""
    """Regular expression of VPP's answer to a command that succeeds."""
    seconds: float = 30.0
    """The maximum number of seconds that it may take."""
    is_secret: bool = False
    """Whether the command has keys. If so, it is in no record, only in a file that is deleted after VPP has read it."""


@dataclass(frozen=True)
class Shown:
    """Something that VPP must show."""

    command: str
    """The command that shows it."""
    pattern: str
    """Regular expression of a part of the answer."""
    meaning: str
    """Its meaning, in words."""
    within: float = 0.0
    """Seconds within which VPP must show it."""


@dataclass(frozen=True)
class VppPort:
    """One side of VPP."""

    link: str
    """VPP's name for its interface on the link."""
    interface: str
    """The interface that forwards: the interface on the link, or an interface that a feature makes on it."""
    neighbour_mac: str
    """MAC address of the neighbour at the other end of the link; empty: a bridge learns it."""
    side: Side
    """Networks behind the neighbour."""
    opposite: Side
    """Networks behind the other neighbour."""
    vni: int
    """VXLAN network identifier of the tunnel on this link, if there is one."""
    other_end: str = ""
    """MAC address of the interface at the other end of the link; empty: it is the neighbour's. The neighbour of a
    bridge is the node beyond the next bridge."""
    directory: str = ""
    """VPP's directory on the node."""
    queues: int = 1
    """Receive queues of the interface on the link."""
    workers: int = 1
    """Workers of VPP."""
    table: int = 0
    """Number of the table of routes for frames that enter here."""
    faces_dut: bool = False
    """Whether the neighbour is another DUT of the path, and not the TG."""
    vlan: str = ""
    """The interface of the VLAN on the link; empty: frames have no tag there."""
    secret: bytes = field(default=b"", repr=False)
    """A secret that is made for this set-up; all DUTs of the path derive their keys from it."""

    def host(self, number: int) -> IPv4Address:
        """A host behind the neighbour; each of the first hosts has a tunnel if there are several."""
        return self.side.ipv4[number + 1]

    def local(self, number: int = 0) -> IPv4Address:
        """This VPP's end of a tunnel to the other VPP, far from the addresses of test traffic."""
        return self.opposite.wide_ipv4[_ENDS + number]

    def remote(self, number: int = 0) -> IPv4Address:
        """The other VPP's end of a tunnel to it."""
        return self.side.wide_ipv4[_ENDS + number]

    def segment(self, number: int) -> IPv6Address:
        """A segment of the VPP that has the networks behind this port on its own side."""
        return self.side.ipv6[_SEGMENTS + number]

    def destination(self, ip_version: int) -> IPv4Address | IPv6Address:
        """The first host of the other side, which is the destination of frames that enter here."""
        return (self.opposite.ipv4 if ip_version == 4 else self.opposite.ipv6)[1]

    def routed(self, ip_version: int) -> RouterSide:
        """Its addresses as a router, and those of its neighbour."""
        return RouterSide(self.interface, self.side.ipv4 if ip_version == 4 else self.side.ipv6)

    @property
    def place(self) -> int:
        """0 in the west, 1 in the east."""
        return int(self.side is EAST)

    @property
    def entrance(self) -> str:
        """The first interface whose features frames meet, which is not the one on the link if they have a tag."""
        return self.vlan or self.link

    @property
    def tunnel(self) -> Tunnel:
        """VPP's end of the tunnel on this link."""
        return Tunnel(
            self.link, f"vxlan_tunnel{self.vni}", self.side.ipv4, self.opposite.ipv4, self.vni
        )


Ports = tuple[VppPort, VppPort]
"""Both sides of VPP, west and east."""


def entrances(ports: Ports) -> tuple[VppPort, ...]:
    """The ports where test traffic enters the path: both, one at each end of several DUTs, or none in between."""
    return tuple(port for port in ports if not port.faces_dut)


def both_sides(ports: Ports) -> tuple[VppPort, VppPort]:
    """The port that faces the TG, and the port that faces the other VPP."""
    west, east = ports
    if west.faces_dut:
        return (east, west)
    return (west, east)


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
    """The kinds of forwarding that it works with."""
    plugins: Mapping[str, str] = field(default_factory=dict)
    """VPP's plugins that it needs, each with the first version of VPP that has the plugin; empty: all have it."""
    version: str = ""
    """The first version of VPP that has it; empty: all have it."""
    shows: tuple[str, ...] = ()
    """Commands whose answers are kept with trials."""
    tags: tuple[str, ...] = ()
    """FD.io CSIT's tags: a suite with this feature has one of them."""
    duts: int = 0
    """The number of DUTs in a row that it needs; 0: any number."""
    overhead: Mapping[str, int] = field(default_factory=dict)
    """Bytes by which an option of it lengthens frames between two DUTs, apart from padding."""
    decides: str = ""
    """What only one feature can decide: `ROUTES`, or `LINKS`; empty: nothing."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """Entries of VPP's tables for each unit of an option."""


@dataclass(frozen=True)
class Steps:
    """Texts with a feature's commands, and with what VPP must show.

    Their format is that of `lossratio.dut.vpp.features.steps`. What a feature computes is a method or a property of it,
    which its placeholders call.
    """

    startup: str = ""
    """Lines of startup.conf, each behind the name of its section."""
    below: str = ""
    """The commands that make an interface on a ``port`` that `Feature.above` replaces, by ``made``."""
    routed: str = ""
    """The routes to the networks behind a port; empty after its placeholders were filled in: a single route."""
    programs: str = ""
    """Arguments, except those about CPUs, of a testpmd that runs beside VPP, with its files in ``directory``."""
    contained: str = ""
    """The commands to a second VPP, which runs in a container beside this one."""
    connected: str = ""
    """The commands to give once programs run beside VPP."""
    commands: str = ""
    """The commands to give after forwarding has been configured."""
    file: str = ""
    """Further ones, which VPP reads from a file: there may be thousands."""
    answers: str = ""
    """Regular expression of VPP's answers to this file if it succeeds."""
    is_secret: bool = False
    """Whether this file has keys; see `Command`."""
    verified: str = ""
    """What VPP must show after its set-up, and later."""
    proved: str = ""
    """What VPP must show after the trial with telemetry, for which error counters begin at zero."""
    reset_commands: str = ""
    """The commands that undo what trials leave behind."""


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
    """Regular expression of that number, and of the number of sessions that have timed out."""
    room: int
    """The largest number of sessions."""
    limit: str
    """The option that makes room for more."""
    ports: int | None = None
    """Ports of all addresses of a NAT whose sessions may share a port if their destinations differ; None: it is no such
    NAT."""
    known_ports: int | None = None
    """Ports of all addresses of a NAT that assigns ports in a known order; None: it is no such NAT."""
    timeout: float = IDLE_SECONDS
    """Seconds after which it forgets an idle UDP connection."""
    of_tcp: tuple[float, float, float] = (7440.0, 240.0, 240.0)
    """The same for TCP: for a connection that is established, is being opened, and has ended."""


class Feature(SocketOptions):
    """A feature of VPP, which is on if one of its own fields differs from its default.

    The options of VPP inherit from every feature, and call the methods of the features that are on as
    ``Kind.method(options)``. So a method sees the options of all features. A property that several features define
    calls ``super()``.
    """

    forwarding: Forwarding = "l2xc"
    """``l2xc`` (cross-connect; the default), ``l2bd`` (bridge domain, which learns), ``l2patch`` (a cross-connect that
    does not look at frames), ``ip4`` or ``ip6``."""

    needs: ClassVar[Needs] = Needs()
    """What it needs."""
    steps: ClassVar[Steps] = Steps()
    """Its commands to VPP, and what VPP must show, as text."""

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
        """Its own options that differ from their defaults."""
        return [
            name
            for name, field in cls.own_fields().items()
            if getattr(options, name) != field.default
        ]

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
        """Whether a second VPP in a container takes the place of testpmd."""
        return False

    @property
    def process_interfaces(self) -> tuple[str, str]:
        """Names of the two interfaces to a process beside VPP, if there is one."""
        return ("memif1/0", "memif2/0")

    @property
    def guest(self) -> Guest | None:
        """What forwards in a virtual machine that takes the place of testpmd; None: there is no such machine."""
        return None

    @property
    def entries(self) -> int:
        """Entries of its largest table, besides those that it declares."""
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
        """Why its options cannot be combined; None: they can. This is asked before any machine is touched."""
        return None

    @classmethod
    def plugin_lines(cls) -> list[str]:
        """Lines of startup.conf that enable its plugins, each behind the name of its section."""
        return [f"plugins plugin {name}_plugin.so {{ enable }}" for name in cls.needs.plugins]

    def above(self, port: VppPort) -> VppPort | None:
        """A port with the interface that the feature makes on it (see `Steps.below`); None: it makes none there."""
        return None

    def pairs(self, ports: Ports) -> tuple[Ports, ...] | None:
        """The pairs of ports that forward to each other; None: the two ports do."""
        return None

"""grout, DPDK's graph router: routes between two ports, which DPDK drives.

Its command line controls it, in batches that end at the first command that it refuses.

This module follows grout's manual and its own tests (version 0.17). Frames passed through grout 0.17.1, between TAP
interfaces without ``remote=``; tests have a stand-in.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field, model_validator

from lossratio.dut.base import SIDES, DutCounters, Tool, from_environment
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, write_file
from lossratio.dut.linux.addressing import (
    EAST_VNI,
    MOST_HOSTS,
    WEST_VNI,
    IpVersion,
    RouterSide,
    Tunnel,
    check_hosts,
    halves,
    router_sides,
)
from lossratio.dut.linux.cores import CoreChoice, cpu_list
from lossratio.dut.linux.interfaces import check_free, read_links
from lossratio.dut.linux.program_dut import ProgramDut, ProgramOptions
from lossratio.errors import NotMeasuredHereError
from lossratio.results import Role
from lossratio.topology import EAST, WEST, Address
from lossratio.wrong_values import Like

HOME_VARIABLE = "GROUT_HOME"
"""Environment variable of the controller that names grout's directory on the node."""
_OUT, _END, _TRANSIT = 1001, 1002, 1003
"""Numbers of next hops: beyond those that grout takes itself, because it ends if one changes its kind."""
_OTHER_VERSION = {4: 6, 6: 4}
_NEXT_SEGMENT = "end flavor next-csid block-bits 48 csid-bits 16"
"""Compressed segments of 16 bits (RFC 9800) in the network that RFC 5180 reserves."""
_FRAME_BYTES = 18
"""Bytes of a frame around its packet: Ethernet header and FCS."""
_LARGEST_MTU = 1800
"""The largest MTU that grout takes without an option."""
_VXLAN_BYTES = {4: 50, 6: 70}
"""Bytes of VXLAN, UDP, IP and Ethernet in front of a frame, by the version of IP."""
_CUSTOMER = "customer"
"""The routing domain of packets that are routed into a tunnel."""
_ROUTER_MACS = ("02:00:00:00:01:00", "02:00:00:00:02:00")
"""MAC addresses of the western and the eastern grout within a tunnel."""


class _Segments(NamedTuple):
    """The beginnings of addresses of segments at one grout (RFC 8986)."""

    end: str
    """Here, the outer header ends."""
    transit: str
    """Here, the next segment takes the place of this one."""
    container: str
    """Both of them as compressed segments."""


class _SegmentRouting(NamedTuple):
    """A way to route packets by segments to the other grout."""

    encapsulation: str
    """grout's name for what the first grout does (RFC 8986)."""
    overhead: int
    """Bytes of the outer header, with the list of segments (RFC 8754) if it has one."""
    segments: tuple[str, ...]
    """The segments of the other grout, in order."""
    entrance: str = "end"
    """The first segment by which the other grout is reached."""
    transit: str = ""
    """What the other grout does at its segment for transit; empty: there is none."""


_SEGMENT_ROUTING = {
    "encaps": _SegmentRouting("h.encaps", 64, ("end",)),
    "encaps_red": _SegmentRouting("h.encaps.red", 40, ("end",)),
    "end": _SegmentRouting("h.encaps", 80, ("transit", "end"), "transit", "end"),
    "usid": _SegmentRouting("h.encaps.red", 40, ("container",), "transit", _NEXT_SEGMENT),
}


_SEGMENTS = (
    _Segments("2001:2:0:100", "2001:2:0:200", "2001:2:0:200:100"),
    _Segments("2001:2:0:8100", "2001:2:0:8200", "2001:2:0:8200:8100"),
)
"""The segments at the western grout, and at the eastern one."""


class GroutOptions(ProgramOptions):
    """The options of grout."""

    home: Annotated[str, Like("^/", "an absolute path, such as /usr"), Role.TESTED] = Field(
        default_factory=from_environment(HOME_VARIABLE, "/usr")
    )
    """Directory of grout on the node, with ``bin/grout`` and ``bin/grcli``. Default: the value of the environment
    variable ``GROUT_HOME`` on the machine that runs the suite, or ``/usr``."""
    ip_version: IpVersion = 4
    """4 (the default) or 6."""
    routes: int | None = Field(default=None, ge=2, le=2 * MOST_HOSTS, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no others.
    With ``dual_stack``, each version of IP has as many."""
    dual_stack: bool = False
    """Whether it routes both versions of IP. The traffic profile ``ethip4-ethip6`` has both."""
    vlan: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on the western link, and on the eastern one if there is no ``vlan_east``."""
    vlan_east: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on the eastern link. The traffic profile ``dot1q-vlan100-vlan200`` has 100 and 200."""
    vxlan: bool = False
    """Whether it is a bridge between two VXLAN tunnels, one on each link, instead of a router. The traffic profile
    ``ethip4vxlan-l2bdbase`` has such frames."""
    vxlan_between: Literal["bridged", "routed"] | None = None
    """How packets pass between the two grouts of a path in a VXLAN tunnel. ``bridged``: each grout is a bridge of the
    tunnel and its link to the TG. ``routed``: each grout routes packets between the two, with an L3VNI."""
    underlay: IpVersion = 4
    """The version of IP outside of the tunnel of ``vxlan_between``: 4 (the default) or 6."""
    srv6: Literal["encaps", "encaps_red", "end", "usid"] | None = None
    """How packets pass between the two grouts of a path by segment routing (SRv6): with a list of one segment
    (``encaps``: H.Encaps), without a list (``encaps_red``: H.Encaps.Red), with a list of two segments (``end``: the
    other grout first passes to the next segment, End), or with compressed segments (``usid``). The other grout removes
    the outer header (End.DT4 or End.DT6)."""
    poll: bool = True
    """Whether the threads poll without any sleep (the default). Otherwise they sleep for microseconds while no frames
    come."""
    frame_queue: int = Field(default=1024, ge=64, le=32_768)
    """Descriptors of each queue."""
    largest_frame: int = Field(default=1518, ge=1298, le=9216)
    """Bytes of the largest frame that must pass, with FCS. Default: 1518. Larger frames are refused."""

    @property
    def is_router(self) -> bool:  # type: ignore[override]
        """Whether it routes the frames of the test."""
        return not self.vxlan and self.vxlan_between != "bridged"

    @property
    def between(self) -> str | None:
        """The option that says how packets pass between the two grouts of a path; None: there may be one grout."""
        return next((name for name in ("vxlan_between", "srv6") if getattr(self, name)), None)

    @property
    def encapsulation_overhead(self) -> int:
        """The outer headers between two grouts."""
        if self.vxlan_between:
            return _VXLAN_BYTES[self.underlay]
        if self.srv6:
            return _SEGMENT_ROUTING[self.srv6].overhead
        return 0

    @property
    def mtu(self) -> int:
        """MTU of the ports, with room for the outer headers."""
        return self.largest_frame - _FRAME_BYTES + self.encapsulation_overhead

    @property
    def ports(self) -> tuple[str, str]:
        """Names of the interfaces that have addresses: the ports, or VLANs on them."""
        west, east = SIDES
        if self.vlan is None:
            return west, east
        return f"{west}.{self.vlan}", f"{east}.{self.vlan_east or self.vlan}"

    @property
    def sides(self) -> tuple[RouterSide, ...]:
        """Both sides, west and east, of each version of IP."""
        sides = router_sides(*self.ports, self.ip_version)
        if self.dual_stack:
            return (*sides, *router_sides(*self.ports, _OTHER_VERSION[self.ip_version]))
        return sides

    @property
    def outer_sides(self) -> tuple[RouterSide, ...]:
        """Both sides, west and east, of the link between two grouts."""
        if self.vxlan_between:
            return router_sides(*SIDES, self.underlay)
        return router_sides(*SIDES, 6)

    @model_validator(mode="after")
    def _fit_together(self) -> "GroutOptions":
        if self.vlan_east and not self.vlan:
            raise ValueError("vlan_east needs a tag to translate: also set vlan")
        if self.underlay == 6 and not self.vxlan_between:
            raise ValueError(
                "underlay is the IP version of a tunnel between DUTs: also set vxlan_between"
            )

        tunnels = [name for name in ("vxlan", "vxlan_between", "srv6") if getattr(self, name)]
        others = [name for name in ("dual_stack", "vlan", "routes") if getattr(self, name)]
        if tunnels and tunnels[1:] + others:
            first, second, *_ = tunnels + others
            raise ValueError(f"{first} and {second} exclude each other: leave one of them out")
        if self.vxlan and self.ip_version == 6:
            raise ValueError("tunnels of vxlan run over IPv4: leave ip_version out")
        return self


class Grout(ProgramDut[GroutOptions]):
    """DPDK's graph router grout, with its own files."""

    kind = "grout"
    options_type = GroutOptions
    software = Tool(
        "bin/grout", "", "-V", "grout", HOME_VARIABLE, "Install grout from its own releases."
    )

    @property
    def is_addressed(self) -> bool:
        """Frames are addressed to it as a router, or as an end of tunnels, but not as a bridge."""
        return self.options.vxlan_between != "bridged"

    def check_kind(self) -> None:
        """Checks that there are enough CPUs, and that the node does not use its networks.

        Raises:
            NotMeasuredHereError: If an option needs a path through two of them, and this one is not.
        """
        super().check_kind()
        between = self.options.between
        if between and len(self.chain) != 2:
            raise NotMeasuredHereError(
                f"{self.node.name}: {between} needs a path through 2 DUTs, but this one goes "
                f"through {len(self.chain)}. Set up the testbed with duts=2, in a topology with "
                "two DUTs, such as local-3n."
            )

        sides = self.options.sides
        if between:
            sides += self.options.outer_sides
        check_free(self.node, list(dict.fromkeys(side.network for side in sides)))

    def check_frames(self, largest: int) -> None:
        """Refuses frames that are larger than `largest_frame`: grout would drop them, or cut them into fragments.

        Raises:
            DutError: If they are.
        """
        limit = self.options.largest_frame
        if largest > limit:
            raise self.node.error(
                f"grout takes frames of at most {limit} bytes, but the test has frames of {largest} bytes. Set up the "
                f"testbed with largest_frame={largest}, or measure smaller frames."
            )

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts grout and configures it: CPUs, ports, addresses, neighbours and routes."""
        # Without IPv6, its own interfaces in the kernel cannot be made.
        changes.write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "0", optional=True)
        # grout sets the MTU of the kernel's interfaces behind its TAP interfaces, too.
        for name, link in read_links(self.node, *self.kernel_interfaces).items():
            mtu = ("mtu", str(link["mtu"]))
            changes.set_link(name, *mtu, undo=mtu)

        # Otherwise, its metrics would listen on a TCP port of the node.
        command = [self.program, "-s", f"{directory}/grout.sock", "-M", ":0"]
        if self.options.mtu > _LARGEST_MTU:
            command += ["-u", str(self.options.mtu)]
        if not self.uses_cards:
            command.append("-t")
        if self.options.poll:
            command.append("-p")

        daemon = Daemon(self.node, directory, "grout", tuple(command))
        show = (*self._line(directory), "interface", "show")
        daemon.start(changes, lambda: self.node.attempt(*show).exit_status == 0)
        self._configure(changes, directory, list(self._configuration(cores, (west_mac, east_mac))))
        return [daemon]

    def check_reconfigure(self, entries: int) -> None:
        """Refuses tunnels, which have no table, and more routes than there are hosts.

        Raises:
            DutError: If there is no table, or a side has too few hosts.
        """
        if self.options.vxlan or self.options.between:
            super().reconfigure(entries)
        check_hosts(self.node.name, entries, self.options.routes)

    def reconfigure(self, entries: int) -> None:
        """Adds routes to single hosts, half of them on each side, from the last hosts of its network down."""
        self.check_reconfigure(entries)
        directory = self.running.directory
        lines = [
            line
            for side, count in zip(self.options.sides[:2], halves(entries), strict=True)
            for line in _routes(side, side.last_hosts(count))
        ]
        self._configure(self.present.changes, directory, lines)

    def facts(self) -> dict[str, Any]:
        """Version, CPUs, ports and addresses, as grout reports them."""
        shown = ("affinity cpus show", "affinity qmap show", "address show")
        return {
            **super().facts(),
            "version": self.node.run(self.program, "-V").strip(),
            "shown": {command: self._ask(*command.split()).splitlines() for command in shown},
        }

    def read_counters(self) -> DutCounters:
        """Reads grout's counters of its ports; with interfaces of the kernel, received frames are the kernel's.

        No counter of a port includes the frames that the graph drops: their number is the difference between the other
        counters.

        Raises:
            DutError: If grout does not answer, or its answer is not a table that has both ports.
        """
        table = self.node.json(*self._line(self.running.directory), "-j", "interface", "stats")
        if not isinstance(table, list):
            raise self.node.error("grout's answer to 'interface stats' is not a table.")

        rows = {row["interface"]: row for row in table}
        sides = {side: self.node.find("grout's port", side, rows) for side in SIDES}
        count = {side: _counts(row) for side, row in sides.items()}
        received = {
            side: counts["rx_packets"] + counts["rx_drops"] for side, counts in count.items()
        }
        transmitted = {side: counts["tx_packets"] for side, counts in count.items()}
        dropped = {
            f"{side} port, receive drops": counts["rx_drops"] for side, counts in count.items()
        }
        dropped |= {
            f"{side} port, transmit errors": counts["tx_errors"] for side, counts in count.items()
        }

        for here, there in (SIDES, SIDES[::-1]):
            sent = transmitted[there] + count[there]["tx_errors"]
            dropped[f"grout's graph, frames from the {here}"] = count[here]["rx_packets"] - sent

        if not self.uses_cards:
            for side, stats in self.packets_of_kernel().items():
                kernel = int(stats["rx"]["packets"])
                dropped[f"TAP in front of grout, {side}"] = kernel - received[side]
                received[side] = kernel

        return DutCounters(received, transmitted, dropped)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The counters of grout's graph nodes, besides the reports of the node."""
        self._ask("stats", "reset")
        with super().telemetry() as report:
            yield report
        report["stats show"] = self._ask("stats", "show").splitlines()

    def _line(self, directory: str) -> tuple[str, ...]:
        return (f"{self.options.home}/bin/grcli", "-p", "-s", f"{directory}/grout.sock")

    def _ask(self, *words: str) -> str:
        return self.node.run(*self._line(self.running.directory), *words)

    def _configure(self, changes: Changes, directory: str, lines: Sequence[str]) -> None:
        """Gives grout commands from a file. The configuration ends with grout, so there is no undo."""
        path = f"{directory}/configuration"
        write_file(changes, path, "".join(f"{line}\n" for line in lines))
        changes.run(*self._line(directory), "-e", "-x", "-f", path)

    def _configuration(self, cores: CoreChoice, neighbours: tuple[str, str]) -> Iterator[str]:
        yield f"affinity cpus set control {cores.main} datapath {cpu_list(cores.workers)}"
        queues = self.options.queues or (len(cores.workers) if self.uses_cards else 1)
        sizes = f"rxqs {queues} qsize {self.options.frame_queue} mtu {self.options.mtu}"
        for number, name in enumerate((self.west, self.east)):
            # A TAP interface receives the frames of the kernel's interface, and sends through it.
            if self.uses_cards:
                device = name
            else:
                device = f"net_tap{number},iface={self.stem}.{number},remote={name}"

            yield f"interface add port {SIDES[number]} devargs {device} {sizes}"

        if self.options.vxlan:
            yield from _bridge(neighbours)
            return
        if self.options.vxlan_between:
            # Behind a bridge, the neighbour of the test's frames is the TG's other port.
            other = cast("Grout", self.chain[self._wire]).own_macs()
            macs = (other.from_east, other.from_west)
            yield from _tunnel(self.options, self._wire, macs[self._wire], neighbours)
            return
        if self.options.vlan is not None:
            for port, name in zip(SIDES, self.options.ports, strict=True):
                _, _, tag = name.partition(".")
                yield f"interface add vlan {name} parent {port} vlan_id {tag}"
        yield from self._routing(neighbours)

    def _routing(self, neighbours: tuple[str, str]) -> Iterator[str]:
        for number, side in enumerate(self.options.sides):
            if self.options.srv6 and number == self._wire:
                # Only packets with the outer header are on this link.
                yield from _neighbour(self.options.outer_sides[number], neighbours[number])
                yield from _segments(self.options, number)
                continue
            yield from _neighbour(side, neighbours[number % len(SIDES)])
            if self.options.routes is None:
                yield f"route add {side.network} via {side.neighbour}"
            else:
                yield from _routes(side, side.hosts(self.options.routes // 2))

    @property
    def _wire(self) -> int:
        """The side of the other grout: east of the first one, and west of the second one."""
        return 1 - self.chain.index(self)


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    """The counters of a port."""
    return {name: int(count) for name, count in row.items() if name != "interface"}


def _neighbour(side: RouterSide, mac: str) -> Iterator[str]:
    """The address of a side's interface, and its neighbour."""
    length = side.network.max_prefixlen - 2
    yield f"address add {side.address}/{length} iface {side.interface}"
    yield f"nexthop add l3 iface {side.interface} address {side.neighbour} mac {mac}"


def _bridge(neighbours: tuple[str, str]) -> Iterator[str]:
    """A bridge between two tunnels, each of which leads to the neighbour on its link."""
    west, east = SIDES
    tunnels = (
        Tunnel(west, "tunnel.west", WEST.ipv4, EAST.ipv4, WEST_VNI),
        Tunnel(east, "tunnel.east", EAST.ipv4, WEST.ipv4, EAST_VNI),
    )
    yield "interface add bridge bridge"
    for number, (tunnel, mac) in enumerate(zip(tunnels, neighbours, strict=True), _OUT):
        yield from _tunnel_end(tunnel.interface, tunnel.local, tunnel.remote, mac, number)
        yield f"interface add vxlan {tunnel.name} vni {tunnel.vni} local {tunnel.local} domain bridge"
        yield f"flood vtep add {tunnel.remote} vni {tunnel.vni}"


def _segments(options: GroutOptions, wire: int) -> Iterator[str]:
    """Segment routing of packets to the other grout's network, and of those that come back.

    `wire` is the side of the other grout: 0 is west, and 1 is east.
    """
    there = _SEGMENTS[wire]
    here = _SEGMENTS[1 - wire]
    way = _SEGMENT_ROUTING[str(options.srv6)]
    segments = " ".join(f"{getattr(there, name)}::" for name in way.segments)
    entrance = getattr(there, way.entrance)

    yield f"nexthop add srv6 seglist {segments} encap {way.encapsulation} id {_OUT}"
    yield f"route add {options.sides[wire].network} via id {_OUT}"
    yield f"route add {entrance}::/64 via {options.outer_sides[wire].neighbour}"
    yield f"nexthop add srv6-local behavior end.dt{options.ip_version} id {_END}"
    yield f"route add {here.end}::/64 via id {_END}"
    if way.transit:
        yield f"nexthop add srv6-local behavior {way.transit} id {_TRANSIT}"
        yield f"route add {here.transit}::/64 via id {_TRANSIT}"


def _tunnel(
    options: GroutOptions, wire: int, other_mac: str, neighbours: tuple[str, str]
) -> Iterator[str]:
    """A VXLAN tunnel to the other grout, and the bridge or the routes between it and the link to the TG."""
    near = 1 - wire
    ends = [side.network[2] for side in options.outer_sides]
    yield from _tunnel_end(SIDES[wire], ends[near], ends[wire], other_mac, _OUT)
    tunnel = f"interface add vxlan tunnel vni {WEST_VNI} local {ends[near]}"
    if options.vxlan_between == "bridged":
        yield "interface add bridge bridge"
        yield f"{tunnel} domain bridge"
        yield f"interface set port {SIDES[near]} domain bridge"
        yield f"flood vtep add {ends[wire]} vni {WEST_VNI}"
        return

    here = options.sides[near]
    there = options.sides[wire]
    inside = f"vrf {_CUSTOMER}"
    # It has a few routes. Without hugepages, tables of the usual size do not fit into grout's memory.
    yield f"interface add vrf {_CUSTOMER} rib4-routes 1024 rib6-routes 1024"
    mtu = options.mtu - options.encapsulation_overhead
    yield f"{tunnel} mac {_ROUTER_MACS[near]} mtu {mtu} {inside}"
    yield f"interface set port {SIDES[near]} {inside}"
    yield from _neighbour(here, neighbours[near])
    yield f"route add {here.network} via {here.neighbour} {inside}"
    far_end = f"address {ends[wire]} mac {_ROUTER_MACS[wire]} remote"
    yield f"nexthop add l3 iface tunnel id {_END} {far_end}"
    yield f"route add {there.network} via id {_END} {inside}"


def _tunnel_end(
    interface: str, local: Address, remote: Address, mac: str, number: int
) -> Iterator[str]:
    """The address of an end of a tunnel, and the way to the other end, by the number of a next hop."""
    yield f"address add {local}/{local.max_prefixlen} iface {interface}"
    yield f"nexthop add l3 iface {interface} id {number} address {remote} mac {mac}"
    yield f"route add {remote}/{remote.max_prefixlen} via id {number}"


def _routes(side: RouterSide, hosts: Sequence[Address]) -> Iterator[str]:
    for host in hosts:
        yield f"route add {host}/{side.network.max_prefixlen} via {side.neighbour}"

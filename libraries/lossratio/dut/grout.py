"""grout, DPDK's graph router: routes between two ports, which DPDK drives.

Its command line controls it, in batches that end at the first command that it refuses.

This module follows grout's manual and its own tests (version 0.17). Frames passed through grout 0.17.1, between TAP
interfaces without ``remote=``; tests have a stand-in.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from lossratio.dut import texts
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
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import check_free, read_links
from lossratio.dut.linux.program_dut import ProgramDut, ProgramOptions
from lossratio.errors import NotMeasuredHereError
from lossratio.results import Role
from lossratio.topology import EAST, WEST, Address
from lossratio.values import Like

HOME_VARIABLE = "GROUT_HOME"
"""Environment variable of the controller that names grout's directory on the node."""
_OTHER_VERSION = {4: 6, 6: 4}
_FRAME_BYTES = 18
"""Bytes of a frame around its packet: Ethernet header and FCS."""
_LARGEST_MTU = 1800
"""The largest MTU that grout takes without an option."""
_VXLAN_BYTES = {4: 50, 6: 70}
"""Bytes of VXLAN, UDP, IP and Ethernet in front of a frame, by the version of IP."""
_ROUTER_MACS = ("02:00:00:00:01:00", "02:00:00:00:02:00")
"""MAC addresses of the western and the eastern grout within a tunnel."""
_SRV6_BYTES = {"encaps": 64, "encaps_red": 40, "end": 80, "usid": 40}
"""Bytes of the outer header, with the list of segments (RFC 8754) if there is one, by the option ``srv6``."""
_SEGMENTS = (
    {"end": "2001:2:0:100", "transit": "2001:2:0:200", "both": "2001:2:0:200:100"},
    {"end": "2001:2:0:8100", "transit": "2001:2:0:8200", "both": "2001:2:0:8200:8100"},
)
"""The beginnings of addresses of segments (RFC 8986) at the western grout, and at the eastern one: where the outer
header ends, where the next segment takes the place of this one, and both of them as compressed segments."""
_TUNNELS = (
    Tunnel("west", "tunnel.west", WEST.ipv4, EAST.ipv4, WEST_VNI),
    Tunnel("east", "tunnel.east", EAST.ipv4, WEST.ipv4, EAST_VNI),
)
"""The tunnels that grout is a bridge between, each of which leads to the neighbour on its link."""
_FIXED: Mapping[str, Any] = {
    "names": SIDES,
    "router_macs": _ROUTER_MACS,
    "segments_at": _SEGMENTS,
    "tunnels": _TUNNELS,
    "vni": WEST_VNI,
}
# Next hops have numbers beyond those that grout takes itself, because it ends if one changes its kind. The routing
# domain of a tunnel has a few routes: without hugepages, tables of the usual size do not fit into grout's memory.
# Compressed segments have 16 bits (RFC 9800), in the network that RFC 5180 reserves. A TAP interface receives the
# frames of the kernel's interface, and sends through it.
_CONFIGURATION = r"""
% set options = dut.options
% set here = segments_at[1 - wire]
% set there = segments_at[wire]
% macro neighbour(side, mac)
    address add {{ side.address }}/{{ side.network.max_prefixlen - 2 }} iface {{ side.interface }}
    nexthop add l3 iface {{ side.interface }} address {{ side.neighbour }} mac {{ mac }}
% endmacro
% macro tunnel_end(interface, local, remote, mac, number)
    address add {{ local }}/{{ local.max_prefixlen }} iface {{ interface }}
    nexthop add l3 iface {{ interface }} id {{ number }} address {{ remote }} mac {{ mac }}
    route add {{ remote }}/{{ remote.max_prefixlen }} via id {{ number }}
% endmacro
% macro segments()
    % if options.srv6 == "end"
        % set visited = "%s:: %s::" % (there.transit, there.end)
    % else
        % set visited = (there.both if options.srv6 == "usid" else there.end) ~ "::"
    % endif
    % set is_reduced = options.srv6 in ("encaps_red", "usid")
    % set has_transit = options.srv6 in ("end", "usid")
    nexthop add srv6 seglist {{ visited }} encap {{ "h.encaps.red" if is_reduced else "h.encaps" }} id 1001
    route add {{ options.sides[wire].network }} via id 1001
    route add {{ there.transit if has_transit else there.end }}::/64 via {{ options.outer_sides[wire].neighbour }}
    nexthop add srv6-local behavior end.dt{{ options.ip_version }} id 1002
    route add {{ here.end }}::/64 via id 1002
    % if has_transit
        % set flavor = " flavor next-csid block-bits 48 csid-bits 16" if options.srv6 == "usid"
        nexthop add srv6-local behavior end{{ flavor }} id 1003
        route add {{ here.transit }}::/64 via id 1003
    % endif
% endmacro

affinity cpus set control {{ cores.main }} datapath {{ cores.workers | join(",") }}
% for name in (dut.west, dut.east)
    % set number = loop.index0
    % set tap = "net_tap%d,iface=%s.%d,remote=%s" % (number, dut.stem, number, name)
    interface add port {{ names[number] }} devargs {{ name if dut.uses_cards else tap }} \
    rxqs {{ queues }} qsize {{ options.frame_queue }} mtu {{ options.mtu }}
% endfor
% if options.vxlan
    interface add bridge bridge
    % for tunnel in tunnels
        % set mac = neighbours[loop.index0]
        {{ tunnel_end(tunnel.interface, tunnel.local, tunnel.remote, mac, 1001 + loop.index0) }}
        interface add vxlan {{ tunnel.name }} vni {{ tunnel.vni }} local {{ tunnel.local }} domain bridge
        flood vtep add {{ tunnel.remote }} vni {{ tunnel.vni }}
    % endfor
% elif options.vxlan_between
    % set near = 1 - wire
    % set local = options.outer_sides[near].network[2]
    % set remote = options.outer_sides[wire].network[2]
    % set tunnel = "interface add vxlan tunnel vni %d local %s" % (vni, local)
    {{ tunnel_end(names[wire], local, remote, other_mac, 1001) }}
    % if options.vxlan_between == "bridged"
        interface add bridge bridge
        {{ tunnel }} domain bridge
        interface set port {{ names[near] }} domain bridge
        flood vtep add {{ remote }} vni {{ vni }}
    % else
        % set inside = options.sides[near]
        interface add vrf customer rib4-routes 1024 rib6-routes 1024
        {{ tunnel }} mac {{ router_macs[near] }} mtu {{ options.mtu - options.encapsulation_overhead }} vrf customer
        interface set port {{ names[near] }} vrf customer
        {{ neighbour(inside, neighbours[near]) }}
        route add {{ inside.network }} via {{ inside.neighbour }} vrf customer
        nexthop add l3 iface tunnel id 1002 address {{ remote }} mac {{ router_macs[wire] }} remote
        route add {{ options.sides[wire].network }} via id 1002 vrf customer
    % endif
% else
    % if options.vlan
        % for port in names
            % set name = options.ports[loop.index0]
            interface add vlan {{ name }} parent {{ port }} vlan_id {{ name.rpartition(".")[2] }}
        % endfor
    % endif
    % for side in options.sides
        % if options.srv6 and loop.index0 == wire
            {{ neighbour(options.outer_sides[wire], neighbours[wire]) }}
            {{ segments() }}
        % else
            {{ neighbour(side, neighbours[loop.index0 % 2]) }}
            % if options.routes
                % for host in side.hosts(options.routes // 2)
                    {{ route_to(side, host) }}
                % endfor
            % else
                route add {{ side.network }} via {{ side.neighbour }}
            % endif
        % endif
    % endfor
% endif
"""


_EXCLUDES = "{given} and {other} exclude each other: leave one of them out"


class GroutOptions(ProgramOptions):
    """The options of grout."""

    requires = (
        ("vlan_east", "vlan", "vlan_east needs a tag to translate: also set vlan"),
        (
            "underlay",
            "vxlan_between",
            "underlay is the IP version of a tunnel between DUTs: also set vxlan_between",
        ),
    )
    excludes = (
        ("vxlan", "vxlan_between srv6", _EXCLUDES),
        ("vxlan_between", "srv6", _EXCLUDES),
        ("vxlan vxlan_between srv6", "dual_stack vlan routes", _EXCLUDES),
        ("vxlan", "ip_version=6", "tunnels of vxlan run over IPv4: leave ip_version out"),
    )
    home: Annotated[str, Like("^/", "an absolute path, such as /usr"), Role.TESTED] = Field(
        default_factory=from_environment(HOME_VARIABLE, "/usr")
    )
    """Directory of grout on the node, with ``bin/grout`` and ``bin/grcli``. Default: the value of the environment
    variable ``GROUT_HOME`` on the machine that runs the suite, or ``/usr``."""
    ip_version: IpVersion = 4
    """4 (the default) or 6."""
    routes: int | None = Field(default=None, ge=2, le=2 * MOST_HOSTS, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no others.
    With ``dual_stack``, this number applies to each version of IP."""
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
    """How packets pass between the two grouts of a path in a VXLAN tunnel. ``bridged``: each grout bridges the
    tunnel and its link to the TG. ``routed``: each grout routes packets between them, with an L3VNI."""
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
            return _SRV6_BYTES[self.srv6]
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
                f"grout accepts frames of at most {limit} bytes, but the test has frames of {largest} bytes. Set up "
                f"the testbed with largest_frame={largest}, or measure smaller frames."
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
        routes = [
            _route_to(side, host)
            for side, count in zip(self.options.sides[:2], halves(entries), strict=True)
            for host in side.last_hosts(count)
        ]
        self._configure(self.present.changes, directory, routes)

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
        usual_queues = len(cores.workers) if self.uses_cards else 1
        other_mac = ""
        if self.options.vxlan_between:
            # Behind a bridge, the neighbour of the test's frames is the TG's other port.
            other = cast("Grout", self.chain[self._wire]).own_macs()
            other_mac = (other.from_east, other.from_west)[self._wire]

        configuration = texts.lines(
            _CONFIGURATION,
            dut=self,
            cores=cores,
            queues=self.options.queues or usual_queues,
            neighbours=neighbours,
            wire=self._wire,
            other_mac=other_mac,
            route_to=_route_to,
            **_FIXED,
        )
        return (line for (line,) in configuration)

    @property
    def _wire(self) -> int:
        """The side of the other grout: east of the first one, and west of the second one."""
        return 1 - self.chain.index(self)


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    """The counters of a port."""
    return {name: int(count) for name, count in row.items() if name != "interface"}


def _route_to(side: RouterSide, host: Address) -> str:
    return f"route add {host}/{side.network.max_prefixlen} via {side.neighbour}"

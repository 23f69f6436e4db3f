"""A Linux router between two interfaces, for IPv4 or IPv6. Rules can make it slow enough to lose frames by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

from pydantic import Field

from lossratio.dut.base import EASTWARD, WESTWARD, Tool
from lossratio.dut.changes import Changes
from lossratio.dut.linux import LinuxDut, LinuxOptions
from lossratio.dut.linux.addressing import (
    IpVersion,
    RouterSide,
    add_host_routes,
    check_hosts,
    halves,
    router_sides,
)
from lossratio.dut.linux.conntrack import Conntrack, ConntrackOptions
from lossratio.dut.linux.interfaces import check_free, read_links, read_routes
from lossratio.dut.linux.nftables import Ruleset
from lossratio.dut.linux.node_dut import PYTHON
from lossratio.nodes import DutNode

_IPV4 = "/proc/sys/net/ipv4/conf"
_IPV6 = "/proc/sys/net/ipv6/conf"

# For rp_filter and send_redirects of IPv4, the kernel uses the stricter of "all" and the interface's own setting. The
# global ip_forward is not changed: it would make every interface a router, and reset their other settings.
_FORWARDING = """
% if version == 4
    % for scope in ["all"] + interfaces
        /proc/sys/net/ipv4/conf/{{ scope }}/rp_filter 0
        /proc/sys/net/ipv4/conf/{{ scope }}/send_redirects 0
    % endfor
    % for name in interfaces
        /proc/sys/net/ipv4/conf/{{ name }}/forwarding 1
        /proc/sys/net/ipv6/conf/{{ name }}/disable_ipv6 1 optional
    % endfor
% else
    % for name in interfaces
        % for setting in ("accept_ra", "accept_dad", "disable_ipv6")
            /proc/sys/net/ipv6/conf/{{ name }}/{{ setting }} 0
        % endfor
    % endfor
    % for name in interfaces if by_interface
        /proc/sys/net/ipv6/conf/{{ name }}/force_forwarding 1
    % endfor
% endif
"""


def enable_forwarding(
    changes: Changes, node: DutNode, interfaces: Sequence[str], ip_version: int
) -> None:
    """Switches forwarding on for the interfaces, and redirects, source validation and automatic configuration off."""
    by_interface = ip_version == 6 and _forwards_by_interface(node)
    names = list(interfaces)
    changes.apply(_FORWARDING, version=ip_version, interfaces=names, by_interface=by_interface)
    if ip_version == 4 or by_interface:
        return

    # Older kernels only forward if all interfaces do. Switching this off again sets all interfaces to the same value.
    every = f"{_IPV6}/all/forwarding"
    for path, value in node.read_files("forwarding", under=_IPV6).items():
        if path != every:
            changes.put_back("tee", path, stdin=f"{value}\n")

    changes.write(every, "1")


def _forwards_by_interface(node: DutNode) -> bool:
    return bool(node.read_files(f"{_IPV6}/all/force_forwarding"))


# Addresses of the other end of the veth pair. They are link-local, so that no other route leads to them.
_GATEWAYS: Mapping[int, IPv4Address | IPv6Address] = {
    4: IPv4Address("169.254.198.18"),
    6: IPv6Address("fe80::198:18"),
}
_STAGE = """
{{ made(into, "mtu %d type veth peer name %s mtu %d" % (mtu, out_of, mtu)) }}
"""
# A veth only queues if its other end does not send data that the stack has not yet cut into frames.
_ENDS = """
% for end in ends
    ethtool -K {{ end }} tso off gro on
    ip link set dev {{ end }} up
    /sys/class/net/{{ end }}/threaded 1
% endfor
"""
# Sends each side's frames into the near end, addressed to the far end, by a routing table and a rule with its priority.
_WAYS = """
% set ip = "ip -%d" % version
% for source, target, near, far, table in ways
    {{ added(ip ~ " neighbour", "%s lladdr %s dev %s nud permanent" % (gateway, macs[far], near)) }}
    {{ added(ip ~ " route", "%s via %s dev %s onlink table %s" % (target.network, gateway, near, table)) }}
    {{ added(ip ~ " rule", "iif %s lookup %s priority %s" % (source.interface, table, table)) }}
% endfor
"""
_QUEUE = 256
"""Frames that the queue in front of the second stage's thread holds."""
_SECONDS_PER_RULE = 2e-7
"""Seconds that a rule may take per frame: 4e-8 were measured on an idle core, and five times as much on a busy core."""


class RouterOptions(LinuxOptions, ConntrackOptions):
    """The options of a router."""

    is_router = True
    filter_option = "rules"
    excludes = (
        (
            "rules",
            "police",
            "police and rules cannot be combined: the slower one would hide the other",
        ),
        (
            "rules",
            "routes",
            "rules and routes cannot be combined: the second stage has its own table",
        ),
        (
            "rules",
            "nat firewall",
            "rules and connections cannot be combined: a frame passes the second stage as a new frame",
        ),
    )
    ip_version: IpVersion = 4
    """4 (the default) or 6."""
    routes: int | None = Field(default=None, ge=2, le=130_000, multiple_of=2)
    """Number of routes to single hosts, e.g. 10000: half on each side, to the first hosts of its network. There are no
    other routes, so test traffic must not go to more hosts. Profiles such as ``ethip4-ip4scale20k`` send to the same
    number of hosts. Default: one route to each side's network."""
    rules: int = Field(default=0, ge=0, le=10_000)
    """Number of nftables rules that every frame passes in a second stage. Each direction has its own kernel thread for
    this stage, behind a queue of 256 frames. With enough rules (hundreds), the router itself loses frames: in a
    measurement, 1000 rules took 40 microseconds per frame. The TTL is lowered twice. Cannot be combined with
    ``police``."""


class LinuxRouter(LinuxDut[RouterOptions]):
    """A router between the networks of the two sides, with static routes and neighbours and no redirects.

    On each side, the router has the second-to-last address of the side's network, and its neighbour there has the
    address before it. The neighbour need not answer requests, because its MAC address is a permanent entry.
    """

    kind = "linux_router"
    options_type = RouterOptions
    family = "inet"

    @property
    def entrances(self) -> dict[str, str]:
        """The interfaces, or the far ends of the second stage if there is one."""
        into, out_of = self._stage
        if self.options.rules:
            return {EASTWARD: out_of, WESTWARD: into}
        return super().entrances

    @property
    def queues(self) -> dict[str, str]:
        """The ends of the second stage: each one drops frames when the other end's queue is full."""
        into, out_of = self._stage
        if self.options.rules:
            return {EASTWARD: into, WESTWARD: out_of}
        return {}

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """The ends of the second stage."""
        if self.options.rules:
            return self._stage
        return ()

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay inside; with a queue, until it is empty."""
        return super().settle_time + _QUEUE * self.options.rules * _SECONDS_PER_RULE

    def check_kind(self) -> None:
        """Checks that the node does not use the networks of test traffic, and that forwarding keeps its default route.

        Raises:
            DutError: If the node uses one of the networks, has no IPv6, or would lose its default
                route.
            NotMeasuredHereError: If the node lacks a CPU of ``rps_cpus``.
        """
        super().check_kind()
        check_free(self.node, [side.network for side in self._sides])
        if self.options.ip_version == 4:
            return
        if not self.node.read_files(f"{_IPV6}/all/forwarding"):
            raise self.node.error(
                "the kernel has no IPv6: boot it without ipv6.disable=1, or use ip_version=4."
            )
        if _forwards_by_interface(self.node):
            return

        for route in read_routes(self.node):
            if route["dst"] == "default" and route.get("protocol") == "ra":
                raise self.node.error(
                    f"its IPv6 default route through {route['dev']} comes from router advertisements, and this "
                    "kernel drops such routes when IPv6 forwarding is switched on (6.17 and later keep them). Give "
                    "the node a static default route."
                )

    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Gives both interfaces addresses, routes and neighbours, and makes the kernel forward between them."""
        enable_forwarding(changes, self.node, (self.west, self.east), self.options.ip_version)
        for side, neighbour in zip(self._sides, (west_mac, east_mac), strict=True):
            side.configure(changes, neighbour, (self.options.routes or 0) // 2)
        if self.options.rules:
            self._add_stage(changes)
        for path, value in self.options.settings().items():
            changes.write(path, value)

    def check_reconfigure(self, entries: int) -> None:
        """Refuses more routes than a side has hosts."""
        check_hosts(self.node.name, entries, self.options.routes)

    def reconfigure(self, entries: int) -> None:
        """Adds routes to single hosts, half of them on each side, from the last hosts of its network down."""
        self.check_reconfigure(entries)
        for side, count in zip(self._sides, halves(entries), strict=True):
            add_host_routes(
                self.present.changes, side.last_hosts(count), side.neighbour, side.interface
            )
            self.depend_on_host_routes(side.interface, count)

    def restart(self) -> None:
        """Stops forwarding between the interfaces, and starts it again."""
        _ = self.present
        for value in ("0", "1"):
            for name in (self.west, self.east):
                path = f"/proc/sys/net/ipv{self.options.ip_version}/conf/{name}/forwarding"
                self.node.run("tee", path, stdin=f"{value}\n")

    @property
    def ruleset(self) -> Ruleset:
        """Its nftables rules, with rules of connections."""
        options = self.options
        east = self._sides[1]
        return replace(
            super().ruleset,
            connection_rules=tuple(options.rules_of_connections((self.west, self.east))),
            translation=options.translation(self.east, east.neighbour - 1),
        )

    @property
    def connections(self) -> Conntrack | None:
        """The kernel's table of connections."""
        if self.options.keeps_connections:
            return Conntrack(self.node, self.options, self.reset)
        return None

    @property
    def tools_needed(self) -> tuple[Tool, ...]:
        """Python, if connections are counted, and the programs that every DUT needs."""
        return (*super().tools_needed, *((PYTHON,) if self.options.keeps_connections else ()))

    @property
    def _sides(self) -> tuple[RouterSide, RouterSide]:
        return router_sides(self.west, self.east, self.options.ip_version)

    @property
    def _stage(self) -> tuple[str, str]:
        """Names of the ends of the second stage: frames from the west are sent into the first one."""
        return f"{self.stem}.w", f"{self.stem}.e"

    def _add_stage(self, changes: Changes) -> None:
        """Adds a second stage: frames wait in a queue for a kernel thread of their direction.

        Without it, the kernel forwards a veth's frames inside the sender's system call, so that a slow router slows the
        sender down instead of losing frames. A queue right behind the veth has the same effect, because the sender sees
        that it is full. Behind a first routing step no sender sees the queue: it overflows, and frames are lost as in
        any slow device.

        The stage is a veth pair. A separate rule routes frames from the west into its west end. They come out of its
        east end in that interface's NAPI thread, and are routed on from there as usual. Frames from the east go the
        other way through the same pair. A frame's TTL is lowered twice. Unlike RPS, this needs no root.
        """
        links = read_links(self.node, self.west, self.east)
        mtu = max(links[name]["mtu"] for name in (self.west, self.east))
        (west, east), (into, out_of) = self._sides, self._stage
        changes.apply(_STAGE, into=into, out_of=out_of, mtu=mtu)
        enable_forwarding(changes, self.node, self._stage, self.options.ip_version)
        changes.apply(_ENDS, ends=self._stage)

        macs = {end: link["address"] for end, link in read_links(self.node, *self._stage).items()}
        ways = ((west, east, into, out_of, "19818"), (east, west, out_of, into, "19819"))
        version = self.options.ip_version
        changes.apply(_WAYS, version=version, gateway=_GATEWAYS[version], ways=ways, macs=macs)

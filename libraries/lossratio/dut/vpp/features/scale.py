"""Tables of VPP with many entries."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from pydantic import Field

from lossratio.dut.linux.addressing import RouterSide
from lossratio.dut.vpp.features.feature import ROUTES, Command, Feature, Needs, Steps, VppPort

ROUTES_ADDED = r"(\S+ routes/sec\s*)*"
"""VPP's answer to a command that adds many routes: their rate."""
_MOST_IPV4_ROUTES = 130_000
"""The maximum number of routes that lead to hosts of the benchmarking networks."""
_ROUTES_AT_ONCE = 100_000
"""VPP answers no other command while it adds routes."""


class Routes(Feature):
    """Routes to single hosts."""

    routes: int | None = Field(default=None, ge=2, le=2_000_000, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no other
    routes. With ``ip4`` or ``ip6``. If there are more than 130,000 IPv4 routes, they lead to hosts of 240.0.0.0/6 and
    244.0.0.0/6."""

    needs = Needs(("ip4", "ip6"), tags=("scale",), decides=ROUTES, entries={"routes": 1})
    # VPP has a few routes to hosts of its own.
    steps = Steps(
        verified=r"""
            % set version = options.ip_version
            % set routes = options.routes
            show ip{{ "6" if version == 6 }} fib summary \
            | \s{{ "128" if version == 6 else "32" }}\s+({{ range(routes, routes + 20) | join("|") }})\s \
            | {{ routes }} routes
        """
    )

    def routed(self, port: VppPort) -> Iterator[Command]:
        """The routes to the hosts behind a port."""
        if self.routes is None:
            return
        side = port.routed(self.ip_version)
        network = side.network
        if self.ip_version == 4 and self.routes > _MOST_IPV4_ROUTES:
            network = port.side.wide_ipv4

        count = self.routes // 2
        for start in range(0, count, _ROUTES_AT_ONCE):
            piece = min(_ROUTES_AT_ONCE, count - start)
            yield Command(many_routes(side, network[1] + start, piece), answer=ROUTES_ADDED)


class LearnedMacs(Feature):
    """MAC addresses that a bridge domain learns from test traffic."""

    macs: int | None = Field(default=None, ge=2, le=2_000_000)
    """Number of MAC addresses of test traffic that the bridge domain must have learned. With ``l2bd``."""

    needs = Needs(("l2bd",), shows=("show l2fib",), tags=("l2bdscale",), entries={"macs": 1})
    steps = Steps(
        proved=r"""
            % set macs = options.macs
            show l2fib | total/learned entries:\s*({{ range(macs, macs + 20) | join("|") }})/ | {{ macs }} MAC addresses
        """
    )


def many_routes(side: RouterSide, first: IPv4Address | IPv6Address, count: int) -> str:
    """The command that adds routes to this many hosts, from the first one on."""
    return f"ip route add count {count} {first}/{first.max_prefixlen} via {side.neighbour} {side.interface}"

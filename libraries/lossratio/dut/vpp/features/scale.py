"""Tables of VPP with many entries."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from pydantic import Field

from lossratio.dut.linux.addressing import RouterSide
from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppPort

ROUTES_ADDED = r"(\S+ routes/sec\s*)*"
"""VPP's answer to a command that adds many routes: their rate."""
_MOST_IPV4_ROUTES = 130_000
"""The maximum number of routes that lead to hosts of the benchmarking networks."""
_ROUTES_AT_ONCE = 100_000
"""VPP answers no other command while it adds routes."""
_FEW = 20
"""VPP's own entries in a table."""


class Routes(Feature):
    """Routes to single hosts."""

    routes: int | None = Field(default=None, ge=2, le=2_000_000, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no other
    routes. With ``ip4`` or ``ip6``. If there are more than 130,000 IPv4 routes, they lead to hosts of 240.0.0.0/6 and
    244.0.0.0/6."""

    needs = Needs(("ip4", "ip6"), tags=("scale",))

    @property
    def entries(self) -> int:
        """The routes."""
        return max(self.routes or 0, super().entries)

    def routed(self, port: VppPort) -> Iterator[Command]:
        """The routes to the hosts behind a port."""
        side = port.routed(self.ip_version)
        count = self.entries // 2
        is_wide = self.ip_version == 4 and self.entries > _MOST_IPV4_ROUTES
        network = port.side.wide_ipv4 if is_wide else side.network
        for start in range(0, count, _ROUTES_AT_ONCE):
            piece = min(_ROUTES_AT_ONCE, count - start)
            yield Command(many_routes(side, network[1] + start, piece), answer=ROUTES_ADDED)

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The number of routes to single hosts: these, and VPP's own."""
        bits = 128 if self.ip_version == 6 else 32
        yield Shown(
            f"show ip{'6' if bits == 128 else ''} fib summary",
            rf"\s{bits}\s+{_at_least(self.entries)}\s",
            f"{self.entries} routes",
        )


class LearnedMacs(Feature):
    """MAC addresses that a bridge domain learns from test traffic."""

    macs: int | None = Field(default=None, ge=2, le=2_000_000)
    """Number of MAC addresses of test traffic that the bridge domain must have learned. With ``l2bd``."""

    needs = Needs(("l2bd",), shows=("show l2fib",), tags=("l2bdscale",))

    @property
    def entries(self) -> int:
        """The addresses."""
        return max(self.macs or 0, super().entries)

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """The addresses in the table of the bridge."""
        yield Shown(
            "show l2fib",
            rf"total/learned entries:\s*{_at_least(self.macs or 0)}/",
            f"{self.macs} MAC addresses",
        )


def _at_least(count: int) -> str:
    """A regular expression of numbers that are this large, or slightly larger."""
    return "(" + "|".join(str(count + more) for more in range(_FEW)) + ")"


def many_routes(side: RouterSide, first: IPv4Address | IPv6Address, count: int) -> str:
    """The command that adds routes to this many hosts, from the first one on."""
    return f"ip route add count {count} {first}/{first.max_prefixlen} via {side.neighbour} {side.interface}"

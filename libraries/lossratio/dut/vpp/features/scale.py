"""Tables of VPP with many entries."""

from pydantic import Field

from lossratio.dut.vpp.features.feature import ROUTES, Feature, Needs, Steps


class Routes(Feature):
    """Routes to single hosts."""

    routes: int | None = Field(default=None, ge=2, le=2_000_000, multiple_of=2)
    """Number of routes to single hosts: half on each side, to the first hosts of its network. There are no other
    routes. With ``ip4`` or ``ip6``. If there are more than 130,000 IPv4 routes, they lead to hosts of 240.0.0.0/6 and
    244.0.0.0/6."""

    needs = Needs(("ip4", "ip6"), tags=("scale",), decides=ROUTES, entries={"routes": 1})
    # VPP answers no other command while it adds routes, and has a few routes to hosts of its own.
    steps = Steps(
        routed=r"""
            % set side = port.routed(options.ip_version)
            % set is_wide = options.ip_version == 4 and options.routes > 130000
            % set network = port.side.wide_ipv4 if is_wide else side.network
            % set count = options.routes // 2
            % for start in range(0, count, 100000)
                {{ many_routes(side, network[1] + start, [100000, count - start] | min) }}
            % endfor
        """,
        verified=r"""
            % set version = options.ip_version
            % set routes = options.routes
            show ip{{ "6" if version == 6 }} fib summary \
            | \s{{ "128" if version == 6 else "32" }}\s+({{ range(routes, routes + 20) | join("|") }})\s \
            | {{ routes }} routes
        """,
    )


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

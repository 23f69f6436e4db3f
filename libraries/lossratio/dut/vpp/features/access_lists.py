"""Features of VPP that let frames pass, or drop them: access lists, classification, allow lists."""

from collections.abc import Iterator

from pydantic import Field

from lossratio.dut.vpp.features.feature import Command, Feature, Forwarding, Needs, Ports, Shown

_ROUTERS: tuple[Forwarding, ...] = ("ip4", "ip6")


class AccessLists(Feature):
    """Rules that every frame passes."""

    acl: int | None = Field(default=None, ge=1, le=100)
    """Number of rules of an access control list that every frame passes, up to 100. The last rule permits the frame."""
    acl_output: bool = False
    """Whether frames pass the list when they leave, not when they enter."""
    acl_stateful: bool = False
    """Whether the last rule begins a session, in which the other frames of the flow pass without being checked against
    the rules."""

    filter_option = "acl"
    needs = Needs(plugins={"acl": ""}, tags=("iacl", "oacl"))

    def problem(self) -> str | None:
        """A list without rules."""
        if self.acl:
            return None
        return "acl_output and acl_stateful apply to a list of rules; also set acl"

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The list, and its use on both interfaces."""
        any_network = "::/0" if self.ip_version == 6 else "0.0.0.0/0"
        # All rules but the last one are for a protocol that no frame has: 255 is reserved.
        others = [f"deny src {any_network} dst {any_network} proto 255"] * ((self.acl or 0) - 1)
        permit = "permit+reflect" if self.acl_stateful else "permit"
        rules = ", ".join((*others, f"{permit} src {any_network} dst {any_network}"))
        yield Command(f"set acl-plugin acl {rules} tag lossratio", answer=r"ACL index:\d+")
        for port in ports:
            yield Command(
                f"set acl-plugin interface {port.link} {'output' if self.acl_output else 'input'} acl 0"
            )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The number of rules, and two interfaces that have them."""
        way = "out" if self.acl_output else "in"
        yield Shown(
            "show acl-plugin acl",
            rf"count {self.acl} tag[\s\S]*applied {way}bound on sw_if_index: \d+, \d+",
            f"{self.acl} rules on both interfaces",
        )

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Sessions, if there are to be any."""
        if self.acl_stateful:
            yield Shown(
                "show acl-plugin sessions",
                r"Sessions active: add \d+ - deact \d+ = [1-9]",
                "active sessions",
            )


class Classifier(Feature):
    """A table of destinations: frames to any other destination are dropped."""

    classify: bool = False
    """Whether a table has the destination of test traffic, the first host of each network, and drops frames to all
    others; with ``ip4`` or ``ip6``."""

    needs = Needs(_ROUTERS, tags=("iacldst",))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The table, and its use on both interfaces."""
        mask = f"l3 ip{self.ip_version} dst"
        yield Command(f"classify table acl-miss-next deny mask {mask} buckets 64")
        for port in ports:
            host = port.routed(self.ip_version).network[1]
            yield Command(f"classify session acl-hit-next permit table-index 0 match {mask} {host}")
        for port in ports:
            yield Command(f"set interface input acl intfc {port.link} ip{self.ip_version}-table 0")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The table."""
        yield Shown(
            "show classify tables", r"active elements 2|\n\s+0\s+2\s", "a table of two destinations"
        )


class AllowList(Feature):
    """Sources: frames of any other source are dropped."""

    allowlist: bool = False
    """Whether both networks of test traffic are on a list of sources, and frames of all others are dropped; with
    ``ip4`` or ``ip6``."""

    needs = Needs(_ROUTERS, plugins={"adl": ""}, version="20.09", tags=("adlalwlist",))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A table of routes with both networks, and its use on both interfaces."""
        version = self.ip_version
        yield Command(f"{'ip6' if version == 6 else 'ip'} table add 1")
        for port in ports:
            yield Command(f"ip route add {port.routed(version).network} table 1 via local")
        for port in ports:
            yield Command(f"adl interface {port.link}")
            yield Command(f"adl allowlist {port.link} fib-id 1 ip{version}")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The feature on both interfaces."""
        for port in ports:
            yield Shown(f"show interface features {port.link}", "adl-input", "adl-input")

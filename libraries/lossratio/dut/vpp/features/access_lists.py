"""Features of VPP that let frames pass, or drop them: access lists, classification, allow lists."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from pydantic import Field

from lossratio.dut.vpp.features.feature import (
    LOOKING,
    Command,
    Feature,
    Forwarding,
    Needs,
    Ports,
    Shown,
    entrances,
)

_ROUTERS: tuple[Forwarding, ...] = ("ip4", "ip6")
_UDP = 17
_SOURCES = {4: ip_network("192.0.2.0/24"), 6: ip_network("2001:db8:1::/64")}
_DESTINATIONS = {4: ip_network("198.51.100.0/24"), 6: ip_network("2001:db8:2::/64")}
"""Networks for documentation, which no test traffic has as source or destination."""
_DESTINATION_MASKS = {4: "00" * 30 + "ff" * 3 + "00", 6: "00" * 38 + "ff" * 14 + "00" * 2}
"""The bits of a frame that are compared, in hexadecimal: the network of the destination, behind the Ethernet header."""
_FIRST_PORT = 1000
_PORT_STEP = 10


class AccessLists(Feature):
    """Rules that every frame passes."""

    acl: int | None = Field(default=None, ge=1, le=100)
    """Number of rules, up to 100, of an access control list that every frame passes once: on the first DUT of the path.
    These rules match other flows. Two further rules permit all frames of test traffic by their source. Not with
    ``l2patch`` or ``sfdp``, which hand frames on before they meet the list."""
    acl_output: bool = False
    """Whether frames pass the list when they leave, instead of when they enter."""
    acl_stateful: bool = False
    """Whether the rules that permit test traffic begin a session, in which the flow's other frames pass without being
    checked against the rules."""

    filter_option = "acl"
    needs = Needs(LOOKING, plugins={"acl": ""}, tags=("iacl", "oacl"))

    def problem(self) -> str | None:
        """The options need rules, and have none."""
        if self.acl:
            return None
        return "acl_output and acl_stateful apply to a list of rules; also set acl"

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The list, and its use on both interfaces."""
        if not AccessLists._is_first(ports):
            return
        rules = (*AccessLists._others(self), *AccessLists._permitting(self, ports))
        yield Command(
            f"set acl-plugin acl {', '.join(rules)} tag lossratio", answer=r"ACL index:\d+"
        )
        for port in ports:
            yield Command(
                f"set acl-plugin interface {port.entrance} {'output' if self.acl_output else 'input'} acl 0"
            )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The number of rules, and two interfaces that have them."""
        if not AccessLists._is_first(ports):
            return
        way = "out" if self.acl_output else "in"
        rules = (self.acl or 0) + len(ports)
        yield Shown(
            "show acl-plugin acl",
            rf"count {rules} tag[\s\S]*applied {way}bound on sw_if_index: \d+, \d+",
            f"{rules} rules on both interfaces",
        )

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Packets met the list; and there are sessions, if the rules begin any."""
        if not AccessLists._is_first(ports):
            return
        yield Shown("show errors", r"[1-9]\d*\s+acl-plugin-", "packets that met the list")
        if self.acl_stateful:
            yield Shown(
                "show acl-plugin sessions",
                r"Sessions active: add \d+ - deact \d+ = [1-9]",
                "active sessions",
            )

    def _others(self) -> Iterator[str]:
        """The rules about other flows: as in FD.io CSIT, they permit single hosts and ports that no frame has."""
        version = self.ip_version
        for number in range(self.acl or 0):
            ends = f"src {_host(_SOURCES[version], number)} dst {_host(_DESTINATIONS[version], number)}"
            port = _FIRST_PORT + _PORT_STEP * number
            yield f"permit {ends} proto {_UDP} sport {port} dport {port}"

    def _permitting(self, ports: Ports) -> Iterator[str]:
        """The rules that permit frames of both directions."""
        permit = "permit+reflect" if self.acl_stateful else "permit"
        for port in ports:
            network = port.routed(self.ip_version).network
            anywhere = "::/0" if self.ip_version == 6 else "0.0.0.0/0"
            yield f"{permit} src {network} dst {anywhere}"

    @staticmethod
    def _is_first(ports: Ports) -> bool:
        return not ports[0].faces_dut


class Classifier(Feature):
    """A table of destinations: frames to any other destination are dropped."""

    classify: bool = False
    """Whether there is a table of allowed destinations: as in FD.io CSIT, the /24 (IPv6: /112) of each side's first
    host. Frames to other destinations are dropped where they enter the path. With ``ip4`` or ``ip6``."""

    needs = Needs(_ROUTERS, tags=("iacldst",))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The table, and its use where frames enter the path."""
        version = self.ip_version
        if entrances(ports):
            mask = f"hex {_DESTINATION_MASKS[version]}"
            yield Command(f"classify table acl-miss-next deny mask {mask} buckets 64")
        for port in entrances(ports):
            match = f"l3 ip{version} dst {port.destination(version)}"
            yield Command(f"classify session acl-hit-next permit table-index 0 match {match}")
        for port in entrances(ports):
            yield Command(f"set interface input acl intfc {port.link} ip{version}-table 0")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The table."""
        count = len(entrances(ports))
        if count:
            yield Shown(
                "show classify tables",
                rf"active elements {count}|\n\s+0\s+{count}\s",
                f"a table of destinations: {count}",
            )


class AllowList(Feature):
    """A list of sources: frames from any other source are dropped."""

    allowlist: bool = False
    """Whether there is a list of allowed sources (the network of test traffic). Frames from other sources are dropped
    where they enter the path; on a path through one VPP only in the west, as in FD.io CSIT. With ``ip4`` or ``ip6``."""

    needs = Needs(_ROUTERS, plugins={"adl": ""}, version="20.09", tags=("adlalwlist",))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A table of routes with this network, and its use."""
        version = self.ip_version
        for port in entrances(ports)[:1]:
            yield Command(f"{'ip6' if version == 6 else 'ip'} table add 1")
            yield Command(f"ip route add {port.routed(version).network} table 1 via local")
            yield Command(f"adl interface {port.link}")
            yield Command(f"adl allowlist {port.link} fib-id 1 ip{version}")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The feature on this interface."""
        for port in entrances(ports)[:1]:
            yield Shown(f"show interface features {port.link}", "adl-input", "adl-input")


def _host(network: IPv4Network | IPv6Network, number: int) -> str:
    """The network of one host."""
    return f"{network[number + 1]}/{network.max_prefixlen}"

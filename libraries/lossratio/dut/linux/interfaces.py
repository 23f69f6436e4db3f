"""The node's network interfaces from ``ip -json``, and the check whether test traffic may use them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from lossratio.bpf import default_networks
from lossratio.errors import DutError
from lossratio.nodes import DutNode

Link = Mapping[str, Any]
"""An interface in the output of ``ip -json -details -statistics address``."""
MADE = "lr-"
"""Prefix of the names of interfaces that a DUT makes."""

_SSH_CONNECTION = r"""
p=$$
while [ "${p:-0}" -gt 1 ]; do
    tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | sed -n 's/^SSH_CONNECTION=//p' | grep . && exit
    p=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$p/status")
done
"""
"""Prints the addresses of the SSH session. sudo clears the variable, so it also looks at the parent processes."""


def read_links(node: DutNode, *names: str) -> dict[str, Link]:
    """All interfaces of a node by name, with addresses and 64-bit counters.

    Raises:
        DutError: If a name is missing.
    """
    answer = node.json("ip", "-json", "-details", "-statistics", "address", "show") or []
    links = {link["ifname"]: link for link in answer if "ifname" in link}
    for name in names:
        if name not in links:
            raise DutError(
                f"{node.name} has no interface {name!r}; it has {', '.join(sorted(links))}. Correct its name in the "
                "topology file. If the interface was removed after the set-up, set up the DUT again."
            )
    return links


def is_up(link: Link) -> bool:
    """Whether an interface was brought up, with or without a link."""
    return "UP" in link["flags"]


def has_link(link: Link) -> bool:
    """Whether an interface and the other end of its link are up, so that the kernel forwards."""
    # NO-CARRIER is cleared only once a second.
    return "LOWER_UP" in link["flags"]


_ROUTES = """
for protocol; do
    for family in -4 -6; do ip -json "$family" route show table all proto "$protocol" || exit; done
done
"""


def read_routes(node: DutNode, *protocols: str) -> list[dict[str, Any]]:
    """Routes of the node with one of these protocols (None: any), for IPv4 and IPv6, from every table."""
    text = node.run("sh", "-c", _ROUTES, "routes", *(protocols or ("all",)))
    return [route for routes in node.parse_json_lines(text) for route in routes]


def check_interfaces(node: DutNode, interfaces: Sequence[str]) -> None:
    """Checks that the node has these interfaces, and does not use them, e.g. for SSH.

    Raises:
        DutError: If one is missing, busy, or carries the connection to the node.
    """
    links = read_links(node, *interfaces)
    lifelines = dict(_lifelines(node))
    for name in interfaces:
        _check_spare(node.name, name, links, lifelines)
        for above in _above(name, links):
            raise node.error(
                f"interface {name} is busy: it is below {above}. If this is not needed, remove it from there (ip "
                f"link set dev {name} nomaster, or ip link delete dev {above})."
            )

        for address in links[name].get("addr_info", ()):
            if (address["family"], address["scope"]) != ("inet6", "link"):
                cidr = f"{address['local']}/{address['prefixlen']}"
                raise node.error(
                    f"interface {name} is busy: it has the address {cidr}. If that is not needed, remove "
                    f"it (ip address delete {cidr} dev {name})."
                )


def lifelines_among(node: DutNode, interfaces: Sequence[str]) -> Iterator[str]:
    """Says which interfaces carry the node's default route or SSH session, so that traffic would cut the node off."""
    links = read_links(node)
    lifelines = dict(_lifelines(node))
    for name in (name for name in interfaces if name in links):
        try:
            _check_spare(node.name, name, links, lifelines)
        except DutError as error:
            yield str(error)


def check_free(node: DutNode, networks: Sequence[IPv4Network | IPv6Network]) -> None:
    """Checks that the node has neither an address in these networks nor a route to any part of them.

    Raises:
        DutError: If it has one; the message names the network and the route.
    """
    for route in read_routes(node):
        destination = route["dst"]
        if destination == "default":
            continue
        target = ip_network(destination)
        for network in networks:
            if target.network_address in network and target.prefixlen >= network.prefixlen:
                raise node.error(
                    f"address clash: test traffic uses {network}, and the node has a route to {destination} through "
                    f"{route.get('dev', 'nowhere')}. Remove the route or its address."
                )


def _check_spare(
    node_name: str, name: str, links: Mapping[str, Link], lifelines: Mapping[str, str]
) -> None:
    for upper in (name, *_above(name, links)):
        if upper in lifelines:
            below = "" if upper == name else f" (below {upper})"
            raise DutError(
                f"{node_name}: interface {name}{below} carries {lifelines[upper]}. Test traffic on it would cut off "
                "the node. In the topology file, name an interface that is only for tests."
            )


def _above(name: str, links: Mapping[str, Link]) -> list[str]:
    """Names of all interfaces on top of another: its bridge or bond, its VLANs, and whatever is on top of those."""
    above: list[str] = []
    to_look_at = [name]
    while to_look_at:
        below = to_look_at.pop(0)
        for other in links:
            if other not in (name, *above) and _is_on_top(other, below, links):
                above.append(other)
                to_look_at.append(other)
    return above


def _is_on_top(name: str, below: str, links: Mapping[str, Link]) -> bool:
    # The two ends of a veth name each other as their link.
    is_stacked = links[name].get("link") == below and links[below].get("link") != name
    # Tunnels name their link in another field.
    is_tunnel = links[name].get("linkinfo", {}).get("info_data", {}).get("link") == below
    return is_stacked or is_tunnel or links[below].get("master") == name


def _lifelines(node: DutNode) -> Iterator[tuple[str, str]]:
    """Interfaces that the node must keep, each with the reason."""
    routes = [route for route in read_routes(node) if route.get("type", "unicast") == "unicast"]
    in_pieces = default_networks(
        {ip_network(route["dst"]) for route in routes if route["dst"] != "default"}
    )
    for route in routes:
        if route["dst"] == "default" or ip_network(route["dst"]) in in_pieces:
            if route["dst"] == "default":
                what = "the default route"
            else:
                what = f"a part of the default route ({route['dst']})"

            hops = (route, *route.get("nexthops", ()))
            yield from ((hop["dev"], what) for hop in hops if "dev" in hop)

    connection = node.attempt("sh", "-c", _SSH_CONNECTION).stdout.split()
    if connection:
        client, _, zone = connection[0].partition("%")
        answer = node.attempt("ip", "-json", "route", "get", client)
        if answer.exit_status == 0 and not zone:
            routes = json.loads(answer.stdout)
        else:
            routes = []

        devices = [zone, *(route.get("dev") for route in routes)]
        yield from ((device, "the SSH session") for device in devices if device)

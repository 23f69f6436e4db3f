"""The state of a node after a set-up: it is read, compared, and its changes are told in sentences."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.dut.changes import Changes
from lossratio.dut.linux.addressing import count_host_routes
from lossratio.dut.linux.interfaces import Link, is_up, read_links, read_routes
from lossratio.dut.linux.nftables import table_name
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_PROTOCOLS = ("kernel", "boot")
"""Protocols of the routes that a DUT depends on: routes that come with addresses, and routes that commands add."""

# Without counters, and without the elements of named sets, which daemons change all the time.
_TABLES = """
tables=$(nft list tables) || exit
echo "$tables" | while read -r _ family name; do
    [ -z "$name" ] || echo "$family $name $(nft -s -t list table "$family" "$name" | sha256sum)"
done
"""

_QUEUES = """
for name; do echo "$name $(tc qdisc show dev "$name" | tr '\\n' ';')"; done
"""

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
State = Mapping[str, Mapping[str, Any]]
"""The state of a node that a DUT depends on: by subject (see `_CHANGES`), values by name."""


@dataclass(frozen=True)
class SetUp:
    """A completed set-up."""

    changes: Changes
    """The changes that it made."""
    neighbours: tuple[str, str]
    """MAC addresses of the neighbours, west and east."""
    interfaces: tuple[str, ...]
    """Names of its interfaces, or PCI addresses of its cards."""
    boot_id: str
    """The kernel's identifier of the boot."""
    state: State
    """The node's state after the set-up, which must not change."""


_HOST_ROUTES = "interface {0} had {1} routes to single hosts, and now has {2}"
# Table: the sentences for values that have gone, were added, or have changed, with a value's name, and its earlier and
# its present value. Empty: this change is allowed.
_CHANGES: Mapping[str, tuple[str, str, str]] = {
    "interfaces": (
        "interface {0} no longer exists, or was set down",
        "",
        "interface {0} is no longer in {1}",
    ),
    "ports": ("", "interface {0} was put into a bridge of the DUT", ""),
    "ways": ("", "", "the {0} was {1}, and is now {2}"),
    "routes": ("the route to {0} no longer exists", "", ""),
    "host routes": (_HOST_ROUTES, _HOST_ROUTES, _HOST_ROUTES),
    "tables": (
        "the nftables table {0} no longer exists",
        "the nftables table {0} was added",
        "the nftables table {0} was changed",
    ),
    "settings": ("{0} was {1}, and no longer exists", "", "{0} was {1}, and is now {2}"),
}


def read_state(node: DutNode, interfaces: Sequence[str], settings: Iterable[str]) -> State:
    """Reads the state of a node that a DUT depends on.

    Args:
        node: The node.
        interfaces: Names of the DUT's interfaces.
        settings: Paths of the kernel's settings that the set-up has changed.
    """
    # Only these protocols, because there may be very many host routes; these are counted instead.
    routes = read_routes(node, *_PROTOCOLS)
    queues = dict(
        line.split(" ", 1)
        for line in node.run("sh", "-c", _QUEUES, "queues", *interfaces).splitlines()
    )
    host_routes = count_host_routes(node)
    tables = _nftables(node, {table_name(name) for name in interfaces})
    paths = tuple(settings)
    texts = node.read_files(*paths) if paths else {}

    # This comes last, so that an interface that disappears in the meantime counts as missing, not as changed.
    links = read_links(node)
    up = [name for name in interfaces if name in links and is_up(links[name])]
    bridged = [name for name, link in links.items() if link.get("master") in interfaces]

    # Record: what must not change; the names are those of `_CHANGES`.
    return {
        "interfaces": {name: links[name].get("master") for name in up},
        "ports": {name: "" for name in bridged if name not in interfaces},
        "ways": _ways({name: links[name] for name in up}, queues),
        "routes": {_in_words(route): "" for route in routes if route.get("dev") in interfaces},
        "host routes": {name: host_routes[name] for name in host_routes if name in interfaces},
        "tables": tables,
        "settings": texts,
    }


def _ways(links: Mapping[str, Link], queues: Mapping[str, str]) -> dict[str, str]:
    """The facts that determine the way of frames through each interface."""
    ways = {}
    for name, link in links.items():
        program = link.get("xdp", {}).get("prog", {})
        ways[_mac_address_of(name)] = link.get("address", "none")
        ways[f"XDP program of interface {name}"] = str(program.get("id", "none"))
        ways[f"queueing discipline of interface {name}"] = queues[name]
    return ways


def _mac_address_of(interface: str) -> str:
    return f"MAC address of interface {interface}"


def _in_words(route: Mapping[str, Any]) -> str:
    return f"{route['dst']} dev {route['dev']} table {route.get('table', 'main')}"


def _nftables(node: DutNode, own: Container[str]) -> dict[str, str]:
    """Digests of the nftables tables: all tables that lossratio did not make, and its own tables for this DUT."""
    digests = {}
    for line in node.run("sh", "-c", _TABLES).splitlines():
        family, name, digest = line.split()[:3]
        if name in own or not name.startswith(table_name("")):
            digests[f"{family} {name}"] = digest
    return digests


def boot_id(node: DutNode) -> str:
    """The kernel's identifier of the boot, which changes with every boot of the node."""
    return node.read_files(_BOOT_ID).get(_BOOT_ID, "")


def _differences(before: State, now: State) -> list[str]:
    """The sentences about the differences between two states, in the order of the table, without mere consequences."""
    gone = before["interfaces"].keys() - now["interfaces"].keys()
    # A bridge without its own address has the address of a port, and takes another port's address when that port
    # leaves.
    left = {
        master
        for name, master in before["interfaces"].items()
        if name in gone or now["interfaces"][name] != master
    }
    addresses = {_mac_address_of(bridge) for bridge in left}

    said: list[str] = []
    for what, (has_gone, was_added, has_changed) in _CHANGES.items():
        earlier = before[what]
        present = now[what]
        names = sorted(earlier.keys() | present.keys())
        if what == "ways":
            names = [name for name in names if name not in addresses]
        elif what == "settings":
            # The settings of an interface disappear with it.
            names = [name for name in names if gone.isdisjoint(name.split("/"))]

        for name in names:
            if name not in present:
                sentence = has_gone
            elif name not in earlier:
                sentence = was_added
            elif earlier[name] != present[name]:
                sentence = has_changed
            else:
                continue
            said.append(sentence.format(name, earlier.get(name, 0), present.get(name, 0)))

    return [sentence for sentence in said if sentence]


def check_unchanged(node: DutNode, since: SetUp) -> None:
    """Checks that nothing has gone, no nftables table was added, and no setting has changed.

    Raises:
        DutError: If something has, or the node was rebooted.
    """
    if boot_id(node) != since.boot_id:
        raise DutError(f"{node.name} has been rebooted since its set-up. Set it up again.")

    lost = _differences(since.state, read_state(node, since.interfaces, since.changes.settings))
    if lost:
        raise DutError(
            f"{node.name} has changed since its set-up: {'; '.join(lost)}. Tear it down and set it up again."
        )

"""The state of a node that must not change while a Linux DUT is set up there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lossratio.dut.linux.addressing import count_host_routes
from lossratio.dut.linux.claim import table_name
from lossratio.dut.linux.interfaces import is_up, read_links, read_routes
from lossratio.errors import DutError
from lossratio.nodes import DutNode

_PROTOCOLS = ("kernel", "boot")
"""Protocols of the routes that a DUT depends on: routes of addresses, and of commands."""

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


@dataclass(frozen=True)
class LinuxState:
    """The state of a node that a DUT depends on.

    Attributes:
        names: Names of the DUT's interfaces, or PCI addresses of its cards.
        boot_id: The kernel's identifier of the boot.
        interfaces: Each interface's master (or None), by name, of the interfaces that are up, with or without a link.
        ports: Names of all interfaces whose master is one of these.
        ways: By interface, further settings that decide about frames: MAC address, XDP program, queueing disciplines.
        routes: Routes through the interfaces, as text.
        host_routes: Number of host routes, by interface; interfaces without host routes are missing.
        tables: A digest of each nftables table by its family and name, without those of DUTs on other interfaces.
        settings: Kernel settings that the DUT has changed, by the path of their file.
    """

    names: tuple[str, ...]
    boot_id: str
    interfaces: Mapping[str, str | None]
    ports: frozenset[str]
    ways: Mapping[str, Mapping[str, str]]
    routes: frozenset[str]
    host_routes: Mapping[str, int]
    tables: Mapping[str, str]
    settings: Mapping[str, str]

    def with_host_routes(self, interface: str, count: int) -> LinuxState:
        """The state with more host routes."""
        return replace(self, host_routes={**self.host_routes, interface: self.host_routes.get(interface, 0) + count})


def read_state(node: DutNode, interfaces: Sequence[str], settings: Iterable[str]) -> LinuxState:
    """Reads the present state.

    Args:
        node: The node.
        interfaces: The DUT's interfaces, or the PCI addresses of its cards.
        settings: The paths of the files of the kernel settings to read.
    """
    paths = tuple(settings)
    links = read_links(node)
    # Only these protocols: there may be very many host routes, which are counted instead.
    routes = [route for protocol in _PROTOCOLS for route in read_routes(node, "proto", protocol)]
    present = [name for name in interfaces if name in links]
    queues = dict(line.split(" ", 1) for line in node.run("sh", "-c", _QUEUES, "queues", *present).splitlines())
    return LinuxState(
        names=tuple(interfaces),
        boot_id=boot_id(node),
        interfaces={name: links[name].get("master") for name in interfaces if name in links and is_up(links[name])},
        ports=frozenset(name for name, link in links.items() if link.get("master") in interfaces),
        ways={
            name: {
                "MAC address": links[name].get("address", "none"),
                "XDP program": str(links[name].get("xdp", {}).get("prog", {}).get("id", "none")),
                "queueing discipline": queues[name],
            }
            for name in present
        },
        routes=frozenset(
            f"{route['dst']} dev {route['dev']} table {route.get('table', 'main')}"
            for route in routes
            if route.get("dev") in interfaces
        ),
        host_routes={name: count for name, count in count_host_routes(node).items() if name in interfaces},
        tables=_read_tables(node, interfaces),
        settings=node.read_files(*paths) if paths else {},
    )


def boot_id(node: DutNode) -> str:
    """The kernel's identifier of the boot, which changes with every boot of the node."""
    return node.read_files(_BOOT_ID).get(_BOOT_ID, "")


def check_unchanged(node: DutNode, since: LinuxState) -> None:
    """Checks that nothing has gone, no nftables table was added, and no setting has changed.

    Raises:
        DutError: If the state has changed; names all changes.
    """
    now = read_state(node, since.names, since.settings)
    if now.boot_id != since.boot_id:
        raise DutError(f"{node.name} was rebooted since its set-up; set it up again.")
    lost = [
        *(f"interface {name} is gone, or was set down" for name in since.interfaces.keys() - now.interfaces.keys()),
        *(
            f"interface {name} is not in {since.interfaces[name]} any more"
            for name, master in now.interfaces.items()
            if master != since.interfaces[name]
        ),
        *(f"the route to {route} is gone" for route in since.routes - now.routes),
        *(
            f"interface {name} had {since.host_routes.get(name, 0)} routes to single hosts, and has "
            f"{now.host_routes.get(name, 0)}"
            for name in since.names
            if now.host_routes.get(name, 0) != since.host_routes.get(name, 0)
        ),
        *(
            f"interface {name} was put into a bridge of the DUT"
            for name in now.ports - since.ports - since.interfaces.keys()
        ),
        *(
            f"the {what} of interface {name} was {value}, and is {now.ways[name][what]}"
            for name in since.ways.keys() & now.interfaces.keys()
            for what, value in since.ways[name].items()
            if now.ways[name][what] != value
        ),
        *(f"the nftables table {table} is gone" for table in since.tables.keys() - now.tables.keys()),
        *(f"the nftables table {table} was added" for table in now.tables.keys() - since.tables.keys()),
        *(
            f"the nftables table {table} was changed"
            for table in since.tables.keys() & now.tables.keys()
            if now.tables[table] != since.tables[table]
        ),
        *(
            f"{path} was {value}, and is {now.settings.get(path, 'gone')}"
            for path, value in since.settings.items()
            if now.settings.get(path) != value
        ),
    ]
    if lost:
        raise DutError(
            f"{node.name} is not as it was set up: {'; '.join(sorted(lost))}. Tear it down and set it up again."
        )


def _read_tables(node: DutNode, interfaces: Sequence[str]) -> dict[str, str]:
    own = {table_name(name) for name in interfaces}
    tables = (line.split()[:3] for line in node.run("sh", "-c", _TABLES).splitlines())
    return {
        f"{family} {name}": digest
        for family, name, digest in tables
        if name in own or not name.startswith(table_name(""))
    }

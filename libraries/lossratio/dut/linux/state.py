"""What must stay as it is on a node while a Linux DUT is set up there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lossratio.dut.linux.claim import table_name
from lossratio.dut.linux.host_routes import count_host_routes
from lossratio.dut.linux.interfaces import has_link, read_links, read_routes
from lossratio.dut.node import DutNode
from lossratio.errors import DutError

_PROTOCOLS = ("kernel", "boot")
"""What brings in the routes that a DUT depends on: addresses, and commands."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class LinuxState:
    """State of a node as far as a DUT depends on it.

    Attributes:
        names: Names of the DUT's interfaces, or PCI addresses of its cards.
        boot_id: Changes with every boot of the node.
        interfaces: Each interface's master (or None), by name; those that are up and have a link.
        routes: Routes through the interfaces, and how many host routes there are, for people.
        tables: Family and name of the nftables tables, without those of DUTs on other interfaces.
        settings: Kernel settings that the DUT has changed, by the path of their file.
    """

    names: tuple[str, ...]
    boot_id: str
    interfaces: Mapping[str, str | None]
    routes: frozenset[str]
    tables: frozenset[str]
    settings: Mapping[str, str]


def read_state(node: DutNode, interfaces: Sequence[str], settings: Iterable[str]) -> LinuxState:
    """Reads the present state.

    Args:
        node: The node.
        interfaces: The interfaces (or cards, by their PCI addresses) that are of concern.
        settings: The kernel settings that are, by the paths of their files.
    """
    paths = tuple(settings)
    links = read_links(node)
    # Not all of them: of host routes there may be very many, so these are counted.
    routes = [route for protocol in _PROTOCOLS for route in read_routes(node, "proto", protocol)]
    host_routes = count_host_routes(node)
    listed = (each["table"] for each in node.json("nft", "-j", "list", "tables")["nftables"] if "table" in each)
    own = {table_name(name) for name in interfaces}
    tables = (each for each in listed if each["name"] in own or not each["name"].startswith(table_name("")))
    return LinuxState(
        names=tuple(interfaces),
        boot_id=boot_id(node),
        interfaces={name: links[name].get("master") for name in interfaces if name in links and has_link(links[name])},
        routes=frozenset(
            (
                *(
                    f"{route['dst']} dev {route['dev']} table {route.get('table', 'main')}"
                    for route in routes
                    if route.get("dev") in interfaces
                ),
                *(f"each of {count} hosts dev {name}" for name, count in host_routes.items() if name in interfaces),
            )
        ),
        tables=frozenset(f"{table['family']} {table['name']}" for table in tables),
        settings=node.read_files(*paths) if paths else {},
    )


def boot_id(node: DutNode) -> str:
    """What changes with every boot of the node."""
    return node.read_files(_BOOT_ID).get(_BOOT_ID, "")


def check_unchanged(node: DutNode, since: LinuxState) -> None:
    """Checks that nothing that was there is gone, and every setting as it was.

    Raises:
        DutError: If something is not; says what.
    """
    now = read_state(node, since.names, since.settings)
    if now.boot_id != since.boot_id:
        raise DutError(f"{node.name} was rebooted since it was set up; set it up again.")
    lost = [
        *(f"interface {name} is gone, or has no link" for name in since.interfaces.keys() - now.interfaces.keys()),
        *(
            f"interface {name} is not in {since.interfaces[name]} any more"
            for name, master in now.interfaces.items()
            if master != since.interfaces[name]
        ),
        *(f"the route to {each} is gone" for each in since.routes - now.routes),
        *(f"the nftables table {each} is gone" for each in since.tables - now.tables),
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

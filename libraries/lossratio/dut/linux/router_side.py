"""One side of a router: its interface there, and the network behind the neighbour on that link."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from lossratio.dut.changes import Changes
from lossratio.dut.linux.host_routes import add_host_routes


@dataclass(frozen=True)
class RouterSide:
    """An interface of a router, and the network that is reached through it.

    Attributes:
        interface: Name of the interface.
        network: The network. Its last addresses are for the router and its neighbour.
    """

    interface: str
    network: IPv4Network | IPv6Network

    @property
    def address(self) -> IPv4Address | IPv6Address:
        """The router's own address on this side."""
        return self.network[-2]

    @property
    def neighbour(self) -> IPv4Address | IPv6Address:
        """The address that stands for what is at the other end of the link."""
        return self.network[-3]

    def hosts(self, count: int) -> list[IPv4Address | IPv6Address]:
        """The first so many hosts behind the neighbour: those that test traffic goes to."""
        return [self.network[number] for number in range(1, count + 1)]

    def last_hosts(self, count: int) -> list[IPv4Address | IPv6Address]:
        """The last so many hosts behind the neighbour: the least likely ones to be those that test traffic goes to."""
        last = int(self.neighbour) - 1
        return [type(self.neighbour)(last - number) for number in range(count)]

    def configure(self, changes: Changes, neighbour_mac: str, host_routes: int = 0) -> None:
        """Adds the address, the neighbour and the route to the network, or to so many hosts of it."""
        on_link = f"{self.address}/{self.network.max_prefixlen - 2}"
        # Without duplicate address detection the address can be used at once; IPv4 has none.
        nodad = ("nodad",) if self.network.version == 6 else ()
        self.add(changes, "address", on_link, "dev", self.interface, *nodad)
        self.add_neighbour(changes, self.interface, self.neighbour, neighbour_mac)
        if host_routes:
            add_host_routes(changes, self.hosts(host_routes), self.neighbour, self.interface)
        else:
            self.add(changes, "route", str(self.network), "via", str(self.neighbour), "dev", self.interface)

    def add_neighbour(
        self, changes: Changes, interface: str, address: IPv4Address | IPv6Address, mac_address: str
    ) -> None:
        """Adds a permanent entry for a neighbour that this side's network is reached through."""
        self.add(changes, "neighbour", str(address), "lladdr", mac_address, "dev", interface, "nud", "permanent")

    def add(self, changes: Changes, what: str, *arguments: str) -> None:
        """Runs ``ip WHAT add ARGUMENTS`` for this side's version of IP."""
        ip = ("ip", f"-{self.network.version}", what)
        changes.run(*ip, "add", *arguments, undo=(*ip, "delete", *arguments))

"""A Linux bridge between two interfaces."""

from __future__ import annotations

from lossratio.dut.base import DestinationMacs
from lossratio.dut.changes import Changes
from lossratio.dut.linux import LinuxDut, LinuxOptions
from lossratio.dut.linux.requirements import BRIDGE, ETHTOOL, IP, NFT


class LinuxBridge(LinuxDut[LinuxOptions]):
    """A bridge that does nothing but forward: no spanning tree, no snooping, no learning, no IPv6 of its own.

    Its forwarding database holds the two neighbours' addresses as static entries, so nothing needs to be learned before
    a trial, and nothing ages during one. Frames to other addresses are flooded, which between two ports is the same as
    forwarded.
    """

    kind = "linux_bridge"
    options_type = LinuxOptions
    family = "bridge"
    tools = (IP, BRIDGE, NFT, ETHTOOL)

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """The bridge."""
        return (self.stem,)

    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the bridge and puts both interfaces into it."""
        # Otherwise bridged frames also walk the machine's IP firewall, which may well drop them.
        for protocol in ("iptables", "ip6tables", "arptables"):
            changes.write(f"/proc/sys/net/bridge/bridge-nf-call-{protocol}", "0", optional=True)
        bridge = self.stem
        plain = ("stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        changes.run(
            *("ip", "link", "add", "name", bridge, "type", "bridge", *plain),
            undo=("ip", "link", "delete", "dev", bridge),
        )
        for name in (bridge, self.west, self.east):
            changes.write(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1", optional=True)
        for name, neighbour in ((self.west, west_mac), (self.east, east_mac)):
            set_link = ("ip", "link", "set", "dev", name)
            changes.run(*set_link, "master", bridge, undo=(*set_link, "nomaster"))
            changes.run(*set_link, "type", "bridge_slave", "learning", "off")
            changes.run("bridge", "fdb", "replace", neighbour, "dev", name, "master", "static")
        changes.run("ip", "link", "set", "dev", bridge, "up")

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """The opposite neighbour's: a bridge forwards frames as they are."""
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

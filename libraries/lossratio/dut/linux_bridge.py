"""A Linux bridge of two interfaces, or of the VXLAN tunnels on them."""

from itertools import islice

from pydantic import Field

from lossratio.dut.base import EASTWARD, WESTWARD
from lossratio.dut.changes import Changes
from lossratio.dut.linux import LinuxDut, LinuxOptions
from lossratio.dut.linux.addressing import EAST_VNI, WEST_VNI, Tunnel, halves, unused_macs
from lossratio.dut.linux.interfaces import check_free
from lossratio.dut.linux.node_dut import BRIDGE
from lossratio.topology import EAST, WEST

# Without the first settings, bridged frames would also pass the machine's IP firewall, which may drop them.
_BRIDGE = """
% for protocol in ("iptables", "ip6tables", "arptables")
    /proc/sys/net/bridge/bridge-nf-call-{{ protocol }} 0 optional
% endfor
{{ made(dut.stem, "type bridge stp_state 0 forward_delay 0 mcast_snooping 0") }}
% for name in dut.interfaces
    /proc/sys/net/ipv6/conf/{{ name }}/disable_ipv6 1 optional
% endfor
% for name, neighbour in ports
    ip link set dev {{ name }} master {{ dut.stem }} | ip link set dev {{ name }} nomaster
    ip link set dev {{ name }} type bridge_slave learning off
    % if not dut.options.vxlan
        bridge fdb replace {{ neighbour }} dev {{ name }} master static
    % endif
% endfor
ip link set dev {{ dut.stem }} up
"""


class BridgeOptions(LinuxOptions):
    """The options of a bridge."""

    is_router = False
    filter_option = "rules"
    rules: int = Field(default=0, ge=0, le=10_000)
    """Number of nftables rules that filter every frame: each rule examines the frame, and no rule drops it."""
    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, one on each link, which the bridge connects. The traffic profile
    ``ethip4vxlan-l2bdbase`` has such frames: VNI 24 from the west and 25 from the east, between the first address of
    the sender's network and the second address of the opposite network."""


class LinuxBridge(LinuxDut[BridgeOptions]):
    """A bridge that only forwards: no spanning tree, no snooping, no learning, no IPv6 of its own.

    Its forwarding database holds the two neighbours' addresses as static entries: no address has to be learned before a
    trial, and no entry ages during the trial. Frames to other addresses are flooded, which between two ports is the
    same as forwarding.
    """

    kind = "linux_bridge"
    options_type = BridgeOptions
    family = "bridge"
    tools = (BRIDGE,)

    @property
    def entrances(self) -> dict[str, str]:
        """The bridge's ports: the interfaces, or the tunnels on them."""
        west, east = self._ports
        return {EASTWARD: west, WESTWARD: east}

    @property
    def made_interfaces(self) -> tuple[str, ...]:
        """The bridge, and the tunnels."""
        return (self.stem, *(self._ports if self.options.vxlan else ()))

    def check_kind(self) -> None:
        """Checks that the node does not use the addresses of the tunnels."""
        super().check_kind()
        if self.options.vxlan:
            check_free(self.node, [WEST.ipv4, EAST.ipv4])

    def configure(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Makes the bridge and puts both interfaces, or the tunnels on them, into it."""
        neighbours = (west_mac, east_mac)
        for tunnel, neighbour in zip(self._tunnels, neighbours, strict=True):
            if self.options.vxlan:
                tunnel.configure(changes, neighbour)
        changes.apply(_BRIDGE, dut=self, ports=list(zip(self._ports, neighbours, strict=True)))

    def reconfigure(self, entries: int) -> None:
        """Adds static entries to the forwarding database, half of them for each port."""
        addresses = iter(unused_macs(entries))
        for port, count in zip(self._ports, halves(entries), strict=True):
            lines = (
                f"fdb replace {mac} dev {port} master static\n" for mac in islice(addresses, count)
            )
            self.present.changes.run("bridge", "-batch", "-", stdin="".join(lines))

    def restart(self) -> None:
        """Takes the bridge down and brings it up again."""
        _ = self.present
        for state in ("down", "up"):
            self.node.run("ip", "link", "set", "dev", self.stem, state)

    @property
    def is_addressed(self) -> bool:
        """Whether it is an end of tunnels: frames must then be addressed to it."""
        return self.options.vxlan

    @property
    def _ports(self) -> tuple[str, str]:
        west, east = self._tunnels
        if self.options.vxlan:
            return (west.name, east.name)
        return (self.west, self.east)

    @property
    def _tunnels(self) -> tuple[Tunnel, Tunnel]:
        return (
            Tunnel(self.west, f"{self.stem}.w", WEST.ipv4, EAST.ipv4, WEST_VNI),
            Tunnel(self.east, f"{self.stem}.e", EAST.ipv4, WEST.ipv4, EAST_VNI),
        )

"""The headers with which frames come back, if a device changes the packet's encapsulation, or marks it."""

from typing import TypeVar

from lossratio.traffic.headers import (
    Geneve,
    Headers,
    InnerHeaders,
    Ipv4,
    Ipv6,
    TunnelledHeaders,
    Vxlan,
)

_IpT = TypeVar("_IpT", Ipv4, Ipv6)


def as_received(sent: Headers, other: Headers) -> Headers | None:
    """Headers of frames at a port that sends other headers: the same packet, with this port's tags, labels and tunnel.

    None: they come back as they were sent. A device that ends GENEVE tunnels writes its own headers, apart from tags.
    """
    if sent.encapsulation == other.encapsulation:
        return None

    around = {"dot1ad": other.dot1ad, "dot1q": other.dot1q, "mpls": other.mpls}
    tunnels = {type(sent.tunnel), type(other.tunnel)}
    if Geneve in tunnels or len(tunnels) == 1:
        if sent.vlans == other.vlans and sent.mpls == other.mpls:
            return None
        return sent.model_copy(update=around)

    inner = sent.innermost
    packet = {"ipv4": inner.ipv4, "ipv6": inner.ipv6, "udp": inner.udp, "tcp": inner.tcp}
    ethernet = inner.ethernet
    if other.vxlan is None:
        return Headers(**around, **packet, ethernet=ethernet, any_mac=sent.any_mac)

    tags = {"dot1ad": other.vxlan.inner.dot1ad, "dot1q": other.vxlan.inner.dot1q}
    tunnelled = TunnelledHeaders(**tags, **packet, ethernet=ethernet)
    # Record: the packet in the tunnel of the port that it comes back to.
    return Headers(
        **around,
        ipv4=None if other.ipv4 is None else _answered(other.ipv4),
        ipv6=None if other.ipv6 is None else _answered(other.ipv6),
        vxlan=Vxlan(vni=other.vxlan.vni, source_port=other.vxlan.source_port, inner=tunnelled),
        any_mac=sent.any_mac,
    )


def check_received(sent: Headers, received: Headers) -> None:
    """Makes sure that frames can come back with other headers, which still belong to the frame's own flow.

    Raises:
        ValueError: If it is not known which frame has which headers.
    """
    packets = (sent.innermost, received.innermost)
    if _kinds(packets[0]) != _kinds(packets[1]):
        raise ValueError(
            "received: the packet must have the same headers as the one that is sent: IPv4 or IPv6, with UDP, TCP or "
            "neither"
        )

    sent_macs, received_macs = map(_macs, packets)
    steps = [
        [each.model_dump(exclude={"first"}) for _, each in InnerHeaders.ranges(one)]
        for one in packets
    ]
    has_other_macs = None not in (sent_macs, received_macs) and sent_macs != received_macs
    if steps[0] != steps[1] or has_other_macs:
        raise ValueError(
            "received: its ranges must have the same 'count', 'order', 'step' and 'repeat' as the frames that are "
            "sent, because each frame is compared with its own flow"
        )
    if received.tunnel is None or sent.tunnel is not None:
        return

    if isinstance(received.tunnel, Geneve):
        raise ValueError(
            "received: leave out 'geneve', which cannot be expected here; only 'vxlan' can"
        )
    if any(each.count > 1 for each in (received.ip.source, received.ip.destination)):
        raise ValueError(
            "received: a tunnel has one address at each end. If frames are sent from several tunnel ends, set "
            "'received' with one of them"
        )


def _answered(ip: _IpT) -> _IpT:
    """An IP header of the opposite direction."""
    return ip.model_copy(update={"source": ip.destination, "destination": ip.source})


def _macs(packet: Headers | TunnelledHeaders) -> list[int] | None:
    """How many MAC addresses hosts have; None: frames have the addresses of ports, or of devices."""
    if packet.ethernet is None:
        return None
    return [each.count for _, each in packet.ethernet.ranges()]


def _kinds(packet: InnerHeaders) -> tuple[object, ...]:
    return packet.ip.version, packet.udp is None, packet.tcp is None

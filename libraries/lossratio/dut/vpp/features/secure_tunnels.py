"""Tunnels with keys between the two VPPs of a path: IPsec and WireGuard.

Each of the first hosts behind a side has a tunnel. The ends of tunnel n are the addresses ``_ENDS`` + n of the networks
behind either VPP, in the halves that test traffic does not use.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppPort
from lossratio.topology import EAST, WEST

_ENDS = 1 << 15
_MOST_TUNNELS, _MOST_WIREGUARD = 32_000, 8192
_LARGE = 100
"""How many table entries a tunnel counts as, for the size of VPP's heaps, because it is an interface."""
_SPI = 1000
_ESP = 50
_ESP_BYTES = 20 + 8 + 2
"""IP header, ESP header, and the trailer without padding."""
_WIREGUARD_PORT = 51_820
_WIREGUARD_BYTES = 60
_KEEPALIVE_SECONDS = 25
_HANDSHAKES_SECONDS, _HANDSHAKE_SECONDS = 15.0, 0.1
"""Seconds for the handshakes of tunnels: for all together, plus for each tunnel, because VPP may share its CPUs."""
ENGINE = Shown(
    "show crypto engines",
    r"\b(native|ipsecmb|openssl)\b",
    "an engine that encrypts (native, ipsecmb or openssl, in lib/*/vpp_crypto_engines)",
)
"""VPP's engines are separate libraries (``vpp_crypto_engines``), without which nothing is encrypted."""


def _key(secret: bytes, name: str, size: int) -> bytes:
    """A key of at most 64 bytes that both VPPs derive from the secret of the path."""
    return hmac.digest(secret, name.encode(), "sha512")[:size]


def both_sides(ports: Ports) -> tuple[VppPort, VppPort]:
    """The port that faces the TG, and the port that faces the other VPP."""
    west, east = ports
    if west.faces_dut:
        return (east, west)
    return (west, east)


def _hosts(port: VppPort, count: int) -> Iterator[tuple[IPv4Address, IPv4Address, IPv4Address]]:
    """For each tunnel, the host behind it, and its ends: this VPP's and the other VPP's."""
    far, near = port.side.ipv4, port.opposite.ipv4
    for number in range(count):
        yield far[number + 1], near[_ENDS + number], far[_ENDS + number]


def first_ends(port: VppPort) -> tuple[IPv4Address, IPv4Address]:
    """The ends of the first tunnel: this VPP's and the other VPP's."""
    ((_, local, remote),) = _hosts(port, 1)
    return local, remote


def _upper(network: IPv4Network) -> IPv4Network:
    return list(network.subnets(1))[1]


def reach_ends(port: VppPort) -> list[Command] | None:
    """For the port that faces the other VPP, the routes to the ends of tunnels: this VPP's own, and the other VPP's.

    None: the port faces the TG.
    """
    if not port.faces_dut:
        return None
    side = port.routed(4)
    return [
        Command(f"ip route add {_upper(port.opposite.ipv4)} via local"),
        Command(f"ip route add {_upper(port.side.ipv4)} via {side.neighbour} {port.interface}"),
    ]


def through(name: str, port: VppPort, destination: object, neighbour: str = "") -> Iterator[str]:
    """The lines that bring a tunnel's interface up, and route packets for a destination through it."""
    yield f"set interface state {name} up"
    yield f"set interface unnumbered {name} use {port.interface}"
    yield f"ip route add {destination} via {neighbour}{name}"


_STARTUP = {"policy-flow-cache": "spd-flow-cache", "policy-fastpath": "spd-fast-path"}
_ALGORITHMS = re.compile(
    r"aes(128|256)(gcm|nullgmac)|(none|aes(128|256)(cbc|ctr))-hmac(96|256|512)sha"
)
# Table: VPP's algorithms.
_PARTS = {
    "none": ("", 0, 0, False),
    "aes128gcm": ("crypto-alg aes-gcm-128 crypto-key", 16, 24, True),
    "aes256gcm": ("crypto-alg aes-gcm-256 crypto-key", 32, 24, True),
    "aes128nullgmac": ("crypto-alg aes-null-gmac-128 crypto-key", 16, 24, True),
    "aes256nullgmac": ("crypto-alg aes-null-gmac-256 crypto-key", 32, 24, True),
    "aes128cbc": ("crypto-alg aes-cbc-128 crypto-key", 16, 16, False),
    "aes256cbc": ("crypto-alg aes-cbc-256 crypto-key", 32, 16, False),
    "aes128ctr": ("crypto-alg aes-ctr-128 crypto-key", 16, 8, True),
    "aes256ctr": ("crypto-alg aes-ctr-256 crypto-key", 32, 8, True),
    "hmac96sha": ("integ-alg sha1-96 integ-key", 20, 12, False),
    "hmac256sha": ("integ-alg sha-256-128 integ-key", 32, 16, False),
    "hmac512sha": ("integ-alg sha-512-256 integ-key", 64, 32, False),
}
"""By part of CSIT's name: VPP's words before the key, bytes of the key, bytes in a packet (initialization vector and
integrity value), and whether there is a salt."""


def _algorithms(text: str) -> str:
    if _ALGORITHMS.fullmatch(text) is None:
        raise ValueError(
            f"{text!r} is not one of CSIT's names of algorithms, such as aes256gcm or aes128cbc-hmac512sha"
        )
    return text


class Ipsec(Feature):
    """IPsec tunnels between the two VPPs of a path (RFC 4303)."""

    ipsec: int | None = Field(default=None, ge=1, le=_MOST_TUNNELS)
    """Number of IPsec tunnels between the two VPPs of the path, one for each of the first hosts of a side. With
    ``ip4``."""
    ipsec_algorithms: Annotated[str, AfterValidator(_algorithms)] = "aes256gcm"
    """The tunnels' algorithms, by CSIT's names: ``aes256gcm`` (the default), ``aes128cbc-hmac512sha`` ..."""
    ipsec_lookup: Literal["interfaces", "policy", "policy-flow-cache", "policy-fastpath"] = (
        "interfaces"
    )
    """How the tunnel of a packet is found: by routes to ``interfaces`` (the default), by trying each ``policy`` in
    turn, with a cache in front of the policies (``policy-flow-cache``), or in a hash table (``policy-fastpath``)."""
    ipsec_udp: bool = False
    """Whether packets are in UDP (RFC 3948)."""
    ipsec_anti_replay: bool = False
    """Whether repeated packets are refused."""
    ipsec_mtu: int | None = Field(default=None, ge=576, le=9000)
    """Bytes of the largest packet between the two VPPs. Larger packets are fragmented, and reassembled."""

    needs = Needs(("ip4",), plugins={"ipip": "26.10"}, tags=("ipsec",), duts=2)

    @property
    def entries(self) -> int:
        """Heaps are large for many tunnels."""
        return max((self.ipsec or 0) * _LARGE, super().entries)

    def problem(self) -> str | None:
        """The options need tunnels."""
        if self.ipsec:
            return None
        return f"{Ipsec.given(self)[0]} needs ipsec, the number of tunnels"

    @property
    def encapsulation_overhead(self) -> int:
        """Headers, trailer and integrity value of a packet, without padding, as FD.io CSIT counts them."""
        added = (
            _ESP_BYTES
            + sum(_PARTS[name][2] for name in self.ipsec_algorithms.split("-"))
            + 8 * self.ipsec_udp
        )
        return super().encapsulation_overhead + (added if self.ipsec else 0)

    def startup(self) -> Iterator[tuple[str, str]]:
        """The cache or the hash table of policies."""
        for way in ("inbound", "outbound") if self.ipsec_lookup in _STARTUP else ():
            yield "ipsec", f"ipv4-{way}-{_STARTUP[self.ipsec_lookup]} on"

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """For the port that faces the other VPP, the routes to the ends of tunnels.

        With policies, also a route to all hosts, because policies drop other packets.
        """
        routes = reach_ends(port)
        if routes is None or self.ipsec_lookup == "interfaces":
            return routes
        all_hosts = Command(
            f"ip route add {port.side.ipv4} via {port.routed(4).neighbour} {port.interface}"
        )
        return [*routes, all_hosts]

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnels, in one file."""
        clear, wire = both_sides(ports)
        if self.ipsec_mtu is not None:
            yield Command(f"set interface mtu packet {self.ipsec_mtu} {wire.link}")
        lines = Ipsec._tunnels(self, clear.side.ipv4, wire)
        yield Command(
            "".join(f"{line}\n" for line in lines),
            r"((ipip\d+|policy-index:\d+)\s*)*",
            is_secret=True,
        )

    def _tunnels(self, sources: IPv4Network, wire: VppPort) -> Iterator[str]:
        by_policy = self.ipsec_lookup != "interfaces"
        if by_policy:
            near, far = _upper(wire.opposite.ipv4), _upper(wire.side.ipv4)
            yield "ipsec spd add 1"
            yield f"set interface ipsec spd {wire.interface} 1"
            for way in ("inbound", "outbound"):
                ends = f"local-ip-range {near[0]} - {near[-1]} remote-ip-range {far[0]} - {far[-1]}"
                yield f"ipsec policy add spd 1 priority 100 {way} action bypass protocol {_ESP} {ends}"

        for number, (host, local, remote) in enumerate(_hosts(wire, self.ipsec or 0)):
            first = _SPI + 2 * number
            ways = (
                ("outbound", first + (wire.side is WEST)),
                ("inbound", first + (wire.side is EAST)),
            )
            (_, leaving), (_, coming) = ways
            if by_policy:
                out = f"tunnel src {local} dst {remote}"
                back = f"tunnel src {remote} dst {local}"
            else:
                out = ""
                back = ""

            yield f"ipsec sa add {leaving} {out} {Ipsec._association(self, wire, leaving)}"
            yield f"ipsec sa add {coming} inbound {back} {Ipsec._association(self, wire, coming)}"

            if by_policy:
                packets = (
                    f"local-ip-range {sources[0]} - {sources[-1]} remote-ip-range {host} - {host}"
                )
                for way, association in ways:
                    yield f"ipsec policy add spd 1 priority 10 {way} action protect sa {association} {packets}"
            else:
                yield f"create ipip tunnel src {local} dst {remote} instance {number}"
                yield f"ipsec tunnel protect ipip{number} sa-in {coming} sa-out {leaving}"
                yield from through(f"ipip{number}", wire, f"{host}/32")

    def _association(self, wire: VppPort, number: int) -> str:
        """The words of a security association, with its keys."""
        words = [f"spi {number} esp"]
        for part in self.ipsec_algorithms.split("-"):
            text, size, _, is_salted = _PARTS[part]
            words += [text, _key(wire.secret, f"{part} {number}", size).hex()]
            words += [f"salt 0x{_key(wire.secret, f'salt {number}', 4).hex()}"] * is_salted
        return " ".join(
            [*words, *["udp-encap"] * self.ipsec_udp, *["use-anti-replay"] * self.ipsec_anti_replay]
        )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The last association is in use."""
        yield ENGINE
        last = 2 * (self.ipsec or 0) - 1
        yield Shown(
            f"show ipsec sa {last}",
            r"\[\d+\] sa .*\n\s+locks [2-9]",
            f"{last + 1} security associations",
        )

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Packets were encrypted or decrypted, and none failed its check."""
        yield Shown(
            "show errors",
            r"(?si)\A(?=.*esp4-)(?!.*(decryption|check) failed)",
            "that every packet had the right key",
        )


class IpsecAsync(Feature):
    """IPsec with packets that are encrypted by workers other than the worker that forwards."""

    ipsec_async: bool = False
    """Whether the first worker forwards and the others encrypt, by VPP's software scheduler. With ``ipsec``,
    ``cores=2`` or more and ``queues=1``."""

    needs = Needs(("ip4",), plugins={"crypto_sw_scheduler": ""}, duts=2)

    def problem(self) -> str | None:
        """There are no tunnels, or too few cores."""
        if not getattr(self, "ipsec", 0):
            return "ipsec_async needs ipsec, the number of tunnels"
        if self.cores < 2 or self.queues != 1:
            return "ipsec_async has one queue and needs another core for encryption: set cores=2 and queues=1"
        return None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The first worker has both queues, and encrypts nothing."""
        yield Command("set ipsec async mode on")
        yield Command("set sw_scheduler worker 0 crypto off")
        yield from (
            Command(f"set interface rx-placement {port.link} queue 0 worker 0") for port in ports
        )

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """Which workers encrypt."""
        yield Shown(
            "show sw_scheduler workers",
            r"(?s)\b0\s+\S+\s+off\b.*\son\b",
            "that other workers encrypt",
        )


class WireGuard(Feature):
    """WireGuard tunnels between the two VPPs of a path."""

    wireguard: int | None = Field(default=None, ge=1, le=_MOST_WIREGUARD)
    """Number of WireGuard tunnels between the two VPPs of the path, one for each of the first hosts of a side, and for
    each of the first networks (/24) of 240.0.0.0/6 and 244.0.0.0/6. With ``ip4``."""

    needs = Needs(
        ("ip4",),
        plugins={"wireguard": ""},
        tags=("wireguard",),
        duts=2,
        overhead={"wireguard": _WIREGUARD_BYTES},
    )

    @property
    def entries(self) -> int:
        """Heaps are large for many tunnels."""
        return max((self.wireguard or 0) * _LARGE, super().entries)

    def problem(self) -> str | None:
        """There are two kinds of tunnels."""
        if getattr(self, "ipsec", 0):
            return "wireguard and ipsec are tunnels of the same hosts: leave one out"
        return None

    def routed(self, port: VppPort) -> Iterable[Command]:
        """For the port that faces the other VPP, the routes to the ends of tunnels; for the other one, two networks."""
        side = port.routed(4)
        return reach_ends(port) or [
            Command(f"ip route add {network} via {side.neighbour} {side.interface}")
            for network in (side.network, port.side.wide_ipv4)
        ]

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnels, in one file."""
        lines = "".join(f"{line}\n" for line in WireGuard._lines(self, both_sides(ports)[1]))
        yield Command(lines, r"(wg\d+\s*)*", is_secret=True)

    def _lines(self, wire: VppPort) -> Iterator[str]:
        # Slow to import, and hardly ever needed.
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        hosts = next(iter(wire.side.ipv4.subnets(1)))
        networks = wire.side.wide_ipv4
        allowed = f"allowed-ip {hosts} allowed-ip {networks}"
        for number, (host, local, remote) in enumerate(_hosts(wire, self.wireguard or 0)):
            here, there = (
                X25519PrivateKey.from_private_bytes(_key(wire.secret, str(end), 32))
                for end in (local, remote)
            )
            private, public = (
                b64encode(raw).decode()
                for raw in (here.private_bytes_raw(), there.public_key().public_bytes_raw())
            )
            yield f"wireguard create listen-port {_WIREGUARD_PORT} private-key {private} src {local} instance {number}"
            yield (
                f"wireguard peer add wg{number} public-key {public} endpoint {remote} {allowed} "
                f"allowed-ip {remote}/32 dst-port {_WIREGUARD_PORT} persistent-keepalive {_KEEPALIVE_SECONDS}"
            )
            yield from through(f"wg{number}", wire, f"{host}/32", f"{remote} ")
            yield f"ip route add {networks[number << 8]}/24 via {remote} wg{number}"

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """Every tunnel has session keys, which only the VPP that is set up second can know."""
        yield ENGINE
        if ports[0].faces_dut:
            meaning = f"handshakes of all {self.wireguard} tunnels"
            within = _HANDSHAKES_SECONDS + _HANDSHAKE_SECONDS * (self.wireguard or 0)
            yield Shown(
                "show wireguard peer", r"(?s)\A(?=.*flags: )(?!.*flags: [^2])", meaning, within
            )

"""Tunnels with keys between the two VPPs of a path: IPsec and WireGuard.

Each of the first hosts behind a side has a tunnel. The ends of tunnel n are the addresses ``_ENDS`` + n of the networks
behind either VPP, in the halves that test traffic leaves alone.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from enum import Enum
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppForwarding, VppPort

_ENDS = 1 << 15
_MOST_TUNNELS = 32_000
_INNER = 1 << 14
"""Number of the first address inside WireGuard's tunnels."""
_LARGE = 100
"""Entries of tables that a tunnel counts as, for the size of VPP's heaps: it is an interface."""
_SPI = 1000
_ESP = 50
_WIREGUARD_PORT = 51_820
_WIREGUARD_BYTES = 60
_KEEPALIVE_SECONDS = 25
_HANDSHAKES_SECONDS, _HANDSHAKE_SECONDS = 15.0, 0.1
"""Seconds in which tunnels have their handshakes: those of all, and for each one, as VPP may share its CPUs."""
ENGINE = Shown(
    "show crypto engines",
    r"\b(native|ipsecmb|openssl)\b",
    "an engine that encrypts (native, ipsecmb or openssl, in lib/*/vpp_crypto_engines)",
)
"""VPP's engines are libraries of their own (``vpp_crypto_engines``), and without one nothing is encrypted."""


def _key(secret: bytes, name: str, size: int) -> bytes:
    """A key of at most 64 bytes that both VPPs derive from the secret of the path."""
    return hmac.digest(secret, name.encode(), "sha512")[:size]


def both_sides(ports: Ports) -> tuple[VppPort, VppPort]:
    """The port that faces the TG, and the one that faces the other VPP."""
    west, east = ports
    return (east, west) if west.faces_dut else (west, east)


def _hosts(port: VppPort, count: int) -> Iterator[tuple[IPv4Address, IPv4Address, IPv4Address]]:
    """For each tunnel, the host behind it, and its ends: this VPP's and the other one's."""
    far, near = port.side.ipv4, port.opposite.ipv4
    for number in range(count):
        yield far[number + 1], near[_ENDS + number], far[_ENDS + number]


def first_ends(port: VppPort) -> tuple[IPv4Address, IPv4Address]:
    """The ends of the first tunnel: this VPP's and the other one's."""
    ((_, local, remote),) = _hosts(port, 1)
    return local, remote


def _upper(network: IPv4Network) -> IPv4Network:
    return list(network.subnets(1))[1]


def reach_ends(port: VppPort) -> Iterator[Command]:
    """The routes to the ends of the tunnels: this VPP's, and those behind the port."""
    side = port.routed(4)
    yield Command(f"ip route add {_upper(port.opposite.ipv4)} via local")
    yield Command(f"ip route add {_upper(port.side.ipv4)} via {side.neighbour} {port.interface}")


class IpsecLookup(str, Enum):
    """How VPP finds the tunnel of a packet."""

    INTERFACES = "interfaces"
    """By routes to interfaces, one for each tunnel."""
    POLICY = "policy"
    """By a policy for each tunnel, one after the other."""
    FLOW_CACHE = "policy-flow-cache"
    """By these policies, with a cache in front of them."""
    FAST_PATH = "policy-fastpath"
    """By these policies in a hash table."""


_STARTUP = {IpsecLookup.FLOW_CACHE: "spd-flow-cache", IpsecLookup.FAST_PATH: "spd-fast-path"}
_ALGORITHMS = re.compile(
    r"(?P<aead>aes(?P<aead_bits>128|256)(?P<aead_mode>gcm|nullgmac))"
    r"|(none|aes(?P<bits>128|256)(?P<mode>cbc|ctr))-hmac(?P<digest>96|256|512)sha"
)
_INTEGRITY = {"96": ("sha1-96", 20, 12), "256": ("sha-256-128", 32, 16), "512": ("sha-512-256", 64, 32)}
"""By CSIT's number: VPP's name, bytes of its key, and bytes of its value in a packet."""


def _algorithms(text: str) -> str:
    if _ALGORITHMS.fullmatch(text) is None:
        raise ValueError(f"{text!r} is none of CSIT's names of algorithms, such as aes256gcm or aes128cbc-hmac512sha")
    return text


class Ipsec(Feature):
    """IPsec tunnels between the two VPPs of a path (RFC 4303)."""

    ipsec: int | None = Field(default=None, ge=1, le=_MOST_TUNNELS)
    """IPsec tunnels between the two VPPs of the path: one for each of so many first hosts of a side; with ``ip4``."""
    ipsec_algorithms: Annotated[str, AfterValidator(_algorithms)] = "aes256gcm"
    """Their algorithms by CSIT's names: ``aes256gcm`` (the default), ``aes128cbc-hmac512sha`` ..."""
    ipsec_lookup: IpsecLookup = IpsecLookup.INTERFACES
    """How the tunnel of a packet is found: ``interfaces`` (the default), ``policy``, ``policy-flow-cache`` or
    ``policy-fastpath``."""
    ipsec_udp: bool = False
    """Whether packets are in UDP (RFC 3948)."""
    ipsec_anti_replay: bool = False
    """Whether packets that come twice are refused."""
    ipsec_async: bool = False
    """Whether the first worker forwards and the others encrypt, by VPP's software scheduler; with ``cores=2`` or more
    and ``queues=1``."""
    ipsec_mtu: int | None = Field(default=None, ge=576, le=9000)
    """Bytes of the largest packet between the two VPPs: larger ones are fragmented, and reassembled."""

    needs = Needs((VppForwarding.IP4,), plugins={"ipip": "26.10"}, tags=("ipsec",), duts=2)

    @property
    def entries(self) -> int:
        """Heaps are large for many tunnels."""
        return max((self.ipsec or 0) * _LARGE, super().entries)

    def problem(self) -> str | None:
        """Options without tunnels, or too few cores."""
        if self.ipsec is None:
            return f"{Ipsec.given(self)[0]} goes with ipsec, the number of tunnels"
        if self.ipsec_async and (self.cores < 2 or self.queues != 1):
            return "ipsec_async has one queue, and needs a core beside it that encrypts: ask for cores=2 and queues=1"
        return None

    @property
    def encapsulation_overhead(self) -> int:
        """Headers, trailer and integrity value of a packet, without padding, as FD.io CSIT counts them."""
        if self.ipsec is None:
            return super().encapsulation_overhead
        found = _ALGORITHMS.fullmatch(self.ipsec_algorithms)
        assert found is not None  # noqa: S101  (the option is checked)
        value = 16 if found["aead"] else _INTEGRITY[found["digest"]][2]
        start = 16 if found["mode"] == "cbc" else 8 if found["aead"] or found["mode"] else 0
        return 20 + 8 + start + 2 + value + (8 if self.ipsec_udp else 0)

    def startup(self) -> Iterator[tuple[str, str]]:
        """The cache or the hash table of policies, and the scheduler."""
        if self.ipsec_lookup in _STARTUP:
            for way in ("inbound", "outbound"):
                yield "ipsec", f"ipv4-{way}-{_STARTUP[self.ipsec_lookup]} on"
        if self.ipsec_async:
            yield "plugins", "plugin crypto_sw_scheduler_plugin.so { enable }"

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """Towards the other VPP the ends of tunnels; with policies also all hosts, as policies drop the others."""
        if not port.faces_dut:
            return None
        all_hosts = Command(f"ip route add {port.side.ipv4} via {port.routed(4).neighbour} {port.interface}")
        return [*reach_ends(port), *([] if self.ipsec_lookup is IpsecLookup.INTERFACES else [all_hosts])]

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnels, in one file."""
        clear, wire = both_sides(ports)
        if self.ipsec_mtu is not None:
            yield Command(f"set interface mtu packet {self.ipsec_mtu} {wire.link}")
        if self.ipsec_async:
            yield Command("set ipsec async mode on")
            yield Command("set sw_scheduler worker 0 crypto off")
            yield from (Command(f"set interface rx-placement {port.link} queue 0 worker 0") for port in ports)
        lines = Ipsec._interfaces if self.ipsec_lookup is IpsecLookup.INTERFACES else Ipsec._policies
        answer = r"((ipip\d+|policy-index:\d+)\s*)*"
        yield Command("".join(f"{line}\n" for line in lines(self, clear, wire)), answer, is_secret=True)

    def _interfaces(self, clear: VppPort, wire: VppPort) -> Iterator[str]:
        for number, (host, local, remote) in enumerate(_hosts(wire, self.ipsec or 0)):
            leaving, coming = _ids(wire, number)
            yield f"ipsec sa add {leaving} {Ipsec._association(self, wire, leaving)}"
            yield f"ipsec sa add {coming} inbound {Ipsec._association(self, wire, coming)}"
            yield f"create ipip tunnel src {local} dst {remote} instance {number}"
            yield f"ipsec tunnel protect ipip{number} sa-in {coming} sa-out {leaving}"
            yield f"set interface state ipip{number} up"
            yield f"set interface unnumbered ipip{number} use {wire.interface}"
            yield f"ip route add {host}/32 via ipip{number}"

    def _policies(self, clear: VppPort, wire: VppPort) -> Iterator[str]:
        near, far = _upper(wire.opposite.ipv4), _upper(wire.side.ipv4)
        yield "ipsec spd add 1"
        yield f"set interface ipsec spd {wire.interface} 1"
        for way in ("inbound", "outbound"):
            ends = f"local-ip-range {near[0]} - {near[-1]} remote-ip-range {far[0]} - {far[-1]}"
            yield f"ipsec policy add spd 1 priority 100 {way} action bypass protocol {_ESP} {ends}"
        sources = f"local-ip-range {clear.side.ipv4[0]} - {clear.side.ipv4[-1]}"
        for number, (host, local, remote) in enumerate(_hosts(wire, self.ipsec or 0)):
            leaving, coming = _ids(wire, number)
            out, back = f"tunnel src {local} dst {remote}", f"tunnel src {remote} dst {local}"
            yield f"ipsec sa add {leaving} {out} {Ipsec._association(self, wire, leaving)}"
            yield f"ipsec sa add {coming} inbound {back} {Ipsec._association(self, wire, coming)}"
            packets = f"{sources} remote-ip-range {host} - {host}"
            yield f"ipsec policy add spd 1 priority 10 outbound action protect sa {leaving} {packets}"
            yield f"ipsec policy add spd 1 priority 10 inbound action protect sa {coming} {packets}"

    def _association(self, wire: VppPort, number: int) -> str:
        """The words of a security association, with its keys."""
        found = _ALGORITHMS.fullmatch(self.ipsec_algorithms)
        assert found is not None  # noqa: S101  (the option is checked)
        bits, mode = found["bits"] or found["aead_bits"], found["mode"] or found["aead_mode"]
        words = [f"spi {number} esp"]
        if mode:
            name = {"nullgmac": f"aes-null-gmac-{bits}"}.get(mode, f"aes-{mode}-{bits}")
            words.append(f"crypto-alg {name} crypto-key {_key(wire.secret, f'cipher {number}', int(bits) // 8).hex()}")
        if mode and mode != "cbc":
            words.append(f"salt 0x{_key(wire.secret, f'salt {number}', 4).hex()}")
        if found["digest"]:
            name, size, _ = _INTEGRITY[found["digest"]]
            words.append(f"integ-alg {name} integ-key {_key(wire.secret, f'digest {number}', size).hex()}")
        words += ["udp-encap"] * self.ipsec_udp + ["use-anti-replay"] * self.ipsec_anti_replay
        return " ".join(words)

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The last association is in use."""
        yield ENGINE
        last = 2 * (self.ipsec or 0) - 1
        yield Shown(f"show ipsec sa {last}", r"\[\d+\] sa .*\n\s+locks [2-9]", f"{last + 1} security associations")

    def proved(self, ports: Ports) -> Iterator[Shown]:
        """Packets were encrypted or decrypted, and none failed its check."""
        yield Shown(
            "show errors", r"(?si)\A(?=.*esp4-)(?!.*(decryption|check) failed)", "that every packet had the right key"
        )


def _ids(wire: VppPort, number: int) -> tuple[int, int]:
    """Numbers of the associations of packets that leave this VPP, and of those that come."""
    eastward, westward = _SPI + 2 * number, _SPI + 2 * number + 1
    return (eastward, westward) if wire.side.ipv4 > wire.opposite.ipv4 else (westward, eastward)


class WireGuard(Feature):
    """WireGuard tunnels between the two VPPs of a path."""

    wireguard: int | None = Field(default=None, ge=1, le=_INNER // 2)
    """WireGuard tunnels between the two VPPs of the path: one for each of so many first hosts of a side; with
    ``ip4``."""

    needs = Needs((VppForwarding.IP4,), plugins={"wireguard": ""}, tags=("wireguard",), duts=2)

    @property
    def entries(self) -> int:
        """Heaps are large for many tunnels."""
        return max((self.wireguard or 0) * _LARGE, super().entries)

    def problem(self) -> str | None:
        """Two kinds of tunnels."""
        return "wireguard and ipsec are tunnels of the same hosts: leave one out" if getattr(self, "ipsec", 0) else None

    @property
    def encapsulation_overhead(self) -> int:
        """Headers and tag of a packet, without padding."""
        return super().encapsulation_overhead + (_WIREGUARD_BYTES if self.wireguard else 0)

    def routed(self, port: VppPort) -> Iterable[Command] | None:
        """Towards the other VPP the ends of tunnels."""
        return list(reach_ends(port)) if port.faces_dut else None

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The tunnels, in one file."""
        lines = "".join(f"{line}\n" for line in WireGuard._lines(self, both_sides(ports)[1]))
        yield Command(lines, r"(wg\d+\s*)*", is_secret=True)

    def _lines(self, wire: VppPort) -> Iterator[str]:
        # Slow to import, and hardly ever needed.
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        is_west = wire.side.ipv4 > wire.opposite.ipv4
        allowed = f"allowed-ip {next(iter(wire.side.ipv4.subnets(1)))}"
        inside = (wire.opposite if is_west else wire.side).ipv4
        for number, (host, local, remote) in enumerate(_hosts(wire, self.wireguard or 0)):
            west, east = (
                X25519PrivateKey.from_private_bytes(_key(wire.secret, f"{side} {number}", 32))
                for side in ("west", "east")
            )
            here, there = (west, east) if is_west else (east, west)
            ends = inside[_INNER + 2 * number], inside[_INNER + 2 * number + 1]
            near, far = ends if is_west else ends[::-1]
            private, public = (
                b64encode(raw).decode() for raw in (here.private_bytes_raw(), there.public_key().public_bytes_raw())
            )
            name = f"wg{number}"
            yield f"wireguard create listen-port {_WIREGUARD_PORT} private-key {private} src {local} instance {number}"
            yield f"set interface state {name} up"
            yield f"set interface ip address {name} {near}/31"
            yield (
                f"wireguard peer add {name} public-key {public} endpoint {remote} {allowed} allowed-ip {far}/32 "
                f"dst-port {_WIREGUARD_PORT} persistent-keepalive {_KEEPALIVE_SECONDS}"
            )
            yield f"ip route add {host}/32 via {far} {name}"

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """Every tunnel has session keys, which the second VPP can know."""
        yield ENGINE
        if ports[0].faces_dut:
            meaning = f"handshakes of all {self.wireguard} tunnels"
            within = _HANDSHAKES_SECONDS + _HANDSHAKE_SECONDS * (self.wireguard or 0)
            yield Shown("show wireguard peer", r"(?s)\A(?=.*flags: )(?!.*flags: [^2])", meaning, within)

"""Tunnels with keys between the two VPPs of a path: IPsec and WireGuard.

Each of the first hosts behind a side has a tunnel.
"""

import hmac
import re
from base64 import b64encode
from ipaddress import IPv4Address
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lossratio.dut.vpp.features.feature import ROUTES, Feature, Needs, Steps, VppPort

_MOST_TUNNELS, _MOST_WIREGUARD = 32_000, 8192
_LARGE = 100
"""How many table entries a tunnel counts as, for the size of VPP's heaps, because it is an interface."""
_ESP_BYTES = 20 + 8 + 2
"""IP header, ESP header, and the trailer without padding."""
_WIREGUARD_BYTES = 60
# VPP's engines are separate libraries, without which nothing is encrypted.
ENGINE = r"""
    show crypto engines | \b(native|ipsecmb|openssl)\b \
    | an engine that encrypts (native, ipsecmb or openssl, in lib/*/vpp_crypto_engines)
"""
REACH_ENDS = r"""
    % if port.faces_dut
        ip route add {{ port.remote() }}/17 via {{ port.routed(4).neighbour }} {{ port.interface }}
    % endif
"""
"""For the port that faces the other VPP, the route to that VPP's ends of tunnels."""
_REACH_TG = r"""
    % if not port.faces_dut
        % for network in (port.side.ipv4, port.side.wide_ipv4)
            ip route add {{ network }} via {{ port.routed(4).neighbour }} {{ port.interface }}
        % endfor
    % endif
"""


def _key(secret: bytes, name: str, size: int) -> bytes:
    """A key of at most 64 bytes that both VPPs derive from the secret of the path."""
    return hmac.digest(secret, name.encode(), "sha512")[:size]


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
            f"{text!r} is not an algorithm of VPP: write it as in FD.io CSIT's suites, such as aes256gcm or "
            "aes128cbc-hmac512sha"
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

    requires = (
        (
            "ipsec_algorithms ipsec_lookup ipsec_udp ipsec_anti_replay ipsec_mtu",
            "ipsec",
            "{given}: also set ipsec, the number of tunnels",
        ),
    )
    needs = Needs(
        ("ip4",),
        plugins={"ipip": "26.10"},
        tags=("ipsec",),
        decides=ROUTES,
        duts=2,
        entries={"ipsec": _LARGE},
    )
    steps = Steps(
        # The cache or the hash table of policies.
        startup=r"""
            % set tables = {"policy-flow-cache": "spd-flow-cache", "policy-fastpath": "spd-fast-path"}
            % for way in ("inbound", "outbound") if options.ipsec_lookup in tables
                ipsec ipv4-{{ way }}-{{ tables[options.ipsec_lookup] }} on
            % endfor
        """,
        # Policies drop packets that no route leads to.
        routed=REACH_ENDS
        + _REACH_TG
        + r"""
            % if port.faces_dut and options.ipsec_lookup != "interfaces"
                {{ many_routes(port.routed(4), port.host(0), options.ipsec) }}
                {{ many_routes(port.routed(4), port.remote(), options.ipsec) }}
            % endif
        """,
        commands=r"""
            % if options.ipsec_mtu
                set interface mtu packet {{ options.ipsec_mtu }} {{ wire.link }}
            % endif
        """,
        # As in CSIT, tunnels between interfaces have one end in the second VPP, and many in the first.
        file=r"""
            % set by_policy = options.ipsec_lookup != "interfaces"
            % set sources = clear.side.ipv4
            % set near = "%s - %s" % (wire.local(), wire.local(2**15 - 1))
            % set far = "%s - %s" % (wire.remote(), wire.remote(2**15 - 1))
            % if by_policy
                ipsec spd add 1
                set interface ipsec spd {{ wire.interface }} 1
                % for way in ("inbound", "outbound")
                    ipsec policy add spd 1 priority 100 {{ way }} action bypass protocol 50 \
                    local-ip-range {{ near }} remote-ip-range {{ far }}
                % endfor
            % endif
            % for number in range(options.ipsec)
                % set leaving = 1001 + 2 * number - wire.place
                % set coming = 1000 + 2 * number + wire.place
                % set local = wire.local(number if by_policy or wire.place else 0)
                % set remote = wire.remote(0 if wire.place and not by_policy else number)
                % set host = wire.host(number)
                % if number == 0 or local != wire.local()
                    ip route add {{ local }}/32 via local
                % endif
                % if by_policy
                    % set out = "tunnel src %s dst %s" % (local, remote)
                    % set back = "tunnel src %s dst %s" % (remote, local)
                % else
                    % set out = ""
                    % set back = ""
                % endif
                ipsec sa add {{ leaving }} {{ out }} {{ options.security(wire, leaving) }}
                ipsec sa add {{ coming }} inbound {{ back }} {{ options.security(wire, coming) }}
                % if by_policy
                    % for way, association in (("outbound", leaving), ("inbound", coming))
                        ipsec policy add spd 1 priority 10 {{ way }} action protect sa {{ association }} \
                        local-ip-range {{ sources[0] }} - {{ sources[-1] }} remote-ip-range {{ host }} - {{ host }}
                    % endfor
                % else
                    create ipip tunnel src {{ local }} dst {{ remote }} instance {{ number }}
                    ipsec tunnel protect ipip{{ number }} sa-in {{ coming }} sa-out {{ leaving }}
                    {{ through("ipip%d" % number, wire, host ~ "/32") }}
                % endif
            % endfor
        """,
        answers=r"((ipip\d+|policy-index:\d+)\s*)*",
        is_secret=True,
        # The last association is in use.
        verified=ENGINE
        + r"""
            % set count = 2 * options.ipsec
            show ipsec sa {{ count - 1 }} | \[\d+\] sa .*\n\s+locks [2-9] | {{ count }} security associations
        """,
        # Packets were encrypted or decrypted, and none failed its check.
        proved=r"""
            show errors | (?si)\A(?=.*esp4-)(?!.*(decryption|check) failed) | that every packet had the right key
        """,
    )

    @property
    def encapsulation_overhead(self) -> int:
        """Headers, trailer and integrity value of a packet, without padding, as FD.io CSIT counts them."""
        added = (
            _ESP_BYTES
            + sum(_PARTS[name][2] for name in self.ipsec_algorithms.split("-"))
            + 8 * self.ipsec_udp
        )
        return super().encapsulation_overhead + (added if self.ipsec else 0)

    def security(self, wire: VppPort, number: int) -> str:
        """The words of a security association, with its keys."""
        words = [f"spi {number} esp"]
        for part in self.ipsec_algorithms.split("-"):
            text, size, _, is_salted = _PARTS[part]
            words += [text, _key(wire.secret, f"{part} {number}", size).hex()]
            words += [f"salt 0x{_key(wire.secret, f'salt {number}', 4).hex()}"] * is_salted
        return " ".join(
            [*words, *["udp-encap"] * self.ipsec_udp, *["use-anti-replay"] * self.ipsec_anti_replay]
        )


_ASYNC = "ipsec_async has one queue and needs another core for encryption: set cores=2 and queues=1"


class IpsecAsync(Feature):
    """IPsec with packets that are encrypted by workers other than the worker that forwards."""

    ipsec_async: bool = False
    """Whether the first worker forwards and the others encrypt (VPP's software scheduler). With ``ipsec``,
    ``cores=2`` or more and ``queues=1``."""

    requires = (
        ("ipsec_async", "ipsec", "ipsec_async: also set ipsec, the number of tunnels"),
        ("ipsec_async", "queues=1", _ASYNC),
    )
    excludes = (("ipsec_async", "cores=1", _ASYNC),)
    needs = Needs(("ip4",), plugins={"crypto_sw_scheduler": ""}, duts=2)
    # The first worker has both queues, and encrypts nothing.
    steps = Steps(
        commands=r"""
            set ipsec async mode on
            set sw_scheduler worker 0 crypto off
            % for port in ports
                set interface rx-placement {{ port.link }} queue 0 worker 0
            % endfor
        """,
        verified=r"""
            show sw_scheduler workers | (?s)\b0\s+\S+\s+off\b.*\son\b | that other workers encrypt
        """,
    )


class WireGuard(Feature):
    """WireGuard tunnels between the two VPPs of a path."""

    wireguard: int | None = Field(default=None, ge=1, le=_MOST_WIREGUARD)
    """Number of WireGuard tunnels between the two VPPs of the path, one for each of the first hosts of a side, and for
    each of the first networks (/24) of 240.0.0.0/6 and 244.0.0.0/6. With ``ip4``."""

    excludes = (
        ("wireguard", "ipsec", "wireguard and ipsec are tunnels of the same hosts: leave one out"),
    )
    needs = Needs(
        ("ip4",),
        plugins={"wireguard": ""},
        tags=("wireguard",),
        decides=ROUTES,
        duts=2,
        overhead={"wireguard": _WIREGUARD_BYTES},
        entries={"wireguard": _LARGE},
    )
    # VPP tries the peer's addresses one by one: that of CSIT's traffic is the first.
    steps = Steps(
        routed=REACH_ENDS + _REACH_TG,
        file=r"""
            % set networks = wire.side.wide_ipv4
            % for number in range(options.wireguard)
                % set name = "wg%d" % number
                % set local = wire.local(number)
                % set remote = wire.remote(number)
                % set private, public = options.key_pairs(wire, local, remote)
                ip route add {{ local }}/32 via local
                wireguard create listen-port 51820 private-key {{ private }} src {{ local }} instance {{ number }}
                % set network = networks[256 * number] ~ "/24"
                wireguard peer add {{ name }} public-key {{ public }} endpoint {{ remote }} \
                allowed-ip {{ network }} allowed-ip {{ (wire.side.ipv4.subnets(1) | list)[0] }} \
                allowed-ip {{ remote }}/32 dst-port 51820 persistent-keepalive 256
                {{ through(name, wire, wire.host(number) ~ "/32", remote ~ " ") }}
                ip route add {{ network }} via {{ remote }} {{ name }}
            % endfor
        """,
        answers=r"(wg\d+\s*)*",
        is_secret=True,
        # Every tunnel has session keys, which only the VPP that is set up second can know. The time is for all tunnels
        # together, plus for each of them, because VPP may share its CPUs.
        verified=ENGINE
        + r"""
            % if west.faces_dut
                show wireguard peer | (?s)\A(?=.*flags: )(?!.*flags: [^2]) \
                | handshakes of all {{ options.wireguard }} tunnels | {{ 15 + 0.1 * options.wireguard }}
            % endif
        """,
    )

    def key_pairs(self, wire: VppPort, local: IPv4Address, remote: IPv4Address) -> tuple[str, str]:
        """The private key of this VPP's end of a tunnel, and the public key of the other end."""
        # Slow to import, and hardly ever needed.
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        here = X25519PrivateKey.from_private_bytes(_key(wire.secret, str(local), 32))
        there = X25519PrivateKey.from_private_bytes(_key(wire.secret, str(remote), 32))
        private = here.private_bytes_raw()
        public = there.public_key().public_bytes_raw()
        return b64encode(private).decode(), b64encode(public).decode()

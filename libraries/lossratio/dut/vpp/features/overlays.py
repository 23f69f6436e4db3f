"""Headers around packets that need no keys (VXLAN, tags, SRv6, GTP-U, GENEVE), and a bond."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from lossratio.dut.linux.addressing import WEST_VNI
from lossratio.dut.vpp.features.feature import (
    LINKS,
    LOOKING,
    ROUTES,
    Feature,
    Needs,
    Steps,
    VppPort,
)
from lossratio.dut.vpp.features.process import CONNECTED, SLEEPING, TESTPMD
from lossratio.dut.vpp.features.secure_tunnels import REACH_ENDS
from lossratio.topology import EAST

_BLIND = ("classify", "allowlist", "mark")
"""Options of filters where frames enter. Frames that have a tag there pass them unseen (tried with VPP 26.10)."""
_TAG_BYTES = 4
_VXLAN_BYTES = 50


class Vlan(Feature):
    """An IEEE 802.1Q tag on links."""

    vlan: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on both links, with an interface on each link; bridges and cross-connects remove the tag."""
    vlan_east: int | None = Field(default=None, ge=1, le=4094)
    """VLAN of the frames on the east link of the path, if it is a different one."""
    vlan_between: bool = False
    """Whether only the links between two DUTs have the tag."""

    requires = (
        (
            "vlan_east vlan_between",
            "vlan",
            "vlan_east and vlan_between apply to a tag; also set vlan",
        ),
    )
    excludes = (
        (
            "vlan_between",
            "vlan_east",
            (
                "vlan_east applies to a link of the TG, but with vlan_between, that link has no tag: leave one of them "
                "out"
            ),
        ),
    )
    needs = Needs(LOOKING, tags=("dot1q",), decides=LINKS, overhead={"vlan_between": _TAG_BYTES})
    # Tags are removed, and written again.
    steps = Steps(
        below=r"""
            % set name = made.interface
            create sub-interfaces {{ port.interface }} {{ name.rpartition(".")[2] }} | {{ name | literally }}
            set interface state {{ name }} up
        """,
        commands=r"""
            % for port in ports
                % if port.vlan and not options.is_router
                    set interface l2 tag-rewrite {{ port.interface }} pop 1
                % endif
            % endfor
        """,
        verified=r"""
            % for port in ports
                show interface {{ port.interface }} | \sup\s | {{ port.interface }} up
            % endfor
        """,
    )

    def problem(self) -> str | None:
        """Some filters cannot look behind a tag."""
        blind = [name for name in _BLIND if getattr(self, name, None)]
        if blind and not self.vlan_between:
            return f"{blind[0]} would have no effect, because VPP does not look behind the tag: leave vlan out"
        return None

    def above(self, port: VppPort) -> VppPort | None:
        """The port with the interface of the VLAN."""
        if self.vlan_between and not port.faces_dut:
            return None
        vlan = self.vlan
        if self.vlan_east and port.side is EAST and not port.faces_dut:
            vlan = self.vlan_east
        name = f"{port.interface}.{vlan}"
        return replace(port, interface=name, vlan=name)


class Vxlan(Feature):
    """A VXLAN tunnel on links."""

    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, as for ``linux_bridge``. With ``l2bd`` or ``l2xc``."""
    vxlan_between: bool = False
    """Whether only frames between two DUTs are in a VXLAN tunnel. With ``l2bd`` or ``l2xc``."""

    excludes = (
        (
            "vxlan",
            "vxlan_between",
            "vxlan is on all links, vxlan_between only on links between DUTs: leave one of them out",
        ),
    )
    needs = Needs(
        ("l2bd", "l2xc"),
        plugins={"vxlan": "23.06"},
        tags=("vxlan",),
        decides=LINKS,
        overhead={"vxlan_between": _VXLAN_BYTES},
    )
    # Both ends of a tunnel between two DUTs have the same identifier, unlike the ends of a tunnel to the TG.
    steps = Steps(
        below=f"""
            % set vni = {WEST_VNI} if port.faces_dut else port.vni
        """
        + r"""
            % set link = port.link
            % set local = port.local() if port.faces_dut else port.tunnel.local
            % set remote = port.remote() if port.faces_dut else port.tunnel.remote
            set interface ip address {{ link }} {{ local }}/32
            set ip neighbor {{ link }} {{ remote }} {{ port.other_end or port.neighbour_mac }} static
            ip route add {{ remote }}/32 via {{ remote }} {{ link }}
            create vxlan tunnel src {{ local }} dst {{ remote }} vni {{ vni }} instance {{ port.vni }} decap-next l2 \
            | vxlan_tunnel\d+
        """
    )

    @property
    def is_addressed(self) -> bool:
        """Whether VPP is the end of a tunnel to the TG: frames must then be addressed to VPP."""
        return self.vxlan or super().is_addressed

    def above(self, port: VppPort) -> VppPort | None:
        """The port with the tunnel's interface."""
        if self.vxlan_between and not port.faces_dut:
            return None
        return replace(port, interface=port.tunnel.name, neighbour_mac="")


_IPV6_BYTES = 40
_SEGMENTS_BYTES = 8
_SEGMENT_BYTES = 16
_GTPU_BYTES = 36
_GENEVE_BYTES = 50
# For the port that faces the other VPP, the route to the segments of that VPP. As in CSIT, it is as long as the network
# of packets that are sent there (see `lossratio.dut.vpp.configuration`).
_REACH_SEGMENTS = r"""
    % if port.faces_dut
        ip route add {{ port.segment(0) }}/64 via {{ port.routed(6).neighbour }} {{ port.interface }}
    % endif
"""
# A policy that sends packets for the other side through segments there; a route to the TG if packets keep their header.
_STEERING = r"""
    % set binding = clear.side.ipv6[2**64 + 2**16]
    set sr encaps source addr {{ clear.segment(1) }}
    sr policy add bsid {{ binding }} \
    % for number in range(1, options.segments[0] + 1)
        next {{ wire.segment(number) }} \
    % endfor
    encap
    sr steer l3 {{ wire.side.ipv6[0] }}/64 via bsid {{ binding }}
    % if options.segments[1]
        ip route add {{ clear.segment(0) }}/64 via {{ clear.routed(6).neighbour }} {{ clear.interface }}
    % endif
"""
_STEERED = r"""
    show sr policies | Behavior:\s+Encapsulation | a policy that encapsulates
"""


class _Segments(Feature):
    """Segment routing over IPv6 (RFC 8986) between the two VPPs of a path."""

    needs = Needs(("ip6",), shows=("show sr localsids",), duts=2, decides=ROUTES)

    @property
    def segments(self) -> tuple[int, int]:
        """Segments in the outer header between the VPPs, and in the header that the TG gets; 0: there is no header."""
        return 0, 0

    @property
    def encapsulation_overhead(self) -> int:
        """The outer IPv6 header, and the list of segments if there are several."""
        return super().encapsulation_overhead + _outer_bytes(self.segments[0])

    @property
    def growth(self) -> tuple[int, int]:
        """The outer header, if it remains."""
        _, left = self.segments
        if left:
            return (_outer_bytes(left),) * 2
        return super().growth


class Srv6(_Segments):
    """Segments of the other VPP of a path."""

    srv6: int | None = Field(default=None, ge=1, le=2)
    """Number of the other VPP's segments (1 or 2) that packets visit by segment routing. With ``ip6``."""
    srv6_decapsulation: bool = True
    """Whether the second segment removes the outer header. Otherwise, the segment is beyond the path, and the TG gets
    packets with their outer header."""

    requires = (
        (
            "srv6_decapsulation",
            "srv6=2",
            "srv6_decapsulation=False needs srv6=2: the second segment is behind the path",
        ),
    )
    needs = replace(_Segments.needs, tags=("srv6",))
    steps = Steps(
        routed=_REACH_SEGMENTS,
        commands=_STEERING
        + r"""
            % if options.srv6 == 2
                sr localsid address {{ clear.segment(1) }} behavior end
            % endif
            % if options.srv6_decapsulation
                sr localsid address {{ clear.segment(options.srv6) }} \
                behavior end.dx6 {{ clear.interface }} {{ clear.routed(6).neighbour }}
            % endif
        """,
        verified=_STEERED,
        proved=r"""
            % set count = options.srv6 if options.srv6_decapsulation else 1
            show sr localsids | (?s)\A(.*Good traffic:\s+\[[1-9]){{ "{%d}" % count }} | packets at each segment
        """,
    )

    @property
    def segments(self) -> tuple[int, int]:
        """The number in the option; for the header that the TG gets, two if it remains, otherwise none."""
        if self.srv6:
            return (self.srv6, 0 if self.srv6_decapsulation else 2)
        return super().segments


class Srv6Proxy(_Segments):
    """A service that knows nothing about segment routing, behind a proxy on each of the two VPPs of a path."""

    srv6_proxy: Literal["dynamic", "masquerading", "static"] | None = None
    """How packets of segment routing pass through a process beside each of the two VPPs (testpmd by memif, or a
    ``container``): ``dynamic`` (End.AD), ``masquerading`` (End.AM) or ``static`` (End.AS). With ``ip6``. The TG gets
    them with their outer header."""

    excludes = (
        ("srv6_proxy", "srv6", "srv6 and srv6_proxy steer the same packets: leave one out"),
    )
    needs = replace(
        _Segments.needs,
        plugins=dict.fromkeys(("memif", "srv6ad", "srv6am", "srv6as"), ""),
        tags=("srv6_proxy",),
    )
    steps = Steps(
        routed=_REACH_SEGMENTS,
        commands=_STEERING
        + r"""
            % set queues = wire.queues if options.is_contained else 0
            {{ memif(wire.directory, 1, "02:fe:00:00:00:0a", queues) }}
            enable ip6 interface memif1/0
            {{ memif(wire.directory, 2, "02:fe:00:00:00:0b", queues) }}
            enable ip6 interface memif2/0
            % set service = clear.side.ipv6[2**64 + 2**17]
            % set behaviors = {"dynamic": "end.ad", "masquerading": "end.am", "static": "end.as"}
            set ip neighbor memif1/0 {{ service }} 02:fe:00:00:00:0b static
            sr localsid address {{ clear.segment(1) }} \
            behavior {{ behaviors[options.srv6_proxy] }} nh {{ service }} oif memif1/0 iif memif2/0 \
            % if options.srv6_proxy == "static"
                src {{ wire.segment(1) }} next {{ clear.segment(2) }} next {{ clear.segment(3) }}
            % endif
        """,
        programs=TESTPMD,
        connected=SLEEPING,
        verified=_STEERED + CONNECTED,
        proved=r"""
            show interface memif2/0 | rx packets\s+[1-9] | packets from the service
        """,
    )

    @property
    def segments(self) -> tuple[int, int]:
        """Three segments; a static proxy writes another header, which does not have the visited segment."""
        if self.srv6_proxy:
            return (3, 2 if self.srv6_proxy == "static" else 3)
        return super().segments


class Gtpu(Feature):
    """A GTP-U tunnel (3GPP TS 29.281) between the two VPPs of a path."""

    gtpu: bool = False
    """Whether packets between the two VPPs of the path are in a GTP-U tunnel. With ``ip4``."""
    gtpu_mtu: int | None = Field(default=None, ge=576, le=9000)
    """Bytes of the largest packet between the two VPPs. Larger packets are fragmented, and reassembled."""

    requires = (("gtpu_mtu", "gtpu", "gtpu_mtu is the MTU of a tunnel: also set gtpu"),)
    needs = Needs(
        ("ip4",),
        plugins={"gtpu": ""},
        tags=("gtpu",),
        decides=ROUTES,
        duts=2,
        overhead={"gtpu": _GTPU_BYTES},
    )
    steps = Steps(
        routed=REACH_ENDS,
        commands=r"""
            % if options.gtpu_mtu
                set interface mtu packet {{ options.gtpu_mtu }} {{ wire.link }}
            % endif
            ip route add {{ wire.local() }}/32 via local
            create gtpu tunnel src {{ wire.local() }} dst {{ wire.remote() }} teid 10 decap-next ip4 | gtpu_tunnel0
            {{ through("gtpu_tunnel0", wire, wire.side.ipv4) }}
            ip route add {{ wire.side.ipv4[0] }}/24 via gtpu_tunnel0
        """,
        verified=r"""
            show gtpu tunnel | teid 10\b | the tunnel
        """,
    )


class Bond(Feature):
    """A bond of one link between the two VPPs of a path."""

    bond: bool = False
    """Whether the link between the two VPPs of the path is a bond by LACP. With ``l2xc`` or ``l2bd``."""

    needs = Needs(("l2xc", "l2bd"), plugins={"lacp": ""}, tags=("lbond",), duts=2, decides=LINKS)
    # Only the VPP that is set up second can know whether the other end takes part in the bond.
    steps = Steps(
        below=r"""
            create bond mode lacp load-balance l34 id 0 | BondEthernet0
            bond add BondEthernet0 {{ port.link }}
            set interface state BondEthernet0 up
        """,
        verified=r"""
            % if west.faces_dut
                show bond | BondEthernet0\s+\d+\s+lacp\s+l34\s+1\s+1\s | an active link | 30
            % endif
        """,
    )

    def above(self, port: VppPort) -> VppPort | None:
        """The port with the bond, on the link to the other VPP."""
        if not port.faces_dut:
            return None
        return replace(port, interface="BondEthernet0")


class Geneve(Feature):
    """GENEVE tunnels (RFC 8926): packets to the east are routed into them, and packets from there arrive in them."""

    geneve: int | None = Field(default=None, ge=1, le=1024)
    """Number of GENEVE tunnels on the east link, one for each of the first networks (/24) of 244.0.0.0/6. Their packets
    come from as many networks of 240.0.0.0/6. With ``ip4``, and traffic profiles such as ``ethip4-geneve16``. On that
    link, the TG sends and receives frames that are 50 bytes longer."""

    needs = Needs(("ip4",), plugins={"geneve": ""}, tags=("geneve_l3mode",), decides=ROUTES, duts=1)
    # As in CSIT, the one end of all tunnels is reached through each of their interfaces.
    steps = Steps(
        file=r"""
            % set local = west.side.ipv4[2**15]
            % set remote = east.side.ipv4[2**15]
            % set neighbour = east.routed(4).neighbour
            % for number in range(options.geneve)
                % set name = "geneve_tunnel%d" % number
                % set own = east.local(256 * number + 2)
                ip route add {{ west.side.wide_ipv4[256 * number] }}/24 \
                via {{ west.routed(4).neighbour }} {{ west.interface }}
                create geneve tunnel local {{ local }} remote {{ remote }} vni {{ number + 1 }} \
                l3-mode decap-next node ethernet-input
                set interface ip address {{ name }} {{ own }}/24
                set interface state {{ name }} up
                set ip neighbor {{ name }} {{ neighbour }} {{ east.neighbour_mac }} static
                ip route add {{ east.side.wide_ipv4[256 * number] }}/24 via {{ neighbour }} {{ name }}
                ip route add {{ local }}/32 via {{ own }}
            % endfor
        """,
        answers=r"(geneve_tunnel\d+\s*)*",
        verified=r"""
            show geneve tunnel | vni {{ options.geneve }}\b | {{ options.geneve }} tunnels
        """,
        proved=r"""
            show errors | [1-9]\d*\s+geneve4-encap | packets in tunnels
        """,
    )

    @property
    def growth(self) -> tuple[int, int]:
        """The headers of the tunnel, which are removed from frames from the east."""
        if self.geneve is None:
            return super().growth
        return (_GENEVE_BYTES, -_GENEVE_BYTES)


def _outer_bytes(segments: int) -> int:
    """Bytes of an outer IPv6 header, with the list of segments if there are several; 0: there is no header."""
    if not segments:
        return 0
    return _IPV6_BYTES + (_SEGMENTS_BYTES + segments * _SEGMENT_BYTES if segments > 1 else 0)

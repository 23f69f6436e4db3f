"""Features of VPP that let frames pass, or drop them: access lists, classification, allow lists."""

from pydantic import Field

from lossratio.dut.vpp.features.feature import LOOKING, Feature, Forwarding, Needs, Steps

_ROUTERS: tuple[Forwarding, ...] = ("ip4", "ip6")


class AccessLists(Feature):
    """Rules that every frame passes."""

    acl: int | None = Field(default=None, ge=1, le=100)
    """Number of rules, up to 100, of an access control list that every frame passes once: on the first DUT of the path.
    These rules match other flows. Two further rules permit all frames of test traffic by their source. Not with
    ``l2patch`` or ``sfdp``, which pass frames on before they reach the list."""
    acl_output: bool = False
    """Whether frames pass the list when they leave, instead of when they enter."""
    acl_stateful: bool = False
    """Whether the rules that permit test traffic begin a session, in which the flow's other frames pass without being
    checked against the rules."""

    requires = (
        (
            "acl_output acl_stateful",
            "acl",
            "acl_output and acl_stateful apply to a list of rules; also set acl",
        ),
    )
    filter_option = "acl"
    needs = Needs(LOOKING, plugins={"acl": ""}, tags=("iacl", "oacl"))
    # As in FD.io CSIT, the rules about other flows permit single hosts and ports that no frame has. The hosts are in
    # networks for documentation.
    steps = Steps(
        commands=r"""
            % if not west.faces_dut
                set acl-plugin acl \
                % for number in range(1, options.acl + 1)
                    % if options.ip_version == 6
                        permit src 2001:db8:1::{{ "%x" % number }}/128 dst 2001:db8:2::{{ "%x" % number }}/128 \
                    % else
                        permit src 192.0.2.{{ number }}/32 dst 198.51.100.{{ number }}/32 \
                    % endif
                    sport {{ 999 + number }} dport {{ 999 + number }}, \
                % endfor
                % for port in ports
                    permit{{ "+reflect" if options.acl_stateful }} src {{ port.routed(options.ip_version).network }} \
                    dst {{ "::/0" if options.ip_version == 6 else "0.0.0.0/0" }}{{ "," if not loop.last }} \
                % endfor
                tag lossratio | ACL index:\d+
                % for port in ports
                    set acl-plugin interface {{ port.entrance }} {{ "output" if options.acl_output else "input" }} acl 0
                % endfor
            % endif
        """,
        verified=r"""
            % if not west.faces_dut
                % set way = "out" if options.acl_output else "in"
                % set rules = options.acl + 2
                show acl-plugin acl \
                | count {{ rules }} tag[\s\S]*applied {{ way }}bound on sw_if_index: \d+, \d+ \
                | {{ rules }} rules on both interfaces
            % endif
        """,
        proved=r"""
            % if not west.faces_dut
                show errors | [1-9]\d*\s+acl-plugin- | packets that met the list
                % if options.acl_stateful
                    show acl-plugin sessions | Sessions active: add \d+ - deact \d+ = [1-9] | active sessions
                % endif
            % endif
        """,
    )


class Classifier(Feature):
    """A table of destinations: frames to any other destination are dropped."""

    classify: bool = False
    """Whether there is a table of allowed destinations: as in FD.io CSIT, the /24 (IPv6: /112) of each side's first
    host. Frames to other destinations are dropped where they enter the path. With ``ip4`` or ``ip6``."""

    # Tried with VPP 26.10.
    excludes = (
        (
            "classify",
            "mark",
            "classify and mark both need VPP's first table of packets: leave one out",
        ),
        (
            "classify mark",
            "det44_hosts sfdp",
            "{given} would have no effect: det44 and sfdp take frames before they reach the table",
        ),
        (
            "acl classify allowlist mark",
            "geneve",
            "{given} looks at addresses other than those of the geneve tunnels: leave one out",
        ),
    )
    needs = Needs(_ROUTERS, tags=("iacldst",))
    # The mask has the bits of a frame that are compared: the network of the destination, behind the Ethernet header.
    steps = Steps(
        commands=r"""
            % set version = options.ip_version
            % if entrances
                % set mask = "00" * 38 + "ff" * 14 + "00" * 2 if version == 6 else "00" * 30 + "ff" * 3 + "00"
                classify table acl-miss-next deny mask hex {{ mask }} buckets 2
            % endif
            % for port in entrances
                classify session acl-hit-next permit table-index 0 \
                match l3 ip{{ version }} dst {{ port.destination(version) }}
            % endfor
            % for port in entrances
                set interface input acl intfc {{ port.link }} ip{{ version }}-table 0
            % endfor
        """,
        verified=r"""
            % set count = entrances | length
            % if count
                show classify tables | active elements {{ count }}|\n\s+0\s+{{ count }}\s \
                | a table of destinations: {{ count }}
            % endif
        """,
    )


class AllowList(Feature):
    """A list of sources: frames from any other source are dropped."""

    allowlist: bool = False
    """Whether there is a list of allowed sources (the network of test traffic). Frames from other sources are dropped
    where they enter the path; on a path through one VPP only in the west, as in FD.io CSIT. With ``ip4`` or ``ip6``."""

    needs = Needs(_ROUTERS, plugins={"adl": ""}, version="20.09", tags=("adlalwlist",))
    steps = Steps(
        commands=r"""
            % set version = options.ip_version
            % for port in entrances[:1]
                {{ "ip6" if version == 6 else "ip" }} table add 1
                % set network = port.routed(version).network
                ip route add {{ network }} table 1 via local
                % if version == 4
                    ip route add {{ network[0] }}/24 table 1 via local
                % endif
                adl interface {{ port.link }}
                adl allowlist {{ port.link }} fib-id 1 ip{{ version }}
            % endfor
        """,
        verified=r"""
            % for port in entrances[:1]
                show interface features {{ port.link }} | adl-input | adl-input
            % endfor
        """,
    )

"""The headers of the Open Traffic Generator's models: their names of the fields in `lossratio.agent.core.headers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lossratio.agent import ETHERNET, IPV4, IPV6, MAC, TCP, UDP, VLAN, Header, HeaderField

MOST_LISTED = 1 << 16
"""The maximum number of values of a field that do not count up one by one."""


@dataclass(frozen=True)
class Model:
    """A header of the models."""

    header: Header
    """The header."""
    paths: tuple[str, ...]
    """The names of its fields in the models, in their order; a dot leads into a part of one, and `-` is none."""
    followers: tuple[str, ...] = ()
    """The headers that may follow it."""

    @property
    def fields(self) -> Iterator[tuple[str, HeaderField]]:
        """Its fields in the models, by name."""
        for path, field in zip(self.paths, self.header.fields, strict=True):
            if path != "-":
                yield path, field


_BEHIND_ETHERNET = ("vlan", "ipv4", "ipv6")
_BEHIND_IP = ("tcp", "udp")
_IPV4_PATHS = (
    "version header_length priority.raw priority.dscp.phb priority.dscp.ecn total_length identification reserved "
    "dont_fragment more_fragments fragment_offset time_to_live protocol header_checksum src dst"
)
_IPV6_PATHS = "version traffic_class - - flow_label payload_length next_header hop_limit src dst"
_TCP_PATHS = (
    "src_port dst_port seq_num ack_num data_offset - ecn_ns - ecn_cwr ecn_echo ctl_urg ctl_ack ctl_psh ctl_rst "
    "ctl_syn ctl_fin window checksum -"
)
# Table: the headers that flows may have.
HEADERS: Mapping[str, Model] = {
    "ethernet": Model(ETHERNET, ("dst", "src", "ether_type"), _BEHIND_ETHERNET),
    "vlan": Model(VLAN, ("priority", "cfi", "id", "tpid"), _BEHIND_ETHERNET),
    "ipv4": Model(IPV4, tuple(_IPV4_PATHS.split()), _BEHIND_IP),
    "ipv6": Model(IPV6, tuple(_IPV6_PATHS.split()), _BEHIND_IP),
    "udp": Model(UDP, ("src_port", "dst_port", "length", "checksum")),
    "tcp": Model(TCP, tuple(_TCP_PATHS.split())),
}
"""The headers that both directions know."""


def is_given(field: HeaderField) -> bool:
    """Whether models give a field's values."""
    return field.computed in (None, "next") and field.notation is not MAC

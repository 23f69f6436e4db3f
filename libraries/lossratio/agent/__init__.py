# SPDX-License-Identifier: Apache-2.0
"""The traffic agent: the program that runs on the TG node.

The node needs nothing but Python 3.8 or later; with numpy, the generator `afpacket` can do more. The controller
sends this package to the node as `lossratio_agent`, so the package imports no other part of lossratio. Programs of
added generators import the names below from it.
"""

from .core.comparison import FieldChange, changed_fields
from .core.configuration import BENCHMARK_NETWORKS, Configuration, Direction, Speaker, mac_bytes
from .core.frames_spec import (
    COMPENSATION_BYTES,
    MOST_STREAMS,
    TAG_BYTES,
    ChecksumField,
    FramesSpec,
    LengthField,
    SteppingField,
    StreamOrder,
    permutation,
    size_pattern,
)
from .core.generator import Generator, late_and_copies, program_module, unknown_latency
from .core.headers import (
    ETHERNET,
    IPV4,
    IPV6,
    MAC,
    MPLS,
    SERVICE_TAG,
    TCP,
    UDP,
    VLAN,
    VXLAN,
    Header,
    HeaderField,
    headers_of,
)
from .core.links import Link
from .core.neighbours import Question
from .core.pacing import frames_within, pause
from .core.packets import ETH_P_ALL, StampedFrame, have_stamps, open_packets, overlooked, receive_stamped
from .core.passes import passes_of, why_not_in_kernel
from .core.plan import FRAMES, HOLDS, LATENCY, Answer, Control, Exchange, Plan
from .core.ports import links_in_use
from .core.protocol import PROTOCOL, AgentError, Check, Message, unsupported
from .core.requests import AgentFacts, Clock, Configure, Hello, Perform, Probe, Resolve, Stop, Through
from .core.wire import (
    ARP_ETHERTYPE,
    ETHERNET_HEADER_BYTES,
    FCS_BYTES,
    ICMPV6_PROTOCOL,
    IPV4_BYTES,
    IPV4_ETHERTYPE,
    IPV6_ETHERTYPE,
    LLDP_ETHERTYPE,
    MAC_BYTES,
    MACS_BYTES,
    PORT_BYTES,
    TCP_PROTOCOL,
    UDP_PROTOCOL,
    WORD_BYTES,
    behind_tags,
    word_sum,
)

__all__ = ["AgentError", "Answer", "Configuration", "Control", "Direction", "Generator", "Message", "Plan"]

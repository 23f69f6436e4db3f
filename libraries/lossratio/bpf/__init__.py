"""BPF without a compiler or a library: object files, and the kernel's maps, programs and attachments.

Programs on nodes import this room, too: it needs nothing but Python 3.8.
"""

from lossratio.bpf.interfaces import (
    SENDS,
    STAMPS,
    XdpFeatures,
    ask_netlink,
    attached_program,
    default_networks,
    netlink_attributes,
    xdp_features,
)
from lossratio.bpf.kernel import (
    LEAST_KERNEL,
    Array,
    BpfError,
    ProgramInfo,
    Table,
    TableType,
    XdpAction,
    XdpLink,
    XdpMode,
    XdpProgram,
    program_info,
    why_impossible,
)
from lossratio.bpf.object import ObjectFile, read_object

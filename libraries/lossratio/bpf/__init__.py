"""BPF without a compiler or a library: an assembler, and the kernel's maps, programs and attachments.

Programs on nodes import this room, too: it needs nothing but Python 3.8.
"""

from lossratio.bpf.assembler import (
    DW,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
    Assembler,
    AssemblyError,
    B,
    H,
    Helper,
    Register,
    Size,
    W,
    XdpAction,
)
from lossratio.bpf.interfaces import SENDS, ask_netlink, attached_program, netlink_attributes, xdp_features
from lossratio.bpf.kernel import (
    LEAST_KERNEL,
    Array,
    BpfError,
    ProgramInfo,
    Table,
    TableType,
    XdpLink,
    XdpMode,
    XdpProgram,
    program_info,
    why_impossible,
)

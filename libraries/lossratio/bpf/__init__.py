# SPDX-License-Identifier: Apache-2.0
"""BPF without a compiler or a library: object files, and the kernel's maps, programs and attachments.

Programs on nodes also import this room, so it needs nothing but Python 3.8.
"""

from lossratio.bpf.interfaces import ask_netlink, attached_program, may_send, netlink_attribute, netlink_attributes
from lossratio.bpf.kernel import (
    LEAST_KERNEL,
    Array,
    Attachment,
    Program,
    Table,
    TableType,
    XdpMode,
    map_names,
    possible_cpus,
    program_info,
    why_impossible,
)
from lossratio.bpf.object import ObjectFile, read_object
from lossratio.bpf.routes import Network, default_networks
from lossratio.bpf.system_call import BpfError

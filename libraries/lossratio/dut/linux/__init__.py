"""What DUTs on Linux nodes have in common, and the parts that those made of the kernel's forwarding consist of."""

from lossratio.dut.linux.kernel_dut import LinuxDut
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.options import LinuxOptions
from lossratio.dut.linux.program_dut import ProgramDut, ProgramOptions

__all__ = [
    "LinuxDut",
    "LinuxOptions",
    "NodeDut",
    "ProgramDut",
    "ProgramOptions",
]

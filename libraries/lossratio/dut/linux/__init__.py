"""The common part of DUTs on Linux nodes, and the parts of DUTs made of the kernel's forwarding."""

from lossratio.dut.linux.cores import core_choices
from lossratio.dut.linux.interfaces import lifelines_among
from lossratio.dut.linux.kernel_dut import LinuxDut, LinuxOptions
from lossratio.dut.linux.node_dut import NodeDut
from lossratio.dut.linux.program_dut import (
    BIFURCATED,
    ProgramDut,
    ProgramOptions,
    bind,
    card_driver,
    check_pci,
)

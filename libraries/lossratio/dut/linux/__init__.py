"""What DUTs made of the Linux kernel's own forwarding have in common, and the parts they are made of."""

from lossratio.dut.linux.options import LinuxOptions
from lossratio.dut.linux.path import LinuxDut

__all__ = ["LinuxDut", "LinuxOptions"]

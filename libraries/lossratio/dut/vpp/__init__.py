"""FD.io VPP as a DUT, controlled by its command line over SSH."""

from lossratio.dut.vpp.dut import Vpp
from lossratio.dut.vpp.options import VppForwarding, VppOptions

__all__ = ["Vpp", "VppForwarding", "VppOptions"]

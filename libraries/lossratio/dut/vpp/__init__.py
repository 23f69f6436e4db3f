"""FD.io VPP as a DUT, controlled by its command line over SSH."""

from lossratio.dut.vpp.configuration import VppOptions, vpp_problem
from lossratio.dut.vpp.dut import Vpp

"""FD.io VPP as a DUT, controlled by its command line over SSH."""

from lossratio.dut.vpp.configuration import VppOptions as VppOptions, vpp_problem as vpp_problem
from lossratio.dut.vpp.dut import Vpp as Vpp
from lossratio.dut.vpp.features.feature import (
    Command as Command,
    Feature as Feature,
    Needs as Needs,
    Ports as Ports,
    Shown as Shown,
    Steps as Steps,
    VppPort as VppPort,
)

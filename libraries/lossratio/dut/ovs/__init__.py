"""Open vSwitch with its userspace datapath, as a DUT of its own beside any that the system runs."""

from lossratio.dut.ovs.dut import OpenVswitch
from lossratio.dut.ovs.rules import OvsForwarding, OvsOptions

__all__ = ["OpenVswitch", "OvsForwarding", "OvsOptions"]

"""Devices under test: set up a path through a node, describe it, read its counters, and restore the earlier state."""

from lossratio.dut.base import (
    CABLE,
    EASTWARD,
    WESTWARD,
    DestinationMacs,
    Dut,
    DutCounters,
    DutOptions,
)
from lossratio.dut.black_box import BLACK_BOX, BlackBox
from lossratio.dut.changes import Changes
from lossratio.dut.option_values import AnyOptions, OptionValues
from lossratio.dut.plugins import create_dut, dut_kinds, load_kind, parse_options
from lossratio.nodes import CommandRunner

__all__ = [
    "BLACK_BOX",
    "CABLE",
    "EASTWARD",
    "WESTWARD",
    "AnyOptions",
    "BlackBox",
    "Changes",
    "CommandRunner",
    "DestinationMacs",
    "Dut",
    "DutCounters",
    "DutOptions",
    "OptionValues",
    "create_dut",
    "dut_kinds",
    "load_kind",
    "parse_options",
]

"""Devices under test: set up a path through a node, describe it, read its counters, and restore the earlier state."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from lossratio.dut.base import CABLE, EASTWARD, WESTWARD, DestinationMacs, Dut, DutCounters, DutOptions, Tool
from lossratio.dut.black_box import BLACK_BOX, BlackBox
from lossratio.dut.changes import Changes
from lossratio.dut.plugins import create_dut, dut_kinds, load_kind, parse_options, types_of_options
from lossratio.nodes import CommandRunner

if TYPE_CHECKING:
    from lossratio.dut.option_values import AnyOptions, OptionValues
else:
    AnyOptions = Mapping[str, object]

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
    "Tool",
    "create_dut",
    "dut_kinds",
    "load_kind",
    "parse_options",
    "types_of_options",
]


def __getattr__(name: str) -> Any:
    if name != "OptionValues":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Made of all kinds, so it is made for those who ask for it only.
    globals()[name] = made = TypedDict("OptionValues", types_of_options(), total=False)  # type: ignore[operator]
    return made

"""Devices under test: set up a path through a node, describe it, read its counters, and restore the earlier state."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from lossratio.dut.base import (
    EASTWARD as EASTWARD,
    WESTWARD as WESTWARD,
    DestinationMacs as DestinationMacs,
    Dut as Dut,
    DutCounters as DutCounters,
    DutOptions as DutOptions,
    Tool as Tool,
)
from lossratio.dut.black_box import BLACK_BOX as BLACK_BOX, BlackBox as BlackBox
from lossratio.dut.cable import CABLE as CABLE
from lossratio.dut.changes import Changes as Changes
from lossratio.dut.connection_table import (
    ConnectionTable as ConnectionTable,
    Established as Established,
    TcpState as TcpState,
)
from lossratio.dut.plugins import (
    create_dut as create_dut,
    dut_kinds as dut_kinds,
    load_kind as load_kind,
    make_reflector as make_reflector,
    parse_options as parse_options,
    types_of_options as types_of_options,
)
from lossratio.nodes import CommandRunner as CommandRunner

if TYPE_CHECKING:
    from lossratio.dut.option_values import AnyOptions as AnyOptions, OptionValues as OptionValues
else:
    AnyOptions = Mapping[str, object]


def __getattr__(name: str) -> Any:
    if name != "OptionValues":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # It needs all kinds to be imported, so it is made only on request.
    globals()[name] = made = TypedDict("OptionValues", types_of_options(), total=False)  # type: ignore[operator]
    return made

# ruff: noqa: F401 - what scripts import from here is imported for type checkers only, until a script asks for it
"""Benchmarks the data plane throughput of software networking with MLRsearch (RFC 9971) and PLRsearch.

The package is a Robot Framework keyword library (`lossratio.keywords`) and the Python API below it. A line
measures, also in a notebook: ``with open_testbed("topologies/local.yaml") as testbed: testbed.ndr_pdr("64B")``. With
all settings, a script imports what it needs from here::

    from pathlib import Path

    from lossratio import (
        NDR, PDR, RunDirectory, SearchRequest, TestIdentity, TestPlace,
        find_conditional_throughput, load_profile, open_testbed,
    )

    place = TestPlace(TestIdentity(name="my search", suite="mine"), RunDirectory(Path("results")))
    request = SearchRequest((NDR, PDR), load_profile("ethip4-udp", frame_size="64B"))
    with open_testbed("topologies/local.yaml", dut="linux_bridge", options={"police": "50 kfps"}) as testbed:
        result = find_conditional_throughput(testbed, request, place)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossratio.dut import OptionValues
    from lossratio.errors import LossRatioError
    from lossratio.measurements import TestPlace
    from lossratio.measurements.back_to_back import BackToBackRequest, measure_back_to_back
    from lossratio.measurements.frame_loss import FrameLossRequest, measure_frame_loss_rate
    from lossratio.measurements.latency import LatencyRequest, measure_latency
    from lossratio.measurements.mrr import MrrRequest, measure_mrr
    from lossratio.measurements.open_testbed import OpenTestbed, open_testbed
    from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
    from lossratio.measurements.reset import ResetRequest, measure_reset
    from lossratio.measurements.soak import SoakRequest, find_critical_load
    from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput, goal_from
    from lossratio.mlrsearch import (
        NDR,
        PDR,
        RFC2544,
        TST009,
        MLRsearch,
        SearchGoal,
        classify,
        conditional_throughput,
    )
    from lossratio.plrsearch import PLRsearch, estimate
    from lossratio.results import RunDirectory, TestIdentity, read_result
    from lossratio.testbed import Testbed, start_traffic
    from lossratio.traffic import TrafficProfile, load_profile
    from lossratio.trials import Controller, Journal, Measurer, TrialInput, TrialOutput, TrialResult, run_search

__version__ = "0.2.0"

_ROOMS = {
    "lossratio.dut": ("OptionValues",),
    "lossratio.errors": ("LossRatioError",),
    "lossratio.measurements": ("TestPlace",),
    "lossratio.measurements.open_testbed": ("OpenTestbed", "open_testbed"),
    "lossratio.measurements.back_to_back": ("BackToBackRequest", "measure_back_to_back"),
    "lossratio.measurements.frame_loss": ("FrameLossRequest", "measure_frame_loss_rate"),
    "lossratio.measurements.latency": ("LatencyRequest", "measure_latency"),
    "lossratio.measurements.mrr": ("MrrRequest", "measure_mrr"),
    "lossratio.measurements.recovery": ("RecoveryRequest", "measure_recovery"),
    "lossratio.measurements.reset": ("ResetRequest", "measure_reset"),
    "lossratio.measurements.soak": ("SoakRequest", "find_critical_load"),
    "lossratio.measurements.throughput": ("SearchRequest", "find_conditional_throughput", "goal_from"),
    "lossratio.mlrsearch": (
        "NDR",
        "PDR",
        "RFC2544",
        "TST009",
        "MLRsearch",
        "SearchGoal",
        "classify",
        "conditional_throughput",
    ),
    "lossratio.plrsearch": ("PLRsearch", "estimate"),
    "lossratio.results": ("RunDirectory", "TestIdentity", "read_result"),
    "lossratio.testbed": ("Testbed", "start_traffic"),
    "lossratio.traffic": ("TrafficProfile", "load_profile"),
    "lossratio.trials": ("Controller", "Journal", "Measurer", "TrialInput", "TrialOutput", "TrialResult", "run_search"),
}
# Imported when a script asks for a name: each part of the package imports this module first, and some must start fast.
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> object:
    try:
        room = _ROOM_OF[name]
    except KeyError:
        raise AttributeError(f"module 'lossratio' has no attribute {name!r}") from None
    return getattr(import_module(room), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_ROOM_OF))

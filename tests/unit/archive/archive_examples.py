from __future__ import annotations

from pathlib import Path

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

SIMULATED = Path(__file__).parents[3] / "topologies" / "simulated.yaml"


def measure(directory: Path, name: str = "64B-1c-eth-l2bdbase-ndrpdr") -> Path:
    """The directory of a run with one test, measured on the simulated testbed."""
    goal = SearchGoal(0.0, 0.5, 1.0, 1.0, 0.05)
    place = TestPlace(TestIdentity(name=name, suite="Suite"), RunDirectory(directory))
    request = SearchRequest(goals=(goal,), profile=load_profile("ethip4-udp", frame_size=64))
    find_conditional_throughput(open_testbed(SIMULATED), request, place)
    return directory

"""Testbeds and requests that the tests of measurements share."""

from __future__ import annotations

from pathlib import Path

from lossratio.measurements.measurement import TestPlace
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile

ROOT = Path(__file__).parents[2]
SIMULATED = ROOT / "topologies" / "simulated.yaml"
NO_LOSS = SearchGoal(0.0, 0.5, 1.0, 1.0, 0.01, name="no loss")
PROFILE = load_profile("ethip4-udp", frame_size=64)


def place(directory: Path, name: str = "a test", resume: Path | None = None) -> TestPlace:
    earlier = None if resume is None else RunDirectory(resume)
    return TestPlace(TestIdentity(name=name, suite="a suite"), RunDirectory(directory), earlier)


def policed(**options):
    return open_testbed(SIMULATED, dut="linux_bridge", options=options)

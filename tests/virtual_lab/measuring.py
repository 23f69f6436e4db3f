"""Measurements of few frames, whose truth is a count."""

from __future__ import annotations

from pathlib import Path

from lossratio import RunDirectory, TestIdentity, TestPlace, load_profile
from lossratio.measurements.measure import measure
from lossratio.measurements.mrr import MrrRequest, MrrResult
from lossratio.results.kinds import kind_of
from lossratio.testbed import Testbed

LOAD, SECONDS = 50.0, 4.0


def count_through(testbed: Testbed, directory: Path, *, trials: int = 1) -> MrrResult:
    """Sends frames each way through an open testbed, in each of the trials."""
    request = MrrRequest(
        profile=load_profile("ethip4-udp", frame_size=128), max_load=LOAD, trials=trials, trial_duration=SECONDS
    )
    place = TestPlace(TestIdentity(name="virtual lab", suite="virtual lab"), RunDirectory(directory))
    return measure(kind_of("mrr"), testbed, request, place)

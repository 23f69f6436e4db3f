"""Measurements of few frames, whose truth is a count."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossratio import RunDirectory, TestIdentity, TestPlace, load_profile
from lossratio.measurements.measure import measure
from lossratio.measurements.mrr import MrrRequest, MrrResult
from lossratio.measurements.throughput import SearchRequest
from lossratio.results.kinds import kind_of
from lossratio.testbed import Recovery, Testbed, open_testbed

LOAD, SECONDS = 50.0, 4.0
FRAMES = round(LOAD * SECONDS)
"""Frames of each direction of a trial."""
GOAL = '{"loss_ratio": 0, "final_trial_duration": "2 s", "duration_sum": "4 s", "width": "5 %"}'
"""A goal that needs few trials, as suites have it."""
PATIENTLY = Recovery(patience=120.0)
"""An emulated machine takes over 30 s to load programs for XDP if its host is busy."""


def count_frames(
    topology: Path,
    directory: Path,
    dut: str | None = None,
    *,
    profile: str = "ethip4-udp",
    options: Mapping[str, Any] | None = None,
) -> MrrResult:
    """Sends frames each way over a testbed that is opened and closed for it, with a DUT with these options."""
    with open_testbed(topology, dut=dut, options=options, recovery=PATIENTLY) as testbed:
        return count_through(testbed, directory, profile=profile)


def count_through(testbed: Testbed, directory: Path, *, trials: int = 1, profile: str = "ethip4-udp") -> MrrResult:
    """Sends frames each way through an open testbed, in each of the trials."""
    request = MrrRequest(
        profile=load_profile(profile, frame_size=128), max_load=LOAD, trials=trials, trial_duration=SECONDS
    )
    return measure(kind_of("mrr"), testbed, request, place(directory))


def place(directory: Path) -> TestPlace:
    """Where a measurement's files go."""
    return TestPlace(TestIdentity(name="virtual lab", suite="virtual lab"), RunDirectory(directory))


def received(result: MrrResult) -> list[tuple[int, ...]]:
    """Frames that arrived, of each trial's directions."""
    return [tuple(direction.received_frames for direction in trial.directions) for trial in result.trials]


def search(topology: Path, directory: Path, dut: str, options: Mapping[str, Any]) -> None:
    """Searches for what a DUT with these options passes without loss, at a few hundred frames per second."""
    profile = load_profile("ethip4-udp", frame_size=128)
    request = SearchRequest(profile=profile, goals=(GOAL,), min_load=100.0, max_load=2000.0)
    with open_testbed(topology, dut=dut, options=options, recovery=PATIENTLY) as testbed:
        measure(kind_of("throughput"), testbed, request, place(directory))


def bounds(directory: Path, fps: float, burst: int, *reasons: str) -> tuple[float, float]:
    """Relevant bounds of the only result of a run, as shares of what a policer passes in trials of its only goal.

    The result is regular, or irregular for one of the reasons.
    """
    (result,) = RunDirectory(directory).results()
    (found,) = result.goals
    assert found.result.reason in (None, *reasons)
    truth = fps + (burst - 1) / found.goal.final_trial_duration_s
    lower, upper = found.result.relevant_lower_bound, found.result.relevant_upper_bound
    return lower.per_interface_fps / truth, upper.per_interface_fps / truth

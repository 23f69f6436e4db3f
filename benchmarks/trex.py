"""TRex in software mode: what it finds for six policers in the local testbed, and what its trials cost.

A policer of rate N and burst B passes N + (B - 1)/T frames per second in trials of T seconds from rest. TRex runs from
the installation that TREX_HOME names. With --beside, or without TREX_HOME, the embedded generator is measured, too. On
a busy machine, the embedded generator is stalled for milliseconds in most trials; the policers' buckets hold the frames
that it then makes up for.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.topology import TREX_HOME
from lossratio.traffic import TrafficProfile, load_profile
from lossratio.trials import TrialInput, missing_frames

TOPOLOGIES = Path(__file__).parent.parent / "topologies"
GENERATORS = {"embedded": TOPOLOGIES / "local.yaml", "TRex": TOPOLOGIES / "local-trex.yaml"}
SHAPES: tuple[dict[str, Any], ...] = (
    {"frame_size": 64},
    {"frame_size": 1518},
    {"frame_size": "IMIX_v4_1"},
    {"frame_size": 78, "name_or_path": "ethip6-udp"},
    {"frame_size": 68, "name_or_path": "dot1q-ip4base"},
    {"frame_size": 64, "bidirectional": False},
)
POLICER = (10_000, 5_000)
"""Rate and burst of the policer of each shape."""

LOADS = (50_000, 100_000, 200_000)
TRIALS = 8
TOLERANCE = 3e-4
"""Share by which a policer may miss what it should pass."""

BATCH = 2e-3
"""Seconds of traffic that TRex in software mode may send at once, so that the policer's rate counts for less time."""


@dataclass(frozen=True)
class Outcome:
    """The bounds of a policer with one generator, in frames per second per interface."""

    lower: float
    """The relevant lower bound."""
    upper: float
    """The relevant upper bound."""
    trials: int
    """How many trials it took."""
    version: str
    """The generator's version."""
    reason: str | None
    """Why the result is irregular; None if it is regular."""


@click.command(help=__doc__)
@click.option("--duration", default=2.0, show_default=True, help="Seconds of a trial.")
@click.option("--width", default=0.005, show_default=True, help="Relative width that bounds must reach.")
@click.option("--catch-up", default="50 ms", show_default=True, help="What the embedded generator makes up for.")
@click.option("--policer", default=POLICER, show_default=True, type=(int, int), help="Rate N and burst B.")
@click.option("--beside", is_flag=True, help="Measure with the embedded generator, too.")
def main(duration: float, width: float, catch_up: str, policer: tuple[int, int], beside: bool) -> None:
    """Measures everything, and prints two tables."""
    home = os.environ.get(TREX_HOME)
    names = ["embedded"] * (beside or not home) + ["TRex"] * bool(home)
    rate, burst = policer
    truth = rate + (burst - 1) / duration
    print(f"A real TRex server: {f'yes, from {home}' if home else f'no, {TREX_HOME} is not set'}.")
    print(
        f"Trials of {duration:g} s, goal width {width:.2%}; a policer of {rate} and {burst} passes {truth:.0f} fps.\n"
    )
    print(f"{'frames':>34}  {'generator':10} {'lower':>9} {'upper':>9} {'trials':>7}  encloses the truth")
    with tempfile.TemporaryDirectory() as directory:
        files = {name: with_catch_up(GENERATORS[name], catch_up, Path(directory)) for name in names}
        for shape in SHAPES:
            profile = load_profile(**{"name_or_path": "ethip4-udp", **shape})
            for name, file in files.items():
                outcome = search(file, rate, burst, duration, width, profile)
                print(
                    f"{described(shape):>34}  {name:10} {outcome.lower:9.1f} {outcome.upper:9.1f} {outcome.trials:7}"
                    f"  {verdict(outcome, truth, rate * BATCH / duration)}  ({outcome.version})"
                )
        for name, file in files.items():
            costs(name, file)


def described(shape: Mapping[str, Any]) -> str:
    """Frames in words."""
    way = "both ways" if shape.get("bidirectional", True) else "one way"
    return f"{shape.get('name_or_path', 'ethip4-udp')}, {shape['frame_size']}, {way}"


def costs(name: str, file: Path) -> None:
    """Prints what trials of 1 s take beside their traffic, how well they keep a load, and who lost frames.

    The bridge between the ports forwards more than that, so what is lost beyond the frames that the generator itself
    dropped is in doubt.
    """
    print(f"\n{name}: {TRIALS} trials of 1 s, both ways, through a bridge; medians, and the worst in parentheses")
    names = f"{'load':>8} {'beside the traffic':>24} {'stretch':>24} {'unsent':>22} {'lost':>8} {'by generator':>14}"
    print(f"{names} {'measured again':>15}")
    profile = load_profile("ethip4-udp", frame_size=64)
    with closing(open_testbed(file, dut="linux_bridge")) as testbed, testbed.ready_for(profile) as ready:
        waits = ready.conditions.timing.wait_after_s
        for load in LOADS:
            outputs = [ready.measurer.measure(TrialInput(1.0, float(load))) for _ in range(TRIALS)]
            cost = [1e3 * ((output.elapsed or 1.0) - 1.0 - waits) for output in outputs]
            stretch = [1e3 * max(each.stretch_s or 0.0 for each in output.directions) for output in outputs]
            unsent = [(output.unsent_frames or 0) / (2 * load) for output in outputs]
            lost = sum(output.lost_frames or 0 for output in outputs)
            again = sum(output.repeats > 0 for output in outputs)
            dropped = sum(known.generator_drops for output in outputs if (known := missing_frames(output)))
            print(
                f"{load:8} {_both(cost, '{:.1f} ms'):>24} {_both(stretch, '{:.1f} ms'):>24} "
                f"{_both(unsent, '{:.3%}'):>22} {lost:8} {dropped:14} {f'{again} of {TRIALS}':>15}"
            )


def _both(values: Sequence[float], form: str) -> str:
    return f"{form.format(statistics.median(values))} ({form.format(max(values))})"


def with_catch_up(file: Path, catch_up: str, directory: Path) -> Path:
    """A copy of a topology file whose generator, if it is the embedded one, makes up for longer stalls."""
    copy = directory / file.name
    copy.write_text(file.read_text().replace("catch_up: 5 ms", f"catch_up: {catch_up}"))
    return copy


def search(file: Path, rate: int, burst: int, duration: float, width: float, profile: TrafficProfile) -> Outcome:
    """Searches for the largest load without loss through a policer."""
    goal = SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.75,
        initial_trial_duration=duration,
        final_trial_duration=duration,
        duration_sum=duration,
        width=width,
    )
    request = SearchRequest(goals=(goal,), profile=profile, min_load=0.5 * rate, max_load=2.0 * rate)
    options = {"police": str(rate), "burst": str(burst)}
    opened = open_testbed(file, dut="linux_bridge", options=options)
    with tempfile.TemporaryDirectory() as directory, closing(opened) as testbed:
        place = TestPlace(TestIdentity(name=f"{file.stem} {rate}", suite="trex"), RunDirectory(Path(directory)))
        result = find_conditional_throughput(testbed, request, place)
    (report,) = result.goals
    if report.result is None:
        raise click.ClickException(f"{file.stem}: {result.error}")
    lower, upper = report.result.relevant_lower_bound, report.result.relevant_upper_bound
    if lower is None or upper is None:
        raise click.ClickException(f"{file.stem}: no regular result: {report.result.reason}")
    version = str(result.conditions.generator.get("version") or result.conditions.generator["kind"])
    return Outcome(lower.per_interface_fps, upper.per_interface_fps, len(result.trials), version, report.result.reason)


def verdict(outcome: Outcome, truth: float, missing: float) -> str:
    """Whether the bounds enclose the truth, except for what a batch of the generator may cost."""
    if outcome.reason is not None:
        return f"irregular: {outcome.reason}"
    if outcome.lower <= truth * (1 + TOLERANCE) and outcome.upper >= truth * (1 - TOLERANCE) - missing:
        return "yes"
    return "NO"


if __name__ == "__main__":
    main()

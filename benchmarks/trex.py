"""TRex beside the embedded generator: what both find for the same policers in the local testbed.

A policer of rate N and burst B passes N + (B - 1)/T frames per second in trials of T seconds from rest. TRex runs in
software mode, from the installation that TREX_HOME names; without it only the embedded generator is measured. That one
is stalled for milliseconds in most trials of a busy machine; the policers' buckets hold what it makes up for then.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import SearchRequest, find_conditional_throughput
from lossratio.mlrsearch import SearchGoal
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile
from lossratio.traffic.generators.trex import TREX_HOME

TOPOLOGIES = Path(__file__).parent.parent / "topologies"
GENERATORS = {"embedded": TOPOLOGIES / "local.yaml", "TRex": TOPOLOGIES / "local-trex.yaml"}
POLICERS = ((10_000, 5_000), (20_000, 10_000))
TOLERANCE = 3e-4
"""Share by which a policer may miss what it should pass."""

BATCH = 0.01
"""Seconds of traffic that TRex in software mode may send at once, so that the policer's rate counts for less time."""


@dataclass(frozen=True)
class Outcome:
    """The bounds of a policer with one generator, in frames per second per interface.

    Attributes:
        lower: The relevant lower bound.
        upper: The relevant upper bound.
        trials: How many trials it took.
        version: The generator's version.
        reason: Why the result is irregular; None if it is regular.
    """

    lower: float
    upper: float
    trials: int
    version: str
    reason: str | None


@click.command(help=__doc__)
@click.option("--duration", default=4.0, show_default=True, help="Seconds of a trial.")
@click.option("--width", default=0.005, show_default=True, help="Relative width that bounds must reach.")
@click.option("--catch-up", default="50 ms", show_default=True, help="What the embedded generator makes up for.")
@click.option("--policer", "policers", multiple=True, type=(int, int), help="Rate N and burst B; may be repeated.")
def main(duration: float, width: float, catch_up: str, policers: tuple[tuple[int, int], ...]) -> None:
    """Measures everything, and prints a table."""
    home = os.environ.get(TREX_HOME)
    generators = dict(GENERATORS) if home else {"embedded": GENERATORS["embedded"]}
    print(f"A real TRex server: {f'yes, from {home}' if home else f'no, {TREX_HOME} is not set'}.")
    print(f"Trials of {duration:g} s, goal width {width:.2%}, 64 byte frames both ways; frames/s per interface.\n")
    print(f"{'N, B':>14} {'truth':>9}  {'generator':10} {'lower':>9} {'upper':>9} {'trials':>7}  encloses the truth")
    for rate, burst in policers or POLICERS:
        truth = rate + (burst - 1) / duration
        with tempfile.TemporaryDirectory() as directory:
            files = {name: with_catch_up(file, catch_up, Path(directory)) for name, file in generators.items()}
            outcomes = {name: search(file, rate, burst, duration, width) for name, file in files.items()}
        for name, outcome in outcomes.items():
            print(
                f"{f'{rate}, {burst}':>14} {truth:9.0f}  {name:10} "
                f"{outcome.lower:9.1f} {outcome.upper:9.1f} {outcome.trials:7}"
                f"  {verdict(outcome, truth, rate * BATCH / duration if name == 'TRex' else 0.0)}  ({outcome.version})"
            )
        if len(outcomes) == 2:
            print(f"{'':24}  they differ by {difference(*outcomes.values()):.2%}, the goal's width is {width:.2%}")


def with_catch_up(file: Path, catch_up: str, directory: Path) -> Path:
    """A copy of a topology file whose generator, if it is the embedded one, makes up for longer stalls."""
    copy = directory / file.name
    copy.write_text(file.read_text().replace("catch_up: 5 ms", f"catch_up: {catch_up}"))
    return copy


def search(file: Path, rate: int, burst: int, duration: float, width: float) -> Outcome:
    """Searches for the largest load without loss through a policer."""
    goal = SearchGoal(
        loss_ratio=0.0,
        exceed_ratio=0.75,
        initial_trial_duration=duration,
        final_trial_duration=duration,
        duration_sum=duration,
        width=width,
    )
    request = SearchRequest(
        (goal,), load_profile("ethip4-udp", frame_size=64), min_load=0.5 * rate, max_load=2.0 * rate
    )
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
    """Whether the bounds enclose the truth, or the one that batches of the generator's own make of it."""
    if outcome.reason is not None:
        return f"irregular: {outcome.reason}"
    if outcome.lower <= truth * (1 + TOLERANCE) and outcome.upper >= truth * (1 - TOLERANCE):
        return "yes"
    if outcome.lower <= truth and outcome.upper >= truth * (1 - TOLERANCE) - missing:
        return f"yes, less what {BATCH * 1e3:g} ms of batches cost"
    return "NO"


def difference(one: Outcome, other: Outcome) -> float:
    """Relative difference of two lower bounds."""
    return abs(one.lower - other.lower) / max(one.lower, other.lower)


if __name__ == "__main__":
    main()

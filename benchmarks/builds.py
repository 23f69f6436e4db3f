"""Bisections and comparisons of builds: how often they are right, and how much they measure.

    python benchmarks/builds.py noise --repetitions 0 --measure 240

The tables are in `records/builds.md`, `records/bisections.md` and `records/builds-in-place.md`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import click
import numpy as np

from lossratio.measurements.open_testbed import open_testbed
from lossratio.runs.builds import AbRequest, Bisection, Build, BuildComparison, ComparisonVerdict
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput
from lossratio.values.units import parse_frame_rate


@click.group(help=__doc__)
def main() -> None:
    """Bisections and comparisons of builds."""


TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
COMPARISONS = 100
SLOWDOWN = 0.05
LEAST_CHANGE, CERTAINTY = 0.03, 0.99
"""The values of the action for pull requests."""

EFFECTS = ((-0.10, 0.003), (-0.05, 0.01), (-0.03, 0.01), (0.02, 0.01))

OTHER_WORK = ("none", "5 % lose 10 to 60 %", "6 % in the mean")
"""What other programs take from a trial of a machine: nothing, much of a few trials, or an exponential part of each."""

NOISE, DRIFT, DRIFT_SECONDS = 0.057, 0.02, 7.5
"""Standard deviation of a trial of 0.1 s, and of the slow change of the machine, within so many seconds."""

TRIALS, BEST, TRIAL_SECONDS, EXCHANGE_SECONDS, MOST_SECONDS = 10, 5, 0.12, 0.5, 590.0
"""Trials of a turn, how many of them count, and seconds of a trial, of an exchange of builds, and of a comparison."""


@main.command("noise")
@click.option("--repetitions", default=200, show_default=True)
@click.option("--revisions", multiple=True, type=int, default=(8, 64, 512), show_default=True)
@click.option("--measure", "seconds", type=click.FloatRange(min=0.0), default=0.0, help="Measure for so many seconds.")
@click.option("--trial", default=0.05, show_default=True, help="Seconds of a measured trial.")
@click.option("--trials", default=1, show_default=True, help="Trials of a measurement.")
@click.option("--load", default="400 kfps", show_default=True, help="More than the bridge forwards.")
@click.option("--in-place", "seed", type=int, help="Simulate comparisons in place, with this seed.")
def with_noise(
    repetitions: int, revisions: tuple[int, ...], seconds: float, trial: float, trials: int, load: str, seed: int | None
) -> None:
    """Simulates noise: how often bisections and comparisons are right, and how much they measure.

    Beside the bisection are the results of five measurements at each midpoint and at both ends. With --measure the
    noise is that of this machine: a bridge in network namespaces is measured, and compared with itself.

    With --in-place, comparisons are simulated whose builds are exchanged in place. The comparison draws the order of
    its pairs itself, and the seed is only for the noise.
    """
    if seed is not None:
        simulate_in_place(seed, repetitions)
    elif repetitions:
        simulate(repetitions, revisions)
    if seconds:
        compare_with_itself(rates_of_bridge(seconds, trial, trials, load))


def simulate(repetitions: int, revisions: tuple[int, ...]) -> None:
    """Prints both tables of simulated noise."""
    random = np.random.default_rng(1)
    click.echo("bisection")
    heads = ("revisions", "change", "noise", "right", "mean", "95 %", "five each", "right")
    click.echo("  ".join(f"{head:>9}" for head in heads))
    for count in revisions:
        for change, noise in EFFECTS:
            right, counts = zip(*(bisected(random, count, change, noise) for _ in range(repetitions)), strict=True)
            plain, five = zip(*(five_each(random, count, change, noise) for _ in range(repetitions)), strict=True)
            columns = (f"{count}", f"{change:.1%}", f"{noise:.1%}", f"{np.mean(right):.1%}", f"{np.mean(counts):.1f}")
            more = (f"{np.percentile(counts, 95):.0f}", f"{np.mean(five):.0f}", f"{np.mean(plain):.1%}")
            click.echo("  ".join(f"{column:>9}" for column in (*columns, *more)))
    click.echo("\ncomparison (least change 1 %)")
    click.echo(f"{'change':>7}  {'noise':>6}  {'mean':>6}  verdicts")
    for change, noise in ((0.0, 0.003), (0.0, 0.01), (0.0, 0.03), *EFFECTS, (-0.05, 0.03)):
        verdicts, counts = zip(*(compared(random, change, noise) for _ in range(repetitions)), strict=True)
        shares = ", ".join(f"{verdict} {number / repetitions:.1%}" for verdict, number in Counter(verdicts).items())
        click.echo(f"{change:>7.1%}  {noise:>6.1%}  {np.mean(counts):>6.1f}  {shares}")


def simulate_in_place(seed: int, repetitions: int) -> None:
    """Prints the verdicts of comparisons whose builds are exchanged in place, and how long they take."""
    for change in (0.0, -0.05, -0.01):
        for work in OTHER_WORK:
            ends = [turns(np.random.default_rng((seed, number)), change, work) for number in range(repetitions)]
            verdicts, seconds = zip(*ends, strict=True)
            shares = ", ".join(f"{number} {verdict}" for verdict, number in sorted(Counter(verdicts).items()))
            middle, most = np.mean(seconds), np.percentile(seconds, 90)
            click.echo(f"{change:>7.1%}  {work:>20}  {shares}  {middle:.0f} s, 90 % {most:.0f} s")


def turns(random: np.random.Generator, change: float, work: str) -> tuple[str, float]:
    """Compares once in turns: the verdict, and the seconds that it took."""
    comparison = BuildComparison(AbRequest(limit=100_000))
    seconds, machine, present = 0.0, DRIFT * random.standard_normal(), None
    while (build := comparison.next_build()) is not None and seconds < MOST_SECONDS:
        passed = TRIALS * TRIAL_SECONDS + EXCHANGE_SECONDS * (build is not present)
        seconds, present = seconds + passed, build
        kept = np.exp(-passed / DRIFT_SECONDS)
        machine = kept * machine + DRIFT * np.sqrt(1.0 - kept**2) * random.standard_normal()
        rates = 1.0 + machine + NOISE * random.standard_normal(TRIALS)
        if work == OTHER_WORK[1]:
            rates *= 1.0 - (random.random(TRIALS) < 0.05) * random.uniform(0.1, 0.6, TRIALS)
        elif work == OTHER_WORK[2]:
            rates *= np.exp(-random.exponential(0.06, TRIALS))
        comparison.record(float(np.mean(np.sort(rates)[-BEST:])) * (1.0 + change * (build is Build.B)))
    return comparison.result().verdict.value, seconds


def bisected(random: np.random.Generator, revisions: int, change: float, noise: float) -> tuple[bool, int]:
    """Bisects once: whether it was right, and the number of measurements."""
    first = int(random.integers(1, revisions + 1))
    search = Bisection([str(number) for number in range(revisions + 1)], limit=1000)
    while (revision := search.next_revision()) is not None:
        mean = 1.0 + change * (int(revision) >= first)
        search.record(revision, mean * (1.0 + noise * random.standard_normal()))
    result = search.result()
    return result.candidates == (str(first),), result.measurements


def five_each(random: np.random.Generator, revisions: int, change: float, noise: float) -> tuple[bool, int]:
    """Measures both ends and every midpoint five times: whether that was right, and the number of measurements."""
    first = int(random.integers(1, revisions + 1))

    def measured(revision: int) -> float:
        return float(np.mean((1.0 + change * (revision >= first)) * (1.0 + noise * random.standard_normal(5))))

    low, high, steps = 0, revisions, 2
    border = 0.5 * (measured(low) + measured(high))
    while high - low > 1:
        middle, steps = (low + high) // 2, steps + 1
        changed = (measured(middle) > border) == (change > 0)
        low, high = (low, middle) if changed else (middle, high)
    return high == first, 5 * steps


def compared(random: np.random.Generator, change: float, noise: float) -> tuple[str, int]:
    """Compares once: the verdict, and the number of measurements."""
    comparison = BuildComparison(AbRequest())
    while (build := comparison.next_build()) is not None:
        mean = 1.0 + change * (build is Build.B)
        comparison.record(mean * (1.0 + noise * random.standard_normal()))
    result = comparison.result()
    return result.verdict.value, result.measurements


def rates_of_bridge(seconds: float, trial: float, trials: int, load: str) -> list[float]:
    """Maximum receive rates of a bridge, frames per second in both directions, each the mean of some trials."""
    rates: list[float] = []
    with open_testbed(TOPOLOGY, dut="linux_bridge") as testbed:
        profile = load_profile("ethip4-udp", frame_size="64B")
        with testbed.ready_for(profile) as ready:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                output = ready.measurer.measure(TrialInput(trial, parse_frame_rate(load)))
                rates.append(sum(direction.received_frames for direction in output.directions) / trial)
    whole = len(rates) // trials * trials
    return [float(rate) for rate in np.mean(np.reshape(rates[:whole], (-1, trials)), axis=1)]


def compare_with_itself(values: list[float]) -> None:
    """Prints how often the bridge is said to differ from itself, and how often a slowdown of B is found.

    The comparisons begin at evenly spaced places of one sequence of measurements, and go on at its beginning where it
    ends. With a slowdown, the values of B are lowered.
    """
    noise = np.std(values) / np.mean(values)
    neighbours = np.std(np.diff(values)) / np.sqrt(2.0) / np.mean(values)
    click.echo(
        f"{len(values)} measurements, mean {np.mean(values):,.0f} fps, noise {noise:.1%}, of neighbours "
        f"{neighbours:.1%}, load of the machine {os.getloadavg()[0]:.1f}; {COMPARISONS} comparisons, least change "
        f"{LEAST_CHANGE:.0%}, certainty {CERTAINTY:.0%}"
    )
    click.echo(f"{'limit':>6}  {'B':>8}  {'measurements, mean':>18}  {'most':>5}  verdicts")
    for limit in (40, 120, 400):
        for slowdown in (0.0, SLOWDOWN):
            starts = np.linspace(0, len(values), COMPARISONS, endpoint=False).astype(int)
            verdicts, counts = zip(*(cut(values, int(start), slowdown, limit) for start in starts), strict=True)
            shares = ", ".join(f"{verdict.value} {number}" for verdict, number in Counter(verdicts).most_common())
            what = "the same" if slowdown == 0.0 else f"-{slowdown:.0%}"
            click.echo(f"{limit:>6}  {what:>8}  {np.mean(counts):>18.1f}  {max(counts):>5}  {shares}")


def cut(values: list[float], start: int, slowdown: float, limit: int) -> tuple[ComparisonVerdict, int]:
    """Compares the measurements from one of them on: the verdict, and the number of measurements."""
    comparison = BuildComparison(AbRequest(LEAST_CHANGE, limit, CERTAINTY))
    place = start
    while (build := comparison.next_build()) is not None:
        comparison.record(values[place % len(values)] * (1.0 - slowdown * (build is Build.B)))
        place += 1
    result = comparison.result()
    return result.verdict, result.measurements


if __name__ == "__main__":
    main()

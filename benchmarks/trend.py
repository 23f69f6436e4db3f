"""Trends: how long they take, how often their alarms are false, and how well they report SUTs with two states.

    python benchmarks/trend.py time --results 100000 --nights 100
    python benchmarks/trend.py alarms --series 400 --nights 60
    python benchmarks/trend.py bands --series 40
    python benchmarks/trend.py testbeds --testbeds 100

All figures come from simulated histories.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click
import jumpavg
import numpy as np
import numpy.typing as npt
from report import timed

from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import Verdict
from lossratio.report.history import trend_page
from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.archive import ObjectStore, Outbox, mirror_history
from lossratio.report.history.series import Series, SeriesKey, series_of
from lossratio.report.history.steps import Values, group_starts
from lossratio.report.history.store import History
from lossratio.report.history.trend import Trend, TrendRules, trends_of
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.values.units import FRAMES_PER_SECOND


@click.group(help=__doc__)
def main() -> None:
    """Trends of simulated series and runs."""


START = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)
QUIET = 10
"""Nights without a change before the first one that is judged."""

NIGHTS = 80
KNOWN_AFTER = 40
"""Nights after which the bands of a series should be known."""

ASKED = (10, 20, 40)
"""Nights after which the benchmark asks whether they are."""

CHANGE_AT = 60
"""Nights before the real change, in series that have one."""

WATCHED = 8
"""Nights in which the real change should be reported."""


@main.command("time")
@click.option("--results", default=100_000, show_default=True, help="Results in the history.")
@click.option("--nights", default=100, show_default=True, help="Results of each series; one file is added each night.")
@click.option("--jumpavg-series", default=5, show_default=True, help="Series that jumpavg gets; it is extrapolated.")
def time_it(results: int, nights: int, jumpavg_series: int) -> None:
    """How long the trends of a long history take, beside jumpavg alone on the same series."""
    tests = results // nights
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        click.echo(f"{tests} series of {nights} results, in {nights} files")
        click.echo(f"{'step':<40}{'elapsed s':>10}{'CPU s':>10}")
        timed("write", lambda: write(history, tests, nights))
        stored = timed("read (DuckDB)", history.read)
        series = timed("divide into series", lambda: list(series_of(stored.table, nights)))
        values = [one_series.values for one_series in series]
        ours = timed("find steps (lossratio)", lambda: [group_starts(row) for row in values])
        analysis = timed("all: read, divide, find, judge", lambda: analyse(history, TrendRequest(last=nights)))
        page = timed("draw the page of the lab", lambda: trend_page(analysis, "lab"))
        click.echo(f"The page has {len(page.encode()) / 1e6:.0f} MB.")
        theirs = timed(
            f"find steps (jumpavg), {jumpavg_series} series", lambda: [starts(row) for row in values[:jumpavg_series]]
        )
        click.echo(f"jumpavg would take {tests / jumpavg_series:.0f} times as long for all of them.")
        click.echo(f"Same steps in these: {ours[:jumpavg_series] == theirs}")


def write(history: History, tests: int, nights: int) -> None:
    """Adds a night's results at a time; a twentieth of the tests change in a night."""
    randomness = np.random.default_rng(1)
    means = randomness.uniform(1e6, 3e7, tests)
    for night in range(nights):
        means *= np.where(randomness.random(tests) < 0.05, randomness.uniform(0.8, 1.25, tests), 1.0)
        values = randomness.normal(means, 0.005 * means)
        history.add(
            {
                "testbed": "lab",
                "test": f"test-{number}",
                "quantity": "NDR",
                "started": START + timedelta(days=night),
                "seconds": 60.0,
                "value": value,
                "outcome": "measured",
                "unit": FRAMES_PER_SECOND.name,
                "lower_is_better": False,
            }
            for number, value in enumerate(values.tolist())
        )


def starts(values: Values) -> Sequence[int]:
    """Where jumpavg's groups begin."""
    sizes = [len(group) for group in jumpavg.classify(values.tolist())]
    return [sum(sizes[:index]) for index in range(len(sizes))]


@main.command("alarms")
@click.option("--series", "count", default=400, show_default=True, help="Number of series.")
@click.option("--nights", default=60, show_default=True, help="Nights that are judged.")
@click.option("--noise", default=0.5, show_default=True, help="Standard deviation of the noise, per cent.")
@click.option("--bad", default=2.0, show_default=True, help="Share of bad nights, per cent.")
@click.option("--drop", default=10.0, show_default=True, help="How much lower the value of a bad night is, per cent.")
@click.option("--change", default=3.0, show_default=True, help="Size of the real change, per cent.")
def count_alarms(count: int, nights: int, noise: float, bad: float, drop: float, change: float) -> None:
    """How often a trend raises an alarm although nothing changed, and how soon it reports a real change."""
    randomness = np.random.default_rng(1)
    shape = (count, QUIET + nights)
    quiet = 1e6 * (1.0 + randomness.normal(0.0, noise / 100, shape))
    bad_nights = randomness.random(shape) < bad / 100
    bad_nights[:, :QUIET] = False
    spoiled = np.where(bad_nights, quiet * (1.0 - drop / 100), quiet)
    changed = quiet.copy()
    changed[:, QUIET:] *= 1.0 - change / 100
    click.echo(f"{count} series, {nights} nights, noise {noise:g} %")
    spoiling, seeing = f"false, {bad:g} % bad nights", f"nights to see -{change:g} %"
    click.echo(f"{'--confirm':>9}{'false, noise only':>20}{spoiling:>24}{seeing:>24}")
    for confirm in (1, 2, 3):
        false_quiet, false_bad = (alarms(values, nights, confirm).mean() for values in (quiet, spoiled))
        first = alarms(changed, 10, confirm)
        seen = np.where(first.any(axis=0), first.argmax(axis=0) + 1, np.inf)
        late = f"median {np.median(seen):.0f}, {np.isinf(seen).mean():.1%} never"
        click.echo(f"{confirm:>9}{false_quiet:>20.3%}{false_bad:>24.3%}{late:>24}")


def alarms(values: Values, nights: int, confirm: int) -> npt.NDArray[np.bool_]:
    """Whether each night (row) raises an alarm for each series (column)."""
    rows = []
    for night in range(QUIET + 1, QUIET + nights + 1):
        trends = trends_of([as_series(row[:night]) for row in values], rules=TrendRules(confirm=confirm))
        rows.append([trend.verdict is Verdict.REGRESSION for trend in trends])
    return np.array(rows)


def as_series(values: Values) -> Series:
    """Values of consecutive nights as a series of the history."""
    times = [START + timedelta(days=day) for day in range(len(values))]
    return Series(SeriesKey("lab", "test", "NDR"), {"started": times, "value": [*values], "unit": ["fps"] * len(times)})


@main.command("bands")
@click.option("--series", "count", default=40, show_default=True, help="Number of series of each kind.")
@click.option("--change", default=3.0, show_default=True, help="Size of the real change, per cent.")
def find_bands(count: int, change: float) -> None:
    """How well a trend reports SUTs that flip between two states, and what that costs for series without bands."""
    randomness = np.random.default_rng(1)
    click.echo(f"two bands, {count} series each, {NIGHTS} nights; a real change of -{change:g} % after {CHANGE_AT}")
    known = [f"after {nights}" for nights in ASKED]
    heads = ("gap", "noise", "flips", *known, "alarms", "by steps", "right", "found", "nights")
    click.echo("  ".join(f"{head:>8}" for head in heads))
    every: list[bool] = []
    for gap, noise in ((0.02, 0.003), (0.05, 0.005), (0.1, 0.01), (0.2, 0.01)):
        for flips in (0.5, 0.3, 0.15):
            right, row = _banded(randomness, count, gap, noise, flips, change / 100)
            every += right
            click.echo("  ".join(f"{cell:>8}" for cell in (f"{gap:.0%}", f"{noise:.1%}", f"{flips:.0%}", *row)))
    click.echo(f"right in all: {np.mean(every):.1%} of {len(every)}\n")
    click.echo(f"one band, {5 * count} series each, 60 nights")
    for name, series in _plain(randomness, 5 * count):
        trends = trends_of([as_series(values) for values in series])
        click.echo(f"{name:>40}: {np.mean([trend.bands is not None for trend in trends]):.2%} called bands")


def _banded(
    randomness: np.random.Generator, count: int, gap: float, noise: float, flips: float, change: float
) -> tuple[list[bool], tuple[str, ...]]:
    states = np.array([_states(randomness, flips) for _ in range(count)])
    values = 1e6 * np.where(states, 1.0, 1.0 - gap) * (1.0 + noise * randomness.standard_normal(states.shape))
    fallen = values.copy()
    fallen[:, CHANGE_AT:] *= 1.0 - change
    nights = range(KNOWN_AFTER + 1, NIGHTS + 1)
    judged = [_judged(values, night) for night in nights]
    alarms = np.array([[_is_alarm(trend) for trend in trends] for trends in judged])
    by_steps = np.mean([_changed_steps(values, night) for night in nights])
    called = {nights: _called(values, nights) for nights in ASKED}
    right = np.array([trend.bands is not None for trend in judged[-1]]) & ~alarms.any(axis=0)
    seen = np.array(
        [[_is_alarm(trend) for trend in _judged(fallen, CHANGE_AT + night)] for night in range(1, WATCHED + 1)]
    )
    first = np.where(seen.any(axis=0), seen.argmax(axis=0) + 1, np.inf)
    return list(right), (
        *(f"{share.mean():.0%}" for share in called.values()),
        f"{alarms.mean():.2%}",
        f"{by_steps:.2%}",
        f"{right.mean():.1%}",
        f"{seen.any(axis=0).mean():.1%}",
        f"{np.median(first):.0f}",
    )


def _states(randomness: np.random.Generator, flips: float) -> npt.NDArray[np.bool_]:
    changes = randomness.random(NIGHTS) < flips
    return np.asarray((np.cumsum(changes) + randomness.integers(2)) % 2 == 0)


def _judged(values: Values, nights: int) -> list[Trend]:
    return trends_of([as_series(row[:nights]) for row in values])


def _called(values: Values, nights: int) -> npt.NDArray[np.bool_]:
    return np.array([trend.bands is not None for trend in _judged(values, nights)])


def _is_alarm(trend: Trend) -> bool:
    return trend.verdict is Verdict.REGRESSION


def _changed_steps(values: Values, nights: int) -> float:
    """Share of the series whose newest step has two to five values and is lower than the one before.

    That is what steps alone would take for a regression.
    """
    alarms = []
    for row in values:
        starts = group_starts(row[:nights])
        newest = row[starts[-1] : nights]
        before = row[starts[-2] : starts[-1]] if len(starts) > 1 else newest
        alarms.append(2 <= len(newest) < 6 and newest.mean() < 0.99 * before.mean())
    return float(np.mean(alarms))


def _plain(randomness: np.random.Generator, count: int) -> Iterator[tuple[str, list[Values]]]:
    for noise in (0.002, 0.005, 0.01, 0.03):
        quiet = 1e6 * (1.0 + noise * randomness.standard_normal((count, 60)))
        yield f"noise {noise:.1%}", list(quiet)
        yield (
            f"noise {noise:.1%}, 2 % bad nights",
            list(np.where(randomness.random(quiet.shape) < 0.02, 0.9, 1.0) * quiet),
        )
        stepped = quiet.copy()
        for row in stepped:
            for _ in range(2):
                row[randomness.integers(1, 60) :] *= 1.0 - randomness.choice([0.03, 0.1, -0.05])
        yield f"noise {noise:.1%}, two steps", list(stepped)
        dipped = quiet.copy()
        for row in dipped:
            for first in randomness.integers(1, 50, 2):
                row[first : first + randomness.integers(2, 10)] *= 0.95
        yield f"noise {noise:.1%}, two dips of 5 %", list(dipped)


SIMULATED = Path(__file__).parents[1] / "topologies" / "simulated.yaml"


def measure(directory: Path, tests: int) -> float:
    """Measures NDR and PDR a number of times on the simulator; returns the seconds of processor time per test."""
    testbed = open_testbed(SIMULATED)
    began = time.process_time()
    for number in range(tests):
        place = TestPlace(TestIdentity(name=f"64B-{number}-ndrpdr", suite="Suite"), RunDirectory(directory))
        find_conditional_throughput(
            testbed, SearchRequest(goals=(NDR, PDR), profile=load_profile("ethip4-udp", frame_size=64)), place
        )
    return (time.process_time() - began) / tests


def send_as(testbed: str, run: Path, root: Path) -> float:
    """Sends a copy of a run that names another testbed; returns the seconds it took."""
    copy = root / testbed
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("results"))
    for result in RunDirectory(run).results():
        assert result.conditions is not None
        place = result.conditions.testbed.model_copy(update={"name": testbed})
        conditions = result.conditions.model_copy(update={"testbed": place})
        RunDirectory(copy).write(result.model_copy(update={"conditions": conditions}))
    began = time.monotonic()
    outbox = Outbox(root / f"outbox-{testbed}", ObjectStore(str(root / "archive")))
    outbox.add(copy)
    outbox.send()
    seconds = time.monotonic() - began
    shutil.rmtree(copy)
    return seconds


@main.command("testbeds")
@click.option("--testbeds", multiple=True, type=int, default=(10, 100, 1000), show_default=True, help="How many.")
@click.option("--tests", default=5, show_default=True, help="Tests in each run.")
@click.option("--processes", default=2, show_default=True, help="How many send at once.")
def of_testbeds(testbeds: tuple[int, ...], tests: int, processes: int) -> None:
    """Sends runs of more and more testbeds to one archive, and prints how long everything takes.

    Every testbed is measured on the simulator once, and its run is sent by a process of its own, as in a lab; then one
    history has them all. A run here has as many tests as are asked for, each with all its trials.
    """
    click.echo(f"{'testbeds':>8}  {'send, s per run':>15}  {'series':>13}  {'first mirror, s':>15}  {'trend, s':>8}")
    with tempfile.TemporaryDirectory() as temporary:
        run = Path(temporary) / "run"
        per_test = measure(run, tests)
        for count in testbeds:
            root = Path(temporary) / str(count)
            root.mkdir()
            names = [f"lab-{number:04}" for number in range(count)]
            with ProcessPoolExecutor(processes) as pool:
                seconds = list(pool.map(send_as, names, [run] * count, [root] * count))
            began = time.monotonic()
            history = mirror_history(ObjectStore(str(root / "archive")), root / "cache")
            mirrored = time.monotonic()
            analysis = analyse(history, TrendRequest())
            trend_seconds = time.monotonic() - mirrored
            median = sorted(seconds)[len(seconds) // 2]
            rows = sum(1 for _ in analysis.trends)
            click.echo(f"{count:>8}  {median:>15.3f}  {rows:>13,}  {mirrored - began:>15.2f}  {trend_seconds:>8.2f}")
        click.echo(f"The controller's own processor time: {per_test:.2f} s per NDR and PDR search, reports included.")


if __name__ == "__main__":
    main()

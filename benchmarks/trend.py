"""How long the trends of a long history take, beside jumpavg alone on the same series.

python benchmarks/trend.py --results 100000 --nights 100
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click
import jumpavg
import numpy as np
from steps import timed

from lossratio.history.analysis import TrendRequest, analyse
from lossratio.history.entries import Entry
from lossratio.history.series import series_of
from lossratio.history.steps import Values, group_starts
from lossratio.history.store import History

START = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)


@click.command()
@click.option("--results", default=100_000, show_default=True, help="Results in the history.")
@click.option("--nights", default=100, show_default=True, help="Results of each series; one file is added each night.")
@click.option("--jumpavg-series", default=5, show_default=True, help="Series that jumpavg gets; it is extrapolated.")
def main(results: int, nights: int, jumpavg_series: int) -> None:
    """Writes a history, and measures how long its analysis takes."""
    tests = results // nights
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        click.echo(f"{tests} series of {nights} results, in {nights} files")
        click.echo(f"{'step':<40}{'elapsed s':>10}{'CPU s':>10}")
        timed("write", lambda: write(history, tests, nights))
        stored = timed("read (DuckDB)", history.read)
        series = timed("divide into series", lambda: list(series_of(stored.table, nights)))
        values = [one_series.values for one_series in series]
        ours = timed("find steps (lossratio)", lambda: group_starts(values))
        timed("all: read, divide, find, judge", lambda: analyse(history, TrendRequest(last=nights)))
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
            Entry(
                "lab",
                f"test-{number}",
                "NDR",
                START + timedelta(days=night),
                60.0,
                value,
                None,
                None,
                "measured",
                None,
                (),
                "1",
            )
            for number, value in enumerate(values.tolist())
        )


def starts(values: Values) -> Sequence[int]:
    """Where jumpavg's groups begin."""
    sizes = [len(group) for group in jumpavg.classify(values.tolist())]
    return [sum(sizes[:index]) for index in range(len(sizes))]


if __name__ == "__main__":
    main()

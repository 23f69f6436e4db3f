"""How well a trend reports SUTs that flip between two states from run to run, and what that costs for plain series.

python benchmarks/trend_bands.py --series 40
"""

from __future__ import annotations

from collections.abc import Iterator

import click
import numpy as np
import numpy.typing as npt
from trend_alarms import as_series

from lossratio.history.steps import group_starts
from lossratio.history.trend import Trend, TrendVerdict, trends_of

Values = npt.NDArray[np.float64]

NIGHTS = 80
KNOWN_AFTER = 40
"""Nights after which the bands of a series should be known."""

ASKED = (10, 20, 40)
"""Nights after which the benchmark asks whether they are."""

CHANGE_AT = 60
"""Nights before the real change, in series that have one."""

WATCHED = 8
"""Nights in which the real change should be reported."""


@click.command(help=__doc__)
@click.option("--series", "count", default=40, show_default=True, help="Number of series of each kind.")
@click.option("--change", default=3.0, show_default=True, help="Size of the real change, per cent.")
def main(count: int, change: float) -> None:
    """Prints a table of series with bands, and one of series without."""
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
    return trend.verdict is TrendVerdict.REGRESSION


def _changed_steps(values: Values, nights: int) -> float:
    """Share of the series whose newest step has two to five values and is lower than the one before.

    That is what steps alone would take for a regression.
    """
    alarms = []
    for row, starts in zip(values, group_starts([row[:nights] for row in values]), strict=True):
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


if __name__ == "__main__":
    main()

"""Soak tests of many nights together: coverage of their interval, steps found within three nights, false alarms.

python study/benchmarks/soak.py nights --series 300 --years 20
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import numpy as np

from lossratio.history.nights import STEP, all_nights, night_starts
from lossratio.history.series import Series, SeriesKey

START = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)
LOAD = 12e6
BEFORE = 15
"""Nights before a step."""


# Table: standard deviation of a night by chance, and of the variation between nights, in units of .01 %; and the
# correlation of that variation from one night to the next.
DEVICES = (
    (1.0, 0.0, 0.0),
    (1.0, 1.0, 0.0),
    (1.0, 1.0, 0.5),
    (1.0, 1.0, 0.8),
    (1.5, 0.0, 0.0),
    (2.0, 0.0, 0.0),
    (4.0, 0.0, 0.0),
)


@dataclass
class Varying:
    """How far nights are off, as shares of the load."""

    rng: np.random.Generator
    chance: float
    """Standard deviation by chance."""
    between: float
    """Standard deviation of the variation between nights."""
    correlation: float
    """Correlation of this variation from one night to the next."""

    def nights(self, number: int) -> np.ndarray:
        """Nights one after the other."""
        by_chance = self.rng.normal(0.0, self.chance, number)
        new = self.rng.normal(0.0, self.between, number)
        away = new[0]
        varying = []
        for one in new:
            varying.append(away)
            away = self.correlation * away + (1.0 - self.correlation**2) ** 0.5 * one
        return np.add(by_chance, varying)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of this measurement to those of a command."""
    parser.add_argument("--series", type=int, default=300, help="series of each device")
    parser.add_argument("--years", type=int, default=20, help="years of nights in which false alarms are counted")
    parser.add_argument("--nights", type=int, default=10, help="nights of the interval")
    parser.set_defaults(command=lambda arguments: measure(arguments.series, arguments.years, arguments.nights))


def measure(count: int, years: int, nights: int) -> None:
    """Judges nights whose truth is known: a level, a variation between nights, and chance, all normal.

    The variation of a night may be correlated with that of the night before.
    """
    heads = ("by chance", "between", "correlated", "covered", "width")
    print(f"{''.join(f'{head:>11}' for head in heads)}{'found':>8}{'false a year':>14}")
    for chance, between, correlation in DEVICES:
        rng = np.random.default_rng(1)
        varying = Varying(rng, 1e-4 * chance, 1e-4 * between, correlation)
        covered = found = 0
        widths = []
        for _ in range(count):
            together = all_nights(nightly(varying.nights(nights), 1e-4 * chance))
            if together is None:
                continue
            covered += together.least_95 < LOAD < together.most_95
            widths.append(together.most_95 / together.least_95 - 1.0)
            away = varying.nights(BEFORE + 3)
            away[BEFORE:] -= STEP
            found += alarms(away, 1e-4 * chance) > 0
        false = sum(alarms(varying.nights(365), 1e-4 * chance) for _ in range(years))
        cells = (f"{chance / 100:.3f} %", f"{between / 100:.3f} %", f"{correlation:g}", f"{covered / count:.3f}")
        print("".join(f"{cell:>11}" for cell in (*cells, f"{100 * np.mean(widths):.4f} %")), end="")
        print(f"{found / count:>8.3f}{false / years:>14.2f}", flush=True)


def nightly(away: np.ndarray, chance: float) -> Series:
    """Nights that are off by these shares of the load."""
    number = len(away)
    columns = {
        "started": [START + timedelta(days=day) for day in range(number)],
        "value": list(LOAD * np.exp(away)),
        "estimate_chance": [chance] * number,
        "estimate_shared": [0.0] * number,
        "unit": ["fps"] * number,
    }
    return Series(SeriesKey("lab-1", "Suite.64B-soak", "critical load"), columns, is_of_nights=True)


def alarms(away: np.ndarray, chance: float) -> int:
    """Number of steps that the nights show."""
    series = nightly(away, chance)
    return len(night_starts(series, np.arange(len(away)))) - 1

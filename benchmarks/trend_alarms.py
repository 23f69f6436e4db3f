"""How often a trend raises an alarm although nothing changed, and how many nights it needs to report a real change.

python benchmarks/trend_alarms.py --series 400 --nights 60
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import click
import numpy as np
import numpy.typing as npt

from lossratio.history.series import Series, SeriesKey
from lossratio.history.trend import TrendRules, TrendVerdict, trends_of

START = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)
QUIET = 10
"""Nights without a change before the first one that is judged."""

Values = npt.NDArray[np.float64]


@click.command()
@click.option("--series", "count", default=400, show_default=True, help="Number of series.")
@click.option("--nights", default=60, show_default=True, help="Nights that are judged.")
@click.option("--noise", default=0.5, show_default=True, help="Standard deviation of the noise, per cent.")
@click.option("--bad", default=2.0, show_default=True, help="Share of bad nights, per cent.")
@click.option("--drop", default=10.0, show_default=True, help="How much lower the value of a bad night is, per cent.")
@click.option("--change", default=3.0, show_default=True, help="Size of the real change, per cent.")
def main(count: int, nights: int, noise: float, bad: float, drop: float, change: float) -> None:
    """Judges each night of simulated series as `lossratio trend` does, with each number of results that must agree."""
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
        rows.append([trend.verdict is TrendVerdict.REGRESSION for trend in trends])
    return np.array(rows)


def as_series(values: Values) -> Series:
    """Values of consecutive nights as a series of the history."""
    times = [START + timedelta(days=day) for day in range(len(values))]
    return Series(SeriesKey("lab", "test", "NDR"), {"started": times, "value": [*values], "unit": ["fps"] * len(times)})


if __name__ == "__main__":
    main()

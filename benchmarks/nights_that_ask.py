"""Nights of many tests that search, and nights that ask: tests per hour, and when a regression is an alarm.

python benchmarks/nights_that_ask.py --years 50

Tests are simulated by what questions and searches do on recorded routers (`records/as-before.md`): how often each
answer occurs, and how long a question takes. Most missed changes belong to a few tests, so these tests miss all of
their changes. Alarms are those of `lossratio trend`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np
from trend import QUIET, as_series

from lossratio.history import TrendVerdict
from lossratio.history.trend import trends_of
from lossratio.measurements.throughput.nightly import LEAST_SEARCHES, SEARCH_EVERY

TESTS, JUDGED, REGRESSIONS = 200, 20, 3
SLOWER = 0.04
SEARCH_SECONDS = 80.0
"""Trials of a search for NDR and PDR with hints."""
QUESTION = 0.09
"""Time of a question whose answer is *as before*, in searches; `LONG_QUESTION` is for any other answer."""
LONG_QUESTION = 0.2
ALWAYS_MISSED, MISSED = 0.05, 0.015
"""The share of tests whose changes are always missed, and of changes that are missed in other tests."""
FALSE_CHANGED, UNSURE = 0.006, 0.012
"""The shares of unchanged nights that are called changed, and that are left to a search."""
CHANGED = 0.75
"""The share of *changed* among the answers about a changed SUT that are not *as before*."""

Night = tuple[float, float | None]
"""Time in searches, and the value, 1 before the change; None: the SUT was as before."""


@dataclass(frozen=True)
class Test:
    """A test."""

    begin: int
    """The first night with the regression."""
    noise: float
    """Relative standard deviation of its values."""
    always_missed: bool


@click.command(help=__doc__)
@click.option("--years", default=50, show_default=True, help="Sequences of nights.")
@click.option("--noise", default=0.3, show_default=True, help="Standard deviation of searches, per cent.")
def main(years: int, noise: float) -> None:
    """Prints a line for each kind of night."""
    for name, play in (("search", _searches), ("as before", _questions)):
        time: list[float] = []
        delays: list[float] = []
        false = 0
        for year in range(years):
            rng = np.random.default_rng(year)
            tests = _tests(rng, noise / 100.0)
            played = [[*play(test, rng)] for test in tests]
            time.append(float(np.mean([spent for nights in played for spent, _ in nights[QUIET:]])))
            alarms = _first_alarms([[value for _, value in nights] for nights in played])
            for test, alarm in zip(tests, alarms, strict=True):
                if test.begin == JUDGED or (alarm is not None and alarm < test.begin):
                    false += alarm is not None
                else:
                    delays.append(np.inf if alarm is None else alarm - test.begin + 1)
        _print(name, np.array(time), np.array(delays), false, years)


def _print(name: str, time: np.ndarray, delays: np.ndarray, false: int, years: int) -> None:
    seconds = SEARCH_SECONDS * time
    rate = 3600.0 / seconds
    error = rate.std() / np.sqrt(len(rate))
    seen = ", ".join(f"{night}: {_share(float(np.mean(delays <= night)), len(delays))}" for night in (2, 3, 5, 8))
    click.echo(
        f"{name:>10}: {time.mean():.3f} of a search, {rate.mean():.0f} ± {error:.1f} tests an hour; share of "
        f"{len(delays)} regressions with an alarm by night {seen}; median {np.median(delays):g}; {false} false alarms "
        f"in {years * TESTS} tests of {JUDGED} nights"
    )


def _share(share: float, number: int) -> str:
    return f"{share:.2f} ± {np.sqrt(share * (1.0 - share) / number):.2f}"


def _tests(rng: np.random.Generator, noise: float) -> list[Test]:
    regressed = {int(place): int(rng.integers(JUDGED - 8)) for place in rng.choice(TESTS, REGRESSIONS, replace=False)}
    return [Test(regressed.get(place, JUDGED), noise, bool(rng.random() < ALWAYS_MISSED)) for place in range(TESTS)]


def _searched(test: Test, night: int, rng: np.random.Generator) -> float:
    """The value of a search."""
    return (1.0 - SLOWER * (night >= test.begin)) * (1.0 + test.noise * rng.standard_normal())


def _searches(test: Test, rng: np.random.Generator) -> Iterator[Night]:
    for night in range(-QUIET, JUDGED):
        yield 1.0, _searched(test, night, rng)


def _questions(test: Test, rng: np.random.Generator) -> Iterator[Night]:
    """Nights as `nightly=as_before` has them; after a change, they search until there are five searches."""
    searches = LEAST_SEARCHES
    since_search = 0
    # Whether the searches that questions compare with are those of the slower SUT.
    is_slow_usual = False
    for night in range(-QUIET, JUDGED):
        is_slow = night >= test.begin
        if night < 0 or searches < LEAST_SEARCHES or since_search + 1 >= SEARCH_EVERY:
            searches += 1
            since_search = 0
            yield 1.0, _searched(test, night, rng)
            continue

        is_changed, is_as_before = _answer(test, is_slow is not is_slow_usual, rng)
        if is_as_before:
            since_search += 1
            yield QUESTION, None
            continue

        since_search = 0
        searches = 1 if is_changed else searches + 1
        is_slow_usual = is_slow if is_changed else is_slow_usual
        yield 1.0 + LONG_QUESTION, _searched(test, night, rng)


def _answer(test: Test, has_changed: bool, rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether the answer is *changed*, and whether it is *as before*."""
    drawn = rng.random()
    if not has_changed:
        return drawn < FALSE_CHANGED, drawn >= FALSE_CHANGED + UNSURE
    is_missed = test.always_missed or drawn < MISSED
    return not is_missed and rng.random() < CHANGED, is_missed


def _first_alarms(played: Sequence[Sequence[float | None]]) -> list[int | None]:
    """The first judged night of each test with an alarm as `lossratio trend` raises it; None: there is none."""
    first: list[int | None] = [None] * len(played)
    for night in range(JUDGED):
        until = [values[: QUIET + night + 1] for values in played]
        searched = [place for place, values in enumerate(until) if values[-1] is not None and first[place] is None]
        known = [np.array([value for value in until[place] if value is not None]) for place in searched]
        for place, trend in zip(searched, trends_of([as_series(values) for values in known]), strict=True):
            if trend.verdict is TrendVerdict.REGRESSION:
                first[place] = night
    return first


if __name__ == "__main__":
    main()

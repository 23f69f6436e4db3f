"""A difference of one width of the search's goal is no news: neither two bands, nor a step."""

from pathlib import Path

import numpy as np
import pytest
from history_examples import series, with_columns
from report_examples import throughput

from lossratio.report import Verdict
from lossratio.report.history.bands import Bands, bands_in
from lossratio.report.history.entries import entries_of
from lossratio.report.history.steps import group_starts
from lossratio.report.history.trend import trends_of
from lossratio.report.history.trend_words import describe_trend
from lossratio.report.run import Run
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.values.units import FRAMES_PER_SECOND

NIGHTS = 40


def on_grid(values, width):
    """The lower bounds that a search finds, whose loads are one width apart."""
    steps = np.ceil(np.log(np.asarray(values) / 2e6) / np.log1p(-width))
    return 2e6 * (1.0 - width) ** steps


def steady(randomness, noise):
    return 1e6 * (1.0 + randomness.uniform(0.0, 0.02)) * (1.0 + noise * randomness.standard_normal(NIGHTS))


def with_width(values, width):
    return with_columns(series(list(values)), resolution=[width] * len(values))


def without(values, width):
    return series(list(values))


@pytest.mark.whole
@pytest.mark.parametrize("as_series", [with_width, without])
@pytest.mark.parametrize("width", [0.003, 0.005, 0.01, 0.02, 0.03, 0.05])
def test_noise_on_the_grid_of_a_search_is_no_bands_whatever_its_width(width, as_series):
    randomness = np.random.default_rng(round(1e4 * width))
    noises = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01] * 8
    trends = trends_of([as_series(on_grid(steady(randomness, noise), width), width) for noise in noises])
    assert sum(trend.bands is not None for trend in trends) <= 0.02 * len(trends)


@pytest.mark.parametrize("width", [0.005, 0.01, 0.02])
def test_a_flip_over_several_widths_is_found(width):
    randomness = np.random.default_rng(5)
    found = []
    for noise in (0.0005, 0.002, 0.003) * 5:
        states = randomness.random(NIGHTS) < 0.5
        values = steady(randomness, noise) * np.where(states, 1.0, 1.0 - 3.0 * width)
        found.append(with_width(on_grid(values, width), width))
    trends = trends_of(found)
    assert all(trend.bands is not None for trend in trends)
    assert np.median([trend.bands.ratio for trend in trends]) == pytest.approx(1.0 + 3.0 * width, rel=width)


def test_a_flip_over_one_width_is_no_bands():
    randomness = np.random.default_rng(5)
    lower = randomness.random(NIGHTS) < 0.5
    (trend,) = trends_of([with_width(1e6 * np.where(lower, 1.0, 0.98), 0.02)])
    assert trend.bands is None


def test_a_flip_of_values_without_a_known_width_is_found():
    randomness = np.random.default_rng(6)
    values = steady(randomness, 0.002) * np.where(randomness.random(NIGHTS) < 0.5, 1.0, 0.97)
    assert bands_in(values, group_starts(values)) is not None
    # Exact values, as of a policer, that are farther apart than any search is wide.
    exact = np.where(randomness.random(NIGHTS) < 0.5, 1e6, 0.9e6)
    assert bands_in(exact, group_starts(exact)) is not None


def test_the_counts_are_those_of_the_levels_that_are_printed():
    """Eleven values around another level came before the nine that flip."""
    randomness = np.random.default_rng(3)
    before = 1.3e6 * (1.0 + 0.001 * randomness.standard_normal(11))
    states = np.array([0, 1, 0, 1, 1, 0, 1, 0, 1])
    flips = 1e6 * (1.0 + 0.06 * states) * (1.0 + 0.001 * randomness.standard_normal(9))
    (trend,) = trends_of([series([*before, *flips])])
    assert (trend.bands.in_lower_count, trend.bands.in_upper_count) == (4, 5)
    assert "two bands: 1.0001 Mfps in 4 results and 1.0595 Mfps" in describe_trend(trend)
    assert "%) in 5 since the newest change of both, " in describe_trend(trend)


def test_a_hop_of_both_bands_by_one_width_is_no_change():
    randomness = np.random.default_rng(2)
    for _ in range(10):
        states = randomness.random(NIGHTS) < 0.5
        values = on_grid(steady(randomness, 0.003) * np.where(states, 1.0, 0.92), 0.02)
        (trend,) = trends_of([with_width(values, 0.02)])
        assert len(trend.steps) == 1
        assert trend.bands.in_lower_count + trend.bands.in_upper_count == NIGHTS
    assert "since" not in trend.bands.describe(trend.series.unit)


@pytest.mark.whole
def test_a_search_tells_the_history_its_width():
    entries = list(entries_of(Run(Path("run"), (throughput(SharpKnee(3e5)),))))
    assert [entry["resolution"] for entry in entries] == [0.005, 0.005]
    failed = throughput(error="the agent is gone")
    assert [entry["resolution"] for entry in entries_of(Run(Path("run"), (failed,)))] == [0.005, 0.005]


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [(1, Verdict.STEADY), (-1, Verdict.STEADY), (2, Verdict.REGRESSION), (-2, Verdict.PROGRESSION)],
)
def test_a_step_of_one_width_is_no_news_and_one_of_two_is(steps, verdict):
    width = 0.02
    values = [1e6] * 10 + [1e6 * (1.0 - width) ** steps] * 4
    assert trends_of([with_width(values, width)])[0].verdict is verdict
    assert trends_of([with_width(values, width)])[0].verdict is verdict


@pytest.mark.whole
def test_noise_as_large_as_the_width_is_no_bands():
    """It spreads values over several steps of the grid."""
    width = 0.05
    randomness = np.random.default_rng(1)
    found = [on_grid(steady(randomness, width), width) for _ in range(150)]
    assert [values for values in found if bands_in(values, group_starts(values), width) is not None] == []


@pytest.mark.parametrize("is_upper", [True, False])
def test_no_result_in_a_band_since_the_newest_change_is_no_number_of_results(is_upper):
    in_upper = np.array([False, True] * 6 + [is_upper] * 5)
    bands = Bands(low=1e6, high=1.1e6, in_upper=in_upper, looked_at=17, starts=(0, 12))
    words = bands.describe(FRAMES_PER_SECOND)
    here, there = ("1.1000 Mfps", "lower") if is_upper else ("1.0000 Mfps", "upper")
    assert words.startswith(f"two bands: {here} in 5 results since the newest change of both, and none in the {there} ")
    assert "+10.00 %" in words
    assert "in 0" not in words

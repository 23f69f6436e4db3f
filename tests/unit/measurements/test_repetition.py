"""The same search several times over, on the simulated testbed."""

from __future__ import annotations

import itertools

import pytest
from measurement_examples import NO_LOSS, PROFILE, place, policed

from lossratio.errors import SearchError
from lossratio.measurements.throughput.lines import spread_lines
from lossratio.measurements.throughput.measure import repeat_search
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.result import GoalSpread
from lossratio.records import make_rate
from lossratio.results.findings import message
from lossratio.results.run_directory import read_result

REQUEST = SearchRequest(goals=(NO_LOSS,), profile=PROFILE)


def places(directory):
    numbers = itertools.count(1)
    return lambda: place(directory, f"a test ({next(numbers)})")


def rate(value):
    return make_rate(value, factor=2, frame_size=64)


def test_each_search_is_kept_and_the_later_ones_report_the_spread(tmp_path):
    seen = []
    testbed = policed(police="50 kfps")
    last = repeat_search(testbed, REQUEST, places(tmp_path), 3, on_result=lambda result, _: seen.append(result))
    assert [len(result.spread) for result in seen] == [0, 1, 1]
    assert last is seen[-1]
    (spread,) = last.spread
    throughputs = [result.goals[0].result.conditional_throughput.per_interface_fps for result in seen]
    assert (spread.goal, list(spread.values_fps), spread.regular) == ("no loss", throughputs, 3)
    assert "spread of no loss over 3 searches, 3 of them regular" in message(last)
    kept = [read_result(file) for file in sorted((tmp_path / "results").iterdir())]
    assert sorted(len(value.spread[0].values_fps) if value.spread else 1 for value in kept) == [1, 2, 3]


def test_one_search_has_no_spread(tmp_path):
    assert repeat_search(policed(police="50 kfps"), REQUEST, places(tmp_path), 1).spread == ()


@pytest.mark.parametrize("times", [0, -1])
def test_no_search_at_all_is_refused(tmp_path, times):
    with pytest.raises(SearchError, match=f"cannot be made {times} times"):
        repeat_search(policed(police="50 kfps"), REQUEST, places(tmp_path), times)


def test_the_spread_of_known_values():
    spread = GoalSpread(goal="PDR", values_fps=(90.0, None, 110.0), regular=2)
    assert (spread.mean, spread.relative_range) == (100.0, pytest.approx(0.2))
    assert spread.stdev == pytest.approx(200**0.5)
    assert list(spread_lines([spread])) == [
        "spread of PDR over 3 searches, 2 of them regular",
        "  mean                             100 fps per interface",
        "  standard deviation              14.1 fps per interface, 14.14 %",
        "  largest to smallest     20 % of the mean",
        "  values                  90 none 110 fps per interface",
    ]


def test_where_nothing_was_found_there_is_no_mean():
    spread = GoalSpread(goal="PDR", values_fps=(None, None), regular=0)
    assert (spread.mean, spread.stdev, spread.relative_range) == (None, None, None)
    assert len(list(spread_lines([spread]))) == 2

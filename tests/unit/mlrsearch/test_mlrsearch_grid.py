from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lossratio.errors import SearchError
from lossratio.mlrsearch.grid import LoadGrid

ranges = st.tuples(st.floats(1e-3, 1e9), st.floats(1.0, 1e7)).map(lambda pair: (pair[0], pair[0] * pair[1]))
widths = st.floats(1e-4, 0.9)


@pytest.mark.whole
@given(ranges, widths)
def test_the_grid_ends_exactly_at_both_loads(limits, width):
    grid = LoadGrid(*limits, width)
    assert grid.load(grid.top) == limits[1]
    assert grid.load(0) == limits[0]


@given(ranges, widths, st.floats(0.0, 1.0))
def test_neighbours_are_within_the_width_and_in_order(limits, width, where):
    grid = LoadGrid(*limits, width)
    index = round(where * (grid.top - 1))
    if grid.top:
        lower, upper = grid.load(index), grid.load(index + 1)
        assert lower < upper
        assert upper - lower <= width * upper


@given(ranges, widths, st.floats(1.0, 20.0), st.floats(0.0, 1.0))
def test_a_wider_goal_spans_as_many_steps_as_fit(limits, width, factor, where):
    grid = LoadGrid(*limits, width)
    wide = min(0.95, width * factor)
    steps = grid.steps_within(wide)
    if steps <= grid.top:
        index = round(where * (grid.top - steps))
        lower, upper = grid.load(index), grid.load(index + steps)
        assert upper - lower <= wide * upper


@given(ranges, widths, st.floats(0.0, 1.0))
def test_the_position_of_a_grid_load_is_its_index(limits, width, where):
    grid = LoadGrid(*limits, width)
    index = round(where * grid.top)
    assert grid.position(grid.load(index)) == index


@given(st.integers(1, 10**5), st.floats(1e-3, 0.5), st.floats(2.001, 50.0), st.floats(1.0, 1e4), st.data())
def test_loads_in_steps_are_distinct_and_within_the_width(step, width, coarseness, span, data):
    limits = [round(load) * step for load in (coarseness / width + 1.0, (coarseness / width + 1.0) * span)]
    grid = LoadGrid(*limits, width, float(step))
    assert (grid.load(0), grid.load(grid.top)) == tuple(limits)
    if grid.top:
        index = data.draw(st.integers(0, grid.top - 1))
        lower, upper = grid.load(index), grid.load(index + 1)
        assert lower % step == upper % step == 0.0
        assert lower < upper <= lower + width * upper * (1.0 + 1e-12)
        assert (grid.position(lower), grid.position(upper)) == (index, index + 1)
        wide = min(0.95, 3.0 * width)
        last = min(grid.top, index + grid.steps_within(wide))
        assert last == index + 1 or grid.load(last) - lower <= wide * grid.load(last) * (1.0 + 1e-12)


@pytest.mark.parametrize("min_load", [400.0, 10.0])
def test_a_minimum_load_too_small_for_steps_is_refused_with_the_way_out(min_load):
    with pytest.raises(
        SearchError, match=r"steps of 1 frames/s, too coarse for a width of 0\.5 % .* above 400 frames/s"
    ):
        LoadGrid(min_load, 1000.0, 0.005, 1.0)
    assert LoadGrid(401.0, 1000.0, 0.005, 1.0).load(1) > 401.0
    assert LoadGrid(min_load, min_load, 0.005, 1.0).top == 0


def test_loads_off_the_grid_lie_between_their_neighbours():
    grid = LoadGrid(100.0, 1000.0, 0.01)
    assert 10 < grid.position((grid.load(10) + grid.load(11)) / 2) < 11


@pytest.mark.parametrize(
    "limits", [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, float("inf")), (float("nan"), 1.0), (1.0, float("nan"))]
)
def test_impossible_limits_are_refused(limits):
    with pytest.raises(SearchError, match=r"min load <= max load|must be a number, not nan"):
        LoadGrid(*limits, 0.005)

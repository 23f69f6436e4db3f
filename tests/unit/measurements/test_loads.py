from __future__ import annotations

import pytest

from lossratio.errors import SearchError
from lossratio.results.conditions import LoadOrigin
from lossratio.testbed.loads import DEFAULT_MIN_LOAD, LoadLimit, load_range

GENERATOR = LoadLimit(200e3, LoadOrigin.GENERATOR, "the generator's max_rate, 200.00 kfps")
LINK = LoadLimit(300e3, LoadOrigin.LINK, "link link0, somehow")


def test_the_smallest_limit_is_the_default_maximum_load():
    loads = load_range([GENERATOR, LINK], min_load=None, max_load=None)
    assert (loads.min_load, loads.max_load) == (DEFAULT_MIN_LOAD, 200e3)
    assert loads.origin is LoadOrigin.GENERATOR
    assert loads.remarks == ()
    assert load_range([LINK], min_load=None, max_load=None).origin is LoadOrigin.LINK


def test_a_given_maximum_load_counts_as_given():
    loads = load_range([GENERATOR], min_load=1000.0, max_load=100e3)
    assert (loads.min_load, loads.max_load) == (1000.0, 100e3)
    assert loads.origin is LoadOrigin.GIVEN
    assert loads.remarks == ()


def test_a_maximum_load_above_the_smallest_limit_is_remarked():
    loads = load_range([GENERATOR, LINK], min_load=None, max_load=400e3)
    assert loads.max_load == 400e3
    (remark,) = (note.text for note in loads.remarks)
    assert remark == (
        "the maximum load (400.00 kfps) is above what the generator can send (the generator's max_rate, 200.00 kfps)"
    )


@pytest.mark.parametrize("max_load", [9001.0, 5000.0, 1.0])
def test_the_default_minimum_load_stays_below_any_maximum_load(max_load):
    loads = load_range([], min_load=None, max_load=max_load)
    assert 0 < loads.min_load < max_load


def test_without_any_maximum_load_the_error_says_how_to_give_one():
    with pytest.raises(SearchError, match=r"max_load=.*max_rate.*speed.*NIC model"):
        load_range([], min_load=None, max_load=None)


def test_a_minimum_load_above_the_maximum_load_is_an_error():
    with pytest.raises(SearchError, match=r"20\.000 kfps.*above.*10\.000 kfps"):
        load_range([], min_load=20e3, max_load=10e3)

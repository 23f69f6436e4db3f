import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lossratio.errors import SearchError
from lossratio.runs.builds import Bisection, BisectionVerdict
from lossratio.runs.builds.bisection import probability_in_words


def names(number):
    return [f"r{place}" for place in range(number)]


def bisect(number, measure, *, unbuildable=(), **options):
    """Searches revisions r0 to r(number - 1), whose throughput is a function of their place."""
    search = Bisection(names(number), **options)
    while (revision := search.next_revision()) is not None:
        place = int(revision[1:])
        if place in unbuildable:
            search.skip(revision)
        else:
            search.record(revision, measure(place))
    return search.result()


def noisy(first, change, noise, seed):
    rng = np.random.default_rng(seed)
    return lambda place: 1e6 * (1.0 + change * (place >= first)) * (1.0 + noise * rng.standard_normal())


@pytest.mark.whole
@settings(max_examples=30, deadline=None)
@given(st.integers(2, 300).flatmap(lambda number: st.tuples(st.just(number), st.integers(1, number - 1))))
def test_without_noise_the_revision_is_found_with_few_more_measurements_than_halvings(case):
    number, first = case
    result = bisect(number, lambda place: 900.0 if place >= first else 1000.0)
    assert (result.verdict, result.candidates) == (BisectionVerdict.FOUND, (f"r{first}",))
    assert result.change == pytest.approx(-0.1)
    assert result.measurements <= math.log2(number) + 6


@pytest.mark.whole
@pytest.mark.parametrize(("change", "noise"), [(-0.05, 0.01), (0.03, 0.01)])
def test_noise_is_answered_by_repeating_no_more_than_it_needs(change, noise):
    rng = np.random.default_rng(7)
    firsts = [int(first) for first in rng.integers(1, 65, size=100)]
    results = [bisect(65, noisy(first, change, noise, seed)) for seed, first in enumerate(firsts)]
    right = [result.candidates == (f"r{first}",) for result, first in zip(results, firsts, strict=True)]
    assert sum(right) >= 95
    # Measuring each midpoint and both ends five times.
    assert np.mean([result.measurements for result in results]) < 5 * (6 + 2)


@pytest.mark.whole
def test_revisions_that_do_not_differ_have_no_change():
    results = [bisect(65, noisy(65, 0.0, 0.01, seed)) for seed in range(50)]
    assert sum(result.verdict is BisectionVerdict.NO_CHANGE for result in results) >= 48


def test_a_revision_that_cannot_be_built_is_left_out_and_stays_a_candidate():
    result = bisect(17, lambda place: 900.0 if place >= 8 else 1000.0, unbuildable={6, 7, 8})
    assert (result.verdict, result.candidates) == (BisectionVerdict.FOUND, ("r6", "r7", "r8", "r9"))


def test_a_revision_that_forwards_nothing_is_a_change_like_any():
    result = bisect(33, lambda place: 0.0 if place >= 20 else 1000.0)
    assert (result.candidates, result.change) == (("r20",), -1.0)


def test_the_limit_ends_it_undecided():
    result = bisect(65, noisy(30, -0.001, 0.05, seed=3), limit=10)
    assert (result.verdict, result.measurements) == (BisectionVerdict.UNDECIDED, 10)


def test_it_goes_on_with_what_was_measured_before():
    first = Bisection(names(33))
    asked = []
    while (revision := first.next_revision()) is not None:
        asked.append((revision, 900.0 if int(revision[1:]) >= 11 else 1000.0))
        first.record(*asked[-1])
    again = Bisection(names(33))
    for measurement in asked[:5]:
        again.record(*measurement)
    assert again.next_revision() == asked[5][0]


def test_the_first_revision_cannot_be_left_out():
    search = Bisection(names(3))
    with pytest.raises(SearchError, match="Revision r0 cannot be left out"):
        search.skip("r0")


@pytest.mark.parametrize(
    ("probability", "words"),
    [(0.975, "of 97.5 %"), (0.999_9, "above 99.9 %"), (1.0, "of 100.0 %"), (0.000_3, "below 0.1 %"), (0.0, "of 0.0 %")],
)
def test_a_probability_is_neither_rounded_to_certainty_nor_to_nothing(probability, words):
    assert probability_in_words(probability) == words

"""At which load trials in overload are, and when more of them are needed."""

import pytest
from soak_trials import counts_of

from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.overload import Overload
from lossratio.plrsearch.variation import described

QUESTION = CriticalLoadQuestion(1e-7, 1e4, 30e6)
RATE = 18e6


@pytest.fixture(scope="module")
def known():
    rows = [(17.9e6, 2.0, 0.0), (17.95e6, 2.0, 0.0), (18.1e6, 2.0, 200_000.0)]
    return described(counts_of(rows), QUESTION, LikelihoodName.VARYING, for_selection=True)


def test_the_load_stays_the_same_while_it_loses_frames_whatever_the_forwarding_rate(known):
    overload = Overload(QUESTION)
    load = overload.load(known, RATE)
    assert 1.01 * RATE <= load < 1.02 * RATE
    for _ in range(3):
        overload.record(400_000.0)
        assert overload.load(known, 1.1 * RATE) == load
    assert (overload.trials, overload.more) == (3, 0)


def test_without_a_forwarding_rate_the_load_is_the_minimum_load(known):
    assert Overload(QUESTION).load(known, 0.0) == pytest.approx(QUESTION.min_load, rel=0.01)


def test_a_load_that_never_lost_frames_is_left_at_once_and_the_next_one_is_twice_as_far(known):
    overload = Overload(QUESTION)
    overload.load(known, RATE)
    overload.record(0.0)
    assert 1.02 * RATE <= overload.load(known, RATE) < 1.03 * RATE
    assert overload.trials == 0


def test_a_load_that_loses_less_and_less_stays_the_same_because_the_trend_shows_a_change(known):
    overload = Overload(QUESTION)
    load = overload.load(known, RATE)
    for lost in (400_000.0, 30_000.0, 20_000.0, 10_000.0, 5_000.0):
        overload.record(lost)
        assert overload.load(known, RATE) == load


def test_a_load_that_is_sometimes_hardly_in_overload_is_left_for_one_that_is_twice_as_far(known):
    # The capacity varies, and may be higher than the load.
    overload = Overload(QUESTION)
    load = overload.load(known, RATE)
    for lost in (400_000.0, 200_000.0, 300_000.0, 20_000.0, 10_000.0):
        overload.record(lost)
        assert overload.load(known, RATE) == load
    overload.record(200_000.0)
    assert 1.02 * RATE <= overload.load(known, RATE) < 1.03 * RATE


def test_a_load_that_lost_frames_before_is_tried_nine_times_before_it_is_left(known):
    # If the SUT has become faster, so many trials show it.
    overload = Overload(QUESTION)
    load = overload.load(known, RATE)
    overload.record(400_000.0)
    for _ in range(9):
        assert overload.load(known, RATE) == load
        overload.record(0.0)
    assert 1.1 * RATE <= overload.load(known, RATE) < 1.11 * RATE


def test_a_loss_unlike_all_before_asks_for_more_trials_and_one_that_is_like_them_does_not(known):
    overload = Overload(QUESTION)
    overload.load(known, RATE)
    overload.record(400_000.0)
    overload.record(401_000.0)
    assert overload.more == 0
    overload.record(450_000.0)
    assert overload.more == 8
    for _ in range(8):
        overload.record(455_000.0)
    assert overload.more == 0


def test_no_more_trials_are_asked_for_once_one_of_them_loses_as_much_as_before_the_unlike_one(known):
    overload = Overload(QUESTION)
    overload.load(known, RATE)
    for lost in (400_000.0, 401_000.0, 450_000.0, 455_000.0):
        overload.record(lost)
    assert overload.more == 7
    overload.record(400_500.0)
    assert overload.more == 0


def test_two_lossy_trials_are_a_pair_that_a_shorter_one_is_compared_with(known):
    overload = Overload(QUESTION)
    load = overload.load(known, RATE)
    seen = []
    for _ in range(3):
        overload.record(400_000.0)
        seen.append(overload.repeated)
    assert seen == [None, load, None]


def test_the_maximum_load_counts_as_overload_even_without_loss(known):
    overload = Overload(QUESTION)
    assert overload.load(known, 29.9e6) == QUESTION.max_load
    overload.record(0.0)
    assert overload.trials == 1
    assert overload.load(known, RATE) == QUESTION.max_load


def test_all_begins_again_after_a_change(known):
    overload = Overload(QUESTION)
    overload.load(known, RATE)
    overload.record(400_000.0)
    overload.begin_again()
    assert overload.trials == 0
    assert 1.01 * 9e6 <= overload.load(known, 9e6) < 1.02 * 9e6


def test_a_count_that_differs_by_chance_asks_for_no_more_trials(known):
    overload = Overload(QUESTION)
    overload.load(known, RATE)
    for lost in (97.0, 104.0, 112.0, 87.0, 121.0):
        overload.record(lost)
    assert overload.more == 0

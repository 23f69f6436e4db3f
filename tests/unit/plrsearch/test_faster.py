"""A SUT that becomes much faster during a search is noticed by a trial at the maximum load."""

import numpy as np
import pytest

from lossratio.plrsearch import PLRsearch
from lossratio.plrsearch.faster import Faster
from lossratio.plrsearch.model import CriticalLoadQuestion
from lossratio.simulation import SimulatedMeasurer
from lossratio.trials import run_search

MAX_LOAD = 30e6
QUESTION = CriticalLoadQuestion(1e-7, 1e4, MAX_LOAD)
SLOW, FAST = 8e6, 18e6
LEFT = 20.0


def passed(faster, load, capacity):
    """Takes in a trial of two seconds of a device that passes at most its capacity."""
    frames = 2.0 * load
    lost = max(0.0, frames - 2.0 * capacity)
    return faster.record(load, frames, lost, min(load, capacity))


@pytest.fixture
def faster():
    """After the first trial, at the maximum load, of a SUT that is slow."""
    faster = Faster(QUESTION)
    passed(faster, MAX_LOAD, SLOW)
    return faster


def test_no_trial_is_needed_without_a_hint(faster):
    assert faster.load(LEFT) is None


def test_a_hint_leads_to_one_trial_at_the_maximum_load(faster):
    faster.ask()
    assert faster.load(LEFT) == MAX_LOAD
    assert not passed(faster, MAX_LOAD, SLOW)
    assert faster.load(LEFT) is None


def test_a_trial_at_the_maximum_load_that_was_set_aside_shows_nothing(faster):
    faster.ask()
    faster.load(LEFT)
    assert not passed(faster, 1.2 * SLOW, FAST)
    never = Faster(QUESTION)
    never.ask()
    never.load(LEFT)
    assert not passed(never, MAX_LOAD, FAST)


def test_a_faster_sut_is_followed_to_the_first_load_that_loses_no_more_than_the_target(faster):
    faster.ask()
    faster.load(LEFT)
    assert passed(faster, MAX_LOAD, FAST)
    assert faster.load(LEFT) == FAST
    faster.record(FAST, 2.0 * FAST, 1000.0, FAST)
    lower = faster.load(LEFT)
    assert lower == pytest.approx(0.97 * FAST)
    for _ in range(3):
        assert not passed(faster, lower, FAST)
        assert faster.load(LEFT) == lower


def test_a_sut_that_is_slow_again_is_not_followed_any_more(faster):
    faster.ask()
    faster.load(LEFT)
    passed(faster, MAX_LOAD, FAST)
    passed(faster, FAST, SLOW)
    assert faster.load(LEFT) is None


def test_the_trials_end_when_the_change_is_known(faster):
    faster.ask()
    faster.load(LEFT)
    passed(faster, MAX_LOAD, FAST)
    faster.stop()
    assert faster.load(LEFT) is None


@pytest.mark.parametrize("capacity", [FAST, 2.0 * MAX_LOAD])
def test_no_more_than_13_trials_follow_if_no_change_becomes_certain(faster, capacity):
    faster.ask()
    faster.load(LEFT)
    passed(faster, MAX_LOAD, capacity)
    followed = 0
    while faster.load(LEFT) is not None:
        passed(faster, faster.load(LEFT), capacity)
        followed += 1
    assert followed == 13


def test_only_two_hints_lead_to_a_trial_and_none_does_if_little_time_is_left(faster):
    faster.ask()
    assert faster.load(8.0) is None
    assert faster.load(LEFT) is None
    for expected in (MAX_LOAD, MAX_LOAD, None):
        faster.ask()
        assert faster.load(LEFT) == expected
        passed(faster, MAX_LOAD, SLOW)


class Offloaded:
    """A device whose flows move to its NIC after some seconds of traffic."""

    def __init__(self, after_s):
        self.after_s = after_s

    def start(self, rng):
        seconds = 0.0

        def lost_frames(traffic):
            nonlocal seconds
            capacity = FAST if seconds >= self.after_s else SLOW
            seconds += traffic.duration
            knee = 2e4 * np.logaddexp(0.0, (traffic.load - capacity) / 2e4)
            return int(rng.poisson(knee * traffic.duration))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


def searched(after_s, seed):
    """A search of a minute, whose maximum load is no whole number of frames, like that of most line rates."""
    controller = PLRsearch(1e-7, 1e4, MAX_LOAD + 0.38, timeout=60.0)
    return run_search(controller, SimulatedMeasurer(Offloaded(after_s), seed=seed, overhead=0.5))


@pytest.mark.whole
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_minute_is_enough_for_a_sut_that_becomes_much_faster_after_a_quarter_of_it(seed):
    found = searched(15.0, seed)
    assert 0.9 * FAST < found.stated <= FAST
    assert any("lose fewer frames than before" in sentence for sentence in found.sentences)

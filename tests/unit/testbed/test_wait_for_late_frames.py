"""After the last trial late frames are waited for: as long as some come, and no longer."""

from itertools import chain, repeat

import pytest

from lossratio.testbed.live import LATE_SECONDS, LATE_WAIT, MOST_LATE_SECONDS, wait_for_late_frames
from lossratio.trials import LateFrames

MISSING = 1_000_000


class Agent:
    """Says how many frames of the latest traffic came in each wait, and notes how long it was asked to wait."""

    def __init__(self, *counts):
        self._counts = chain(counts, repeat(0))
        self.waits = []

    @property
    def waited(self):
        return pytest.approx(sum(self.waits))

    def late_frames(self, wait):
        self.waits.append(wait)
        return {"port0>port1": (next(self._counts),)}


def after_trials(*, missing=MISSING, late=0):
    """Two trials: the second one lacks frames, of the first one so many came late."""
    late_frames = LateFrames()
    for lacking in (late, missing):
        late_frames.begin_traffic()
        late_frames.keep(lacking, lambda frames: None)
    late_frames.seen_since([late])
    return late_frames


def test_one_short_wait_is_enough_for_a_device_that_has_held_no_frames():
    agent = Agent()
    wait_for_late_frames(agent, after_trials())
    assert agent.waited == LATE_WAIT


def test_nobody_waits_where_no_frame_is_missing():
    agent = Agent()
    wait_for_late_frames(agent, after_trials(missing=0))
    assert agent.waits == []


def test_frames_that_come_at_once_are_waited_for_once_if_no_more_are_missing():
    agent = Agent(5)
    late_frames = after_trials(missing=5)
    wait_for_late_frames(agent, late_frames)
    assert agent.waited == LATE_WAIT
    assert late_frames.total == 5


def test_a_device_that_has_held_frames_of_a_trial_may_hold_those_of_the_last_one():
    agent = Agent()
    wait_for_late_frames(agent, after_trials(late=1))
    assert agent.waited == LATE_SECONDS


def test_as_long_as_frames_come_they_are_waited_for():
    seconds = 7.0
    agent = Agent(*[1] * round(seconds / LATE_WAIT))
    late_frames = after_trials()
    wait_for_late_frames(agent, late_frames)
    assert agent.waited == seconds + LATE_SECONDS
    assert late_frames.total == round(seconds / LATE_WAIT)


def test_frames_that_come_again_after_a_pause_begin_the_wait_anew():
    agent = Agent(1, *[0] * (round(LATE_SECONDS / LATE_WAIT) - 1), 1)
    late_frames = after_trials()
    wait_for_late_frames(agent, late_frames)
    assert agent.waited == LATE_WAIT + 2 * LATE_SECONDS
    assert late_frames.total == 2


def test_a_device_that_gives_frames_back_for_ever_is_not_waited_for_that_long():
    agent = Agent(*[1] * MISSING)
    wait_for_late_frames(agent, after_trials())
    assert agent.waited == MOST_LATE_SECONDS


def test_when_all_frames_have_come_nobody_waits_any_longer():
    agent = Agent(2, 0, 3, 4)
    wait_for_late_frames(agent, after_trials(missing=5))
    assert agent.waited == 3 * LATE_WAIT

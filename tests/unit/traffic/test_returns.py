"""Frames that come back: which traffic's they are, and that late ones are counted apart."""

from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from lossratio.agent.afpacket.direction import MOST_EARLIER, ReceivingEnd
from lossratio.agent.core.returns import Returns


class Counters:
    """Counts frames that tests let arrive, by their tags: so many counters, which are used in turns."""

    def __init__(self, number):
        self.tags = [None] * number
        self.counters = [SimpleNamespace(frames=0) for _ in self.tags]
        for counter in self.counters:
            counter.read = partial(getattr, counter, "frames")

    def counter_of(self, tag):
        place = tag % len(self.tags)
        counter = self.counters[place]
        counter.frames = 0
        self.tags[place] = tag
        return counter.read

    def arrive(self, tag, frames):
        if tag in self.tags:
            self.counters[self.tags.index(tag)].frames += frames


@pytest.fixture
def counters():
    return Counters(MOST_EARLIER + 1)


@pytest.fixture
def counted(counters):
    return Returns(counters.counter_of, MOST_EARLIER)


@pytest.fixture
def perform(counters, counted):
    """A trial of 10 frames, and what is said of earlier ones. Frames of earlier tags come meanwhile, and are late."""

    def trial(tag, in_time, late=()):
        counted.watch(tag)
        counters.arrive(tag, in_time)
        for earlier, frames in late:
            counters.arrive(earlier, frames)
        received = counted.count()
        found = counted.late_of_earlier()
        counted.end(10, received)
        return found

    return trial


def test_late_frames_of_several_trials_are_counted_apart(perform, counters):
    perform(1, in_time=4)
    assert perform(2, in_time=0, late=[(1, 2)]) == ([2], 0)
    assert perform(3, in_time=0, late=[(1, 4), (2, 1)]) == ([1, 4], 0)
    counters.arrive(2, 3)
    assert perform(4, in_time=10, late=[(2, 6), (3, 10)]) == ([10, 9], 0)
    assert perform(5, in_time=10) == ([], 0)


@pytest.mark.parametrize("held", [1, 2, 3, MOST_EARLIER])
def test_frames_of_one_queue_that_a_device_holds_for_some_trials_are_late_from_the_first_trial_on(perform, held):
    for tag in range(held):
        assert perform(tag, in_time=9) == ([], 0)
    for tag in range(held, 3 * held + 1):
        assert perform(tag, in_time=9, late=[(tag - held, 1)]) == ([*[0] * (held - 1), 1], 0)


@pytest.mark.whole
@given(
    st.lists(
        st.tuples(st.integers(0, 10), st.lists(st.tuples(st.integers(1, MOST_EARLIER), st.integers(1, 3)), max_size=3)),
        min_size=1,
        max_size=40,
    )
)
def test_every_late_frame_is_of_the_trial_whose_tag_it_has(trials):
    counters = Counters(MOST_EARLIER + 1)
    counted = Returns(counters.counter_of, MOST_EARLIER)
    missing = {}
    for tag, (in_time, late) in enumerate(trials):
        counted.watch(tag)
        counters.arrive(tag, in_time)
        expected = {}
        for age, frames in late:
            came = min(frames, missing.get(tag - age, 0))
            counters.arrive(tag - age, came)
            missing[tag - age] = missing.get(tag - age, 0) - came
            expected[age] = expected.get(age, 0) + came
        received = counted.count()
        found, copies = counted.late_of_earlier()
        counted.end(10, received)
        missing[tag] = 10 - in_time
        assert {age: frames for age, frames in enumerate(found, start=1) if frames} == {
            age: frames for age, frames in expected.items() if frames
        }
        assert copies == 0


def test_the_counter_of_earlier_traffic_that_is_needed_again_counts_new_traffic_only():
    counters = Counters(4)
    counted = Returns(counters.counter_of, 15)
    for tag in (1, 3, 5):
        counted.watch(tag)
        counters.arrive(tag, 10)
        assert counted.late_of_earlier() == ([], 0)
        assert counted.count() == 10
        counted.end(20, 10)
    # Nobody looks for frames of the first and of any before it any more.
    counters.arrive(1, 5)
    counters.arrive(3, 5)
    assert counted.late_of_earlier() == ([5], 0)


def test_no_more_traffic_is_looked_for_than_is_wanted(counters):
    counted = Returns(counters.counter_of, 2)
    for tag in (1, 2, 3, 4):
        counted.watch(tag)
        counted.end(10, counted.count())
    counters.arrive(1, 5)
    counters.arrive(2, 5)
    assert counted.late_of_earlier() == ([0, 5], 0)


def test_more_frames_than_are_missing_are_copies(perform):
    perform(1, in_time=8)
    assert perform(2, in_time=10, late=[(1, 5)]) == ([2], 3)
    assert perform(3, in_time=10, late=[(1, 5), (2, 1)]) == ([], 6)


def test_late_frames_of_the_latest_traffic_are_not_counted_again(perform, counters, counted):
    assert counted.late() == 0
    perform(1, in_time=8)
    counters.arrive(1, 1)
    assert (counted.late(), counted.late()) == (1, 0)
    assert perform(2, in_time=10, late=[(1, 1)]) == ([1], 0)


def test_late_frames_are_not_examined_with_those_that_came_in_time():
    came = []
    end = ReceivingEnd.__new__(ReceivingEnd)
    end._examiner = SimpleNamespace(end=lambda: came.append("the examination ends"))
    end.returns = SimpleNamespace(count=lambda: came.append("frames are counted") or 5)
    end._counter = SimpleNamespace(by_stream=[5])
    assert end.count() == 5
    # A frame between the two is counted, and not examined.
    assert came == ["the examination ends", "frames are counted"]

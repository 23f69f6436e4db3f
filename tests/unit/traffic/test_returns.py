"""Frames that come back: which traffic's they are, and that late ones are counted apart."""

from types import SimpleNamespace

import pytest

from lossratio.traffic.agent.afpacket.direction import MOST_EARLIER
from lossratio.traffic.agent.afpacket.generator import AfPacketGenerator
from lossratio.traffic.agent.core.returns import Returns


class Counter:
    """Counts frames that tests let arrive, by their tags."""

    made = ()

    def __init__(self):
        self.tag, self.frames = None, 0
        Counter.made = (*Counter.made, self)

    def watch(self, tag):
        self.tag, self.frames = tag, 0

    def read(self):
        return self.frames

    def stop(self):
        self.tag = None

    def close(self):
        self.tag = "closed"


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(Counter, "made", ())
    return Returns(Counter, MOST_EARLIER, is_costly=True)


def arrive(tag, frames):
    for counter in Counter.made:
        if counter.tag == tag:
            counter.frames += frames


def perform(counted, tag, in_time, late=()):
    """A trial of 10 frames, and what is said of earlier ones. Frames of earlier tags come meanwhile, and are late."""
    counted.watch(tag)
    arrive(tag, in_time)
    for earlier, frames in late:
        arrive(earlier, frames)
    received = counted.count()
    found = counted.late_of_earlier()
    counted.end(10, received)
    return found


def test_late_frames_of_several_trials_are_counted_apart_once_a_device_holds_frames(counted):
    perform(counted, 1, in_time=4)
    assert perform(counted, 2, in_time=0, late=[(1, 2)]) == ([2], 0)
    assert perform(counted, 3, in_time=0, late=[(1, 4), (2, 1)]) == ([1, 4], 0)
    arrive(2, 3)
    assert perform(counted, 4, in_time=10, late=[(2, 6), (3, 10)]) == ([10, 9], 0)
    assert perform(counted, 5, in_time=10) == ([], 0)


def test_where_counters_cost_nothing_late_frames_of_all_earlier_trials_are_counted_from_the_first_one_on(monkeypatch):
    monkeypatch.setattr(Counter, "made", ())
    counted = Returns(Counter, 3, is_costly=False)
    for tag in (1, 2, 3):
        perform(counted, tag, in_time=9)
    assert perform(counted, 4, in_time=9, late=[(1, 1)]) == ([0, 0, 1], 0)
    assert perform(counted, 5, in_time=9, late=[(2, 1), (4, 1)]) == ([1, 0, 1], 0)
    # Bounded: nobody looks for frames of the second trial any more.
    assert perform(counted, 6, in_time=9, late=[(2, 1), (5, 1)]) == ([1], 0)


def test_a_device_that_holds_no_frames_costs_two_counters(counted):
    for tag in range(20):
        assert sum(perform(counted, tag, in_time=7)[0]) == 0
    assert len(Counter.made) == 2


def test_no_more_counters_are_taken_than_for_the_latest_traffic(counted):
    perform(counted, 0, in_time=5)
    for tag in range(1, 20):
        perform(counted, tag, in_time=5, late=[(tag - 1, 1)])
    assert len(Counter.made) == MOST_EARLIER + 1


def test_more_frames_than_are_missing_are_copies(counted):
    perform(counted, 1, in_time=8)
    assert perform(counted, 2, in_time=10, late=[(1, 5)]) == ([2], 3)


def test_late_frames_of_the_latest_traffic_are_not_counted_again(counted):
    assert counted.late() == 0
    perform(counted, 1, in_time=8)
    arrive(1, 1)
    assert (counted.late(), counted.late()) == (1, 0)
    assert perform(counted, 2, in_time=10, late=[(1, 1)]) == ([1], 0)


def test_all_counters_are_closed(counted):
    perform(counted, 1, in_time=0)
    perform(counted, 2, in_time=0)
    counted.close()
    assert {counter.tag for counter in Counter.made} == {"closed"}


def test_late_frames_are_not_examined_with_those_that_came_in_time():
    came = []

    class Returning:
        def end_examination(self):
            came.append("the examination ends")

        def count(self):
            came.append("frames are counted")
            return 5

        def counters(self, reports, received, before, after):
            return {"received_frames": received}

    generator = AfPacketGenerator.__new__(AfPacketGenerator)
    generator._directions, generator._links_may_change = [Returning(), Returning()], False
    generator._ports = SimpleNamespace(before={}, after=lambda may_go_down: {})
    assert generator._counters({}) == [{"received_frames": 5}] * 2
    # A frame between the two is counted, and not examined.
    assert came == ["the examination ends"] * 2 + ["frames are counted"] * 2

"""Frames that arrived, by numbers and times: lost ones, outages, silences; and when frames left."""

import random

import numpy as np
import pytest

from lossratio.agent.afpacket.arrivals import MOST_OUTAGES, Reception, course
from lossratio.agent.afpacket.sender import SendLog
from lossratio.agent.core.pacing import Transmission

INTERVAL = 1e-3


def received(numbers, parts=1, times=None):
    """A reception of frames that arrive at their numbers' times, some of them at once."""
    numbers = np.array(numbers, dtype=np.int64)
    times = np.arange(len(numbers)) * INTERVAL if times is None else np.array(times, dtype=float)
    reception = Reception(5 * INTERVAL)
    for some in np.array_split(np.arange(len(numbers)), parts):
        reception.add(numbers[some], times[some])
    return reception


def sent_log(batches, start=100.0):
    """A log of batches of frames that left a millisecond after each other."""
    moments = iter([start + number * INTERVAL for number in range(len(batches))])
    log = SendLog(lambda count: count, lambda: next(moments))
    for batch in batches:
        log.offer(batch)
    return log.sent_batches()


@pytest.mark.parametrize("parts", [1, 3, 50])
def test_lost_frames_are_those_whose_numbers_never_came(parts):
    rng = random.Random(parts)
    numbers = [number for number in range(5000) if rng.random() < 0.9]
    reception = received(numbers, parts)
    assert reception.lost(0, 5000).tolist() == sorted(set(range(5000)) - set(numbers))
    firsts, lasts, times = reception.outages(5000)
    assert sum(lasts - firsts + 1) == 5000 - len(numbers)
    places = {number: place * INTERVAL for place, number in enumerate(numbers)}
    for first, last, (before, after) in zip(firsts, lasts, times, strict=True):
        assert places.get(first - 1, before) == before or first == 0
        assert places.get(last + 1, after) == after or last == 4999


def test_the_ends_of_the_traffic_may_be_lost():
    firsts, lasts, times = received([3, 4, 5]).outages(9)
    assert (firsts.tolist(), lasts.tolist()) == ([0, 6], [2, 8])
    assert np.array_equal(times, [[np.nan, 0.0], [2 * INTERVAL, np.nan]], equal_nan=True)


def test_a_reception_without_frames_is_one_outage():
    firsts, lasts, times = received([]).outages(7)
    assert (firsts.tolist(), lasts.tolist(), np.isnan(times).all()) == ([0], [6], True)


def test_frames_that_overtake_each_other_or_come_twice_are_not_lost():
    reception = received([0, 2, 1, 1, 5, 6, 3, 4, 7], parts=4)
    assert len(reception.lost(0, 8)) == 0
    assert len(reception.outages(8)[0]) == 0


def test_a_number_that_no_frame_can_have_yet_is_not_believed():
    assert received([0, 1, 1 << 31, 2]).lost(0, 4).tolist() == [3]


def test_the_longest_silences_are_kept_in_their_order():
    times = np.cumsum([INTERVAL * (10 + number % 7 if number % 3 == 0 else 1) for number in range(9000)])
    reception = received(range(9000), 100, times)
    silences = reception.silences
    assert len(silences) == MOST_OUTAGES
    lengths = np.diff(times, prepend=np.nan)
    known = np.sort(lengths[1:])[-MOST_OUTAGES:]
    assert np.sort(silences[:, 1] - silences[:, 0]) == pytest.approx(known)
    assert (np.diff(silences[:, 0]) > 0).all()


def test_a_frame_left_with_its_batch():
    batches = sent_log([2, 3, 1])
    assert batches.time_of(np.arange(6)).tolist() == [100.0, 100.0, 100.001, 100.001, 100.001, 100.002]


def test_a_long_log_stays_small_and_knows_its_error(monkeypatch):
    monkeypatch.setattr("lossratio.agent.afpacket.sender._MOST_ENTRIES", 8)
    batches = sent_log([5] * 100)
    assert len(batches.times) <= 8
    errors = np.arange(500) // 5 * INTERVAL + 100.0 - batches.time_of(np.arange(500))
    assert 0 <= errors.min() <= errors.max() < batches.resolution / sent_log([1]).resolution * INTERVAL


def test_a_course_places_lost_frames_in_their_steps():
    batches = sent_log([1] * 20)
    steps = [Transmission(12, 12, 0.012, 0.0, 100.0), Transmission(8, 8, 0.008, 0.0, 100.012)]
    message = course(batches, steps, received([number for number in range(20) if number not in (3, 4, 13)]))
    assert [(step["lost"], step["last_lost"]) for step in message["steps"]] == [
        (2, pytest.approx(0.004)),
        (1, pytest.approx(0.013)),
    ]
    assert [[outage[name] for name in ("frames", "first_sent", "last_sent")] for outage in message["outages"]] == [
        [2, pytest.approx(0.003), pytest.approx(0.004)],
        [1, pytest.approx(0.013), pytest.approx(0.013)],
    ]
    assert (message["began"], message["outage_count"]) == (100.0, 2)
    assert message["rate"] == pytest.approx(1000.0)


def test_traffic_of_which_nothing_left_has_a_course():
    message = course(sent_log([]), [Transmission(10, 0, 0.01, 0.01, 7.0)], received([]))
    assert (message["began"], message["rate"], message["steps"][0]["lost"]) == (7.0, None, 0)

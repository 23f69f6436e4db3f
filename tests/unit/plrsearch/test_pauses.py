"""Pauses that overflow a ring: their length, the ring and how often they come, from losses at several loads."""

from dataclasses import replace

import numpy as np
import pytest
from soak_trials import counts_of, estimated, trial

from lossratio.plrsearch import Pauses

LOADS = np.linspace(6e6, 17e6, 12)


def lost_by(every, lengths, ring, *, loads=LOADS, trials=10, seed=1, seconds=2.0):
    """Counts of trials at each load; the lengths of pauses are drawn."""
    rng = np.random.default_rng(seed)
    rows = []
    for load in np.repeat(loads, trials):
        drawn = lengths(rng, rng.poisson(seconds / every))
        rows.append((load, seconds, float(np.round(np.maximum(0.0, drawn * load - ring).sum()))))
    return counts_of(rows)


def equal(length):
    return lambda rng, number: np.full(number, length)


def exponential(length):
    return lambda rng, number: rng.exponential(length, number)


def jittered(length):
    return lambda rng, number: length * rng.uniform(0.8, 1.2, number)


DEVICES = {
    "collects garbage": (5.0, equal(250e-6), 250e-6, 2048.0, 2.0),
    "statistics": (1.0, equal(150e-6), 150e-6, 1024.0, 2.0),
    "house-keeping": (8.0, equal(1e-3), 1e-3, 8192.0, 2.0),
    "job": (3.0, equal(400e-6), 400e-6, 4096.0, 2.0),
    "short ring": (4.0, equal(80e-6), 80e-6, 256.0, 2.0),
    "long ring": (2.0, equal(2e-3), 2e-3, 16384.0, 2.0),
    "jitter": (2.0, jittered(300e-6), 300e-6, 2048.0, 2.0),
    "jitter, long trials": (6.0, jittered(500e-6), 500e-6, 4096.0, 20.0),
    "descheduled": (0.5, exponential(100e-6), 100e-6, 1024.0, 2.0),
    "long trials": (6.0, equal(300e-6), 300e-6, 2048.0, 20.0),
}


NOT_STATED = {"descheduled", "jitter, long trials"}
"""Lengths that differ too much, or that do not differ enough from fewer pauses of other lengths."""


@pytest.mark.whole
@pytest.mark.parametrize("name", DEVICES)
def test_length_ring_and_frequency_of_pauses_are_those_of_the_device(name):
    every, lengths, length, ring, seconds = DEVICES[name]
    found = Pauses.of(lost_by(every, lengths, ring, seconds=seconds))
    assert found.is_sure == (name not in NOT_STATED)
    assert found.length_s == pytest.approx(length, rel=0.2)
    assert found.ring_frames == pytest.approx(ring, rel=0.3)
    assert found.every_s == pytest.approx(every, rel=0.5)


@pytest.mark.whole
def test_lengths_that_differ_are_not_taken_for_equal_ones():
    """Only the longest pauses overflow the ring; their losses do not grow as those of equal pauses."""
    found = Pauses.of(lost_by(0.5, exponential(100e-6), 1024.0))
    assert found.shape == 1.0
    assert not found.is_sure
    equal_ones = Pauses.of(lost_by(3.0, equal(400e-6), 4096.0))
    assert equal_ones.shape > 100.0
    assert str(equal_ones).startswith("Frames are lost in pauses, about ")
    assert "us long" in str(equal_ones)


@pytest.mark.whole
@pytest.mark.parametrize(("seed", "is_sure"), [(1, True), (2, False), (3, True)])
def test_pauses_of_nearly_equal_length_are_not_taken_for_several_shorter_ones(seed, is_sure):
    """Most trials are near the load at which the ring just overflows, as in a search of half an hour."""
    rng = np.random.default_rng(seed)
    rows = []
    for load, trials in ((5.67e6, 300), (5.78e6, 20), (5.9e6, 25), (7.64e6, 15), (7.76e6, 6)):
        pauses = rng.binomial(1, 0.4, trials)
        lengths = 180e-6 * rng.uniform(0.98, 1.02, trials)
        lost = np.round(pauses * np.maximum(0.0, lengths * load - 1024.0))
        rows += [(load, 2.0, float(one)) for one in lost]
    found = Pauses.of(counts_of(rows))
    assert found.is_sure == is_sure
    assert found.length_s == pytest.approx(180e-6, rel=0.1)
    assert found.ring_frames == pytest.approx(1024.0, rel=0.1)


@pytest.mark.whole
def test_few_losses_and_losses_of_one_load_say_nothing():
    assert Pauses.of(lost_by(5.0, equal(250e-6), 4096.0, loads=LOADS[:3])) is None
    assert Pauses.of(lost_by(5.0, equal(250e-6), 4096.0, loads=[17e6])) is None
    narrow = Pauses.of(lost_by(0.5, exponential(100e-6), 1024.0, loads=[16.9e6, 17e6]))
    assert narrow is None or not narrow.is_sure


@pytest.mark.whole
def test_losses_of_the_same_size_at_each_load_are_no_pauses():
    rng = np.random.default_rng(1)
    rows = [(load, 2.0, 300.0 * rng.poisson(0.3)) for load in np.repeat(LOADS, 8)]
    found = Pauses.of(counts_of(rows))
    assert found is None or not found.is_sure


@pytest.mark.whole
def test_the_target_is_lost_at_the_load_that_pauses_allow():
    question = estimated([trial(1e6, 0)], likelihood="varying").question
    target = question.target_loss_ratio
    found = Pauses.of(lost_by(3.0, equal(500e-6), 3000.0))
    assert found.critical_load(question) == pytest.approx(6e6, rel=0.03)
    found = Pauses.of(lost_by(0.5, exponential(100e-6), 2048.0, trials=20))
    allowed = 2048.0 / 100e-6 / np.log(100e-6 / 0.5 / target)
    assert found.critical_load(question) == pytest.approx(allowed, rel=0.2)
    assert found.loss_ratio(found.critical_load(question)) == pytest.approx(target, rel=1e-3)


@pytest.mark.whole
def test_a_few_losses_of_equal_pauses_show_the_load_that_they_allow():
    """Each loss is that of one pause, or of a few: only one length explains them all."""
    question = estimated([trial(1e6, 0)], likelihood="varying", max_load=28e6).question
    loads = [7e6, 8e6, 9e6, 10.5e6, 13e6, 16e6]
    truth = 2048.0 / 200e-6
    known = []
    for seed in range(12):
        found = Pauses.of(lost_by(1.0, equal(200e-6), 2048.0, loads=loads, trials=6, seed=seed))
        if found is None:
            continue
        allowed = found.allowed(question)
        assert allowed.least <= allowed.likeliest <= allowed.most
        if allowed.is_known:
            known.append(allowed.least)

    assert len(known) >= 10
    assert known == pytest.approx([truth] * len(known), rel=0.05)


@pytest.mark.whole
@pytest.mark.parametrize("seed", [1, 2])
def test_pauses_that_come_many_times_in_each_trial_are_counted(seed):
    """The trials with the most pauses lose more than one frame in a thousand, as trials in overload do."""
    loads = [10.1e6, 10.3e6, 10.6e6, 11e6, 13e6, 16e6]
    lost = lost_by(0.1, equal(400e-6), 4096.0, loads=loads, trials=4, seed=seed)
    found = Pauses.of(lost.with_more(counts_of([(28e6, 2.0, 20e6)] * 2)))
    assert lost.lost.max() > 1e-3 * 2.0 * 16e6
    assert found.length_s == pytest.approx(400e-6, rel=0.01)
    assert found.ring_frames == pytest.approx(4096.0, rel=0.02)
    assert found.every_s == pytest.approx(0.1, rel=0.1)


@pytest.mark.whole
def test_a_load_that_losses_do_not_show_is_not_known():
    question = estimated([trial(1e6, 0)], likelihood="varying", max_load=28e6).question
    few = Pauses.of(lost_by(0.5, exponential(100e-6), 2048.0, loads=[12e6, 14e6, 15e6, 16e6, 17e6], trials=1))
    assert not few.allowed(question).is_known
    assert few.allowed(question).most > 1.5 * few.allowed(question).likeliest


@pytest.mark.parametrize(("quiet_trials", "speak_against_them"), [(15, False), (150, True)])
def test_trials_that_would_have_shown_the_pauses_speak_against_them(quiet_trials, speak_against_them):
    pauses = Pauses(0.1, 20e-6, 1.0, 512.0, 0.0, np.zeros((3, 3)))
    allowed = 512.0 / 20e-6 / np.log(20e-6 / 0.1 / 1e-7)
    # At this load, one out of eleven trials would lose frames to a pause.
    load = 1.4 * allowed
    rows = [trial(load, 0, duration=2.0)] * quiet_trials
    rows += [trial(20e6, 8_000_000 + more, duration=2.0) for more in (0, 1500)]
    known = estimated(rows, likelihood="varying", max_load=28e6).description
    vars(known)["pauses"] = replace(pauses, plausible=(pauses,))
    assert known.pauses_allow.most == pytest.approx(allowed)
    assert known.most == pytest.approx(load if speak_against_them else allowed)


@pytest.mark.whole
def test_where_trials_verify_no_load_the_one_that_pauses_allow_is_stated():
    """Each of the lower loads lost frames, too: the least one, or the minimum load, would be far off."""
    lost = lost_by(0.1, exponential(20e-6), 512.0, loads=np.linspace(8e6, 17e6, 12), trials=2)
    rows = [trial(load, int(number), duration=2.0) for load, number in zip(lost.load, lost.lost, strict=True)]
    rows += [trial(20e6, 8_000_000 + more, duration=2.0) for more in (0, 1500)]
    found = estimated(rows, likelihood="varying", max_load=28e6)
    assert found.verified is None
    allowed = 512.0 / 20e-6 / np.log(20e-6 / 0.1 / 1e-7)
    assert 0.7 * allowed < found.stated < 1.3 * allowed
    assert found.stated == pytest.approx(0.95 * found.description.pauses_allow.likeliest)


@pytest.mark.whole
@pytest.mark.parametrize(("lost", "states_it"), [(14, True), (40, False)])
def test_ten_trials_within_the_target_disprove_pauses_that_allow_far_less(lost, states_it):
    """A grant that is nearly always large enough: what it loses looks like very short pauses."""
    rows = [(2.56e6, 1_919_350), (1.6e6, 90_310), (1.555e6, 51_616), (1.549e6, 46_290), (1.53e6, 36_323)]
    rows += [(1.45e6, 8362), (1.14e6, 0), (1.294e6, 176), (1.216e6, 4), (1.236e6, 6)]
    rows += [(1.1778e6, number) for number in (lost, 0, 2, 0, 0, 0, 0, 5, 0, 0, 0)]
    results = [trial(load, number, duration=2.0) for load, number in rows]
    found = estimated(results, likelihood="varying", target=1e-6, max_load=2.56e6)
    assert found.verified is None
    assert found.description.pauses_allow.least < 0.6 * 1.1778e6
    assert (found.stated == pytest.approx(0.95 * 1.1778e6)) == states_it


@pytest.mark.whole
def test_no_pauses_are_longer_than_the_time_between_them():
    """A single event of some seconds made two trials lose much; shorter pauses would have to overlap."""
    rows = [(2.7e6, 2.0, 1_436_456.0), (2.12e6, 2.0, 515_923.0), (2.7e6, 2.0, 399_767.0)]
    rows += [(load, 2.0, 0.0) for load in (1.35e6, 1.73e6, 1.93e6, 2.02e6, 2.1e6)] * 3 + [(2.7e6, 2.0, 0.0)] * 8
    found = Pauses.of(counts_of(rows))
    assert found is None or found.length_s < found.every_s
    assert all(fit.length_s < fit.every_s for fit in (() if found is None else found.plausible))

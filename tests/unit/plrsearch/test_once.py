"""Losses that come once in each trial, no matter how long it takes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from soak_trials import counts_of

from lossratio.plrsearch import PLRsearch
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.variation import Change, OnceLost, described
from lossratio.plrsearch.variation.once import AskedTrial, asked
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialResult, run_search

KNEE = SmoothKnee(18e6, 2e4)
CRITICAL = 17813478.5
"""Its critical load at 1e-7."""
PURPOSE = "whether shorter trials lose as many frames"
QUESTION = CriticalLoadQuestion(1e-7, 1e4, 30e6)
OVERLOAD = [(18.2e6, 2.0, 400_000.0)] * 2


@dataclass(frozen=True)
class Waiting:
    """The last frames of a trial wait for others, until a batch is full."""

    batch: int = 32

    def start(self, rng):
        return lambda traffic: int(rng.poisson(mean_of(traffic)) + rng.integers(0, self.batch))

    def truth(self, **_):
        """Not asked for here."""


@dataclass(frozen=True)
class Learning:
    """The first frames of a trial wait in a queue until the flows are known."""

    seconds: float = 1e-4
    queue: float = 600.0

    def start(self, rng):
        def lost_frames(traffic):
            waiting = traffic.load * self.seconds * rng.uniform(0.8, 1.2)
            return int(rng.poisson(mean_of(traffic)) + max(0.0, waiting - self.queue))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


def mean_of(traffic):
    return KNEE.loss_rate(traffic.load) * traffic.duration


SUTS = {
    "the last batch": Waiting(),
    "the first frames": Learning(),
    "as many as in overload": Learning(seconds=4e-3, queue=0.0),
}


# Each third has all three devices: the last parameter changes slowest.
@pytest.mark.whole
@pytest.mark.parametrize("seed", [2, 4])
@pytest.mark.parametrize("seconds", [60.0, 300.0])
@pytest.mark.parametrize("sut", SUTS.values(), ids=list(SUTS))
def test_losses_that_come_once_do_not_lower_the_load_and_are_said(sut, seconds, seed):
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=seconds)
    found = run_search(controller, SimulatedMeasurer(sut, seed=seed, overhead=0.5))
    assert 0.9 * CRITICAL < found.stated <= CRITICAL
    assert not found.is_regular
    assert found.doubt.startswith("each trial loses up to ")
    assert "that each trial loses once" in str(found.guard)
    most = max(lost for load, lost in zip(found.counts.load, found.counts.lost, strict=True) if load < 17e6)
    assert found.guard.once_lost_frames >= most


def searched(sut, *, seed, seconds):
    """The result of a search; and why each trial was made, and how many frames it lost."""
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=seconds)
    measurer = SimulatedMeasurer(sut, seed=seed, overhead=0.5)
    trials = []
    while (wanted := controller.next_trial()) is not None:
        output = measurer.measure(wanted)
        trials.append((controller.purpose, output.lost_frames))
        controller.record(TrialResult(wanted, output))
    return controller.result(), trials


@pytest.mark.whole
def test_without_such_losses_no_trial_is_spent_on_them_and_the_guard_does_not_speak_of_them():
    found, trials = searched(KNEE, seed=1, seconds=300.0)
    assert found.is_regular
    assert found.guard.once_lost_frames is None
    assert "once" not in str(found.guard)
    assert len(trials) > 100
    assert not any(purpose == PURPOSE for purpose, _ in trials)


@pytest.mark.whole
def test_short_trials_that_are_all_set_aside_do_not_take_all_the_time():
    """A busy generator stalls in each short trial."""
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    measurer = SimulatedMeasurer(Waiting(), seed=1, overhead=0.5)
    asked_for = 0
    while (wanted := controller.next_trial()) is not None:
        asked_for += controller.purpose == PURPOSE
        output = measurer.measure(wanted)
        if wanted.duration < 1.0:
            output = replace(output, unsent_frames=output.sent_frames)
        controller.record(TrialResult(wanted, output))
    assert asked_for == 16
    assert controller.result().guard.once_lost_frames is None


def of(usual, short):
    rows = [(16e6, 2.0, lost) for lost in usual]
    return OnceLost.of(counts_of([*OVERLOAD, *rows]), shortly(short))


def shortly(lost):
    """Trials of .4 s that lose so many frames."""
    return counts_of([(16e6, 0.4, frames) for frames in lost] or [(16e6, 0.4, 0.0)]).at(slice(0, len(lost)))


@pytest.mark.parametrize(
    ("usual", "short", "most"),
    [
        ((20.0, 25.0, 18.0), (22.0, 30.0, 19.0, 20.0, 24.0, 15.0, 17.0, 21.0), 30.0),
        ((20.0, 25.0), (2.0, 30.0, 31.0, 0.0, 17.0, 21.0, 12.0, 9.0), 31.0),
        ((20.0, 25.0, 18.0), (4.0, 5.0, 3.0, 5.0, 4.0, 4.0, 6.0, 5.0), None),
        ((200.0, 250.0, 180.0), (0.0, 0.0, 500.0, 0.0, 0.0, 500.0, 0.0, 0.0), None),
        ((20.0, 25.0, 18.0), (22.0, 30.0, 19.0, 20.0, 24.0), None),
        ((20.0,), (22.0, 30.0, 19.0, 20.0, 24.0, 15.0, 17.0, 21.0), None),
        ((0.0, 0.0, 60.0), (22.0, 30.0, 19.0, 20.0, 24.0, 15.0, 17.0, 21.0), None),
    ],
    ids=["once", "widely", "by time", "rarely", "few short trials", "one other trial", "a rare loss"],
)
def test_losses_come_once_if_short_trials_lose_as_many_frames(usual, short, most):
    found = of(usual, short)
    assert (None if found is None else found.most) == most


def test_a_much_larger_loss_does_not_come_once():
    usual = [(16e6, 2.0, lost) for lost in (20.0, 25.0, 18.0)]
    pause = (17e6, 2.0, 5000.0)
    short = shortly([22.0, 30.0, 19.0, 20.0, 24.0, 15.0, 17.0, 21.0])
    found = OnceLost.of(counts_of([*OVERLOAD, *usual, (11e6, 2.0, 40.0), pause]), short)
    assert found is None or found.most == 40.0
    lower = (11e6, 2.0, 5000.0)
    found = OnceLost.of(counts_of([*OVERLOAD, *usual, (11e6, 2.0, 40.0), lower]), short)
    assert found.most == 40.0
    assert found.without(counts_of([lower])).lost == [4950.0]
    assert "up to 40 frames, whether it takes 0.4 s or 2 s" in str(found)


def test_a_trial_that_lost_nothing_by_chance_is_followed_by_others_if_trials_at_many_loads_lose_as_much():
    rows = [*OVERLOAD, *[(18.2e6, 2.0, 400_000.0)] * 4, (16e6, 2.0, 0.0), (16e6, 2.0, 110.0)]
    short = shortly([10.0, 40.0, 50.0])
    assert asked(counts_of(rows), short) is None
    rows += [(load, 2.0, lost) for load in (6e6, 9e6, 12e6) for lost in (60.0, 90.0)]
    assert asked(counts_of(rows), short) == USUAL
    rows += [(16e6, 2.0, lost) for lost in (50.0, 70.0, 20.0)]
    assert asked(counts_of(rows), short) == SHORT


@pytest.mark.whole
@pytest.mark.parametrize("often", [1.5, 3.0, 12.0])
def test_pauses_that_most_trials_see_do_not_come_once(often, how_many):
    rng = np.random.default_rng(1)
    number = how_many(400, 4000)
    seen = 0
    for _ in range(number):
        usual = 50.0 * rng.poisson(often, 4)
        short = 50.0 * rng.poisson(often / 5.0, 8)
        seen += of(usual, short) is not None
    assert seen <= 0.005 * number


SHORT, USUAL = AskedTrial(16e6, 0.2), AskedTrial(16e6, 1.0)


def test_trials_at_one_load_are_asked_for_until_they_show_how_losses_grow():
    once = [*OVERLOAD, (18.2e6, 2.0, 400_000.0), (15e6, 2.0, 20.0)]
    assert asked(counts_of(once), shortly([])) is None
    # Two trials lose similar numbers of frames.
    once += [(16e6, 2.0, 30.0)]
    assert asked(counts_of(once), shortly([])) == AskedTrial(15e6, 0.2)
    # Most trials must be of the usual length.
    assert asked(counts_of(once), shortly([20.0] * 4)) is None
    rows = [*once, *[(18.2e6, 2.0, 400_000.0)] * 8]
    assert [asked(counts_of(rows), shortly([20.0] * number)) for number in (1, 3, 4)] == [SHORT, SHORT, USUAL]
    rows += [(16e6, 2.0, 25.0)]
    assert [asked(counts_of(rows), shortly([20.0] * number)) for number in (4, 7, 8)] == [SHORT, SHORT, None]
    # These do not decide.
    assert [asked(counts_of(rows), shortly([10.0] * number)) for number in (8, 11, 12)] == [SHORT, SHORT, None]
    assert asked(counts_of(rows), shortly([5.0] * 4)) is None


@dataclass(frozen=True)
class Holding:
    """Each of four queues holds up to 31 frames back until the trial is over. Half of what is above the knee passes."""

    def start(self, rng):
        knee = SmoothKnee(14e6, 2e4)

        def lost_frames(traffic):
            mean = 0.5 * knee.loss_rate(traffic.load) * traffic.duration
            return int(rng.poisson(mean) + rng.integers(0, 32, size=4).sum())

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


@pytest.mark.whole
@pytest.mark.parametrize("seconds", [60.0, 300.0])
def test_frames_that_are_held_back_are_seen_at_loads_that_are_far_apart(seconds):
    # Only the trials that halve the range are below the knee.
    found, _ = searched(Holding(), seed=1, seconds=seconds)
    assert found.doubt.startswith("each trial loses up to ")
    assert 0.9 < found.stated / 13.8e6 < 1.01


def test_the_highest_two_loads_are_compared_if_no_others_are_near():
    rows = counts_of([*OVERLOAD, (12e6, 2.0, 20.0), (7e6, 2.0, 30.0), (5e6, 2.0, 20.0)])
    assert asked(rows, shortly([])) == AskedTrial(7e6, 0.2)
    near = (16.9e6, 2.0, 900.0)
    rows = counts_of([*OVERLOAD, near, (12e6, 2.0, 20.0), (7e6, 2.0, 30.0), (5e6, 2.0, 20.0)])
    assert asked(rows, shortly([])) == AskedTrial(7e6, 0.2)


MUCH_OVERLOAD = [(18.2e6, 2.0, 200_000.0)] * 12
"""The forwarding rate is 18.1 Mfps."""


@pytest.mark.parametrize(
    ("lost", "wanted"),
    [
        ((20.0, 30.0, 15.0, 25.0), AskedTrial(0.93 * 18.1e6, 0.2)),
        ((2.0, 30.0, 15.0, 25.0, 900.0), AskedTrial(0.93 * 18.1e6, 0.2)),
        ((20.0, 30.0, 25.0), None),
        ((10.0, 15.0, 50.0, 60.0), None),
        ((0.0, 30.0, 0.0, 25.0), None),
        ((1.0, 2.0, 1.0, 2.0), None),
    ],
    ids=["alike", "one in overload", "few", "growing", "rare", "hardly any"],
)
def test_losses_just_below_overload_come_once_if_they_do_not_grow(lost, wanted):
    rows = [(17.3e6 + 0.15e6 * at, 2.0, frames) for at, frames in enumerate(lost)]
    assert asked(counts_of([*MUCH_OVERLOAD, *rows]), shortly([])) == wanted


def test_a_shorter_trial_in_overload_does_not_show_the_rate():
    """It passes more of a bucket. Trials just above the rate of the others lose alike, but in overload."""
    usual = [(18.2e6, 2.0, 600_000.0)] * 12
    rows = [(17.9e6 + 0.08e6 * at, 2.0, 20.0) for at in range(4)]
    shorter = (19e6, 1.0, 100_000.0)
    assert asked(counts_of([*usual, *rows, shorter]), shortly([])) is None


def test_trials_of_usual_length_follow_where_there_are_none():
    rows = [(17.3e6 + 0.15e6 * at, 2.0, 20.0) for at in range(4)]
    safe = 0.93 * 18.1e6
    short = counts_of([(safe, 0.4, 20.0)])
    assert asked(counts_of([*MUCH_OVERLOAD, *rows]), short) == AskedTrial(safe, 1.0)
    assert asked(counts_of([*MUCH_OVERLOAD, *rows, (safe, 2.0, 20.0)]), short) == AskedTrial(safe, 0.2)
    # Most trials there lose nothing.
    assert asked(counts_of([*MUCH_OVERLOAD, *rows, (safe, 2.0, 0.0), (safe, 2.0, 20.0)]), short) is None


@pytest.mark.whole
def test_a_minute_is_enough_for_most_devices_that_hold_their_last_frames_back(how_many):
    number = how_many(8, 24)
    shares = [searched(Waiting(), seed=100 + seed, seconds=60.0)[0].stated / CRITICAL for seed in range(number)]
    assert sum(0.9 < share <= 1.0 for share in shares) >= 0.75 * number


def test_short_trials_are_compared_with_those_at_their_load():
    """Above, the load causes losses, too."""
    there = [(14.9e6, 2.0, 20.0), (15e6, 2.0, 25.0)]
    above = [(16e6, 2.0, 90.0), (16.1e6, 2.0, 100.0), (16.2e6, 2.0, 100.0)]
    short = counts_of([(15e6, 0.4, 24.0)] * 8)
    assert OnceLost.of(counts_of([*OVERLOAD, *there, *above]), short).frames < 150.0
    elsewhere = counts_of([*[(15e6, 0.4, 5.0)] * 8, (17e6, 0.4, 500.0)])
    assert OnceLost.of(counts_of([*OVERLOAD, *there, *above]), elsewhere) is None


def test_short_trials_that_lose_far_more_show_a_change_of_the_sut():
    usual = [*OVERLOAD, *[(18.2e6, 2.0, 400_000.0)] * 8, (15e6, 2.0, 20.0), (16e6, 2.0, 30.0)]
    assert asked(counts_of(usual), shortly([85.0])) == SHORT
    assert asked(counts_of(usual), shortly([2000.0])) is None
    assert OnceLost.of(counts_of(usual), shortly([2000.0] * 8)) is None


def test_losses_that_differ_much_between_loads_do_not_come_once():
    rows = [*OVERLOAD, *[(18.2e6, 2.0, 400_000.0)] * 8, (14e6, 2.0, 20.0), (16.9e6, 2.0, 900.0)]
    assert asked(counts_of(rows), shortly([])) is None


def test_a_trial_that_loses_more_than_a_hundredth_of_its_frames_is_in_overload():
    share_lost = [(16e6, 2.0, 0.02 * 32e6)] * 3
    usual = counts_of([*OVERLOAD, *share_lost])
    assert asked(usual, shortly([])) is None
    assert OnceLost.of(usual, shortly([0.02 * 32e6] * 8)) is None


def test_losses_that_come_once_are_compared_although_they_look_like_overload():
    usual = counts_of([*OVERLOAD, *[(16e6, 2.0, 50_000.0)] * 5])
    assert np.median(usual.at(usual.is_overload).forwarding_rate) < 16e6
    assert asked(usual, shortly([])) == SHORT
    assert OnceLost.of(usual, shortly([50_000.0] * 8)).most == 50_000.0


def test_losses_that_come_once_are_no_sign_of_a_change():
    """Of a trial with less load, they are a larger share."""
    rows = [(16e6, 2.0, 8000.0)] * 10 + [(16e6, 0.4, 8000.0)] * 8 + [(8e6, 2.0, 8000.0)] * 14
    counts = counts_of([*OVERLOAD, *rows])
    assert Change.of(counts) is not None
    known = described(counts, QUESTION, LikelihoodName.VARYING)
    assert known.once.most == 8000.0
    assert known.change is None


def test_even_losses_that_come_once_leave_little_room_for_others():
    even = of([8000.0, 8010.0, 7990.0], [8000.0, 8020.0, 7980.0, 8000.0, 8005.0, 7995.0, 8010.0, 7990.0])
    assert 8020.0 < even.frames < 8100.0
    uneven = of([20.0, 25.0], [2.0, 30.0, 31.0, 0.0, 17.0, 21.0, 12.0, 9.0])
    assert uneven.frames == 1.25 * 31.0


def test_long_trials_lose_no_more_once_than_others_do():
    """So most of what a long trial loses comes with time."""
    once = OnceLost(1200.0, 1500.0, 15e6, 0.4, 2.0)
    usual = [*[(14e6, 2.0, 1000.0)] * 8, *[(14.5e6, 2.0, 1300.0)] * 7, *[(15e6, 2.0, 1400.0)] * 8]
    long = [(load, 20.0, 3000.0) for load in (13.5e6, 14e6, 14.2e6, 15.5e6)]
    short = [(14e6, 0.4, 1000.0)] * 8
    counts = once.without(counts_of([*usual, *short, *long]))
    assert counts.lost[-4:] == pytest.approx([2000.0, 2000.0, 1600.0, 1500.0])
    assert not counts.lost[:-4].any()


SOFT = SmoothKnee(16e6, 3e5)


@dataclass(frozen=True)
class SoftlyHolding:
    """A knee whose losses are hardly larger than those that come once."""

    def start(self, rng):
        return lambda traffic: int(
            rng.poisson(SOFT.loss_rate(traffic.load) * traffic.duration) + rng.integers(500, 1000)
        )

    def truth(self, **_):
        """Not asked for here."""


@pytest.mark.whole
@pytest.mark.parametrize("seed", [0, 2, 4])
def test_long_trials_show_losses_that_hide_among_those_that_come_once(seed):
    controller = PLRsearch(1e-6, 1e4, 30e6, timeout=300.0)
    found = run_search(controller, SimulatedMeasurer(SoftlyHolding(), seed=seed, overhead=0.5))
    assert SOFT.loss_rate(found.stated) / found.stated < 2e-6
    assert not found.is_regular


@dataclass(frozen=True)
class Pausing:
    """It often pauses for so long that most trials lose frames, but not most trials of a fifth of their time."""

    def start(self, rng):
        def lost_frames(traffic):
            pauses = rng.poisson(traffic.duration / 1.0)
            return int(rng.poisson(mean_of(traffic)) + pauses * max(0.0, 8e-3 * traffic.load - 512.0))

        return lost_frames

    def truth(self, **_):
        """Not asked for here."""


@pytest.mark.whole
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_short_trials_without_loss_are_no_sign_of_a_large_bucket(seed):
    _, trials = searched(Pausing(), seed=seed, seconds=60.0)
    assert any(purpose == PURPOSE and not lost for purpose, lost in trials)
    assert not any("large bucket" in purpose for purpose, _ in trials)

"""Losses that come once in each trial, no matter how long it takes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from soak_trials import counts_of

from lossratio.plrsearch import PLRsearch, Verdict
from lossratio.plrsearch.variation import Asked, OnceLost
from lossratio.plrsearch.variation.once import asked
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialResult, run_search

KNEE = SmoothKnee(18e6, 2e4)
CRITICAL = 17813478.5
"""Its critical load at 1e-7."""
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


@pytest.mark.parametrize("sut", [Waiting(), Learning()], ids=["the last batch", "the first frames"])
@pytest.mark.parametrize("seed", [1, 2])
def test_losses_that_come_once_do_not_lower_the_load_and_are_said(sut, seed):
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    found = run_search(controller, SimulatedMeasurer(sut, seed=seed, overhead=0.5))
    assert 0.9 * CRITICAL < found.stated <= CRITICAL
    assert not found.is_regular
    assert found.doubt.startswith("each trial loses up to ")
    assert "that each trial loses once" in str(found.guard)
    most = max(lost for load, lost in zip(found.counts.load, found.counts.lost, strict=True) if load < 17e6)
    assert found.guard.once_lost_frames >= most


def test_without_such_losses_no_trial_is_spent_on_them_and_the_guard_does_not_speak_of_them():
    purposes = []
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    measurer = SimulatedMeasurer(KNEE, seed=1, overhead=0.5)
    found = run_search(controller, measurer, on_trial=lambda result: purposes.append(controller.purpose))
    assert found.is_regular
    assert found.guard.once_lost_frames is None
    assert "once" not in str(found.guard)
    assert "whether longer trials lose more frames" not in purposes


def test_long_trials_that_are_all_set_aside_do_not_take_all_the_time():
    """A busy generator stalls in each long trial."""
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    measurer = SimulatedMeasurer(Waiting(), seed=1, overhead=0.5)
    asked_for = 0
    while (wanted := controller.next_trial()) is not None:
        asked_for += controller.purpose == "whether longer trials lose more frames"
        output = measurer.measure(wanted)
        if wanted.duration > 2.0:
            output = replace(output, unsent_frames=output.sent_frames)
        controller.record(TrialResult(wanted, output))
    assert asked_for == 8
    assert controller.result().guard.once_lost_frames is None


def of(usual, long):
    rows = [(13e6, 2.0, lost) for lost in usual]
    return OnceLost.of(counts_of([*OVERLOAD, *rows]), counts_of([(13e6, 20.0, lost) for lost in long]))


@pytest.mark.parametrize(
    ("usual", "long", "most"),
    [
        ((20.0, 25.0, 18.0), (22.0, 30.0), 30.0),
        ((20.0, 25.0, 18.0), (200.0, 210.0), None),
        ((20.0, 25.0, 18.0), (22.0, 60.0), None),
        ((20.0, 25.0, 18.0), (22.0,), None),
        ((20.0, 25.0), (22.0, 30.0), None),
        ((0.0, 0.0, 60.0), (0.0, 0.0), None),
    ],
    ids=["once", "by time", "one by time", "one long trial", "two others", "a rare loss"],
)
def test_losses_come_once_if_long_trials_lose_as_few_frames(usual, long, most):
    found = of(usual, long)
    assert (None if found is None else found.most) == most


def test_a_much_larger_loss_does_not_come_once():
    usual = [(13e6, 2.0, lost) for lost in (20.0, 25.0, 18.0)]
    long = counts_of([(13e6, 20.0, 22.0), (13e6, 20.0, 30.0)])
    pause = (16e6, 2.0, 5000.0)
    found = OnceLost.of(counts_of([*OVERLOAD, *usual, pause, (16e6, 2.0, 40.0)]), long)
    assert found.most == 40.0
    assert found.without(counts_of([pause])).lost == [4950.0]
    assert "up to 40 frames, whether it takes 2 s or 20 s" in str(found)


def test_losses_at_higher_loads_are_not_compared():
    higher = counts_of([*OVERLOAD, *[(15e6, 2.0, 30.0)] * 6])
    assert OnceLost.of(higher, counts_of([(13e6, 20.0, 0.0)] * 2)) is None


def test_pauses_that_most_trials_see_do_not_come_once():
    rng = np.random.default_rng(1)
    for _ in range(200):
        usual = 50.0 * rng.poisson(2.0, 6)
        long = 50.0 * rng.poisson(20.0, 2)
        assert of(usual, long) is None


def test_a_load_far_below_overload_that_also_loses_frames_is_tried_three_times_and_twice_for_long():
    rows = [*OVERLOAD, (16e6, 2.0, 30.0)]
    long = []
    wanted = []
    rows.append((13e6, 2.0, 20.0))
    while (one := asked(counts_of(rows), counts_of(long or [(0.0, 20.0, 0.0)]).at(slice(0, len(long))))) is not None:
        wanted.append(one)
        (long if one.is_long else rows).append((one.load, 20.0 if one.is_long else 2.0, 20.0))
    assert wanted == [Asked(13e6, is_long=False)] * 2 + [Asked(13e6, is_long=True)] * 2


@pytest.mark.parametrize(
    ("higher", "lower", "long"),
    [(30.0, 0.0, None), (0.0, 20.0, None), (90.0, 20.0, None), (30.0, 20.0, 150.0)],
    ids=["quiet below", "quiet above", "more above", "more in a long trial"],
)
def test_no_trial_is_asked_for_where_losses_grow_with_load_or_time(higher, lower, long):
    rows = [*OVERLOAD, (16e6, 2.0, higher), *[(13e6, 2.0, lower)] * 3]
    trials = counts_of([(13e6, 20.0, 0.0 if long is None else long)]).at(slice(0, 0 if long is None else 1))
    assert asked(counts_of(rows), trials) is None


def test_a_load_that_loses_no_more_than_once_is_verified_below_overload_only():
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=300.0)
    found = run_search(controller, SimulatedMeasurer(Waiting(), seed=3, overhead=0.5))
    assert found.guard.verdict is Verdict.VERIFIED
    assert found.verified <= 0.98 * 18e6

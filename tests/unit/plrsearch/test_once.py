"""Losses that come once in each trial, no matter how long it takes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from soak_trials import counts_of

from lossratio.plrsearch import PLRsearch
from lossratio.plrsearch.variation import OnceLost
from lossratio.plrsearch.variation.once import asked
from lossratio.simulation import SimulatedMeasurer, SmoothKnee
from lossratio.trials import TrialResult, run_search

KNEE = SmoothKnee(18e6, 2e4)
CRITICAL = 17813478.5
"""Its critical load at 1e-7."""
PURPOSE = "whether shorter trials lose as many frames"
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
@pytest.mark.parametrize("seconds", [60.0, 300.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_losses_that_come_once_do_not_lower_the_load_and_are_said(sut, seconds, seed):
    controller = PLRsearch(1e-7, 1e4, 30e6, timeout=seconds)
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
    assert PURPOSE not in purposes


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
    assert asked_for == 10
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


def test_short_trials_are_asked_for_until_they_show_how_losses_grow():
    usual = [*OVERLOAD, (18.2e6, 2.0, 400_000.0), (15e6, 2.0, 20.0)]
    assert asked(counts_of(usual), shortly([])) is None
    # Two trials lose similar numbers of frames. Most trials must be of the usual length.
    usual += [(16e6, 2.0, 30.0), *[(16e6, 2.0, 0.0)] * 0]
    rows = counts_of([*usual, *[(18.2e6, 2.0, 400_000.0)] * 8])
    lost = []
    while asked(rows, shortly(lost)) is not None:
        assert asked(rows, shortly(lost)) == 16e6
        lost.append(20.0)
    assert len(lost) == 8
    lost = []
    while asked(rows, shortly(lost)) is not None:
        lost.append(5.0)
    assert len(lost) == 4
    assert asked(counts_of(usual), shortly([20.0] * 4)) is None


def test_losses_that_differ_much_between_loads_do_not_come_once():
    rows = [*OVERLOAD, *[(18.2e6, 2.0, 400_000.0)] * 8, (14e6, 2.0, 20.0), (16.9e6, 2.0, 900.0)]
    assert asked(counts_of(rows), shortly([])) is None

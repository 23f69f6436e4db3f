"""A model's truth is where its own trials begin to exceed the goal."""

import math
from itertools import pairwise

import numpy as np
import pytest

from lossratio.simulation import (
    BackgroundLoss,
    Buffer,
    CapacityDrift,
    CapacityStep,
    ConstantLoss,
    LossInversion,
    Overload,
    PerformanceSpectrum,
    Policer,
    RareStalls,
    SharpKnee,
    SmoothKnee,
    Traffic,
    TwoStates,
)

COLLAPSING = Overload(drop_cost=0.2, dip=0.001)
DETERMINISTIC = {
    "policer": Policer(rate=50e3, burst=1000),
    "buffer": Buffer(capacity=50e3, size=2000),
    "buffer, collapsing": Buffer(capacity=50e3, size=2000, overload=COLLAPSING),
    "sharp knee": SharpKnee(capacity=1e6),
    "sharp knee, collapsing": SharpKnee(capacity=1e6, overload=COLLAPSING),
    "loss inversion": LossInversion(capacity=1e6, band_start=0.8e6, band_end=0.9e6, loss_ratio=0.02),
    "harmless inversion": LossInversion(capacity=1e6, band_start=0.8e6, band_end=0.9e6, loss_ratio=0.0),
}
RANDOM = {
    "smooth knee, stretch": SmoothKnee(mrr=1e6, spread=2e4),
    "smooth knee, erf": SmoothKnee(mrr=1e6, spread=5e4, function="erf"),
    "background loss": BackgroundLoss(capacity=1e5, loss_ratio=1e-5),
    "background loss, collapsing": BackgroundLoss(capacity=1e6, loss_ratio=1e-7, overload=COLLAPSING),
    "spectrum": PerformanceSpectrum(capacity=1e6, jitter=0.005),
    "spectrum with a tail": PerformanceSpectrum(
        capacity=1e6, jitter=0.005, tail_share=0.3, tail_size=0.05, overload=COLLAPSING
    ),
    "rare stalls": RareStalls(capacity=1e6, interval=30.0, stall=0.05),
    "rare stalls, queued": RareStalls(capacity=1e6, interval=1.0, stall=0.01, queue=5000, overload=COLLAPSING),
    "two states": TwoStates(fast=1e6, slow=0.9e6, fast_spell=5.0, slow_spell=1.0),
    "two states, collapsing": TwoStates(fast=1e6, slow=0.9e6, fast_spell=1.0, slow_spell=2.0, overload=COLLAPSING),
}


def exceeding_share(sut, load, *, loss_ratio, duration, trials=2000):
    rng = np.random.default_rng(1)
    frames = math.ceil(load * duration)
    lost = [sut.start(rng)(Traffic(0.0, duration, frames)) for _ in range(trials)]
    return float(np.mean(np.array(lost) > loss_ratio * frames))


@pytest.mark.parametrize("duration", [0.1, 1.0, 60.0])
@pytest.mark.parametrize("loss_ratio", [0.0, 0.005])
@pytest.mark.parametrize("sut", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_below_the_truth_no_trial_exceeds_and_above_it_every_one(sut, loss_ratio, duration):
    truth = sut.truth(loss_ratio=loss_ratio, duration=duration, exceed_ratio=0.5)
    goal = {"loss_ratio": loss_ratio, "duration": duration, "trials": 20}
    assert exceeding_share(sut, truth * (1 - 2e-4), **goal) == 0.0
    assert exceeding_share(sut, truth * (1 + 2e-4), **goal) == 1.0


@pytest.mark.parametrize("duration", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("exceed_ratio", [0.2, 0.5])
@pytest.mark.parametrize("loss_ratio", [0.0, 0.005])
@pytest.mark.parametrize("sut", RANDOM.values(), ids=RANDOM)
def test_at_the_truth_the_share_of_exceeding_trials_passes_the_exceed_ratio(sut, loss_ratio, exceed_ratio, duration):
    truth = sut.truth(loss_ratio=loss_ratio, duration=duration, exceed_ratio=exceed_ratio)
    goal = {"loss_ratio": loss_ratio, "duration": duration}
    assert 0.0 < truth < math.inf
    # A standard deviation of the share is 0.011 at most.
    assert exceeding_share(sut, truth * (1 - 1e-4), **goal) < exceed_ratio + 0.04
    assert exceeding_share(sut, truth * (1 + 1e-4) + 1.0 / duration, **goal) > exceed_ratio - 0.04


@pytest.mark.parametrize("rate", [20e3, 50e3, 200e3])
@pytest.mark.parametrize("duration", [0.1, 1.0, 5.0])
def test_a_policers_truth_is_its_rate_plus_its_burst_over_the_duration(rate, duration):
    sut = Policer(rate=rate, burst=0.02 * rate)
    assert sut.truth(loss_ratio=0.0, duration=duration, exceed_ratio=0.0) == rate + 0.02 * rate / duration


def test_a_buffers_truth_for_no_loss_has_the_policers_form():
    truth = Buffer(capacity=1e6, size=5000, overload=COLLAPSING).truth(loss_ratio=0.0, duration=2.0, exceed_ratio=0.0)
    assert truth == pytest.approx(1e6 + 2500, rel=1e-11)


def test_a_stretch_knees_loss_rate_agrees_with_its_definition():
    mrr, spread, load = 1e6, 1e5, 0.9e6
    at_load, at_zero = (math.log1p(math.exp((rate - mrr) / spread)) for rate in (load, 0.0))
    expected = spread * (1 + math.exp(-mrr / spread)) * (at_load - at_zero)
    assert SmoothKnee(mrr=mrr, spread=spread).loss_rate(load) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("function", ["stretch", "erf"])
def test_a_smooth_knee_loses_nearly_nothing_at_first_and_all_above_its_limit_at_last(function):
    sut = SmoothKnee(mrr=1e6, spread=2e4, function=function)
    rates = [sut.loss_rate(load) for load in np.linspace(1.0, 3e6, 300)]
    assert all(low <= high for low, high in pairwise(rates))
    assert sut.loss_rate(0.5e6) < 1e-4
    assert sut.loss_rate(3e6) == pytest.approx(2e6, rel=1e-9)


def test_a_stalls_effect_grows_with_the_duration():
    sut = RareStalls(capacity=1e6, interval=30.0, stall=0.01)
    goal = {"loss_ratio": 0.0, "exceed_ratio": 0.5}
    assert sut.truth(duration=1.0, **goal) == pytest.approx(1e6)
    assert sut.truth(duration=60.0, **goal) == 0.0


@pytest.mark.whole
def test_a_slow_state_hits_long_trials_more_often_than_short_ones():
    sut = TwoStates(fast=1e6, slow=0.9e6, fast_spell=20.0, slow_spell=2.0)
    goal = {"loss_ratio": 0.0, "exceed_ratio": 0.5}
    assert sut.truth(duration=1.0, **goal) == pytest.approx(1e6)
    assert sut.truth(duration=60.0, **goal) == pytest.approx(0.9e6)


def test_a_mix_of_very_many_spells_has_no_computed_truth():
    sut = TwoStates(fast=1e6, slow=0.9e6, fast_spell=0.01, slow_spell=0.01)
    assert sut.truth(loss_ratio=0.0, duration=60.0, exceed_ratio=0.5) is None


def test_perfect_suts_and_black_holes_have_their_truth_at_the_ends():
    goal = {"loss_ratio": 0.005, "duration": 1.0, "exceed_ratio": 0.5}
    assert ConstantLoss().truth(**goal) == math.inf
    assert ConstantLoss(loss_ratio=0.001).truth(**goal) == math.inf
    assert ConstantLoss(loss_ratio=1.0).truth(**goal) == 0.0


def test_constant_loss_lets_a_goal_without_loss_only_pass_with_few_frames():
    sut = ConstantLoss(loss_ratio=0.001)
    truth = sut.truth(loss_ratio=0.0, duration=2.0, exceed_ratio=0.5)
    assert (1 - 0.001) ** (truth * 2.0) == pytest.approx(0.5)
    assert exceeding_share(sut, truth, loss_ratio=0.0, duration=2.0) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("sut", [*RANDOM.values(), ConstantLoss(loss_ratio=0.1)])
def test_where_any_trial_may_lose_and_none_may_exceed_there_is_no_truth(sut):
    if isinstance(sut, TwoStates):
        assert sut.truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.0) == pytest.approx(sut.slow)
    else:
        assert sut.truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.0) is None


@pytest.mark.parametrize(
    "sut", [CapacityStep(before=1e6, after=9e5, at=30.0), CapacityDrift(capacity=1e6, per_second=-1e-4)]
)
def test_a_capacity_that_changes_for_good_has_no_truth(sut):
    assert sut.truth(loss_ratio=0.0, duration=1.0, exceed_ratio=0.5) is None

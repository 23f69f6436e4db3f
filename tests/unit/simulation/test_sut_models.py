import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from at_least_one import at_least_one
from hypothesis import given, strategies as st

from lossratio.simulation import (
    SUT_MODELS,
    Buffer,
    CapacityDrift,
    CapacityStep,
    LossInversion,
    Overload,
    PerformanceSpectrum,
    Policer,
    SharpKnee,
    Traffic,
    TwoStates,
    sut_from,
)

ARGUMENTS = {
    "background_loss": {"capacity": "1 Mfps", "loss_ratio": "0.01 %"},
    "buffer": {"capacity": 1e6, "size": 5000},
    "capacity_drift": {"capacity": 1e6, "per_second": -1e-4},
    "capacity_step": {"before": 1e6, "after": 9e5, "at": "30 s"},
    "device": {"capacity": "1 Mfps", "size": 9, "recovery": "2 s", "downtime": "300 ms", "resets": [2.0, "4 s"]},
    "connection_table": {"rate": "20 kcps", "burst": 100, "room": 5000, "scan": "1 us", "timeout": "30 s"},
    "constant_loss": {"loss_ratio": 0.1},
    "loss_inversion": {"capacity": 1e6, "band_start": 8e5, "band_end": 9e5, "loss_ratio": 0.1},
    "performance_spectrum": {"capacity": 1e6, "jitter": 0.01, "tail_share": 0.1},
    "policer": {"rate": "50 kfps", "burst": 1000},
    "rare_stalls": {"capacity": 1e6, "interval": "1 min", "stall": "10 ms", "queue": 100},
    "recorded": {"file": str(Path(__file__).with_name("recorded_trials.jsonl")), "between": "either"},
    "sharp_knee": {"capacity": 1e6, "overload": {"drop_cost": "10 %", "dip": 0.01}},
    "smooth_knee": {"mrr": 1e6, "spread": 1e4, "function": "erf"},
    "two_states": {"fast": 1e6, "slow": 9e5, "fast_spell": 10.0, "slow_spell": 1.0},
}


def start(sut, seed=1):
    return sut.start(np.random.default_rng(seed))


def test_every_model_can_be_built_from_data():
    assert set(ARGUMENTS) == set(SUT_MODELS)
    for name, arguments in ARGUMENTS.items():
        assert type(sut_from({"model": name, **arguments})) is SUT_MODELS[name]


def test_quantities_in_data_have_units():
    assert sut_from({"model": "policer", **ARGUMENTS["policer"]}) == Policer(rate=50_000.0, burst=1000)
    assert sut_from({"model": "background_loss", **ARGUMENTS["background_loss"]}).loss_ratio == pytest.approx(1e-4)
    assert sut_from({"model": "rare_stalls", **ARGUMENTS["rare_stalls"]}).interval == 60.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rate": 1}, "no SUT model None"),
        ({"model": "polcer"}, "Did you mean 'policer'"),
        ({"model": ["policer"]}, "no SUT model"),
        ({"model": "policer"}, "rate is missing"),
        ({"model": "policer", "rat": 5}, "no field 'rat'.*Did you mean 'rate'"),
        ({"model": "policer", "rate": -5}, "rate: -5 is not a frame rate; write it like"),
        ({"model": "policer", "rate": "fast"}, "rate: .*'fast' is not a frame rate"),
        ({"model": "policer", "rate": math.inf}, "rate: inf is not a frame rate; write it like"),
        ({"model": "constant_loss", "loss_ratio": 1.5}, "loss_ratio: .*at most 1"),
        ({"model": "sharp_knee", "capacity": 1, "overload": {"drop": 0}}, "no field 'overload.drop'"),
        (
            {"model": "two_states", "fast": 1, "slow": 2, "fast_spell": 1, "slow_spell": 1},
            "'slow' must be below 'fast'",
        ),
        ({"model": "loss_inversion", "capacity": 1, "band_start": 2, "band_end": 3, "loss_ratio": 0}, "band_start"),
    ],
)
def test_data_that_is_no_model_is_refused_with_what_is_wrong(data, message):
    with pytest.raises(ValueError, match=message):
        sut_from(data)


@pytest.mark.whole
@given(
    st.sampled_from(sorted(SUT_MODELS)),
    st.integers(0, 5),
    st.lists(st.tuples(st.floats(0, 10), st.floats(1e-3, 100), st.integers(1, 10**8)), min_size=1, max_size=5),
)
def test_no_sut_loses_less_than_nothing_or_more_than_everything(name, seed, trials):
    running = start(sut_from({"model": name, **ARGUMENTS[name]}), seed)
    now = 0.0
    for idle, duration, frames in at_least_one(trials):
        now += idle
        assert 0 <= running(Traffic(now, duration, frames)) <= frames
        now += duration


@pytest.mark.parametrize(
    ("rate", "burst", "duration", "load", "passed"),
    [
        (20_000, 400, 1.0, 40_000, 20_400),
        (100_000, 2000, 1.0, 200_000, 102_000),
        (200_000, 4000, 1.0, 400_000, 204_000),
        (20_000, 400, 0.1, 40_000, 2_400),
        (20_000, 400, 5.0, 20_100, 100_400),
    ],
)
def test_a_policer_passes_what_the_kernels_was_measured_to_pass(rate, burst, duration, load, passed):
    frames = round(load * duration)
    assert frames - start(Policer(rate=rate, burst=burst))(Traffic(0.0, duration, frames)) == passed


@pytest.mark.parametrize(("idle", "tokens"), [(0.0, 0), (0.01, 500), (0.02, 1000), (5.0, 1000)])
def test_a_policers_bucket_fills_up_between_trials(idle, tokens):
    policer = start(Policer(rate=50_000, burst=1000))
    policer(Traffic(0.0, 1.0, 100_000))
    assert 100_000 - policer(Traffic(1.0 + idle, 1.0, 100_000)) == 50_000 + tokens


def test_a_trial_below_the_rate_does_not_empty_the_bucket():
    policer = start(Policer(rate=50_000, burst=1000))
    policer(Traffic(0.0, 1.0, 49_000))
    assert 100_000 - policer(Traffic(1.0, 1.0, 100_000)) == 51_000


def test_a_buffer_hides_the_loss_of_short_trials_only():
    sut = Buffer(capacity=1e6, size=20_000)
    assert start(sut)(Traffic(0.0, 1.0, 1_020_000)) == 0
    assert start(sut)(Traffic(0.0, 10.0, 10_200_000)) == 180_000


def test_a_buffer_that_had_no_time_to_drain_hides_less():
    buffer = start(Buffer(capacity=1e6, size=20_000))
    assert buffer(Traffic(0.0, 1.0, 1_100_000)) == 80_000
    assert buffer(Traffic(1.01, 1.0, 1_100_000)) == 90_000


def test_an_overloaded_sut_forwards_its_capacity_and_no_more():
    assert start(SharpKnee(capacity=1e6))(Traffic(0.0, 1.0, 3_000_000)) == 2_000_000


def test_work_spent_on_dropped_frames_is_missing_for_forwarded_ones():
    load, capacity, drop_cost = 2e6, 1e6, 0.2
    lost = start(SharpKnee(capacity=capacity, overload=Overload(drop_cost=drop_cost)))(Traffic(0.0, 1.0, int(load)))
    assert (load - lost) + drop_cost * lost == pytest.approx(capacity, abs=1)


@given(st.floats(0, 0.9), st.floats(0, 0.5), st.floats(1.01, 100), st.floats(1.01, 5))
def test_with_any_collapse_more_load_is_never_more_forwarded(drop_cost, dip, factor, more):
    overload = Overload(drop_cost=drop_cost, dip=dip)
    forwarded = [load * (1 - overload.loss_ratio(load, 1.0)) for load in (factor, factor * more)]
    assert forwarded[1] <= forwarded[0] + 1e-9 <= 1.0 - dip + 1e-8


def test_a_dip_makes_the_knee_a_cliff():
    overload = Overload(dip=0.1)
    assert overload.loss_ratio(1.0, 1.0) == 0.0
    assert overload.loss_ratio(1.000001, 1.0) == pytest.approx(0.1, abs=1e-5)


def test_loss_inversion_loses_in_its_band_only():
    sut = start(LossInversion(capacity=1e6, band_start=0.8e6, band_end=0.9e6, loss_ratio=0.1))
    lost = [sut(Traffic(0.0, 1.0, frames)) for frames in (799_999, 800_000, 899_999, 900_000, 1_000_000)]
    assert lost[0] == lost[3] == lost[4] == 0
    assert lost[1:3] == pytest.approx([80_000, 90_000], rel=0.02)


def test_a_spectrums_trials_are_spread_as_it_says():
    sut = start(PerformanceSpectrum(capacity=1e6, jitter=0.01))
    forwarded = [2_000_000 - sut(Traffic(0.0, 1.0, 2_000_000)) for _ in range(4000)]
    assert np.mean(forwarded) == pytest.approx(1e6, rel=0.001)
    assert np.std(forwarded) == pytest.approx(1e4, rel=0.05)


def test_a_step_within_a_trial_splits_it():
    sut = start(CapacityStep(before=1e6, after=5e5, at=10.0))
    assert sut(Traffic(0.0, 10.0, 10_000_000)) == 0
    assert sut(Traffic(9.0, 4.0, 4_000_000)) == 1_500_000
    assert sut(Traffic(20.0, 1.0, 1_000_000)) == 500_000


@pytest.mark.parametrize("per_second", [-0.001, 0.001])
def test_a_drifts_loss_is_the_integral_over_the_trial(per_second):
    sut = CapacityDrift(capacity=1e6, per_second=per_second)
    times = np.linspace(100.0, 160.0, 600_001)
    capacity = 1e6 * (1.0 + per_second) ** times
    load = float(capacity.mean())
    lost = start(sut)(Traffic(100.0, 60.0, round(load * 60.0)))
    assert lost == pytest.approx(float(np.mean(np.maximum(0.0, load - capacity))) * 60.0, rel=0.001)


def test_two_states_take_the_share_of_time_that_their_spells_have():
    sut = TwoStates(fast=1e6, slow=5e5, fast_spell=3.0, slow_spell=1.0)
    lost = start(sut)(Traffic(0.0, 20_000.0, 20_000_000_000))
    assert lost / 20e9 == pytest.approx(0.5 * 0.25, rel=0.05)


def test_a_state_lasts_beyond_the_end_of_a_trial():
    sut = start(TwoStates(fast=1e6, slow=5e5, fast_spell=100.0, slow_spell=100.0))
    lossy = [sut(Traffic(float(time), 1.0, 1_000_000)) > 0 for time in range(2000)]
    changes = sum(first != second for first, second in pairwise(lossy))
    assert 5 < changes < 60

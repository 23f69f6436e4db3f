"""Judging soak tests: what is right, wrong and untrue, by devices with a known truth."""

from dataclasses import replace

import pytest

from lossratio.plrsearch import CountedLoad
from lossratio.plrsearch.counted_load import SeenBucketRate
from lossratio.plrsearch.counting import FixedPause
from lossratio_study.soak import pairs, searched, summary, untrue
from lossratio_study.soak_devices import CAPACITY, FAMILIES, KINDS
from lossratio_study.soak_drawn import family_named

NOTHING = CountedLoad(
    stated=17e6,
    verified=17e6,
    contradicted=None,
    estimate=None,
    clump=1.0,
    rarest_s=10.0,
    trial_s=2.0,
    long_s=None,
    changes=(),
    bucket=None,
    pause=None,
    batch=None,
    once=0.0,
    stopped_by=None,
)


@pytest.fixture(scope="module")
def sharp():
    return searched("counts", "sharp", FAMILIES["sharp"], 60.0, 0)


def test_a_search_of_a_healthy_device_is_right(sharp):
    assert sharp.right
    assert sharp.healthy
    assert sharp.regular
    assert sharp.covered
    assert not sharp.wrong
    assert sharp.false == ()
    assert summary([sharp]).startswith(
        "right 1 of 1; regular and above 0, in sight 0; healthy: 0 of 1 irregular, 1 within"
    )


def test_only_a_regular_result_above_the_truth_is_wrong(sharp):
    above = replace(sharp, share=1.01, right=False)
    assert above.wrong
    assert not replace(above, regular=False).wrong
    assert "regular and above 1" in summary([above])


def test_pairs_count_what_only_one_algorithm_gets_right(sharp):
    bad = replace(sharp, right=False, algorithm="model")
    good = replace(sharp, algorithm="model")
    assert "only counts 1, only model 0: a difference of 1 (standard error 1.0)" in pairs([sharp, sharp], [bad, good])


@pytest.mark.parametrize(
    ("device", "said", "true"),
    [
        ("policer, bucket of 50 ms", {"bucket": SeenBucketRate(CAPACITY, 0.05 * CAPACITY)}, True),
        ("policer, bucket of 50 ms", {"bucket": SeenBucketRate(CAPACITY, 0.1 * CAPACITY)}, False),
        ("GC pause, ring 4,096", {"pause": FixedPause(250e-6, 4096.0)}, True),
        ("GC pause, ring 4,096", {"pause": FixedPause(250e-6, 5000.0)}, False),
        ("sharp", {"pause": FixedPause(250e-6, 4096.0)}, False),
        ("batches of 32", {"batch": 32.0}, True),
        ("batches of 32", {"batch": 64.0}, False),
        ("step of -1 %", {"changes": (-0.01,)}, True),
        ("sharp", {"changes": (-0.01,)}, False),
        ("last batch waits", {"once": 31.0}, True),
        ("sharp", {"once": 31.0}, False),
    ],
)
def test_what_is_said_of_a_device_is_checked(device, said, true):
    assert (untrue(replace(NOTHING, **said), FAMILIES[device], 0.99, in_sight=True) == []) is true


def test_a_verified_load_above_the_truth_is_untrue_if_it_was_in_sight():
    assert untrue(NOTHING, FAMILIES["sharp"], 1.01, in_sight=True) == ["verified"]
    assert untrue(NOTHING, FAMILIES["sharp"], 1.01, in_sight=False) == []


def test_devices_of_another_seed_are_others():
    assert family_named("drawn 3") == family_named("drawn 3", 2026)
    assert family_named("drawn 3", 5).critical_load(1.0) != family_named("drawn 3").critical_load(1.0)
    assert family_named("pause each 12 s") is KINDS["pause each 12 s"]

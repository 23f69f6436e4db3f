"""Buckets and buffers: what a device lets through in short trials only, by trials of two durations in overload."""

import numpy as np
import pytest

from lossratio.plrsearch.model import TrialCounts
from lossratio.plrsearch.variation import Bucket

CAPACITY = 18e6
LOAD = 18.2e6


def in_overload(bucket, *, deviation=0.0, batch=1.0, seed=1, seconds=(2.0, 2.0, 1.0), load=LOAD):
    """Counts of trials at one load in overload, and of one below it."""
    rng = np.random.default_rng(seed)
    duration = np.array([2.0, *seconds])
    capacity = CAPACITY * (1.0 + deviation * rng.standard_normal(len(duration)))
    loads = np.array([0.9 * CAPACITY, *[load] * len(seconds)])
    mean = np.maximum(0.0, (loads - capacity) * duration - bucket)
    lost = batch * rng.poisson(mean / batch)
    return TrialCounts(loads, duration, lost, np.cumsum(duration), duration)


@pytest.mark.parametrize(("milliseconds", "batch"), [(1.0, 1.0), (5.0, 1.0), (10.0, 32.0)])
def test_frames_of_the_bucket_and_the_rate_in_the_long_run_are_those_of_the_device(milliseconds, batch):
    frames = 1e-3 * milliseconds * CAPACITY
    found = [Bucket.of(in_overload(frames, batch=batch, seed=seed)) for seed in range(40)]
    known = [one for one in found if one is not None]
    assert len(known) >= 32
    assert np.median([one.frames for one in known]) == pytest.approx(frames, rel=0.1)
    assert sum(0.999 * CAPACITY < one.rate <= CAPACITY for one in known) >= 0.95 * len(known)


@pytest.mark.whole
def test_a_device_without_a_bucket_has_none():
    constant = [Bucket.of(in_overload(0.0, batch=32.0, seed=seed)) for seed in range(200)]
    varying = [Bucket.of(in_overload(0.0, deviation=0.001, seed=seed)) for seed in range(200)]
    assert sum(one is not None for one in constant) <= 10
    assert sum(one is not None for one in varying) <= 10


def test_without_two_durations_at_a_load_nothing_is_known():
    assert Bucket.of(in_overload(9e4, seconds=(2.0, 2.0, 2.0))) is None
    assert Bucket.of(in_overload(9e4, seconds=(2.0, 1.0))) is None
    assert Bucket.of(in_overload(0.0, load=0.95 * CAPACITY)) is None


@pytest.mark.filterwarnings("error")
def test_one_trial_in_overload_beside_one_without_loss_is_no_warning():
    duration = np.array([2.0, 2.0, 2.0, 1.0])
    loads = np.array([0.9 * CAPACITY, LOAD, LOAD, LOAD])
    lost = np.array([0.0, 4e5, 0.0, 0.0])
    assert Bucket.of(TrialCounts(loads, duration, lost, np.cumsum(duration), duration)) is None


def test_the_bucket_is_said_in_frames_and_milliseconds():
    said = str(Bucket.of(in_overload(9e4)))
    assert "about 90,000 more frames" in said
    assert "a bucket or a buffer of 5 ms" in said


def test_a_bucket_that_holds_all_of_a_short_trial_is_larger_than_what_is_said():
    found = Bucket.of(in_overload(2.5e5))
    assert not found.has_lost
    assert 1.4e5 < found.frames < 2.5e5
    said = str(found)
    assert "at least" in said
    assert said.endswith("ms or more")
    assert "long run" not in said


def test_more_load_shows_a_bucket_that_holds_all_of_a_short_trial():
    counts = in_overload(9e5)
    more = in_overload(9e5, load=1.6 * CAPACITY)
    both = TrialCounts(
        *(
            np.concatenate([getattr(counts, name), getattr(more, name)[1:]])
            for name in ("load", "exposure", "lost", "time", "duration")
        )
    )
    found = Bucket.of(both)
    assert found.has_lost
    assert found.frames == pytest.approx(9e5, rel=0.1)
    assert 0.99 * CAPACITY < found.rate <= CAPACITY


def test_a_load_with_a_single_usual_trial_does_not_hide_what_a_lower_load_shows():
    # The other trial at the higher load was set aside.
    lower = in_overload(9e4)
    higher = in_overload(9e4, seconds=(2.0, 1.0), load=1.5 * CAPACITY)
    names = ("load", "exposure", "lost", "time", "duration")
    both = [np.concatenate([getattr(lower, name), getattr(higher, name)]) for name in names]
    assert Bucket.of(TrialCounts(*both)) == Bucket.of(lower)

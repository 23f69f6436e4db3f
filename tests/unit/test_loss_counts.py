"""Sizes that alone lose frames, by counts of whole trials."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from lossy_devices import Lab, none, spec

from lossratio.results import loss_places_in
from lossratio.trials.trial_output import StreamCounters

WEIGHTS = {64: 7, 570: 4, 1518: 1}


def trials_with(lost_of_each):
    """Trials in which so many frames of each size were lost, of 1,200 that were sent."""
    lab = Lab(spec())
    trials = []
    for lost in lost_of_each:
        lab.trial(1e3, 1.2, none)
        (way,) = lab.trials[-1].directions
        streams = tuple(
            StreamCounters(size, sent_frames=100 * weight, received_frames=100 * weight - lost.get(size, 0))
            for size, weight in WEIGHTS.items()
        )
        total = sum(lost.values())
        counts = {**vars(way), "streams": streams, "received_frames": way.sent_frames - total}
        changed = {"directions": (way.__class__(**counts),), "lost_frames": total}
        trials.append(lab.trials[-1].model_copy(update={**changed, "loss_ratio": total / 1200}))
    return trials


def test_a_size_that_alone_loses_frames_is_named():
    places = loss_places_in(trials_with([{1518: 100}, {}, {1518: 60}, {1518: 80}, {1518: 80}, {1518: 80}]))
    (pattern,) = places.patterns
    assert pattern.sentence == "All lost frames are of 1,518 B; these lose 80 % of their frames, all others none"
    assert pattern.chance < 1e-3
    assert pattern.trials == 5


@pytest.mark.parametrize(
    "lost",
    [
        [{}] * 20,
        # Three bursts may meet the rarest size by chance.
        [{1518: 100}] * 3,
        # And ten the most frequent one.
        [{64: 100}] * 10,
    ],
)
def test_what_chance_may_do_is_not_said(lost):
    places = loss_places_in(trials_with(lost))
    assert places is None or places.sentences == ()


@cache
def are_a_pattern(hit):
    """Whether something is said of bursts that each hit one size, in order."""
    return loss_places_in(trials_with([{size: 9} for size in hit])).patterns != ()


@pytest.mark.whole
def test_bursts_that_look_at_nothing_are_no_pattern():
    random = np.random.default_rng(1)
    sizes = list(WEIGHTS)
    shares = np.array(list(WEIGHTS.values())) / 12
    said = 0
    for _ in range(2000):
        hit = random.choice(sizes, size=int(random.integers(1, 8)), p=shares)
        # Most draws differ only in the order of their trials, on which nothing depends.
        said += are_a_pattern(tuple(sorted(hit.tolist())))
    # The level is 1 of 1,000.
    assert said <= 6

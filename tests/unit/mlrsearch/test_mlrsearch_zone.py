"""The zone of loads at which a verdict is a coin: seen where it is, and nowhere else."""

from __future__ import annotations

import random

import pytest
from mlrsearch_suts import drive, knee, measured

from lossratio.mlrsearch import NDR, RFC2544, LoadShare, MLRsearch, zone_in
from lossratio.trials import TrialInput, TrialOutput, TrialResult

MIN, MAX = 9001.0, 1e6


def coin(seed, share=0.5, low=400_000.0, high=560_000.0):
    """A SUT that loses one frame of 100,000 in a share of its trials between two loads, and 5 % above them."""
    rng = random.Random(seed)

    def loss_ratio(load, duration):
        if load >= high:
            return 0.05
        return 1e-5 if load >= low and rng.random() < share else 0.0

    return loss_ratio


def zone_of(sut, goal=NDR):
    controller, trials = MLRsearch([goal], MIN, MAX), []

    def recorded(load, duration):
        trials.append(measured(load, duration, sut(load, duration)))
        return trials[-1].loss_ratio

    result = drive(controller, recorded)[goal]
    return zone_in(goal, trials, MIN, MAX), result


@pytest.mark.whole
def test_most_searches_in_a_zone_of_chance_name_it_and_the_zone_holds_their_bound():
    found = [zone_of(coin(seed)) for seed in range(6)]
    seen = [(zone.loads, result) for zone, result in found if zone is not None]
    assert 2 * len(seen) >= len(found)
    for (low, high), result in seen:
        # The lowest of its loads may have passed 80 of 100 trials by chance, one load below the zone never.
        assert 395_000.0 <= low < high <= 563_000.0
        assert low * 0.99 <= result.relevant_lower_bound <= high


@pytest.mark.whole
@pytest.mark.parametrize("sut", [knee(470_000.0), coin(1, share=0.02), coin(2, share=1.0), lambda load, duration: 0.0])
def test_a_sut_without_such_a_zone_has_none(sut):
    zone, _ = zone_of(sut)
    assert zone is None


def test_a_goal_that_allows_no_lossy_trial_has_no_coin():
    trials = [measured(load, 60.0, loss) for load in (4e5, 4.1e5, 4.2e5) for loss in (0.0, 1e-3) * 5]
    assert zone_in(RFC2544, trials, MIN, MAX) is None


def test_shares_are_counted_at_each_load_in_the_order_of_time():
    losses = {400_000.0: "lhhl", 410_000.0: "hlhhhl", 420_000.0: "hllh"}
    trials = [measured(load, 1.0, 1e-3 * (letter == "h")) for load, word in losses.items() for letter in word]
    # A short trial says nothing about full-length ones.
    trials.append(measured(410_000.0, 0.5, 1e-3))
    zone = zone_in(NDR, trials, MIN, MAX)
    assert zone.shares == (LoadShare(400_000.0, 4, 2, 2), LoadShare(410_000.0, 6, 4, 3), LoadShare(420_000.0, 4, 2, 1))


def test_trials_that_lack_frames_which_were_not_sent_are_no_part_of_a_zone():
    def trial(load, *, lost=0, unsent=0):
        intended = round(load)
        counts = {"sent_frames": intended - unsent, "lost_frames": lost, "unsent_frames": unsent}
        return TrialResult(TrialInput(1.0, load), TrialOutput((lost + unsent) / intended, **counts))

    def of(**faults):
        loads = (400_000.0, 430_000.0, 460_000.0)
        return [one for load in loads for one in (trial(load), trial(load, **faults)) for _ in range(10)]

    lossy, starved = of(lost=100), of(unsent=100)
    assert [(share.trials, share.lossy) for share in zone_in(NDR, lossy, MIN, MAX).shares] == [(20, 10)] * 3
    assert zone_in(NDR, starved, MIN, MAX) is None
    both = of(lost=100, unsent=100)
    assert zone_in(NDR, both, MIN, MAX) == zone_in(NDR, lossy, MIN, MAX)


def test_a_zone_within_a_width_is_none():
    trials = [measured(load, 1.0, loss) for load in (400_000.0, 401_000.0) for loss in (0.0, 1e-3) * 5]
    assert zone_in(NDR, trials, MIN, MAX) is None

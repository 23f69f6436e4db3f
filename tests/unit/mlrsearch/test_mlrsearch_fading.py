"""Loss that fades from load to load, so that long trials lose frames where shorter ones lose none."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from mlrsearch_suts import drive, measured, noisy

from lossratio.mlrsearch import RFC2544, TST009, MLRsearch
from lossratio.simulation import Policer
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import TrialOutput
from lossratio_study.algorithms import ALGORITHMS, EARLY
from lossratio_study.suts import Overhead, Subject

MIN, MAX = 9001.0, 14_880_952.0
KNEE = 2e6
"""Where one frame per second is lost, in frames per second."""


def fading(spread, power=1.0, seed=None, knee=KNEE):
    """Frames are lost one by one, fewer by a factor e^power for each `spread` below the knee.

    As many as in the mean, rounded down, or by chance with a seed. With a power above 1 they fade faster and faster.
    """
    rng = random.Random(seed)

    def loss_ratio(load, duration):
        steps = (load / knee - 1.0) / spread
        mean = duration * math.exp(min(16.0, math.copysign(abs(steps) ** power, steps)))
        lost = math.floor(mean) if seed is None else chance(mean)
        return lost / (load * duration)

    def chance(mean):
        return max(0, round(rng.gauss(mean, math.sqrt(mean)))) if mean > 30.0 else sum(waits(mean))

    def waits(mean):
        passed = rng.expovariate(1.0)
        while passed < mean:
            yield 1
            passed += rng.expovariate(1.0)

    return loss_ratio


def searched(goal, sut):
    """The controller after a search, with the durations of its trials."""
    controller, durations = MLRsearch([goal], MIN, MAX), []
    while (trial := controller.next_trial()) is not None:
        durations.append(trial.duration)
        controller.record(TrialResult(trial, TrialOutput(min(1.0, sut(trial.load, trial.duration)))))
    return controller, durations


@pytest.mark.parametrize("spread", [0.005, 0.01, 0.02, 0.04])
def test_long_trials_begin_where_they_should_lose_one_frame(spread):
    controller, durations = searched(RFC2544, fading(spread))
    goal_result = controller.result()[RFC2544]
    truth = KNEE * (1.0 - spread * math.log(60.0))
    assert goal_result.relevant_lower_bound < truth <= goal_result.relevant_upper_bound
    assert sum(1.0 < duration < 60.0 for duration in durations) <= 2


@pytest.mark.whole
@pytest.mark.parametrize("spread", [0.01, 0.02, 0.03, 0.04])
@pytest.mark.parametrize(("goal", "long_trials"), [(RFC2544, 5.5), (TST009, 9)], ids=str)
def test_chance_costs_no_more_than_a_few_long_trials(goal, long_trials, spread):
    suts = [fading(spread, seed=seed, knee=KNEE * 1.03**seed) for seed in range(30)]
    elapsed = [searched(goal, sut)[0].elapsed for sut in suts]
    assert sum(elapsed) / len(elapsed) <= 60.0 * long_trials


def test_loss_that_fades_faster_and_faster_is_found_in_doubling_steps():
    long_trials = []
    # What is luck for one knee and one power is not for thirty of them.
    for power, number in product((1.5, 2.0, 3.0), range(10)):
        knee = KNEE * 1.05**number
        controller, durations = searched(RFC2544, fading(0.03, power, knee=knee))
        goal_result = controller.result()[RFC2544]
        truth = knee * (1.0 - 0.03 * math.log(60.0) ** (1.0 / power))
        assert goal_result.relevant_lower_bound < truth <= goal_result.relevant_upper_bound
        long_trials.append(sum(duration == 60.0 for duration in durations))
    assert sum(long_trials) / len(long_trials) <= 5.5


def early_discard(load, duration):
    """A random early discard: the share of lost frames rises from 0 at 222 kfps to 0.1 % at 606 kfps."""
    share = 0.001 * (load - 222_000.0) / 384_000.0
    return math.floor(max(0.0, share) * load * duration) / (load * duration) if load < 606_000.0 else 0.9


@pytest.mark.parametrize(("goal", "most"), [(RFC2544, 5), (TST009, 6)], ids=str)
def test_loss_that_begins_at_an_edge_is_not_followed_by_long_trials(goal, most):
    controller, durations = searched(goal, early_discard)
    goal_result = controller.result()[goal]
    assert goal_result.relevant_lower_bound < 222_000.0 <= goal_result.relevant_upper_bound
    assert sum(duration == 60.0 for duration in durations) <= most


def test_a_capacity_that_varies_is_no_fading():
    for seed in range(40):
        controller = MLRsearch([RFC2544], MIN, MAX)
        drive(controller, noisy(1e6, 0.01, seed))
        assert controller.elapsed <= 60.0 * 15


def test_a_lossless_trial_far_above_lossy_ones_is_not_repeated():
    def lossless_in_the_middle(load, duration):
        return 0.0 if 1.1 * KNEE < load < 2.0 * KNEE else fading(0.02)(load, duration)

    controller = MLRsearch([RFC2544], MIN, MAX)
    result = drive(controller, lossless_in_the_middle, 100)
    assert result[RFC2544].regular


def test_a_lower_bound_below_the_minimum_load_changes_nothing_about_fading():
    controller = MLRsearch([RFC2544], MIN, MAX)
    controller.record(measured(0.9 * MIN, 60.0, 0.0))
    result = drive(controller, fading(0.02), 100)
    assert result[RFC2544].regular


def test_a_breakdown_to_a_hundredth_is_no_fading():
    controller = MLRsearch([RFC2544], MIN, MAX)
    controller.record(measured(0.9 * MAX, 1.0, 0.0))
    result = drive(controller, fading(0.01), 200)
    assert result[RFC2544].relevant_lower_bound == pytest.approx(KNEE * (1.0 - 0.01 * math.log(60.0)), rel=0.01)


@pytest.mark.parametrize(("goal", "seconds"), [(RFC2544, 100.0), (TST009, 115.0)], ids=str)
def test_a_bucket_that_empties_is_not_taken_for_loss_that_fades(goal, seconds):
    """Right after the bucket is empty, a trial that ends early has lost a few frames only."""
    subject = Subject("policer", 0, Policer(20_000.0, 400.0), 9001.0, 200_000.0)
    assert ALGORITHMS[EARLY].search([goal], subject, subject.measurer(Overhead(0.5))).result.elapsed <= seconds

"""The oracle of the study: its optimum where that is known, and its search."""

from __future__ import annotations

import math

import pytest

from lossratio.mlrsearch import NDR, RFC2544, TST009, SearchGoal
from lossratio.simulation import PerformanceSpectrum, SharpKnee
from lossratio_study.algorithms import ALGORITHMS, OURS
from lossratio_study.checker import faults
from lossratio_study.families import FAMILIES
from lossratio_study.oracle import EARLY_ORACLE, ORACLE, Counts, Kind, Optimum, growing
from lossratio_study.suts import Overhead, Subject

QUICK = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01)
FREE = Overhead(0.0)


def told(goal, full, short=None):
    """The optimum where these are the probabilities of loss at ascending loads; each trial takes its duration."""
    trials = [Kind(loss, goal.final_trial_duration, goal.final_trial_duration) for loss in full]
    shorter = [Kind(loss, goal.first_duration, goal.first_duration) for loss in (short or full)]
    return Optimum(goal, trials, shorter)


def seconds(optimum):
    return optimum.left(-1, optimum.loads)[0]


@pytest.mark.parametrize(
    ("goal", "elapsed"),
    # RFC 2544: a minute that passes, a second that fails. TST009: a minute that passes is enough, and 61 s that fail.
    # NDR: 11 trials of 21 either way.
    [(RFC2544, 61.0), (TST009, 121.0), (NDR, 22.0), (QUICK, 6.0)],
    ids=str,
)
def test_where_nothing_is_chance_the_optimum_is_the_cheapest_proof(goal, elapsed):
    assert seconds(told(goal, [0.0, 0.0, 1.0, 1.0])) == pytest.approx(elapsed)


def test_of_two_pairs_the_one_that_is_cheaper_in_the_mean_is_chosen():
    # At the second load a minute passes in one half of the cases. Passed, the third load is refuted by a second;
    # failed, the first load passes surely: always one minute at the second load, and 0.5 of another one.
    by_chance = told(RFC2544, [0.0, 0.5, 1.0])
    # Shorter trials at the second load fail, too, in one of ten: 10 s of them, and a minute at the first load.
    with_short = told(RFC2544, [0.0, 0.5, 1.0], [0.0, 0.1, 1.0])
    hopeless = told(RFC2544, [0.0, 0.5, 1.0], [0.0, 0.0, 1.0])
    assert seconds(by_chance) == pytest.approx(min(60 + 0.5 * 60 + 0.5 * 1, 1 / 0.5 + 60))
    assert seconds(with_short) == pytest.approx(10 + 60)
    assert seconds(hopeless) == pytest.approx(60 + 0.5 * 60 + 0.5 * 1)
    assert with_short.plan(0, 2, 1, Counts()).is_short
    assert not hopeless.plan(0, 2, 1, Counts()).is_short


@pytest.mark.parametrize("loss", [0.1, 0.5, 0.8])
def test_a_load_that_chance_decides_takes_the_trials_that_two_of_three_need(loss):
    goal = SearchGoal(0.0, 0.5, 1.0, 3.0, 0.01)
    # Two trials alike, or three; then a clear load on the other side, in two trials.
    assert seconds(told(goal, [0.0, loss, 1.0])) == pytest.approx(2 + 2 * loss * (1 - loss) + 2)


def test_probabilities_do_not_fall_with_load():
    kinds = [Kind(loss, 1.0, 1.0) for loss in (0.0, 0.4, 0.2, 0.3, 1.0)]
    assert [kind.loss for kind in growing(kinds)] == pytest.approx([0.0, 0.3, 0.3, 0.3, 1.0])


@pytest.mark.whole
@pytest.mark.parametrize("oracle", [ORACLE, EARLY_ORACLE], ids=lambda oracle: oracle.name)
@pytest.mark.parametrize("goal", [QUICK, RFC2544, TST009], ids=str)
def test_the_oracles_search_has_a_result_that_its_trials_prove(oracle, goal):
    for sut in (SharpKnee(500e3), PerformanceSpectrum(500e3, 0.01)):
        subject = Subject("quiet", 0, sut, 9001.0, 1e6)
        outcome = oracle.search([goal], subject, subject.measurer(Overhead(0.5)))
        assert faults(outcome.result, outcome.trials, min_load=9001.0, max_load=1e6) == ()
        assert outcome.result[goal].regular


@pytest.mark.whole
@pytest.mark.parametrize("goal", [QUICK, RFC2544], ids=str)
def test_no_search_is_faster_than_the_oracle_in_the_mean(goal):
    ours, elapsed = ALGORITHMS[OURS], {ORACLE.name: 0.0, OURS: 0.0}
    for family in ("sharp knee", "jitter", "slow tail"):
        for seed in range(4):
            subject = FAMILIES[family].subject(seed)
            for algorithm in (ORACLE, ours):
                trials = algorithm.search([goal], subject, subject.measurer(FREE)).trials
                elapsed[algorithm.name] += math.fsum(trial.elapsed for trial in trials)
    assert elapsed[ORACLE.name] < 0.95 * elapsed[OURS]


def test_bounds_outside_of_the_loads_are_left_to_an_ordinary_search():
    subject = Subject("fast", 0, SharpKnee(2e6), 9001.0, 1e6)
    outcome = ORACLE.search([RFC2544], subject, subject.measurer(FREE))
    assert outcome.result[RFC2544].relevant_lower_bound == 1e6

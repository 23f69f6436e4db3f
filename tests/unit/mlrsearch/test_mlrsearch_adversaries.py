"""SUTs that answer so that a search goes wrong: each search ends, and asks for no trial more often than it needs."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from checker import faults
from hypothesis import example, given, settings, strategies as st
from mlrsearch_suts import LossRatio, drive, knee

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, IrregularReason, MLRsearch, SearchGoal, SearchResult
from lossratio.mlrsearch.stages import targets_of
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio_study.algorithms import ALGORITHMS, EARLY, OURS, PEER
from lossratio_study.families import Inconstant
from lossratio_study.outcome import MOST_TRIALS
from lossratio_study.peer import why_not_installed
from lossratio_study.suts import Overhead, Subject

MIN, MAX = 9001.0, 14_880_952.0
GOAL_SETS = {
    "NDR and PDR": [NDR, PDR],
    "RFC 2544": [RFC2544],
    "TST009": [TST009],
    "quick": [SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01)],
    "nine of ten": [SearchGoal(0.001, 0.1, 10.0, 35.0, 0.01, 0.2)],
    "one of ten": [SearchGoal(0.02, 0.9, 60.0, 120.0, 0.03, 0.2), SearchGoal(0.0, 0.5, 0.5, 10.0, 0.005, 0.2)],
}


@dataclass(frozen=True)
class Adversary:
    """A deterministic SUT that forwards up to its capacity, but less at times."""

    capacity: float
    """Frames per second."""
    less: float = 0.0
    """The share of the capacity that is missing at times."""
    memory: float = 0.0
    """For so many seconds after a lossy trial."""
    period: float = 0.0
    """In every other span of so many seconds; 0: never."""
    share: float = 0.0
    """The share of frames that is lost at least, at any load."""
    frames: int = 0
    """How many frames each trial loses at least."""

    def start(self) -> LossRatio:
        """The SUT after a long rest, on a clock that only trials move on."""
        now = weak_until = 0.0

        def loss_ratio(load: float, duration: float) -> float:
            nonlocal now, weak_until
            is_weak = now < weak_until or (self.period > 0.0 and now % (2.0 * self.period) >= self.period)
            capacity = self.capacity * (1.0 - self.less) if is_weak else self.capacity
            lost = int(max((load - capacity) * duration, self.share * load * duration, self.frames))
            now += duration
            if lost > 0:
                weak_until = now + self.memory
            return min(1.0, lost / (load * duration))

        return loss_ratio


def searched(controller: MLRsearch, sut: LossRatio) -> SearchResult:
    """Runs a search to its end, and checks its result."""
    result = drive(controller, sut, 3000)
    assert faults(result, controller.evidence, min_load=controller.min_load, max_load=controller.max_load) == ()
    return result


def trials_needed(goals: Iterable[SearchGoal]) -> dict[float, int]:
    """How many trials of each duration classify any load, for all targets of the goals."""
    needed: dict[float, int] = {}
    for target in (target for goal in goals for target in targets_of(goal)):
        needed[target.trial_duration] = max(target.trials, needed.get(target.trial_duration, 0))
    return needed


def earlier_night(capacity: float) -> tuple[TrialResult, ...]:
    """The trials of a search for TST009's goal on a SUT that forgets at once."""
    controller = MLRsearch([TST009], MIN, MAX)
    drive(controller, knee(capacity))
    return controller.evidence


@pytest.mark.whole
@pytest.mark.parametrize("hinted", [None, 0.8, 0.9], ids=["without hints", "hinted too low", "hinted too high"])
def test_a_sut_that_remembers_loss_is_searched_to_a_regular_result(hinted):
    for number in range(100):
        capacity = 1e6 * 1.02**number
        hints = [] if hinted is None else [earlier_night(hinted * capacity)]
        controller = MLRsearch([TST009], MIN, MAX, hints=hints)
        assert searched(controller, Adversary(capacity, less=0.18, memory=18.0).start())[TST009].regular
        assert controller.trials <= 60


adversaries = st.builds(
    Adversary,
    capacity=st.floats(3.5, 7.3).map(lambda exponent: 10.0**exponent),
    less=st.sampled_from([0.01, 0.05, 0.18, 0.5, 0.9]),
    memory=st.sampled_from([0.0, 0.0, 1.0, 5.0, 18.0, 60.0]),
    period=st.sampled_from([0.0, 0.0, 3.0, 20.0]),
    share=st.sampled_from([0.0, 0.0, 0.0, 1e-6, 1e-3, 0.02, 0.5, 0.999, 1.0]),
    frames=st.sampled_from([0, 0, 1]),
)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::lossratio.mlrsearch.SearchGoalWarning")
@example(GOAL_SETS["TST009"], Adversary(1e6, less=0.18, memory=18.0), [])
@given(st.sampled_from(list(GOAL_SETS.values())), adversaries, st.lists(adversaries, max_size=2))
@settings(max_examples=settings.default.max_examples // 2)
def test_no_trial_is_asked_for_more_often_than_a_target_needs(goals, sut, earlier):
    nights = []
    for night in earlier:
        before = MLRsearch(goals, MIN, MAX, hints=nights)
        drive(before, night.start(), 3000)
        nights.append(before.evidence)
    controller = MLRsearch(goals, MIN, MAX, fail_fast=False, hints=nights)
    result = searched(controller, sut.start())
    needed = trials_needed(goals)
    asked = Counter(trial.input for trial in controller.evidence)
    assert {trial: times for trial, times in asked.items() if times > needed[trial.duration]} == {}
    assert IrregularReason.STALLED not in {goal_result.reason for goal_result in result.values()}


def ranged(low, high):
    """Numbers with a uniform logarithm."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


nothing = st.just(0.0)
inconstant = st.builds(
    Inconstant,
    capacity=ranged(2e4, 1.3e7),
    less=ranged(0.01, 0.9),
    warm_up=nothing | ranged(1.0, 90.0),
    memory=nothing | ranged(1.0, 90.0),
    per_trial=nothing | ranged(1e-4, 0.02) | ranged(1e-4, 0.02).map(operator.neg),
    every=nothing | ranged(0.5, 60.0),
    stall=ranged(0.002, 0.2),
    share=nothing | ranged(1e-6, 0.5),
    plateau=nothing | ranged(1e3, 1.3e7),
    frames=st.sampled_from([0, 0, 1, 5]),
)


@pytest.mark.whole
@pytest.mark.skipif(why_not_installed() is not None, reason=str(why_not_installed()))
@pytest.mark.filterwarnings("ignore::lossratio.mlrsearch.SearchGoalWarning")
@pytest.mark.parametrize("algorithm", [OURS, EARLY])
@example("NDR and PDR", Inconstant(2e6, every=3.0, stall=0.05, share=1e-4))
@example("NDR and PDR", Inconstant(8e5, less=0.32, warm_up=9.1, per_trial=-7.9e-4, frames=1))
@example("NDR and PDR", Inconstant(5.7e6, less=0.27, warm_up=6.5, per_trial=-1.13e-3, share=1.73e-4))
@example("RFC 2544", Inconstant(3e6, per_trial=-5e-3))
@example("TST009", Inconstant(1.16e7, every=15.88, stall=0.0733))
@example("TST009", Inconstant(7e5, every=31.4453, stall=0.00746))
@example("TST009", Inconstant(1.9e5, share=1.18e-6))
@example("TST009", Inconstant(2.67e6, less=0.443, warm_up=26.2, share=1.05e-6))
@example("quick", Inconstant(1.6e5, less=0.2, memory=18.0))
@given(st.sampled_from(["NDR and PDR", "RFC 2544", "TST009", "quick"]), inconstant)
@settings(max_examples=settings.default.max_examples // 3, derandomize=True)
def test_a_search_of_an_inconstant_sut_takes_at_most_three_times_the_trials_of_the_peer_and_twenty(
    algorithm, goals, sut
):
    subject = Subject("hard", 0, sut, MIN, MAX)
    ours = ALGORITHMS[algorithm].search(GOAL_SETS[goals], subject, subject.measurer(Overhead(0.0)))
    assert faults(ours.result, ours.trials, min_load=MIN, max_load=MAX) == ()
    assert IrregularReason.STALLED not in {goal_result.reason for goal_result in ours.result.values()}
    needed = trials_needed(GOAL_SETS[goals])
    asked = Counter((trial.duration, trial.load) for trial in ours.trials)
    assert {trial: times for trial, times in asked.items() if times > needed[trial[0]]} == {}
    try:
        theirs = len(ALGORITHMS[PEER].search(GOAL_SETS[goals], subject, subject.measurer(Overhead(0.0))).trials)
    except SearchError:
        theirs = MOST_TRIALS
    assert len(ours.trials) <= 3 * theirs + 20


@pytest.mark.whole
@pytest.mark.skipif(why_not_installed() is not None, reason=str(why_not_installed()))
def test_a_search_of_a_sut_that_stalls_each_few_seconds_takes_at_most_three_times_the_trials_of_the_peer_and_twenty():
    sut = Inconstant(22026.465794806718, less=0.36787944117144233, every=2.398875293967098, stall=0.049787068367863944)
    subject = Subject("hard", 0, sut, MIN, MAX)
    ours, theirs = (
        ALGORITHMS[algorithm].search(GOAL_SETS["NDR and PDR"], subject, subject.measurer(Overhead(0.0)))
        for algorithm in (OURS, PEER)
    )
    assert len(ours.trials) <= 3 * len(theirs.trials) + 20


@pytest.mark.parametrize("fail_fast", [True, False])
@pytest.mark.parametrize(
    ("goals", "share", "trials"),
    [
        # The maximum load, and the proof at the minimum load.
        ([RFC2544], 1.0, 2),
        ([NDR, PDR], 1.0, 12),
        ([TST009], 1.0, 4),
        # Where something is forwarded, the load that it implies comes in between.
        ([RFC2544], 0.999, 3),
        ([NDR, PDR], 0.999, 13),
        ([RFC2544], 0.5, 3),
        ([NDR, PDR], 0.5, 13),
    ],
)
def test_a_dut_that_forwards_less_than_the_minimum_load_is_asked_there_at_once(goals, share, trials, fail_fast):
    controller = MLRsearch(goals, MIN, MAX, fail_fast=fail_fast)
    result = searched(controller, Adversary(MAX, share=share).start())
    assert controller.trials == trials
    assert {goal_result.reason for goal_result in result.values()} == {IrregularReason.MIN_LOAD_IS_UPPER_BOUND}


def test_a_dut_that_died_since_the_last_night_is_found_dead_after_its_hint():
    controller = MLRsearch([TST009], MIN, MAX, hints=[earlier_night(1e6)])
    searched(controller, Adversary(MAX, share=1.0).start())
    assert controller.trials <= 6


@pytest.mark.parametrize("capacity", [3e4, 3e5, 1e6, 3e6])
def test_a_sut_that_forwards_nothing_in_overload_is_not_taken_for_dead(capacity):
    controller = MLRsearch([RFC2544], MIN, MAX)
    goal_result = searched(controller, lambda load, duration: 1.0 if load > capacity else 0.0)[RFC2544]
    assert goal_result.regular
    assert goal_result.relevant_lower_bound <= capacity < goal_result.relevant_upper_bound
    assert TrialInput(1.0, MIN) in [trial.input for trial in controller.evidence]
    assert controller.trials <= 16

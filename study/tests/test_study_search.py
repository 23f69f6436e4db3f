"""One search of a study, by any algorithm, the peer included."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from study_examples import CAPACITY, KNEE, QUICK, QUICK_SET

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR
from lossratio.trials.trial_input import TrialInput
from lossratio_study import older, peer
from lossratio_study.algorithms import ALGORITHMS, EARLY, OURS, PEER, SEQUENTIAL, Algorithm
from lossratio_study.figures import LONG_SUM, SHORT_SUM, decision_time_growth
from lossratio_study.oracle import EARLY_ORACLE, ORACLE
from lossratio_study.outcome import MOST_TRIALS, Outcome, Recorder, searched
from lossratio_study.search import GOAL_SETS, GoalSet, search_rows
from lossratio_study.suts import Overhead

FREE = Overhead(0.0)

OLDER = (older.MLRSEARCH_2021, older.MLRSEARCH_2019, older.RFC_2544, older.TST009)
WITH_OLDER = (*ALGORITHMS.values(), ORACLE, EARLY_ORACLE, *OLDER)

SLACK = 1.0 + 1e-6
"""For half a frame."""


@pytest.fixture
def needs_peer():
    if (missing := peer.why_not_installed()) is not None:
        pytest.skip(missing)


def one_row(algorithm, *, goal_set=QUICK_SET, subject=KNEE, overhead=FREE, repeat=0):
    return next(search_rows(goal_set, subject, overhead, algorithm, repeat))


def test_algorithms_take_part_where_they_apply():
    taking_part = {
        name: [algorithm.name for algorithm in WITH_OLDER if algorithm.applies(goal_set.goals)]
        for name, goal_set in GOAL_SETS.items()
    }
    both, with_sequential = [OURS, EARLY, PEER], [OURS, EARLY, SEQUENTIAL, PEER]
    oracles = ["oracle", "oracle, early verdicts"]
    assert taking_part == {
        "G1": with_sequential,
        "G2": [*both, *oracles, "MLRsearch 2021", "RFC 2544 bisection"],
        "G3": [*both, *oracles, "TST009 bisection"],
        "G4": [*with_sequential, *oracles],
        "G5": with_sequential,
        "G6": [*both, "MLRsearch 2021", "MLRsearch 2019", "RFC 2544 bisection"],
    }


@pytest.mark.whole
@pytest.mark.parametrize(
    ("algorithm", "goal_set"),
    [(algorithm, goals) for algorithm in WITH_OLDER for goals in GOAL_SETS.values()
     if algorithm.name != PEER and algorithm.applies(goals.goals)],
    ids=lambda algorithm: algorithm.name,
)  # fmt: skip
def test_every_algorithm_finds_a_sharp_knee_to_within_the_goals_width(algorithm, goal_set):
    assert goal_set.goals
    for row, goal in zip(search_rows(goal_set, KNEE, FREE, algorithm, 0), goal_set.goals, strict=True):
        assert row.faults == ""
        assert row.regular
        assert math.isclose(row.truth, CAPACITY / (1.0 - goal.loss_ratio))
        assert row.truth * (1.0 - goal.width) <= row.lower * SLACK
        assert row.lower <= row.truth <= row.upper * SLACK
        # The certificate is the proof by RFC 9971, which a sequential goal does not need.
        assert 0.0 < row.certificate <= (math.inf if algorithm.name == SEQUENTIAL else row.elapsed * SLACK)
        assert row.trials > 0
        assert row.elapsed >= row.trials or algorithm.early_verdict


def test_the_time_of_a_search_is_that_of_its_trials_and_their_overheads():
    free, loaded = one_row(ALGORITHMS[OURS]), one_row(ALGORITHMS[OURS], overhead=Overhead(0.5))
    assert free.trials == loaded.trials == free.elapsed
    assert loaded.elapsed == 1.5 * loaded.trials


def test_one_goal_after_another_takes_the_time_of_both():
    both = one_row(older.RFC_2544, goal_set=GOAL_SETS["G6"])
    single = [one_row(older.RFC_2544, goal_set=GoalSet("one", "", (goal,))) for goal in GOAL_SETS["G6"].goals]
    assert both.elapsed == sum(row.elapsed for row in single)
    assert both.trials == sum(row.trials for row in single)


def test_only_the_first_search_on_a_sut_is_certified():
    assert math.isnan(one_row(ALGORITHMS[OURS], repeat=1).certificate)


def test_the_checker_sees_a_result_that_its_trials_do_not_prove():
    def lies(goals, subject, measurer):
        outcome = ALGORITHMS[OURS].search(goals, subject, measurer)
        return replace(outcome, trials=outcome.trials[:-1])

    assert one_row(Algorithm("liar", lies)).faults
    assert not one_row(Algorithm("other rules", lies, follows_rfc9971=False)).faults


def test_a_search_that_fails_is_a_fault_without_numbers():
    def fails(goals, subject, measurer):
        raise SearchError("lost its way")

    row = one_row(Algorithm("hopeless", fails))
    assert row.faults == "failed: lost its way"
    assert math.isnan(row.elapsed)
    assert math.isnan(row.lower)
    assert not row.regular


@pytest.mark.whole
def test_a_search_without_end_is_stopped():
    class Endless:
        def next_trial(self):
            return TrialInput(1.0, 5e5)

        def record(self, result):
            pass

    with pytest.raises(SearchError, match=f"after {MOST_TRIALS} trials"):
        searched(Endless(), KNEE.measurer(FREE))


def test_a_recorder_keeps_trials_in_order():
    recorder = Recorder(KNEE.measurer(FREE))
    for load in (2e6, 5e5):
        recorder.measure(TrialInput(1.0, load))
    assert [trial.load for trial in recorder.trials] == [2e6, 5e5]
    assert [trial.loss_ratio for trial in recorder.trials] == [0.5, 0.0]


@pytest.mark.whole
def test_decisions_of_a_hundred_and_of_hundreds_of_trials_are_set_side_by_side(monkeypatch):
    lengths = []
    search = decision_time_growth.__globals__["_search"]

    def counted(duration_sum):
        outcome = search(duration_sum)
        lengths.append(len(outcome.trials))
        return outcome

    monkeypatch.setitem(decision_time_growth.__globals__, "LONG_SUM", LONG_SUM / 3)
    monkeypatch.setitem(decision_time_growth.__globals__, "_search", counted)
    assert decision_time_growth() > 0.0
    assert 80 <= lengths[1] <= 150
    assert 300 <= lengths[2] <= 400


def test_one_long_search_is_enough_between_two_short_ones(monkeypatch):
    made, times = [], (99.0, 2.0, 10.0 * LONG_SUM, 4.0)

    def search(duration_sum):
        made.append(duration_sum)
        return Outcome(None, (None,) * int(duration_sum), times[len(made) - 1])

    monkeypatch.setitem(decision_time_growth.__globals__, "_search", search)
    assert decision_time_growth() == pytest.approx(10.0 / (3.0 / SHORT_SUM), rel=0.01)
    assert made == [SHORT_SUM, SHORT_SUM, LONG_SUM, SHORT_SUM]


@pytest.mark.usefixtures("needs_peer")
def test_the_peer_gives_what_its_own_documentation_shows():
    # From the description of MLRsearch 1.2.1 on PyPI: a SUT that forwards 1 Mfps, not one frame more.
    goals = tuple(replace(goal, exceed_ratio=0.005) for goal in (NDR, PDR))
    subject = replace(KNEE, min_load=1e3, max_load=1e9)
    ndr, pdr = search_rows(GoalSet("documented", "", goals), subject, FREE, ALGORITHMS[PEER], 0)
    assert ndr.lower == ndr.throughput == 997497.6029392382
    assert pdr.lower == 1002508.6747611101
    assert math.isclose(pdr.throughput, 1e6, rel_tol=2e-6)


@pytest.mark.usefixtures("needs_peer")
@pytest.mark.parametrize("name", GOAL_SETS)
def test_the_checker_finds_nothing_wrong_with_the_peer(name):
    rows = list(search_rows(GOAL_SETS[name], KNEE, FREE, ALGORITHMS[PEER], 0))
    assert {(row.faults, row.regular) for row in rows} == {("", True)}


@pytest.mark.usefixtures("needs_peer")
def test_the_peer_counts_overhead_where_it_is_to_count():
    counted, not_counted = (
        one_row(ALGORITHMS[PEER], goal_set=GOAL_SETS["G1"], overhead=Overhead(0.5, counted))
        for counted in (True, False)
    )
    # Three loads prove NDR and PDR of a knee, in 11 trials each; or in 7 (lower bounds) and 8 (upper ones).
    assert counted.certificate == (7 + 8 + 8) * 1.5
    assert not_counted.certificate == 3 * 11 * 1.5
    assert counted.trials < not_counted.trials


@pytest.mark.usefixtures("needs_peer")
@pytest.mark.parametrize(("capacity", "regular"), [(1e8, False), (1e2, False), (1e6, True)])
def test_results_of_the_peer_at_the_ends_of_the_loads_are_marked_like_ours(capacity, regular):
    subject = replace(KNEE, sut=replace(KNEE.sut, capacity=capacity))
    ours, theirs = (one_row(ALGORITHMS[name], subject=subject) for name in (OURS, PEER))
    assert ours.regular == theirs.regular == regular
    assert ours.faults == theirs.faults == ""


def test_a_peer_of_another_version_takes_no_part(monkeypatch):
    monkeypatch.setattr(peer.util, "find_spec", lambda name: object())
    monkeypatch.setattr(peer.metadata, "version", lambda name: "1.1.0")
    assert "1.1.0 is installed" in peer.why_not_installed()
    monkeypatch.setattr(peer.util, "find_spec", lambda name: None)
    assert "pip install" in peer.why_not_installed()


def test_a_goal_that_no_single_trial_decides_is_for_mlrsearch_alone():
    applying = [name for name, each in ALGORITHMS.items() if each.applies((QUICK,))]
    assert applying == [OURS, EARLY, SEQUENTIAL, PEER]

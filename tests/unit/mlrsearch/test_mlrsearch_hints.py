"""Hints from earlier searches: they choose where a search starts, and are no evidence."""

from __future__ import annotations

from itertools import chain

import pytest
from mlrsearch_suts import drive, knee, measured, noisy, policer

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, MLRsearch, SearchGoal
from lossratio.mlrsearch.expectation import LossCurve
from lossratio.mlrsearch.grid import LoadGrid
from lossratio.mlrsearch.hints import EARLIER_SEARCHES, MOST, EarlierCurve, Hint, hint_of
from lossratio.mlrsearch.posterior import JUMPS, Posterior
from lossratio.mlrsearch.rules import GoalView
from lossratio.mlrsearch.rules.proof import hint
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import TrialOutput

MIN, MAX = 9001.0, 14_880_952.0
GRID = LoadGrid(MIN, MAX, 0.005)
GOAL_SETS = {"CSIT": [NDR, PDR], "RFC 2544": [RFC2544], "TST009": [TST009]}


def night(goals, sut, hints=(), max_load=MAX):
    """The controller after a whole search, and its trials in order."""
    controller = MLRsearch(goals, MIN, max_load, hints=hints)
    trials = []
    while (trial := controller.next_trial()) is not None:
        trials.append(TrialResult(trial, TrialOutput(min(1.0, max(0.0, sut(trial.load, trial.duration))))))
        controller.record(trials[-1])
    return controller, trials


def bounds(controller):
    return [
        (goal_result.relevant_lower_bound, goal_result.relevant_upper_bound)
        for goal_result in controller.result().values()
    ]


@pytest.mark.whole
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
@pytest.mark.parametrize(
    "sut", [knee(1e6), knee(1e6, 0.4), policer(1e6, 50_000.0)], ids=["knee", "collapse", "policer"]
)
def test_an_unchanged_sut_gives_the_same_result_in_no_more_time(goals, sut):
    first, trials = night(goals, sut)
    second, _ = night(goals, sut, [trials])
    assert bounds(second) == bounds(first)
    assert second.elapsed <= first.elapsed


@pytest.mark.whole
@pytest.mark.parametrize("goals", GOAL_SETS.values(), ids=GOAL_SETS)
@pytest.mark.parametrize("factor", [0.5, 0.8, 0.99, 1.01, 1.2, 3.0])
def test_a_changed_sut_gives_the_result_that_it_gives_without_hints(goals, factor):
    _, trials = night(goals, knee(1e6))
    hinted, _ = night(goals, knee(1e6 * factor), [trials] * 5)
    plain, _ = night(goals, knee(1e6 * factor))
    assert bounds(hinted) == bounds(plain)
    assert hinted.elapsed <= 1.15 * plain.elapsed


@pytest.mark.parametrize("factor", [0.7, 0.9, 0.98, 1.02, 1.1, 1.3])
@pytest.mark.parametrize(
    ("goal", "share"), [(SearchGoal(0.0, 0.5, 1.0, 5.0, 0.01), 1.0), (RFC2544, 0.92), (TST009, 0.95)], ids=str
)
def test_a_change_that_the_first_trial_shows_moves_the_hint(goal, share, factor):
    _, trials = night([goal], knee(1e6))
    hinted, _ = night([goal], knee(1e6 * factor), [trials] * 5)
    plain, _ = night([goal], knee(1e6 * factor))
    assert bounds(hinted) == bounds(plain)
    assert hinted.elapsed <= share * plain.elapsed


def test_a_hint_moves_by_as_much_as_the_rate_at_maximum_load_and_only_beyond_its_spread():
    hint = Hint(500, 505, (503, 508), (506.0, 507.0, 506.2))
    # The spread is 1 step, so up to 3 steps may be chance.
    assert hint.moved(509.1, 1000) is hint
    assert hint.moved(516.2, 1000) == Hint(510, 515, (513, 518))
    assert hint.moved(496.2, 1000) == Hint(490, 495, (493, 498))
    assert hint.moved(506.2 + 700.0, 1000) == Hint(1000, 1000, (1000, 1000))
    assert hint.moved(2.0, 1000) == Hint(0, 1, (0, 4))


def test_a_rate_far_from_the_bound_moves_no_hint():
    collapse = Hint(500, 505, (503, 508), (400.0,) * 5)
    assert collapse.moved(380.0, 1000) is collapse
    assert collapse.shifts(380.0) == (0, -20)
    unknown = Hint(500, 505, (503, 508))
    assert unknown.moved(380.0, 1000) is unknown


def curve_of(searches):
    return EarlierCurve(NDR, GRID, JUMPS, chain.from_iterable(searches))


def seen(*trials):
    posterior = Posterior(GRID.top)
    for position, is_low in trials:
        posterior.add(float(position), is_low)
    return posterior


def test_earlier_trials_at_one_load_count_for_a_few_whatever_their_number():
    one, five, many = (curve_of([search_that_found(700)] * nights).tonight(seen()) for nights in (1, 5, 100))
    assert 0.0 < one[700][0] < five[700][0] < many[700][0] < MOST
    assert one[700][1] == one[701][0] == 0.0 < one[701][1]


def test_earlier_trials_move_with_the_curve():
    curve = curve_of([search_that_found(700)] * 5)
    assert curve.tonight(seen((706, True))) == {}
    moved = curve.tonight(seen(*[(706, True)] * 3, *[(707, False)] * 3))
    assert moved[706][0] > 1.0 < moved[707][1]
    curve.shifts = (6,)
    assert curve.tonight(seen())[706][0] > 1.0
    curve.shifts = (0, 6)
    assert curve.tonight(seen((701, False)))[700][0] > 1.0
    assert curve.tonight(seen((703, True)))[706][0] > 1.0


def test_earlier_loads_outside_of_the_loads_of_tonight_count_for_nothing():
    curve = curve_of([search_that_found(GRID.top - 3)] * 5)
    curve.shifts = (2,)
    assert max(curve.tonight(seen())) <= GRID.top


def test_no_earlier_trial_is_evidence():
    _, trials = night([NDR], knee(1e6))
    controller = MLRsearch([NDR], MIN, MAX, hints=[trials])
    assert controller.evidence == ()
    assert not controller.result()[NDR].regular
    assert drive(controller, lambda load, duration: 1.0)[NDR].relevant_lower_bound is None


@pytest.mark.whole
def test_the_grid_stays_anchored_at_the_maximum_load():
    _, trials = night([NDR], knee(1e6), max_load=MAX * 0.997)
    hinted, _ = night([NDR], knee(1e6), [trials])
    plain, _ = night([NDR], knee(1e6))
    assert bounds(hinted) == bounds(plain)


def test_a_bound_above_the_maximum_load_of_today_starts_there():
    _, trials = night([NDR], knee(1e6))
    controller = MLRsearch([NDR], 1000.0, 5e5, hints=[trials])
    assert controller.next_trial().load == 5e5


def search_that_found(index):
    """Trials that find and prove one pair of loads."""
    lower, upper = GRID.load(index), GRID.load(index + 1)
    looks = [measured(GRID.load(above), 1.0, 0.1) for above in (GRID.top - 1, index + 8, index + 4, index + 2)]
    return [*looks, *[measured(upper, 1.0, 0.01)] * 11, *[measured(lower, 1.0, 0.0)] * 11]


def test_the_second_highest_of_the_last_five_searches_counts():
    earlier = [search_that_found(index) for index in (999, 500, 510, 520, 490, 505)]
    assert EARLIER_SEARCHES == 5
    assert hint_of(NDR, GRID, earlier).lower == 510
    assert hint_of(NDR, GRID, earlier[:1]).lower == 999


def test_searches_that_found_no_lower_bound_say_nothing():
    assert hint_of(NDR, GRID, []) is None
    assert hint_of(NDR, GRID, [[measured(MIN, 21.0, 1.0)], []]) is None


@pytest.mark.whole
def test_the_order_of_goals_and_seeds_leave_hinted_searches_regular():
    earlier = [night([NDR, PDR], noisy(1e6, 0.01, seed))[1] for seed in range(4)]
    for seed in range(5, 7):
        forwards, backwards = (night(goals, noisy(1e6, 0.01, seed), earlier)[0] for goals in ([NDR, PDR], [PDR, NDR]))
        assert forwards.evidence == backwards.evidence
        assert all(goal_result.regular for goal_result in forwards.result().values())


def test_where_short_trials_stop_as_ever_long_ones_start_at_the_pair_they_proved():
    first, trials = night([RFC2544], policer(1e6, 50_000.0))
    second, again = night([RFC2544], policer(1e6, 50_000.0), [trials])
    assert bounds(second) == bounds(first)
    assert [trial.duration for trial in again] == pytest.approx([1.0] * 4 + [60.0, 60.0**0.5, 60.0])


def test_where_short_trials_stop_elsewhere_long_ones_are_approached_as_without_hints():
    _, trials = night([RFC2544], policer(1e6, 50_000.0))
    # Without the earlier trial at maximum load, nothing shows by how much the SUT has changed.
    second, again = night([RFC2544], policer(8e5, 40_000.0), [trials[1:]])
    plain, usual = night([RFC2544], policer(8e5, 40_000.0))
    assert bounds(second) == bounds(plain)
    long_trials = [[trial.load for trial in search if trial.duration > 1.0] for search in (again, usual)]
    assert long_trials[0] == long_trials[1]
    third, moved = night([RFC2544], policer(8e5, 40_000.0), [trials])
    assert bounds(third) == bounds(plain)
    assert sum(trial.duration > 1.0 for trial in moved) <= len(long_trials[1]) - 3


def test_the_purpose_says_where_a_hint_is_followed():
    _, trials = night([NDR], knee(1e6))
    controller = MLRsearch([NDR], MIN, MAX, hints=[trials])
    assert "earlier" not in str(controller.purpose)
    controller.record(measured(controller.next_trial().load, 1.0, 0.9))
    assert str(controller.purpose).endswith("high loss is expected, as in earlier searches")
    above = GRID.load(round(GRID.position(controller.next_trial().load)) + 4)
    for _ in range(4):
        controller.record(measured(above, 1.0, 0.0))
    assert "earlier" not in str(controller.purpose)


def positions(trials):
    return [(round(GRID.position(trial.load)), round(trial.duration)) for trial in trials]


def test_after_a_hint_that_was_too_low_the_bound_is_looked_for_nearby():
    lower = 700
    controller = MLRsearch([NDR], MIN, MAX, hints=[search_that_found(lower)] * 5)
    _, trials = night([NDR], knee(GRID.load(lower + 2)), [search_that_found(lower)] * 5)
    assert controller.hinted_loads[NDR] == pytest.approx(GRID.load(lower))
    assert all(abs(index - lower) <= 8 for index, _ in positions(trials)[1:])


@pytest.mark.whole
def test_after_a_hint_that_was_too_high_the_bound_is_not_looked_for_far_below():
    def collapsing(load, duration):
        return 0.5 if load > GRID.load(698.5) else 0.0

    hinted, _ = night([NDR], collapsing, [search_that_found(700)] * 5)
    plain, _ = night([NDR], collapsing)
    assert bounds(hinted) == bounds(plain)
    assert hinted.elapsed < plain.elapsed


def test_a_hinted_pair_whose_upper_load_passes_longer_trials_gets_no_final_trial():
    """Where short trials stop one load higher than what was proved, a trial of middle length decides between both."""
    earlier = [[measured(GRID.load(701), 1.0, 0.0), *_proof(700)]] * 5

    def sut(load, duration):
        return 0.01 if load > GRID.load(701.5) else 0.0

    _, trials = night([RFC2544], sut, earlier)
    assert positions(trials) == [(GRID.top, 1), (702, 1), (701, 1), (701, 8), (701, 60)]


def _proof(index):
    """Trials that stop one load above the pair that they prove."""
    return [
        measured(GRID.load(index + 2), 1.0, 0.01),
        measured(GRID.load(index + 1), 60.0, 0.001),
        measured(GRID.load(index), 60.0, 0.0),
    ]


def test_a_hinted_search_begins_at_the_maximum_load_too():
    """A SUT with a full bucket passes any first trial near its bound."""
    controller = MLRsearch([NDR], MIN, MAX, hints=[search_that_found(700)] * 5)
    assert controller.next_trial().load == MAX
    controller.record(measured(MAX, 1.0, 0.9))
    assert round(GRID.position(controller.next_trial().load)) in (700, 701)


def test_after_a_hint_that_was_far_too_low_the_bound_is_looked_for_where_overload_lets_expect_it():
    hinted, trials = night([NDR], knee(GRID.load(740.5)), [search_that_found(700)] * 5)
    plain, usual = night([NDR], knee(GRID.load(740.5)))
    assert bounds(hinted) == bounds(plain)
    assert len(trials) <= len(usual) + 5


def test_a_hinted_load_that_short_trials_have_passed_is_not_asked_for_again():
    view = GoalView(TST009, GRID, LossCurve())
    for index, loss_ratio in ((500, 0.0), (501, 0.1), (400, 0.1)):
        view.add(measured(GRID.load(index), 1.0, loss_ratio))
    view.hinted = 500
    assert hint(view) is None


def test_a_hint_at_the_minimum_load_is_looked_at_there_and_just_above():
    goal = [RFC2544]
    _, trials = night(goal, knee(MIN * 1.001))
    controller, again = night(goal, knee(MIN * 1.001), [trials])
    assert controller.result()[RFC2544].regular
    assert [trial.load for trial in again[1:3]] == [MIN, GRID.load(1)]

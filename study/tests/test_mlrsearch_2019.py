import math

import pytest

from lossratio.errors import SearchError
from lossratio.mlrsearch import IrregularReason, SearchGoal
from lossratio.simulation import Overload, PerformanceSpectrum, SharpKnee, SimulatedMeasurer
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search
from lossratio_study.older import MLRsearch2019
from lossratio_study.older.mlrsearch_2019 import Choice, Interval, choose
from lossratio_study.older.scripted import Phase, log_width, step_up

NDR = SearchGoal(0.0, 0.0, 30.0, 30.0, 0.005, 1.0, name="NDR")
PDR = SearchGoal(0.005, 0.0, 30.0, 30.0, 0.005, 1.0, name="PDR")
WIDTH = log_width(0.005)
MAX = 1e6
PHASE = Phase("first", 1.0, 4 * WIDTH)


def controller(goals=(NDR, PDR), min_load=1e3, max_load=MAX, **arguments):
    return MLRsearch2019(goals, min_load, max_load, **arguments)


def trial(load, loss_ratio, duration=1.0):
    return TrialResult(TrialInput(duration, load), TrialOutput(loss_ratio))


def interval(lower, upper, loss_ratio=0.0):
    return Interval(loss_ratio, MAX, trial(*lower), trial(*upper))


def loads_and_losses(of):
    return (of.lower.load, of.lower.loss_ratio), (of.upper.load, of.upper.loss_ratio)


def distance(lower, upper):
    return math.log(upper / lower) / WIDTH


def test_the_first_interval_reaches_from_mrr2_to_mrr(follow):
    search = controller()
    _, mrr, mrr2 = follow(search, 0.5, 0.1, 0.0)
    assert search.next_trial().load == pytest.approx(math.sqrt(mrr.load * mrr2.load))


def test_after_a_lossless_mrr_the_interval_lies_above_it(follow):
    search = controller()
    _, mrr, mrr2 = follow(search, 0.5, 0.0, 0.5)
    assert mrr.load <= search.next_trial().load <= mrr2.load


def test_an_mrr2_that_would_be_at_the_maximum_load_is_not_measured(follow):
    search = controller()
    # MRR is one width below the maximum load, so that MRR2 would be it again: there is no third trial.
    follow(search, 0.0, 0.0)
    assert search.purpose.startswith("intermediate phase 2")


def test_the_latest_trial_at_a_load_replaces_the_bound():
    before = interval((100.0, 0.0), (200.0, 0.1))
    assert before.updated(trial(100.0, 0.2)).lower == trial(100.0, 0.2)
    assert before.updated(trial(200.0, 0.0, duration=30.0)).upper == trial(200.0, 0.0, duration=30.0)
    assert before.updated(trial(100.0, 0.2)).updated(trial(100.0, 0.0)) == before


def test_a_lower_bound_is_valid_when_it_conforms_and_an_upper_bound_when_it_does_not():
    valid = interval((100.0, 0.005), (200.0, 0.006), loss_ratio=0.005)
    assert valid.is_lower_valid
    assert valid.is_upper_valid
    invalid = interval((100.0, 0.006), (200.0, 0.005), loss_ratio=0.005)
    assert not invalid.is_lower_valid
    assert not invalid.is_upper_valid


def test_an_upper_bound_at_the_maximum_load_is_always_valid():
    assert interval((100.0, 0.0), (MAX, 0.0)).is_upper_valid


def test_below_an_invalid_lower_bound_a_trial_replaces_it_and_it_becomes_the_upper_bound():
    after = interval((100.0, 0.1), (200.0, 0.2)).updated(trial(50.0, 0.0))
    assert loads_and_losses(after) == ((50.0, 0.0), (100.0, 0.1))
    assert after.is_upper_valid


@pytest.mark.parametrize("load", [150.0, 250.0])
def test_above_an_invalid_lower_bound_nothing_counts(load):
    before = interval((100.0, 0.1), (200.0, 0.2))
    assert before.updated(trial(load, 0.0)) == before


def test_above_an_invalid_upper_bound_a_trial_replaces_it_and_it_becomes_the_lower_bound():
    after = interval((100.0, 0.0), (200.0, 0.0)).updated(trial(300.0, 0.1))
    assert loads_and_losses(after) == ((200.0, 0.0), (300.0, 0.1))


@pytest.mark.parametrize("loss_ratio", [0.0, 0.5])
def test_above_a_valid_upper_bound_nothing_counts_even_with_low_loss(loss_ratio):
    before = interval((100.0, 0.0), (200.0, 0.1))
    assert before.updated(trial(300.0, loss_ratio)) == before


def test_below_a_valid_lower_bound_high_loss_always_counts_and_low_loss_never():
    before = interval((100.0, 0.0), (200.0, 0.1))
    assert before.updated(trial(50.0, 0.0)) == before
    after = before.updated(trial(50.0, 0.3))
    assert loads_and_losses(after) == ((50.0, 0.3), (200.0, 0.1))
    assert not after.is_lower_valid


def test_inside_the_interval_loss_decides_which_bound_a_trial_replaces():
    before = interval((100.0, 0.0), (200.0, 0.1))
    assert loads_and_losses(before.updated(trial(150.0, 0.0))) == ((150.0, 0.0), (200.0, 0.1))
    assert loads_and_losses(before.updated(trial(150.0, 0.1))) == ((100.0, 0.0), (150.0, 0.1))


def test_the_middle_of_an_interval_is_geometric(follow):
    search = controller(min_load=1.0, max_load=16.0)
    follow(search, 0.5, 0.75, 0.0)
    # MRR2 is 2 and MRR is 8: the middle is 4, not 5.
    assert search.next_trial().load == pytest.approx(4.0)


def test_external_search_down_takes_two_widths_of_the_interval(follow):
    search = controller()
    _, mrr, mrr2 = follow(search, 0.5, 0.1, 0.1)
    below = search.next_trial().load
    assert distance(below, mrr2.load) == pytest.approx(2 * distance(mrr2.load, mrr.load))
    assert search.purpose == "intermediate phase 1: external search down for NDR"


def test_external_search_up_takes_two_widths_of_the_interval(follow):
    search = controller()
    _, mrr, mrr2 = follow(search, 0.5, 0.0, 0.0)
    above = search.next_trial().load
    assert distance(mrr2.load, above) == pytest.approx(2 * distance(mrr.load, mrr2.load))
    assert search.purpose == "intermediate phase 1: external search up for NDR"


@pytest.mark.parametrize(("width", "step"), [(1.0, 4.0), (3.0, 6.0)])
def test_external_search_steps_over_no_less_than_the_width_goal(width, step):
    upper = step_up(500e3, width * WIDTH)
    down = choose({"NDR": interval((500e3, 0.1), (upper, 0.2))}, PHASE, 1e3)
    assert distance(down.load, 500e3) == pytest.approx(step)
    up = choose({"NDR": interval((500e3, 0.0), (upper, 0.0))}, PHASE, 1e3)
    assert distance(upper, up.load) == pytest.approx(step)


def test_external_search_ends_at_the_limits():
    assert choose({"NDR": interval((500e3, 0.1), (510e3, 0.2))}, PHASE, 499e3).load == 499e3
    assert choose({"NDR": interval((900e3, 0.0), (999e3, 0.0))}, PHASE, 1e3).load == MAX


VALID = (500e3, 0.0), (600e3, 0.1)
LOWER_INVALID = (500e3, 0.1), (600e3, 0.1)
UPPER_INVALID = (500e3, 0.0), (600e3, 0.0)
NARROW = (500e3, 0.0), (501e3, 0.1)


@pytest.mark.parametrize(
    ("ndr", "pdr", "purpose"),
    [
        (LOWER_INVALID, LOWER_INVALID, "external search down for NDR"),
        (UPPER_INVALID, LOWER_INVALID, "external search down for PDR"),
        (UPPER_INVALID, UPPER_INVALID, "external search up for NDR"),
        (VALID, UPPER_INVALID, "external search up for PDR"),
        (VALID, VALID, "internal search for NDR"),
        (NARROW, VALID, "internal search for PDR"),
        (NARROW, NARROW, None),
    ],
)
def test_invalid_bounds_come_before_wide_intervals_ndr_before_pdr(ndr, pdr, purpose):
    choice = choose({"NDR": interval(*ndr), "PDR": interval(*pdr, loss_ratio=0.005)}, PHASE, 1e3)
    assert purpose == (None if choice is None else choice.purpose)


@pytest.mark.parametrize(
    ("durations", "purpose"),
    [
        ((1.0, 1.0, 1.0, 1.0), "re-measures the lower bound for NDR"),
        ((5.0, 1.0, 1.0, 1.0), "re-measures the lower bound for PDR"),
        ((5.0, 5.0, 1.0, 1.0), "re-measures the upper bound for NDR"),
        ((5.0, 5.0, 5.0, 1.0), "re-measures the upper bound for PDR"),
        ((5.0, 5.0, 5.0, 5.0), None),
    ],
)
def test_bounds_of_shorter_trials_are_measured_again_lower_before_upper_ndr_before_pdr(durations, purpose):
    ndr_lower, pdr_lower, ndr_upper, pdr_upper = durations
    intervals = {
        "NDR": Interval(0.0, MAX, trial(500e3, 0.0, ndr_lower), trial(501e3, 0.1, ndr_upper)),
        "PDR": Interval(0.005, MAX, trial(501e3, 0.0, pdr_lower), trial(502e3, 0.1, pdr_upper)),
    }
    choice = choose(intervals, Phase("second", 5.0, 4 * WIDTH), 1e3)
    assert purpose == (None if choice is None else choice.purpose)


def test_an_interval_with_an_invalid_bound_at_the_minimum_load_is_only_measured_again():
    at_bottom = Interval(0.0, MAX, trial(1e3, 0.1), trial(600e3, 0.0))
    assert choose({"NDR": at_bottom}, PHASE, 1e3) is None
    again = choose({"NDR": at_bottom}, Phase("second", 5.0, WIDTH), 1e3)
    assert again == Choice(1e3, "re-measures the lower bound for NDR")


def test_durations_grow_and_widths_halve_from_phase_to_phase(searched):
    search = controller()
    seen = {}
    measurer = SimulatedMeasurer(SharpKnee(capacity=612_345.0, overload=Overload(drop_cost=0.2)), seed=1)

    def loss_ratio(trial):
        seen.setdefault(search.purpose.partition(":")[0], set()).add(trial.duration)
        return measurer.measure(trial).loss_ratio

    result, _ = searched(search, loss_ratio)
    assert seen["intermediate phase 1"] == {1.0}
    assert seen["intermediate phase 2"] == {30.0**0.5}
    assert seen["final phase"] == {30.0}
    for goal in (NDR, PDR):
        lower, upper = result[goal].relevant_lower_bound, result[goal].relevant_upper_bound
        assert result[goal].regular
        assert 0.5 < distance(lower, upper) <= 1.0


def test_it_finds_both_rates_of_a_sut_with_a_known_capacity(searched, capacity):
    result, trials = searched(controller(), capacity(612_345.0))
    assert result[NDR].relevant_lower_bound <= 612_345.0 < result[NDR].relevant_upper_bound
    assert result[PDR].relevant_lower_bound <= 612_345.0 / 0.995 < result[PDR].relevant_upper_bound
    assert len(trials) == len(set(trials)) <= 16


def test_a_search_that_would_need_less_than_the_minimum_load_fails(searched):
    result, trials = searched(controller(min_load=300e3), lambda trial: 0.5)
    assert result.finished
    assert min(trial.load for trial in trials) == 300e3
    for goal in (NDR, PDR):
        assert result[goal].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
        assert result[goal].relevant_lower_bound is None


def test_a_phase_stops_refining_an_interval_with_an_invalid_lower_bound_at_the_minimum_load(searched):
    result, trials = searched(controller(), lambda trial: 0.003 if trial.load < 500e3 else 0.1)
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert result[PDR].regular
    assert result[PDR].relevant_lower_bound == pytest.approx(500e3, rel=0.005)
    assert len([trial for trial in trials if trial.load == 1e3]) == 3


def test_loss_at_the_minimum_load_in_short_trials_only_is_forgiven(searched):
    def loss_ratio(trial):
        return 0.5 if trial.duration == 1.0 or trial.load > 600e3 else 0.0

    result, _ = searched(controller(min_load=100e3), loss_ratio)
    assert result[NDR].regular
    assert result[NDR].relevant_lower_bound == pytest.approx(600e3, rel=0.005)


def test_a_bound_that_longer_trials_make_invalid_is_replaced(searched):
    result, _ = searched(
        controller(), lambda trial: 0.2 if trial.load > (700e3 if trial.duration < 30.0 else 500e3) else 0.0
    )
    assert result[NDR].regular
    assert result[NDR].relevant_lower_bound == pytest.approx(500e3, rel=0.005)


def test_no_trial_starts_after_the_timeout(searched, capacity):
    result, trials = searched(controller(timeout=40.0), capacity(612_345.0))
    assert sum(trial.duration for trial in trials[:-1]) < 40.0 <= sum(trial.duration for trial in trials)
    assert not result.finished
    assert result[PDR].reason is IrregularReason.TIMEOUT


def test_results_before_the_end_know_only_final_trials(follow):
    search = controller()
    follow(search, 0.5, 0.1, 0.0, 0.0)
    result = search.result()
    assert not result.finished
    assert result[NDR].relevant_lower_bound is None
    assert result[NDR].reason is IrregularReason.STOPPED_EARLY


def test_noise_does_not_keep_it_from_a_regular_result():
    for seed in range(20):
        measurer = SimulatedMeasurer(PerformanceSpectrum(capacity=6e5, jitter=0.005, tail_share=0.1), seed=seed)
        result = run_search(controller(), measurer)
        assert result[NDR].regular
        assert result[NDR].relevant_lower_bound == pytest.approx(6e5, rel=0.05)


def test_one_load_is_range_enough(searched):
    result, trials = searched(controller(min_load=1e6), lambda trial: 0.1)
    assert result[NDR].reason is IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    assert [trial.duration for trial in trials] == [1.0, 30.0**0.5, 30.0]


@pytest.mark.parametrize(
    "goals",
    [
        [NDR],
        [PDR],
        [PDR, SearchGoal(0.001, 0.0, 30.0, 30.0, 0.005, 1.0)],
        [NDR, PDR, SearchGoal(0.001, 0.0, 30.0, 30.0, 0.005, 1.0)],
    ],
)
def test_goals_other_than_ndr_and_pdr_are_refused(goals):
    with pytest.raises(SearchError, match="two goals"):
        controller(goals)


def test_the_order_of_the_goals_does_not_matter(searched, capacity):
    one, trials = searched(controller((NDR, PDR)), capacity(5e5))
    other, reversed_trials = searched(controller((PDR, NDR)), capacity(5e5))
    assert trials == reversed_trials
    assert one[NDR] == other[NDR]
    assert step_up(one[NDR].relevant_lower_bound, WIDTH) >= one[NDR].relevant_upper_bound * (1 - 1e-9)

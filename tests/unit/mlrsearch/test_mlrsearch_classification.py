from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from mlrsearch_reference import reference_bound, reference_throughput
from mlrsearch_suts import measured

from lossratio.errors import SearchError
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Bound, SearchGoal, classify, conditional_throughput
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

LOAD = 1_000_000.0
EXAMPLE = json.loads((Path(__file__).parent / "rfc9971_example_search.json").read_text())
EXAMPLE_GOALS = {name: SearchGoal(**values, width=0.005, name=name) for name, values in EXAMPLE["goals"].items()}


def example_results(point):
    return [measured(LOAD, t["duration"], t["loss_ratio"]) for t in point["trials"] for _ in range(t["count"])]


@pytest.mark.parametrize("name", EXAMPLE_GOALS)
@pytest.mark.parametrize("point", EXAMPLE["points"], ids=lambda point: point["name"])
def test_the_example_of_the_rfc_is_classified_as_its_code_does(point, name):
    bound = classify(EXAMPLE_GOALS[name], example_results(point))
    assert bound.name.lower() == point["classification"][name]


@pytest.mark.parametrize("name", EXAMPLE["conditional_throughput_code_at_last_point"])
def test_the_example_of_the_rfc_has_its_conditional_throughput(name):
    throughput = conditional_throughput(EXAMPLE_GOALS[name], LOAD, example_results(EXAMPLE["points"][-1]))
    assert throughput == pytest.approx(EXAMPLE["conditional_throughput_code_at_last_point"][name], abs=1e-6)


def test_a_load_without_trials_is_undecided():
    assert all(classify(goal, []) is Bound.UNDECIDED for goal in (NDR, PDR, RFC2544, TST009))


def test_trials_at_two_loads_are_refused():
    with pytest.raises(SearchError, match="load"):
        classify(NDR, [measured(1e5, 1.0, 0.0), measured(2e5, 1.0, 0.0)])


@pytest.mark.parametrize(
    ("low", "high", "bound"), [(10, 10, "UNDECIDED"), (11, 0, "LOWER"), (0, 11, "UPPER"), (10, 11, "UPPER")]
)
def test_eleven_of_twenty_one_trials_decide(low, high, bound):
    results = [measured(LOAD, 1.0, 0.0)] * low + [measured(LOAD, 1.0, 0.1)] * high
    assert classify(NDR, results) is Bound[bound]


def test_half_of_the_seconds_may_be_lossy_exactly_also_in_tenths():
    goal = SearchGoal(0.0, 0.5, 0.1, 2.2, 0.005)
    results = [measured(LOAD, 0.1, 0.0)] * 11 + [measured(LOAD, 0.1, 1.0)] * 11
    for seed in range(20):
        random.Random(seed).shuffle(results)
        assert classify(goal, results) is Bound.LOWER


@pytest.mark.parametrize("exceed", [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
def test_exceed_ratios_are_the_decimals_that_people_write(exceed):
    lossy = round(exceed * 10)
    goal = SearchGoal(0.0, exceed, 0.7, 7.0, 0.005)
    results = [measured(LOAD, 0.7, 0.0)] * (10 - lossy) + [measured(LOAD, 0.7, 0.5)] * lossy
    assert classify(goal, results) is Bound.LOWER
    assert classify(goal, [*results, measured(LOAD, 1e-3, 0.5)]) is Bound.UPPER


def test_seven_trials_prove_a_bound_where_overheads_count():
    assert classify(NDR, [measured(LOAD, 1.0, 0.0, effective=1.5)] * 7) is Bound.LOWER
    assert classify(NDR, [measured(LOAD, 1.0, 0.0, effective=1.5)] * 6) is Bound.UNDECIDED


ratios = st.sampled_from([0.0, 0.001, 0.005, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9])
durations = st.sampled_from([0.1, 0.5, 1.0, 1.5, 2.8, 7.0, 30.0, 60.0])
goals = st.builds(
    lambda loss, exceed, final, total: SearchGoal(loss, exceed, final, max(final, total), 0.9, 0.1),
    ratios,
    ratios,
    durations,
    durations,
)
trials = st.lists(
    st.builds(
        measured,
        st.just(LOAD),
        durations,
        st.sampled_from([0.0, 0.001, 0.0011, 0.005, 0.2, 0.5, 1.0]),
        st.one_of(st.none(), durations, st.just(0.0), st.integers(0, 10**8).map(lambda n: n / 1e6)),
    ),
    max_size=30,
)


@pytest.mark.whole
@given(goals, trials)
def test_classification_is_the_code_of_the_rfc(goal, results):
    assert classify(goal, results).name.lower() == reference_bound(goal, results)


@pytest.mark.whole
@given(goals, trials.filter(bool))
def test_conditional_throughput_is_the_code_of_the_rfc(goal, results):
    assert conditional_throughput(goal, LOAD, results) == reference_throughput(goal, LOAD, results)


@given(goals, trials, st.randoms())
def test_permuting_the_trials_changes_nothing(goal, results, rng):
    permuted = list(results)
    rng.shuffle(permuted)
    assert classify(goal, permuted) is classify(goal, results)
    assert conditional_throughput(goal, LOAD, permuted) == conditional_throughput(goal, LOAD, results)


@pytest.mark.whole
@given(goals, trials)
def test_the_conditional_throughput_of_a_lower_bound_keeps_to_the_loss_ratio(goal, results):
    if classify(goal, results) is Bound.LOWER:
        assert conditional_throughput(goal, LOAD, results) >= LOAD * (1.0 - goal.loss_ratio)


def early(loss_ratio, duration=1.0):
    """A trial that an early verdict ended when so much was lost."""
    return TrialResult(TrialInput(duration, 1e6), TrialOutput(loss_ratio, decided_after=duration / 4))


def test_an_early_verdict_counts_as_the_full_trial_and_only_where_it_is_one():
    assert classify(NDR, [early(0.001)] * 11) is Bound.UPPER
    assert classify(NDR, [early(0.001)] * 10) is Bound.UNDECIDED
    # A loss of at least 0.1 % may or may not exceed 0.5 %.
    assert classify(PDR, [early(0.001)] * 30) is Bound.UNDECIDED
    assert classify(PDR, [early(0.006)] * 11) is Bound.UPPER


def test_the_forwarding_rate_of_an_early_verdict_is_no_conditional_throughput():
    goal = replace(PDR, duration_sum=2.0)
    whole = TrialResult(TrialInput(1.0, 1e6), TrialOutput(0.004))
    assert conditional_throughput(goal, 1e6, [whole, early(0.006)]) == pytest.approx(0.996e6)
    assert conditional_throughput(replace(goal, exceed_ratio=0.0), 1e6, [whole, early(0.006)]) == 0.0

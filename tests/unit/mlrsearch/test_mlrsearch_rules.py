"""The rules that choose a goal's next trial: their order, their names, and where each of them is at work."""

from __future__ import annotations

import random

import pytest
from at_least_one import at_least_one
from mlrsearch_suts import knee, policer

from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Bound, LoadGrid, MLRsearch, rules
from lossratio.mlrsearch.rules import RULES, Choice, choose
from lossratio.mlrsearch.rules.plan import BELOW
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput

MIN, MAX = 9001.0, 14_880_952.0


def rules_of(controller, sut):
    """The rule of each trial of a whole search, and the trials."""
    names, trials = [], []
    while (trial := controller.next_trial()) is not None:
        names.append(controller.purpose.rule)
        trials.append(TrialResult(trial, TrialOutput(min(1.0, max(0.0, sut(trial.load, trial.duration))))))
        controller.record(trials[-1])
    return names, trials


def test_rules_are_explained_by_their_names_and_in_their_order():
    names = [rule.__name__ for rule in RULES]
    explained = [line.split("`")[1] for line in rules.__doc__.splitlines() if line.startswith("| `")]
    assert explained == names


class View:
    first_open = 0
    plan = None


def test_the_first_rule_that_wants_a_trial_gets_it(monkeypatch):
    first, second = (Choice(name, 0, load, Bound.UPPER) for name, load in (("first", 1.0), ("second", 2.0)))
    monkeypatch.setattr(rules, "RULES", (lambda view: None, lambda view: first, lambda view: second))
    assert choose(View()) is first


def test_no_rule_is_asked_where_all_targets_are_reached(monkeypatch):
    view = View()
    view.first_open = None
    monkeypatch.setattr(rules, "RULES", (lambda view: pytest.fail("asked"),))
    assert choose(view) is None


def test_on_a_plain_sut_a_search_looks_and_then_proves():
    names, _ = rules_of(MLRsearch([NDR], MIN, MAX), knee(1e6))
    assert sorted(set(names)) == ["look", "plan"]
    assert names == sorted(names)


def dip(load, duration):
    """Loses 0.1 % above 600 kfps, 2 % from 1 to 1.3 Mfps, and 0.4 % again up to 1.4 Mfps."""
    for end, loss in ((6e5, 0.0), (1e6, 0.001), (1.3e6, 0.02), (1.4e6, 0.004)):
        if load <= end:
            return loss
    return 1.0 - 1.4e6 / load


@pytest.mark.whole
def test_a_bound_stays_below_a_load_that_another_goals_trials_saw_failing():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    grid = LoadGrid(MIN, MAX, PDR.width)
    seen = TrialInput(NDR.final_trial_duration, next(load for load in map(grid.load, range(grid.top)) if load > 1.15e6))
    controller.record(TrialResult(seen, TrialOutput(dip(seen.load, seen.duration))))
    rules_of(controller, dip)
    ndr, pdr = controller.result().values()
    assert (ndr.relevant_lower_bound, pdr.relevant_lower_bound) == pytest.approx((6e5, 1e6), rel=0.005)


def test_a_load_below_the_bounds_that_was_unlucky_once_is_asked_once_more():
    controller = MLRsearch([PDR], MIN, MAX)
    rules_of(controller, knee(1e6))
    again = TrialInput(PDR.final_trial_duration, LoadGrid(MIN, MAX, PDR.width).load(500))
    assert again.load < controller.result()[PDR].relevant_lower_bound
    controller.record(TrialResult(again, TrialOutput(0.5)))
    assert controller.next_trial() == again
    controller.record(TrialResult(again, TrialOutput(0.0)))
    assert controller.next_trial() is None


def island(seed):
    """Loses 2 % above 1 Mfps; from 1.3 to 1.4 Mfps two of three trials lose only 0.4 %."""
    rng = random.Random(seed)

    def sut(load, duration):
        if load <= 1e6:
            return 0.001
        return 1.0 - 1.4e6 / load if load > 1.41e6 else rng.choice((0.02, 0.004, 0.004)) if load > 1.3e6 else 0.02

    return sut


@pytest.mark.whole
@pytest.mark.parametrize("seed", [0, 5, 6, 7, 9, 10])
def test_most_trials_that_pass_make_no_bound_above_loads_that_fail(seed):
    controller = MLRsearch([PDR], MIN, MAX)
    _, trials = rules_of(controller, island(seed))
    assert controller.result()[PDR].relevant_lower_bound == pytest.approx(1e6, rel=0.005)
    # A pair of bounds takes 22 trials at least: the island was left before.
    assert sum(trial.load > 1.3e6 for trial in trials) < 22


def test_no_trial_is_far_below_a_bound_without_chance():
    _, trials = rules_of(MLRsearch([PDR], MIN, MAX), knee(1e6))
    assert not any(BELOW[0] < trial.load / 1e6 < BELOW[-1] for trial in at_least_one(trials))


def test_one_trial_below_that_passes_is_enough():
    rng = random.Random(3)
    names, trials = rules_of(MLRsearch([PDR], MIN, MAX), lambda load, _: 0.02 * (load > rng.uniform(0.98e6, 1.02e6)))
    below = [name for name, trial in zip(names, trials, strict=True) if BELOW[0] < trial.load / 1e6 < 0.95]
    assert below.count("plan") == 1


def test_a_warm_up_is_no_rules_choice():
    names, _ = rules_of(MLRsearch([NDR], MIN, MAX, warm_up_duration=1.0), knee(1e6))
    assert names[0] is None
    assert None not in names[1:]


def test_a_burst_that_short_trials_pass_is_left_by_descent():
    names, _ = rules_of(MLRsearch([TST009], MIN, MAX), policer(1e6, 20_000.0))
    assert "descent" in names


def test_long_trials_begin_at_a_hint():
    sut = policer(1e6, 20_000.0)
    _, trials = rules_of(MLRsearch([TST009], MIN, MAX), sut)
    names, _ = rules_of(MLRsearch([TST009], MIN, MAX, hints=[trials]), sut)
    assert "hint" in names


def test_loss_that_fades_is_followed():
    def fades(load, duration):
        lost = 1e-3 * (load / 1e6) ** 30 * load * duration
        return 0.0 if lost < 1.0 else min(1.0, int(lost) / (load * duration))

    names, _ = rules_of(MLRsearch([RFC2544], MIN, MAX), fades)
    assert "fading" in names


def test_a_trial_that_serves_two_goals_names_the_rule_of_the_goal_that_was_picked():
    controller = MLRsearch([NDR, PDR], MIN, MAX)
    assert controller.next_trial() == TrialInput(1.0, MAX)
    assert controller.purpose.goals == (NDR, PDR)
    assert controller.purpose.rule == "look"


def test_with_early_verdicts_the_upper_load_is_proved_first_and_no_trial_has_a_middle_length():
    def inputs(early_verdict):
        controller = MLRsearch([TST009], MIN, MAX, early_verdict=early_verdict)
        _, trials = rules_of(controller, knee(1e6))
        return [(trial.duration, trial.loss_ratio > 0.0) for trial in trials if trial.duration > 1.0]

    assert [duration for duration, _ in inputs(False)][:2] == [pytest.approx(60**0.5)] * 2
    assert inputs(True) == [(60.0, True), (60.0, False)]

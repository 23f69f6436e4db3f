"""The loads that trials verify one after the other: lower after losses, higher while there is time."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from soak_trials import counts_of

from lossratio.plrsearch import LocalFit
from lossratio.plrsearch.model import CriticalLoadQuestion, LikelihoodName
from lossratio.plrsearch.variation import described
from lossratio.plrsearch.variation.pauses import Allowed
from lossratio.plrsearch.verifying import Verifying

QUESTION = CriticalLoadQuestion(1e-7, 1e4, 1e8)


def known_with(quiet, *, most, change=None):
    """What is known: no frames are lost up to a load, and pauses seem to allow far less, but at most another load."""
    local = LocalFit.between(quiet, quiet, 1.01e7, QUESTION)
    known = SimpleNamespace(
        change=change,
        local=local,
        reported=(local,),
        batch=1.0,
        in_long_run=QUESTION.max_load,
        most_without_pauses=QUESTION.max_load,
        most=most,
        once=None,
    )
    known.pauses, known.pauses_allow = "some", Allowed(7e6, 6e6, most)
    return known


def loads_to_verify(estimates, lossy, verifying=None):
    """The load of each trial at a SUT that loses frames above a load.

    If no load is to be verified, the trial is at the highest load without loss by the estimate at that time.
    """
    verifying = verifying or Verifying(QUESTION)
    loads = []
    for quiet in estimates:
        load = verifying.wanted(known_with(quiet, most=lossy), 40.0) or quiet
        loads.append(load)
        verifying.record(load, 2.0 * load, 900.0 if load > lossy else 0.0, is_long=False)
    return loads


def test_after_a_load_that_fails_the_search_returns_to_the_verified_one_whatever_pauses_would_allow():
    """The frames show this load; the pauses are a model."""
    loads = loads_to_verify([9.9e6] * 30 + [1e7] * 30, lossy=9.95e6)
    assert max(loads) > 9.95e6
    assert min(loads) > 0.999 * 9.9e6


def test_after_a_verified_load_that_loses_frames_later_the_search_returns_to_a_lower_verified_one():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45 + [1e7] * 30, lossy=1.1e7, verifying=verifying)
    verified = verifying.load
    assert verified > 9.95e6
    for _ in range(8):
        verifying.record(verified, 2.0 * verified, 900.0, is_long=False)
    assert verifying.wanted(known_with(1e7, most=1.1e7), 40.0) == pytest.approx(9.9e6, rel=1e-3)


def test_after_a_long_trial_with_losses_loads_just_below_are_not_enough():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45 + [1e7] * 30, lossy=1.1e7, verifying=verifying)
    known = known_with(1e7, most=1.1e7)
    load = verifying.load
    # The second of these long trials is at the load that passed in the first one.
    for _ in range(2):
        verifying.record(load, 20.0 * load, 9000.0, is_long=True)
        load = verifying.sustained(known, 40.0)
    assert load < 0.96 * 1e7


@pytest.mark.parametrize(("share", "next_load"), [(0.02, 0.95), (0.1, 0.9), (0.6, 0.75)])
def test_after_a_load_that_fails_the_next_one_is_what_passed_there_but_at_most_a_quarter_lower(share, next_load):
    verifying = Verifying(QUESTION)
    known = known_with(1e7, most=1.1e7)
    known.pauses = None
    loads_to_verify([1e7] * 36, lossy=1.1e7, verifying=verifying)
    load = verifying.load
    verifying.record(load, 2.0 * load, 0.5 * share * 2.0 * load, is_long=False)
    verifying.record(load, 2.0 * load, share * 2.0 * load, is_long=False)
    assert verifying.wanted(known, 40.0) == pytest.approx(next_load * load, rel=2e-3)


def test_a_long_trial_that_loses_a_few_frames_is_not_followed_by_one_just_below():
    """Only a bucket or a buffer passes its rate in the long run, and nearly all frames passed here."""
    verifying = Verifying(QUESTION)
    loads_to_verify([1e7] * 45, lossy=1.1e7, verifying=verifying)
    load = verifying.load
    verifying.record(load, 20.0 * load, 9000.0, is_long=True)
    assert verifying.sustained(known_with(1e7, most=1.1e7), 40.0) < 0.96 * load


def in_overload_and_long(*long):
    """What is known of trials of 2 s in overload, and of trials of 20 s: their loads, and shares of lost frames."""
    rows = [(1.2e7, 2.0, 4e6)] * 3 + [(9e6, 2.0, 0.0)] * 12
    rows += [(load, 20.0, share * 20.0 * load) for load, share in long]
    return described(counts_of(rows), QUESTION, LikelihoodName.VARYING)


def test_long_trials_without_loss_disprove_a_lower_rate_in_the_long_run():
    limited = in_overload_and_long((9.9e6, 0.1)).in_long_run
    assert limited < 9.1e6
    assert in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0)).in_long_run == limited
    assert in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0), (9.5e6, 0.0)).in_long_run == 9.5e6
    # Both of them may have been lucky.
    lower = in_overload_and_long((9.9e6, 0.1), (9.5e6, 0.0), (9.5e6, 0.0), (9.4e6, 0.01))
    assert lower.in_long_run == limited


def test_a_change_that_later_trials_disprove_does_not_cost_the_load_that_was_verified():
    verifying = Verifying(QUESTION)
    loads_to_verify([9.9e6] * 45, lossy=1.1e7, verifying=verifying)
    verified = verifying.load
    changed = SimpleNamespace(trials=40, is_later=lambda trials: trials < 40)
    verifying.wanted(known_with(8e6, most=1.1e7, change=changed), 40.0)
    assert verifying.load is None
    verifying.wanted(known_with(8e6, most=1.1e7), 40.0)
    assert verifying.load == verified


def test_while_there_is_time_the_search_goes_halfway_up_to_a_load_that_failed():
    loads = loads_to_verify([1e7] * 40 + [7.5e6] * 100, lossy=9.2e6)
    # First, 7.5 Mfps is verified. Pauses allow 9.2 Mfps at most.
    higher = [load for load in loads[40:] if load > 7.6e6]
    assert sorted(set(higher)) == pytest.approx([8.75e6, 9.2e6], rel=1e-4)
    assert higher == sorted(higher)


def begun(trials):
    """A search after so many trials far below."""
    verifying = Verifying(QUESTION)
    for _ in range(trials):
        verifying.record(5e6, 1e7, 0.0, is_long=False)
    return verifying


def next_loads(verifying, known, *, trials, lost=None):
    """The loads of so many trials. Their lost frames are given by number; the others lose nothing."""
    loads = []
    for number in range(trials):
        load = verifying.wanted(known, float(trials - number)) or known.local.quiet
        loads.append(load)
        verifying.record(load, 2.0 * load, (lost or {}).get(number, 0.0), is_long=False)
    return loads


@pytest.mark.whole
@pytest.mark.parametrize(("before", "left", "is_left"), [(40, 60, True), (260, 440, False)])
def test_one_rare_loss_is_enough_to_leave_a_load_only_if_time_is_short(before, left, is_left):
    """It is as much as the target allows in ten trials."""
    loads = next_loads(begun(before), known_with(1e7, most=1.1e7), trials=left, lost={3: 21.0})
    assert (min(loads[:30]) < 0.96 * 1e7) == is_left


def test_a_higher_load_is_tried_after_a_twelfth_of_all_trials_at_the_verified_one():
    verifying = Verifying(QUESTION)
    estimates = [9.9e6] * 60 + [1e7] * 60
    loads = loads_to_verify(estimates, lossy=1.1e7, verifying=verifying)
    first = next(number for number, load in enumerate(loads) if load > 9.95e6 and number > 60)
    assert sum(load < 9.95e6 for load in loads[:first]) >= 120 / 12


def test_a_verified_load_is_raised_toward_the_lowest_load_that_lost_frames():
    known = known_with(9e6, most=1.1e7)
    known.local = replace(known.local, lossy=1e7)
    loads = next_loads(begun(40), known, trials=60)
    # At least ten trials verify each of them.
    assert sorted({load for load in loads if load > 9.1e6}) == pytest.approx([9.5e6, 9.75e6, 9.875e6], rel=1e-3)
    # A higher load that lost nothing disagrees.
    known.local = replace(known.local, above=1.1e7)
    assert max(next_loads(begun(40), known, trials=60)) <= 9e6


@pytest.mark.parametrize(("quiet_afterwards", "highest"), [(12, 1.05e7), (5, 9e6)])
def test_losses_of_a_cold_start_do_not_prevent_higher_loads(quiet_afterwards, highest):
    verifying = Verifying(QUESTION)
    verifying.record(9.05e6, 1.81e7, 1e6, is_long=False)
    for load, lost in [(9.05e6, 0.0)] * quiet_afterwards + [(1.2e7, 1e6)] + [(5e6, 0.0)] * 30:
        verifying.record(load, 2.0 * load, lost, is_long=False)
    known = known_with(9e6, most=1.1e7)
    known.local = replace(known.local, lossy=9.05e6, above=9.05e6)
    loads = next_loads(verifying, known, trials=60)
    # If ten trials at the load of the first loss lost nothing later, the search goes halfway up to the next one.
    assert next((load for load in loads if load > 9.1e6), 9e6) == pytest.approx(highest, rel=1e-3)


@pytest.mark.parametrize(("above", "is_left"), [(3.0, False), (6.0, True)])
def test_a_load_is_not_left_if_trials_at_higher_loads_lost_less(above, is_left):
    """Then losses do not fall with the load. Here, the load alone lost 1.25 targets."""
    verifying = begun(40)
    known = known_with(1e7, most=1.1e7)
    load = verifying.wanted(known, 60.0)
    for number in range(20):
        verifying.record(1.05 * load, 2.1 * load, above * (number % 2), is_long=False)
    for number in range(10):
        verifying.record(load, 2.0 * load, 5.0 * (number % 2), is_long=False)
    verifying.wanted(known, 20.0)
    assert (verifying.load < load) == is_left

"""What a result says about the trials after a rest: a doubt or a remark, by the frames that the SUT lost."""

import pytest
from report_examples import counted_trial, run, setup, throughput_of

from lossratio.measurements.throughput.evidence import search_fields
from lossratio.measurements.throughput.rest import is_about_rest
from lossratio.mlrsearch import NDR, goal_result
from lossratio.results import DoubtKind
from lossratio.results.findings import doubts_of
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput

SEARCHED = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, lost=500)] * 21]
OVERLOAD = counted_trial(1e6, lost=900_000)
LOADS = [101_000.0, 103_000.0, 110_000.0, 140_000.0, 190_000.0]


def rested(load, **counts):
    """A trial after a rest."""
    trial = counted_trial(load, **counts)
    return TrialResult(TrialInput(1.0, load, rest=15.0), trial.output)


def with_control(load, *, control=None, **counts):
    """A trial that passes after a rest, and its control, which loses the tenth part of the frames unless told else."""
    lost = round(load / 10) if control is None else control
    return [rested(load, **counts), OVERLOAD, counted_trial(load, lost=lost)]


def memories_in(trials):
    """The doubts about a memory that comes from trials after a rest."""
    (doubts,) = doubts_of([throughput_of([*SEARCHED, *trials], (NDR,))])
    return [doubt.reason for doubt in doubts if doubt.kind is DoubtKind.MEMORY and "whole trials" in doubt.reason]


def remarks_on(trials):
    """The remarks of a search that asked for a rest."""
    evidence = [*SEARCHED, *trials]
    maximum, search = setup(run())
    least, most = search["min_load_fps"], maximum.rate.per_interface_fps
    search["settings"]["memory_rest_s"] = 15.0
    found = {NDR: goal_result(NDR, evidence, min_load=least, max_load=most)}
    fields = search_fields(run(), maximum, search, found, [JournalEntry(trial) for trial in evidence])
    return fields["remarks"]


def test_five_loads_that_pass_after_a_rest_and_fail_after_a_loss_are_a_doubt_with_their_size():
    trials = [trial for load in LOADS for trial in with_control(load)]
    (reason,) = memories_in(trials)
    assert reason.startswith(
        "whole trials at 5 loads passed after a rest of 15 s, at up to 190.00 kfps per interface, 89.24 % above the "
        "upper bound, and the same loads failed right after a loss: it remembers a loss; rest=15 s between trials "
        "would help. "
    )
    assert memories_in(trials[:-1]) == []
    assert remarks_on(trials) == ()


def test_frames_that_were_not_sent_hide_no_memory_and_make_none():
    assert memories_in([trial for load in LOADS for trial in with_control(load, unsent=2)])
    assert memories_in([trial for load in LOADS for trial in with_control(load, unsent=round(load / 2))]) == []
    no_answer = [rested(101_000.0, unsent=9_000)] * 3
    assert remarks_on(no_answer) == (
        "it is not known whether the SUT remembers a loss: no trial after a rest of 15 s gave an answer, because "
        "the generator sent too little or the search ended earlier",
    )


def test_loads_that_pass_after_a_loss_as_well_show_no_memory():
    trials = [trial for load in LOADS for trial in with_control(load, control=0)]
    assert memories_in(trials) == []
    assert remarks_on(trials) == (
        "whole trials of 1 s above the bounds, at up to 190.00 kfps per interface, passed after a rest of 15 s, and "
        "likewise right after a loss: nothing shows that the SUT remembers a loss; this cannot show a memory "
        "of more than 15 s",
    )


@pytest.mark.parametrize(("count", "loads"), [(1, "1 load"), (4, "4 loads")])
def test_too_few_such_loads_are_a_remark(count, loads):
    trials = [trial for load in LOADS[:count] for trial in with_control(load)]
    assert memories_in(trials) == []
    assert remarks_on(trials) == (
        f"above the bounds, trials at {loads} passed after a rest of 15 s and failed right after a loss: too few to "
        "say that the SUT remembers a loss; memory_rest=15 s would test further",
    )


def test_a_load_that_fails_after_a_rest_is_said_with_what_the_sut_lost():
    (remark,) = remarks_on([rested(101_000.0, lost=505, unsent=50_500)])
    assert remark == (
        "a whole trial of 1 s above the bounds, at 101.00 kfps per interface after a rest of 15 s, lost 1 %: "
        "nothing shows that the SUT remembers a loss; this cannot show a memory of more than 15 s"
    )


def doubts_about_less(trials):
    """The doubts that the SUT passes less after a rest."""
    (doubts,) = doubts_of([throughput_of([*trials, *SEARCHED], (NDR,))])
    return [doubt.reason for doubt in doubts if doubt.kind is DoubtKind.LESS_AFTER_REST]


def test_two_loads_that_fail_after_a_rest_and_pass_right_after_it_are_a_doubt_with_their_size():
    pair = [rested(100_000.0, lost=2_000), counted_trial(100_000.0)]
    assert doubts_about_less(pair) == []
    (reason,) = doubts_about_less([*pair, rested(100_000.0, lost=3_000), counted_trial(100_000.0)])
    assert reason == (
        "2 trials at 100.00 kfps per interface, each after a rest of 15 s, lost 2 % or more, and the same load passed "
        "right after each of them: the results hold only for a device that has just forwarded frames. Look for "
        "flows that must be learnt again, and for cores that sleep"
    )
    chance = [rested(100_000.0, lost=2_000), counted_trial(100_000.0, lost=2_000)]
    assert doubts_about_less(2 * chance) == []


def remarks_on_first(*first):
    """The remarks of a search that began with these trials."""
    evidence = [*first, *SEARCHED]
    maximum, search = setup(run())
    search["settings"]["memory_rest_s"] = 15.0
    least, most = search["min_load_fps"], maximum.rate.per_interface_fps
    found = {NDR: goal_result(NDR, evidence, min_load=least, max_load=most)}
    return search_fields(run(), maximum, search, found, [JournalEntry(trial) for trial in evidence])["remarks"]


def test_a_first_trial_that_asked_for_less_is_said_with_its_answer():
    passed = remarks_on_first(rested(100_000.0))
    assert passed[0] == (
        "the first trial, of 1 s at 100.00 kfps per interface, after a rest of 15 s, passed: nothing shows that the "
        "SUT passes less after a rest"
    )
    failed = remarks_on_first(rested(100_000.0, lost=2_000), counted_trial(100_000.0))
    assert (
        "lost 2 %, and the same load passed right after that; the search was too short to test this again" in failed[0]
    )
    again = remarks_on_first(rested(100_000.0, lost=2_000), counted_trial(100_000.0), rested(100_000.0))
    assert "passed right after that; after another rest this did not happen again, so nothing shows" in again[0]
    assert len(remarks_on_first()) == 1


def test_a_trial_that_failed_after_a_long_time_without_loss_is_as_good_as_one_after_a_rest():
    (remark,) = remarks_on([])
    assert is_about_rest(remark)
    assert remark.startswith("after 15 s without loss or longer, a trial of 1 s above the bounds, at 100.40 kfps")


@pytest.mark.parametrize(("good", "is_quick"), [(11, True), (60, False)])
def test_without_any_such_trial_the_remark_says_how_to_ask_unless_the_search_was_quick(good, is_quick):
    lossy = [trial for trial in SEARCHED if trial.loss_ratio]
    evidence = [*lossy, *[counted_trial(100_000.0)] * good]
    maximum, search = setup(run())
    search["settings"]["memory_rest_s"] = 15.0
    found = {NDR: goal_result(NDR, evidence, min_load=1e3, max_load=1e6)}
    entries = [JournalEntry(trial) for trial in evidence]
    remarks = search_fields(run(), maximum, search, found, entries)["remarks"]
    if is_quick:
        assert remarks == ()
    else:
        assert remarks == (
            "no trial after a long rest tested whether the SUT remembers a loss for longer than the rest "
            "between trials; memory_rest=15 s would test it",
        )

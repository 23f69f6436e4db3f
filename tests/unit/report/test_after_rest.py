"""What a result says about the trials after a rest: a doubt or a remark, by the frames that the SUT lost."""

from report_examples import counted_trial, run, setup, throughput_of

from lossratio.measurements.throughput.evidence import search_fields
from lossratio.mlrsearch import NDR, goal_result
from lossratio.results import NoteKind, Weight
from lossratio.results.findings import doubts_of
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput

SEARCHED = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, lost=500)] * 21]


def rested(load, **counts):
    """A trial after a rest."""
    trial = counted_trial(load, **counts)
    return TrialResult(TrialInput(1.0, load, rest=15.0), trial.output)


def memories_in(trials):
    """The doubts about a memory that comes from the trial after a rest."""
    (doubts,) = doubts_of([throughput_of([*SEARCHED, *trials], (NDR,))])
    return [doubt.text for doubt in doubts if doubt.kind is NoteKind.MEMORY and "passed after" in doubt.text]


def remarks_on(trials):
    """The remarks of a search that asked for a rest."""
    evidence = [*SEARCHED, *trials]
    maximum, search = setup(run())
    least, most = search["min_load_fps"], maximum.rate.per_interface_fps
    search["settings"]["memory_rest_s"] = 15.0
    found = {NDR: goal_result(NDR, evidence, min_load=least, max_load=most)}
    fields = search_fields(run(), maximum, search, found, [JournalEntry(trial) for trial in evidence])
    remarks = fields["remarks"]
    assert {note.weight for note in remarks} <= {Weight.PROVENANCE}
    return tuple(note.text for note in remarks)


def test_a_trial_above_the_bounds_that_passes_after_a_rest_is_a_doubt_that_chance_may_explain():
    (reason,) = memories_in([rested(101_400.0)])
    assert reason == (
        "a trial of 1 s at 101.40 kfps per interface, 0.996 % above the upper bound, passed after a rest of 15 s: the "
        "SUT may remember a loss for longer than the rest between trials, or the trial passed by chance. rest=15 s "
        "between trials would show which"
    )
    assert remarks_on([rested(101_400.0)]) == ()


def test_only_frames_that_the_sut_lost_count():
    assert memories_in([rested(101_400.0, unsent=2)])
    no_answer = [rested(101_400.0, unsent=9_000)]
    assert memories_in(no_answer) == []
    assert remarks_on(no_answer) == (
        "it is not known whether the SUT remembers a loss: in the trial at 101.40 kfps per interface after a rest of "
        "15 s, the generator sent too little",
    )


def test_a_trial_that_fails_is_a_remark_with_what_the_sut_lost():
    failed = [rested(101_000.0, lost=505, unsent=50_500)]
    assert memories_in(failed) == []
    (remark,) = remarks_on(failed)
    assert remark == (
        "a trial of 1 s above the bounds, at 101.00 kfps per interface after a rest of 15 s, lost 1 %, as in the "
        "search, so it does not show that the SUT remembers a loss"
    )


def test_without_such_a_trial_nothing_is_said():
    assert remarks_on([]) == ()
    assert memories_in([]) == []

from __future__ import annotations

from lossratio.results.trials import describe_trials, trials_in_words
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


def test_each_trial_is_shown_with_the_time_that_had_passed_and_its_rule_and_purpose():
    entries = [
        JournalEntry.of(TrialResult(TrialInput(1.0, 400e3), TrialOutput(0.8125, elapsed=1.02)), "NDR: search"),
        JournalEntry.of(TrialResult(TrialInput(60.0, 75e3), TrialOutput(0.0, elapsed=60.02)), None),
        JournalEntry.of(TrialResult(TrialInput(1.0, 75e3), TrialOutput(0.0)), "NDR: prove", "proof"),
    ]
    assert trials_in_words(describe_trials(entries)).splitlines() == [
        "Why each trial was measured:",
        "   1  at    1.0 s  400.00 kfps for 1 s  loss 81.25 %    NDR: search",
        "   2  at   61.0 s  75.000 kfps for 60 s  loss 0 %",
        "   3  at   62.0 s  75.000 kfps for 1 s  loss 0 %        proof      NDR: prove",
    ]


def test_frames_that_the_sut_did_not_lose_are_named_beside_a_loss():
    output = TrialOutput(0.3, elapsed=1.0, sent_frames=80, lost_frames=10, unsent_frames=20, late_frames=4)
    entries = [JournalEntry.of(TrialResult(TrialInput(1.0, 100.0), output), "NDR: search")]
    (_, line) = trials_in_words(describe_trials(entries)).splitlines()
    assert line.endswith("loss 30 % (20 frames unsent, 4 frames only late)  NDR: search")

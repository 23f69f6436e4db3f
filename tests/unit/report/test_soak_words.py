"""What the message of a soak test says of its critical load, and how sure that is."""

import re

import pytest
from report_examples import conditions, counted_trial
from soak_examples import MEAN, STDEV, guarded, soak, stalled, verified, whole

from lossratio.measurements.soak.result import SeenBucket, SeenPauses, SoakLimit
from lossratio.plrsearch import Verdict
from lossratio.results.findings import caveats_of, findings_of, message
from lossratio.results.model import Outcome
from lossratio.trials.journal_lines import JournalEntry


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"misfit": ("losses come in bursts", "loss grows with time")},
            "rely on the number: losses come in bursts; loss",
        ),
        ({"limit": SoakLimit.AT_LEAST}, "ends at the maximum load, and the critical load may be above it"),
        ({"limit": SoakLimit.AT_MOST}, "ends at the minimum load, and the critical load may be below it"),
        ({"limit": SoakLimit.BEYOND_TRIALS}, "do not reach the target loss ratio, and do not show its load"),
    ],
)
def test_a_critical_load_that_must_not_be_relied_on_is_irregular(fields, why):
    result = soak(**fields)
    (finding,) = findings_of([result])
    assert finding.outcome is result.outcome is Outcome.IRREGULAR
    assert why in finding.reason
    assert f"): irregular: {finding.reason}" in message(result)


def test_the_message_says_what_frames_at_the_load_show_and_how_many_would_verify_it():
    shown = message(whole())
    assert "extrapolated: 0 of 6,000,000 frames were lost at 149.90 kfps to 150.00 kfps" in shown
    assert "6 times the target" in shown
    assert "; another 30,000,000 frames (2 h) would verify it" in shown
    assert "): regular, extrapolated: there are too few frames or trials at the critical load" in shown
    assert "counted frames" in shown


def test_a_range_of_loads_that_are_written_alike_is_one_load():
    shown = message(guarded(load_per_interface_fps=149_999.9, highest_load_per_interface_fps=150_000.1))
    assert "frames were lost at 150.00 kfps, a ratio" in shown


def test_the_number_has_beside_it_which_losses_no_trial_would_show():
    few = {"unseen_burst_trials": 1.7, "unseen_burst_s": 3.4, "missing_trials": 6}
    shown = message(guarded(**few))
    assert "losses that come less often than every 3.4 s may be in none of these trials" in shown
    assert "; another 30,000,000 frames in 6 or more trials (2 h) would verify it" in shown
    verified = {"verdict": Verdict.VERIFIED, "largest_burst_frames": 105.0, "unseen_burst_trials": 29.8}
    shown = message(guarded(extrapolation_factor=0.1, missing_frames=None, missing_s=None, **verified))
    assert "): regular, verified at 149.90 kfps" in shown
    assert "unless more than 105 frames are lost at a time, less often than in one of 30 trials" in shown


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (None, "critical load (loss ratio 1e-7 in trials of 2 s):"),
        (20.0, "(loss ratio 1e-7 in trials of 2 s and 20 s):"),
    ],
)
def test_the_headline_has_the_length_of_the_trials_beyond_which_nothing_is_known(protocol, said):
    result = guarded(protocol_s=protocol)
    critical = result.critical_load.model_copy(update={"trial_s": 2.0})
    assert said in message(result.model_copy(update={"critical_load": critical}))


def in_the_long_run(*longer, **fields):
    """What the message says of longer trials than most; None: nothing."""
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    result = soak(trials=[*usual, *longer])
    critical = guarded(**fields).critical_load.model_copy(update={"trial_s": 1.0})
    shown = " ".join(message(result.model_copy(update={"critical_load": critical})).split())
    return shown.partition("in the long run not known")[2].partition(". Everything")[0].strip(" :") or None


def test_a_soak_without_long_trials_says_that_the_long_run_is_not_known():
    starved = stalled(0.05, duration=12.5)
    assert in_the_long_run() == "there were no long trials"
    uncounted = "of 12.5 s did not count, as the generator did not send all frames in time"
    assert in_the_long_run(starved, starved) == f"2 trials {uncounted}"
    one = JournalEntry(counted_trial(MEAN, lost=500, duration=12.5))
    lost = "1 trial of 12.5 s at 150.00 kfps lost 500 of 1,875,000 frames"
    assert in_the_long_run(one, starved) == f"{lost}; 1 trial {uncounted}"
    assert in_the_long_run(one) == lost


@pytest.mark.parametrize("may_be_larger", [False, True])
def test_what_is_stated_allows_for_a_bucket_of_known_size(may_be_larger):
    long_run = None if may_be_larger else conditions().rate(147e3)
    bucket = SeenBucket(frames_per_interface=2e3, may_be_larger=may_be_larger, long_run=long_run)
    critical = guarded().critical_load.model_copy(update={"trial_s": 1.0, "bucket": bucket})
    shown = " ".join(message(soak().model_copy(update={"critical_load": critical})).split())
    said = "Everything stated here is from trials of 1 s, and allows for the bucket or buffer that they show"
    assert (said in shown) is not may_be_larger
    assert ("a buffer would let more through than in the long run" in shown) is may_be_larger


def test_long_trials_at_other_loads_are_named_with_their_losses():
    others = [JournalEntry(counted_trial(load, lost=50, duration=12.5)) for load in (149e3, 151e3)]
    lost = "2 trials of 12.5 s at 149.00 kfps to 151.00 kfps lost 100 of 3,750,000 frames"
    assert in_the_long_run(*others) == f"at the stated load: {lost}"


def test_long_trials_that_lose_frames_say_how_much_passes_at_most_in_the_long_run():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    # A policer of 147,000 frames/s, with a bucket of 2,000.
    lossy = JournalEntry(counted_trial(149e3, lost=38_000, duration=20.0))
    quiet = JournalEntry(counted_trial(147e3, duration=20.0))
    lost = (
        "1 trial of 20 s at 149.00 kfps lost 38,000 of 2,980,000 frames; 2 trials of 20 s at 147.00 kfps lost 0 of "
        "5,880,000 frames. Most trials took 1 s"
    )
    pauses = SeenPauses(per_hour=900.0, length_s=0.034, ring_frames=None)
    for seen, limit in ((None, "at most 147.10 kfps: "), (pauses, "")):
        critical = guarded().critical_load.model_copy(update={"trial_s": 1.0, "pauses": seen})
        result = soak(trials=[*usual, lossy, quiet, quiet]).model_copy(update={"critical_load": critical})
        assert f"in the long run {limit}{lost}" in " ".join(message(result).split())


def test_a_long_trial_is_no_limit_if_another_one_forwarded_more():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    # Real VPP with a policer of 30,000 frames/s on a busy machine: two of these trials lost frames in a stall.
    counts = ((30_286.0, 2_321), (28_551.0, 718), (27_055.0, 1_113), (25_596.0, 0))
    longer = [JournalEntry(counted_trial(load, lost=lost, duration=10.0)) for load, lost in counts]
    critical = guarded().critical_load.model_copy(update={"trial_s": 1.0})

    def said(trials):
        result = soak(trials=[*usual, *trials]).model_copy(update={"critical_load": critical})
        return " ".join(message(result).split()).partition("in the long run ")[2]

    lost = "1 trial of 10 s at 27.055 kfps lost 1,113 of 270,550 frames; 1 trial of 10 s at 25.596 kfps lost 0 of"
    assert said(longer).startswith(lost)
    assert said(longer[2:]).startswith(f"at most 26.944 kfps: {lost}")


def test_frames_that_were_never_sent_did_not_pass_in_the_long_run():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    lossy = JournalEntry(counted_trial(30_000.0, lost=3_000, duration=10.0))
    # The load is more than what passed in the other trial, but what was sent is less.
    unsent = JournalEntry(counted_trial(29_900.0, unsent=2_900, duration=10.0))
    critical = guarded().critical_load.model_copy(update={"trial_s": 1.0})
    result = soak(trials=[*usual, lossy, unsent]).model_copy(update={"critical_load": critical})
    assert "in the long run at most 29.700 kfps: 1 trial of 10 s" in " ".join(message(result).split())


@pytest.mark.parametrize("fields", [{"protocol_s": 12.5}, {"verdict": Verdict.CONTRADICTED}])
def test_where_long_trials_say_something_nothing_is_said_to_be_unknown(fields):
    assert in_the_long_run(**fields) is None


def test_the_highest_verified_load_is_stated_first_with_how_rare_losses_may_be_that_were_not_seen():
    result = verified(75.0, 20.0)
    shown = " ".join(message(result).split())
    said = "regular, verified also in trials of 20 s; losses rarer than one in 75 s may not have been seen"
    assert said in shown
    assert "; to see one in 300 s, search with rarest=300 s (30 min)" in shown
    assert "highest verified load" in shown
    (finding,) = findings_of([result])
    assert finding.value == result.critical_load.verified
    assert finding.lower_bound.per_interface_fps <= finding.value.per_interface_fps
    assert any("rarer than one in 75 s" in caveat for caveat in caveats_of(finding))


LOST = "at most one in 10,000,000"
RARE = "losses that do not come from the load were seen"
NO_LOAD = "no load is verified"


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({}, "estimated at 150,000 {}."),
        ({"misfit": ("a reason",)}, "irregular. The estimate is 150,000 {}."),
        ({"verified": 149e3}, f"at 149,000 {{}}, {LOST} is lost, which is verified in trials of 2 s only."),
        (
            {"verified": 149e3, "doubt": RARE},
            f"irregular. The trials at 149,000 {{}} lost {LOST}, but rarer losses may exceed that.",
        ),
        ({"supported": 140e3}, "not verified, because that takes more frames. No trial contradicts 140,000 {}."),
        (
            {"supported": 140e3, "doubt": NO_LOAD},
            "not verified, and perhaps too high. No trial contradicts 140,000 {}.",
        ),
    ],
    ids=["estimate", "misfit", "verified", "rare losses", "few frames", "not verified"],
)
def test_the_first_sentence_says_no_more_than_is_proved(fields, first):
    """An interval is in the first sentences only if the result is regular, and is never that of the stated load."""
    result = soak()
    rates = {name: conditions().rate(load) for name, load in fields.items() if isinstance(load, float)}
    found = result.critical_load.model_copy(update={**fields, **rates})
    head, second, *lines = message(result.model_copy(update={"critical_load": found})).splitlines()
    assert head == f"Critical load: {first.format('frames/s of 64 B each way')}"
    is_regular = found.reason is None
    assert second.endswith("is estimated at 149,000 to 151,000 (95 % interval).") is is_regular
    names = " ".join(line[2:26].strip() for line in (second, *lines))
    assert ("doubtful estimate" in names) is not is_regular
    assert ("standard deviation" in names) is found.is_estimate


def test_the_deviation_of_the_estimate_is_not_said_to_be_that_of_a_verified_load():
    deviations = [finding.deviation for finding in findings_of([soak(), verified(75.0, 20.0)])]
    assert [deviation is None for deviation in deviations] == [False, True]


def test_a_load_that_too_few_frames_verify_has_its_scope_in_seconds_beside_it():
    result = guarded()
    seen = result.critical_load.model_copy(update={"rarest_s": 40.0})
    shown = " ".join(message(result.model_copy(update={"critical_load": seen})).split())
    assert "to verify it; losses rarer than one in 40 s may not have been seen" in shown


def test_a_load_that_was_verified_in_short_trials_only_says_so_and_a_long_search_asks_for_no_longer_one():
    shown = " ".join(message(verified(400.0, None)).split())
    assert "regular, verified in trials of 2 s only; losses rarer than one in 400 s" in shown
    assert "to see one in" not in shown


def test_the_stated_load_is_named_by_what_it_is():
    result = whole()
    median = conditions().rate(MEAN - STDEV)
    stated = result.model_copy(update={"critical_load": result.critical_load.model_copy(update={"median": median})})
    assert re.search(r"(estimate \(\w+\)) +([\d,]+) fps", str(stated)).groups() == (
        "estimate (median)",
        f"{MEAN - STDEV:,.0f}",
    )

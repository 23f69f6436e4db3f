"""What the message of a soak test says of its critical load, and how sure that is."""

import pytest
from report_examples import conditions
from soak_examples import MEAN, OPEN, fitted, lacking_frames, soak

from lossratio.plrsearch import CsitEstimate, Verdict
from lossratio.results.findings import caveats_of, findings_of, message
from lossratio.results.model import Outcome


def shown(**fields):
    return " ".join(message(soak(**fields)).split())


def test_a_critical_load_that_must_not_be_relied_on_is_irregular():
    result = soak(verified=None, reason="no load is verified", statement=OPEN)
    (finding,) = findings_of([result])
    assert finding.outcome is result.outcome is Outcome.IRREGULAR
    assert finding.reason == "no load is verified"
    assert "): irregular: no load is verified" in message(result)
    assert "doubtful load" in message(result)


def test_the_message_says_what_frames_at_the_load_show_and_how_many_would_verify_it():
    said = shown(found=lacking_frames())
    assert "extrapolated: 0 of 6,000,000 frames were lost at 150.00 kfps" in said
    assert "6 times the target" in said
    assert "; another 30,000,000 frames (2 h) would verify it" in said
    assert "): regular, extrapolated: there are too few frames at the load to verify it" in said
    assert "counted frames" in said
    assert "load not contradicted" in said


def test_the_number_has_beside_it_which_losses_no_trial_would_show():
    few = {**OPEN, "unseen_burst_trials": 1.7, "unseen_burst_s": 3.4, "missing_trials": 6}
    said = shown(verified=None, statement=few)
    assert "losses that come less often than every 3.4 s may not have occurred in any of these trials" in said
    assert "; another 30,000,000 frames in 6 or more trials (2 h) would verify it" in said
    said = shown(statement={"largest_burst_frames": 105.0, "unseen_burst_trials": 29.8})
    assert "): regular, verified also in trials of 20 s" in said
    assert "unless more than 105 frames are lost at a time, less often than in one of 30 trials" in said


@pytest.mark.parametrize(
    ("long_s", "said"),
    [
        (None, "critical load (loss ratio 1e-7 in trials of 2 s):"),
        (20.0, "(loss ratio 1e-7 in trials of 2 s and 20 s):"),
    ],
)
def test_the_headline_has_the_length_of_the_trials_beyond_which_nothing_is_known(long_s, said):
    assert said in shown(long_s=long_s)
    assert ("in which a bucket or a buffer would let more through" in shown(long_s=long_s)) is (long_s is None)


def test_the_highest_verified_load_is_stated_first_with_how_rare_losses_may_be_that_were_not_seen():
    result = soak()
    said = shown()
    assert "regular, verified also in trials of 20 s; losses rarer than one in 75 s may not have been seen" in said
    assert "; to see one in 300 s, search with rarest=300 s (38 min)" in said
    assert "highest verified load" in said
    (finding,) = findings_of([result])
    assert finding.value == result.critical_load.verified
    assert any("rarer than one in 75 s" in caveat for caveat in caveats_of(finding))


def test_a_load_that_was_verified_in_short_trials_only_says_so_and_a_long_search_asks_for_no_longer_one():
    said = shown(rarest_s=400.0, long_s=None)
    assert "regular, verified in trials of 2 s only; losses rarer than one in 400 s" in said
    assert "to see one in" not in said


LOST = "at most one in 10,000,000"
UNSEEN = "losses that come less often than every 75 s may have gone unseen"


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({}, f"at 150,000 {{}}, {LOST} is lost (verified also in trials of 20 s); {UNSEEN}."),
        ({"long_s": None}, f"at 150,000 {{}}, {LOST} is lost (verified in trials of 2 s only); {UNSEEN}."),
        ({"reason": "lost once"}, f"irregular. The trials at 150,000 {{}} lost {LOST}."),
        ({"verified": None}, "not verified, because that takes more frames. The search ended at 150,000 {}."),
        (
            {"verified": None, "reason": "no load is verified"},
            "not verified, and perhaps too high. The search ended at 150,000 {}.",
        ),
    ],
    ids=["verified", "short trials", "once", "few frames", "not verified"],
)
def test_the_first_sentence_says_no_more_than_is_proved(fields, first):
    """The contradicted load is in the first sentences only if the result is regular."""
    result = soak(**fields)
    head, second, *_ = message(result).splitlines()
    assert head == f"Critical load: {first.format('frames/s of 64 B each way')}"
    is_regular = result.critical_load.reason is None
    assert (
        second == "At a load of 150,500, more than one in 10,000,000 is lost (with a certainty of 97.5 %)."
    ) is is_regular


def test_an_estimate_is_called_a_models():
    said = shown(line=conditions().rate(MEAN + 200.0), plrsearch=fitted())
    assert "by a line (a model) 150,200 fps" in said
    assert "by PLRsearch (a model) 150,000 fps" in said
    assert "its 95 % interval, from 149,000 fps" in said
    assert "(a model)" not in shown()


def test_how_frames_are_lost_and_why_the_search_ended_are_sentences_of_their_own():
    said = shown(process=("frames are lost in batches of 32 frames",), ended_by="precision")
    assert "how frames are lost frames are lost in batches of 32 frames" in said
    assert "the search ended as soon as the loads were near enough" in said
    assert "as CSIT computes it 150,000.0 fps" in shown(csit=CsitEstimate(9, MEAN, 1.0, MEAN, MEAN, 1000))


def test_a_contradicted_load_says_so():
    said = shown(verified=None, reason="no load is verified", statement={**OPEN, "verdict": Verdict.CONTRADICTED})
    assert "contradicted: 0 of 6,000,000 frames" in said

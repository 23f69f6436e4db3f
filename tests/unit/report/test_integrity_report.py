import json
from dataclasses import asdict

import pytest
import scipy
from hypothesis import given, strategies as st
from report_examples import STARTED, conditions, mrr, mrr_result

from lossratio.results.findings import doubts_of, message, provenance
from lossratio.results.frame_integrity import FrameIntegrity, integrity_of
from lossratio.results.model import TestIdentity, TestRun
from lossratio.results.note import NoteKind
from lossratio.results.trials import share_missing_in_words
from lossratio.traffic.answers import Answer
from lossratio.traffic.checks import check_at_low_rate
from lossratio.trials.counters import LatencyCounters
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

COUNTING = {"in_trials": False, "checked": ["order of latency frames"], "not_checked": ["anything in trials"]}


def seen(arrived=1000, examined=1000, duplicated=0, **other):
    counts = {"corrupted": 0, "wrong_length": 0, "misdelivered": 0, "reordered": 0}
    return FrameIntegrity(arrived, examined, duplicated, **{**counts, **other})


def result(generator=None, **counters):
    direction = DirectionCounters(
        "port0>port1", intended_frames=1000, sent_frames=1000, received_frames=1000, **counters
    )
    output = TrialOutput(0.0, sent_frames=1000, lost_frames=0, unsent_frames=0, directions=(direction,))
    entry = JournalEntry.of(TrialResult(TrialInput(1.0, 1000.0), output))
    under = conditions()
    if generator is not None:
        under = under.model_copy(update={"generator": generator})
    run = TestRun(TestIdentity(name="MRR", suite="Suite"), STARTED, STARTED, under)
    return mrr_result(run, mrr().max_load, [entry])


def doubts(of):
    return [doubt.text for doubt in doubts_of([of])[0] if doubt.kind is NoteKind.INTEGRITY]


def test_none_of_a_sample_is_a_bound_by_the_rule_of_three():
    assert seen(arrived=100_000).most(0) == 0.003
    assert seen(arrived=1000).most(0) == 0.0


def test_the_bound_of_a_sample_is_rounded_up():
    # The bound is 3 / 700 = 0.42857 %.
    folded = provenance(result(examined_frames=700))
    assert "Frames examined: 700 of 1,000 that came back. " in folded
    assert "the share of all frames with a fault is below 0.43 %." in folded


@given(faults=st.integers(1, 500), times=st.integers(2, 50))
def test_so_many_of_a_sample_are_a_bound_that_one_of_twenty_samples_breaks(faults, times):
    sample = seen(arrived=10_000 * times, examined=10_000)
    mean = 10_000 * sample.most(faults * times)
    assert scipy.stats.poisson.cdf(faults, mean) == pytest.approx(0.05, abs=1e-6)


def test_all_frames_examined_and_none_at_fault_need_no_bound():
    clean = result(examined_frames=1000, reordered_frames=4)
    examined = "Frames examined: 1,000 of 1,000 that came back. Each came back once and unchanged."
    assert examined in provenance(clean)
    assert examined not in message(clean)
    assert "Frames that arrived after a frame sent later (RFC 4737): 4 (0.4 %)." in message(clean)
    assert doubts(clean) == []


def test_faults_of_a_sample_are_a_doubt_with_their_estimate_and_bound():
    (reason,) = doubts(result(examined_frames=100, duplicated_frames=20, misdelivered_frames=10))
    assert reason.startswith("of 1,030 frames that came back, 100 were examined: 20 duplicated (about 1.942 %, at most")


@pytest.mark.parametrize(
    ("faults", "advice"),
    [
        ({"duplicated_frames": 20}, "Look for a loop, a mirror port"),
        ({"misdelivered_frames": 10}, "Look for a bridge that floods, a wrong route, or a wrong cable"),
        ({"duplicated_frames": 20, "misdelivered_frames": 10}, "Look for a bridge that floods"),
        ({"corrupted_frames": 1, "misdelivered_frames": 10}, "Look at the DUT. If it changes frames on purpose"),
    ],
)
def test_each_doubt_about_faults_says_what_to_look_for(faults, advice):
    (reason,) = doubts(result(examined_frames=1000, **faults))
    assert f". {advice}" in reason
    assert not reason.endswith(".")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("corrupted_frames", "corrupted"),
        ("wrong_length_frames", "truncated or padded"),
        ("misdelivered_frames", "misdelivered"),
    ],
)
def test_frames_that_came_back_with_a_fault_are_not_said_to_be_lost(fault, words):
    direction = DirectionCounters(
        "port0>port1", intended_frames=1000, sent_frames=1000, received_frames=100, examined_frames=1000, **{fault: 900}
    )
    output = TrialOutput(0.9, sent_frames=1000, lost_frames=900, unsent_frames=0, directions=(direction,))
    run = TestRun(TestIdentity(name="MRR", suite="Suite"), STARTED, STARTED, conditions())
    made = mrr_result(run, mrr().max_load, [JournalEntry.of(TrialResult(TrialInput(1.0, 1000.0), output))])
    said = f"90 % of the frames sent are missing (of 900 missing frames: 900 frames came back {words})."
    assert said in " ".join(message(made).split())
    assert share_missing_in_words(0.9, made.trials) == (
        f"90 % missing; of 900 missing frames: 900 frames came back {words}"
    )
    some_late = [trial.model_copy(update={"late_frames": 90}) for trial in made.trials]
    assert share_missing_in_words(0.9, some_late) == (
        f"90 % missing; of 900 missing frames: 90 frames only late, 900 frames came back {words}"
    )


def test_where_nobody_looked_nothing_is_claimed():
    counted = result()
    assert integrity_of(counted) is None
    assert "Frames examined" not in message(counted) + provenance(counted)


class Agent:
    """Answers with latency frames, of which the east has copies and the west has none at all."""

    def run(self, plan):
        east = LatencyCounters("port0>port1", 1000, 990, 3, 10, 1.0, 2.0, 3.0, 0.5, 1.0, None, hdr=None, histogram=())
        west = LatencyCounters(
            "port1>port0", 0, 0, 0, 0, None, None, None, None, 1.0, "no room", hdr=None, histogram=()
        )
        return Answer((), latency=(east, west))


def test_a_generator_that_only_counts_is_checked_by_its_latency_frames_and_the_result_says_what_was_not_checked():
    integrity = check_at_low_rate(Agent(), {"integrity": COUNTING}, idle_time=0.0)
    # A result keeps it as it is.
    assert json.loads(json.dumps(integrity)) == integrity
    (east,) = integrity["low_rate_check"]
    assert (east["examined_frames"], east["received_frames"], east["duplicated_frames"]) == (1000, 990, 10)
    checked = result(generator={"kind": "trex", "integrity": integrity})
    (reason,) = doubts(checked)
    assert "of 1,000 frames examined before the first trial: 10 duplicated (about 1 %, at most 1.7 %)" in reason
    assert "as many copies may hide lost ones" in reason
    assert "Not checked in frames that came back: anything in trials." in provenance(checked)


def test_a_generator_without_numpy_says_what_that_costs():
    said = [message(result(generator={"kind": "afpacket", "numpy": numpy})) for numpy in (None, "2.0")]
    assert ["it sends less there, and examines no frames" in text for text in said] == [True, False]


def test_a_generator_that_examines_trials_or_has_no_latency_frames_is_not_asked_for_any():
    for facts in ({"integrity": {**COUNTING, "in_trials": True}}, {"integrity": {**COUNTING, "checked": []}}):
        assert check_at_low_rate(None, facts, idle_time=0.0) == facts["integrity"]


def test_findings_of_a_check_survive_the_way_through_a_file():
    counters = DirectionCounters("port0>port1", 10, 10, 10, examined_frames=10)
    facts = {"integrity": {**COUNTING, "low_rate_check": [asdict(counters)]}}
    assert integrity_of(result(generator=facts)).before_trials

"""Late frames belong to the trial that sent them, whatever attempt they are seen in."""

import json

import pytest

from lossratio.errors import SearchError, TrafficError
from lossratio.results import describe_trials
from lossratio.traffic import Answer, TrafficMeasurer
from lossratio.trials import LateFrames, TrialInput, missing_frames, read_journal, run_search
from lossratio.trials.digest import add_digest
from lossratio.trials.journal import Journal, adopt_journal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

SENT = 1000
TRIAL = TrialInput(1.0, float(SENT))


def counters(received, late=0, unsent=0):
    sent = SENT - unsent
    return DirectionCounters("a>b", SENT, sent, received, unsent_frames=unsent, late_frames=late, elapsed_s=1.0)


class Agent:
    """Answers with given counters; None: it fails."""

    node_name = "TG"

    def __init__(self, *answers):
        self.answers = iter(answers)

    def run(self, plan):
        answer = next(self.answers)
        if answer is None:
            raise TrafficError("The agent has failed.")
        return Answer((answer,))


def test_traffic_that_belongs_to_a_trial_leaves_it_its_late_frames():
    found, other = [], []
    late = LateFrames()
    late.begin_traffic()
    with late.aside():
        late.begin_traffic()
        late.seen_since([3])
        late.begin_traffic()
    late.keep(10, found.append)
    late.begin_traffic()
    late.keep(5, other.append)
    late.seen_since([4, 2, 1])
    assert (found, other, late.total) == ([3, 1], [], 4)


class SoMany:
    """A controller that wants so many trials."""

    def __init__(self, trials):
        self.left = trials
        self.seen = []

    def next_trial(self):
        return TRIAL if self.left else None

    def record(self, result):
        self.left -= 1
        self.seen.append(result.output.late_frames)

    def result(self):
        return self.seen


def measured(path, *answers, trials):
    """The late frames of each trial of the journal, and those that the controller has seen."""
    with Journal.open(path, {}) as journal:
        measurer = TrafficMeasurer(Agent(*answers), late_frames=journal.late_frames)
        seen = run_search(SoMany(trials), measurer, journal=journal)
    return [entry.result.output.late_frames for entry in read_journal(path).entries], seen


def test_late_frames_are_those_of_the_trial_that_sent_them(tmp_path):
    answers = counters(900), counters(1000, late=70), counters(1000)
    late, seen = measured(tmp_path / "t.jsonl", *answers, trials=3)
    assert late == [70, None, None]
    # A controller decides before late frames are known. When it reads the journal, it must decide the same.
    assert seen == [None] * 3
    assert all(result.output.late_frames is None for result in read_journal(tmp_path / "t.jsonl").results)


def test_late_frames_are_known_although_the_attempt_that_saw_them_is_measured_again(tmp_path):
    # The second trial has two attempts; what the second one sees is of the first one, which does not count.
    answers = counters(900), counters(990, late=70, unsent=10), counters(1000, late=50)
    assert measured(tmp_path / "t.jsonl", *answers, trials=2)[0] == [70, None]


def test_never_more_frames_are_late_than_are_missing(tmp_path):
    assert measured(tmp_path / "t.jsonl", counters(900), counters(1000, late=170), trials=2)[0] == [100, None]
    assert measured(tmp_path / "u.jsonl", counters(1000), counters(1000, late=5), trials=2)[0] == [None, None]


def test_late_frames_of_traffic_that_is_no_trial_are_of_none(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {}) as journal:
        measurer = TrafficMeasurer(
            Agent(counters(900), counters(400), counters(1000, late=9)), late_frames=journal.late_frames
        )
        journal.append(TrialResult(TRIAL, measurer.measure(TRIAL)))
        # As connections are established: nobody keeps this one.
        measurer.measure(TRIAL)
        journal.append(TrialResult(TRIAL, measurer.measure(TRIAL)))
    assert [entry.result.output.late_frames for entry in read_journal(path).entries] == [None, None]


def test_after_a_failed_attempt_and_with_a_new_agent_nobody_takes_other_late_frames_for_those_of_a_trial(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {}) as journal:
        first = TrafficMeasurer(Agent(counters(900), None), late_frames=journal.late_frames)
        journal.append(TrialResult(TRIAL, first.measure(TRIAL)))
        with pytest.raises(TrafficError):
            first.measure(TRIAL)
        second = TrafficMeasurer(Agent(counters(1000, late=10)), late_frames=journal.late_frames)
        journal.append(TrialResult(TRIAL, second.measure(TRIAL)))
    assert [entry.result.output.late_frames for entry in read_journal(path).entries] == [None, None]


def test_late_frames_of_older_traffic_find_their_trials():
    kept, late_frames = {}, LateFrames()
    for number in range(3):
        late_frames.begin_traffic()
        late_frames.keep(10, lambda frames, number=number: kept.update({number: kept.get(number, 0) + frames}))
    late_frames.begin_traffic()
    late_frames.seen_since([1, 2, 3, 4])
    late_frames.seen_after([9, 1, 1])
    assert kept == {2: 2, 1: 3, 0: 3}
    assert late_frames.total == 8
    assert late_frames.may_come


def test_late_frames_are_no_frames_that_the_sut_lost(tmp_path):
    path = tmp_path / "t.jsonl"
    measured(path, counters(900), counters(1000, late=70), trials=2)
    first, second = describe_trials(read_journal(path).entries)
    assert (first.late_frames, second.late_frames) == (70, 0)
    assert (first.missing.late, first.missing.lost_by_sut, first.loss_ratio) == (70, 30, 0.1)
    assert missing_frames(first.as_result().output) == first.missing


def test_late_frames_of_a_trial_that_is_not_there_damage_a_journal(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {}) as journal:
        journal.append(TrialResult(TRIAL, TrialOutput(0.0)))
    for trial in (0, 2):
        last = json.loads(path.read_text().splitlines()[-1])["digest"]
        line = add_digest(json.dumps({"late": {"trial": trial, "frames": 3}}).encode(), last)[0]
        damaged = tmp_path / f"{trial}.jsonl"
        damaged.write_bytes(path.read_bytes() + line + b"\n")
        with pytest.raises(SearchError, match=rf"line 3: it counts late frames of trial {trial}, but .* number 1"):
            read_journal(damaged)


def test_late_frames_find_their_trial_behind_trials_that_are_not_used(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {}) as journal:
        journal.append(TrialResult(TRIAL, TrialOutput(0.0)), verified=False)
    assert measured(path, counters(900), counters(1000, late=70), trials=2)[0] == [70, None]
    (withdrawn,) = read_journal(path).withdrawn
    assert withdrawn.entry.result.output.late_frames is None


def test_late_frames_stay_with_trials_that_are_used_by_force(tmp_path):
    measured(tmp_path / "t.jsonl", counters(900), counters(1000, late=70), trials=2)
    adopt_journal(tmp_path / "t.jsonl", tmp_path / "adopted.jsonl", {"other": 1})
    adopted = read_journal(tmp_path / "adopted.jsonl").entries
    assert [entry.result.output.late_frames for entry in adopted] == [70, None]

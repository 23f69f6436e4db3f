from __future__ import annotations

import json
import math
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lossratio.errors import SearchError, StorageError
from lossratio.results import withdrawn_in_words
from lossratio.simulation import Device, SimulatedMeasurer
from lossratio.trials import Addition, Step
from lossratio.trials.digest import add_digest
from lossratio.trials.journal import Journal, adopt_journal
from lossratio.trials.journal_reading import UnknownJournalError, read_journal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, Incident, TrialOutput

counts = st.integers(0, 10**12)
directions = st.builds(
    DirectionCounters,
    name=st.text(max_size=20),
    intended_frames=counts,
    sent_frames=st.integers(10**12, 10**13),
    received_frames=counts,
    unsent_frames=counts,
    generator_drop_frames=counts,
    late_frames=counts,
    elapsed_s=st.none() | st.floats(0, 1e6),
    lateness_s=st.none() | st.floats(0, 1e6),
    stretch_s=st.none() | st.floats(0, 1e6),
)
optional_seconds = st.none() | st.floats(0, 1e6)


@st.composite
def outputs(draw):
    """What a measurer can answer: only a loss ratio, sums of counts, or the counters of each direction."""
    times = {"effective_duration": draw(optional_seconds), "elapsed": draw(optional_seconds)}
    counted = tuple(draw(st.lists(directions, max_size=2)))
    if not counted:
        return TrialOutput(draw(st.floats(0, 1)), forwarding_rate=draw(st.none() | st.floats(0, 1e10)), **times)
    sent, unsent = (
        sum(direction.sent_frames for direction in counted),
        sum(direction.unsent_frames for direction in counted),
    )
    lost = sent - sum(direction.received_frames for direction in counted)
    sums = {"sent_frames": sent, "lost_frames": lost, "unsent_frames": unsent}
    kept = counted if draw(st.booleans()) else ()
    return TrialOutput((lost + unsent) / (sent + unsent), directions=kept, repeats=draw(counts), **sums, **times)


results = st.builds(
    TrialResult,
    input=st.builds(TrialInput, duration=st.floats(1e-6, 1e6), load=st.floats(1e-3, 1e10)),
    output=outputs(),
)


@pytest.mark.whole
@given(st.lists(results, max_size=5))
def test_written_data_are_read_back_exactly(written):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deep" / "t.jsonl"
        with Journal.open(path, {"goals": [1, 2]}) as journal:
            for result in written:
                journal.append(result)
        contents = read_journal(path)
    assert list(contents.results) == written
    assert contents.search == {"goals": [1, 2]}


def _result(load: float) -> TrialResult:
    return TrialResult(TrialInput(1.0, load), TrialOutput(0.0))


def _journal(path: Path, *loads: float) -> None:
    with Journal.open(path, {"max_load": 5}) as journal:
        for load in loads:
            journal.append(_result(load), purpose=f"try {load:g}")


def test_a_line_cut_off_while_it_was_written_is_dropped_and_written_over(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0, 2.0)
    path.write_bytes(path.read_bytes()[:-10])
    assert [result.load for result in read_journal(path).results] == [1.0]
    _journal(path, 3.0)
    assert [result.load for result in read_journal(path).results] == [1.0, 3.0]


def _add(path: Path, found: object) -> Addition:
    addition = Addition("latency", 1, {"load_fps": 1.5}, {"found": found, "more": None})
    with Journal.reopen(path) as journal:
        journal.add(addition)
    return addition


def _loads(trials):
    return [trial.load for trial in trials]


def test_only_trials_before_the_last_proof_are_continued_adopted_and_read(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {"max_load": 5}) as journal:
        for load, verified in ((1.0, False), (2.0, True), (3.0, False), (4.0, False)):
            journal.append(_result(load), verified=verified)
    contents = read_journal(path)
    assert (_loads(contents.results), _loads(entry.result for entry in contents.unproved)) == ([1.0, 2.0], [3.0, 4.0])
    adopt_journal(path, tmp_path / "adopted.jsonl", {"max_load": 6})
    adopted = read_journal(tmp_path / "adopted.jsonl")
    assert (_loads(adopted.results), adopted.unproved) == ([1.0, 2.0], ())
    with Journal.open(path, {"max_load": 5}) as journal:
        assert _loads(journal.results) == [1.0, 2.0]
        journal.append(_result(5.0), verified=False)
    # An interrupt ended the last write in its midst.
    path.write_bytes(path.read_bytes() + b'{"input": {"du')
    for _ in range(2):
        Journal.prove(path)
    contents = read_journal(path)
    assert (_loads(contents.results), contents.unproved) == ([1.0, 2.0, 5.0], ())
    assert path.read_text().count("verification") == 1


def test_trials_that_nothing_proves_stay_in_the_journal_with_the_reason_and_are_not_used(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {"max_load": 5}) as journal:
        assert not journal.was_cut_off
        for load, verified in ((1.0, True), (2.0, False), (3.0, False)):
            journal.append(_result(load), verified=verified)
    before = path.read_bytes()
    with Journal.open(path, {"max_load": 5}) as journal:
        assert (_loads(journal.results), journal.was_cut_off) == ([1.0], True)
        journal.append(_result(4.0), verified=True)
    contents = read_journal(path)
    assert path.read_bytes().startswith(before)
    assert (_loads(contents.results), contents.unproved) == ([1.0, 4.0], ())
    assert _loads(trial.entry.result for trial in contents.withdrawn) == [2.0, 3.0]
    assert {trial.reason for trial in contents.withdrawn} == {"the run was cut off before the devices were checked"}
    (words,) = withdrawn_in_words(contents)
    assert words.startswith("2 trials kept but not used: the run was cut off")
    Journal.withdraw(path, 2, "the generator was starved")
    reasons = [trial.reason[:13] for trial in read_journal(path).withdrawn]
    assert reasons == ["the generator", "the run was c", "the run was c", "the generator"]


def test_more_trials_than_there_are_cannot_be_withdrawn(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    with pytest.raises(SearchError, match="A withdrawal needs at least one trial, not 0"):
        Journal.withdraw(path, 0, "none")
    with pytest.raises(SearchError, match="uses 1 trial, so 2 cannot be withdrawn"):
        Journal.withdraw(path, 2, "too many")
    Journal.withdraw(path, 1, "cut off")
    with pytest.raises(SearchError, match=r"so 1 cannot be withdrawn\. There is nothing to"):
        Journal.withdraw(path, 1, "too many")
    _journal(path, 1.0)
    last = json.loads(path.read_text().splitlines()[-1])["digest"]
    line = add_digest(b'{"withdrawal": {"trials": 2, "reason": "too many"}}', last)[0]
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(SearchError, match="line 5: 2 trials are withdrawn, but only 1 came before"):
        read_journal(path)


def test_trials_are_proved_before_one_during_which_their_proof_would_be_due(tmp_path):
    """A host that dies in each long trial would not get on otherwise."""
    path, looks = tmp_path / "t.jsonl", []

    def verify_within(seconds):
        looks.append(seconds)
        return seconds > 20.0

    with Journal.open(path, {}) as journal:
        journal.verify_within = verify_within
        journal.prove_before(TrialInput(60.0, 1.0))
        for duration in (1.0, 2.0):
            journal.append(_result(1.0), verified=False)
            journal.prove_before(TrialInput(duration, 1.0))
        assert len(read_journal(path).unproved) == 2
        journal.prove_before(TrialInput(15.0, 1.0, rest=6.0))
    contents = read_journal(path)
    assert (len(contents.entries), contents.unproved, looks) == (2, (), [1.0, 2.0, 21.0])


def test_what_is_measured_after_a_search_is_kept(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {"max_load": 5}, {"test": "a"}) as journal:
        journal.append(_result(1.0))
    first = _add(path, 2)
    path.write_bytes(path.read_bytes() + b'{"addition": {"part": "la')
    second = _add(path, 3)
    contents = read_journal(path)
    assert (contents.additions, contents.about) == ((first, second), {"test": "a"})
    assert [result.load for result in contents.results] == [1.0]


def test_what_could_not_be_read_again_is_not_added(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    before = path.read_bytes()
    with pytest.raises(SearchError, match=r"latency after the search cannot be stored: .*NaN"):
        _add(path, math.nan)
    assert path.read_bytes() == before


def test_additions_belong_to_the_search_that_they_followed(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    _add(path, 1)
    whole = path.read_bytes()
    adopt_journal(path, path, {"max_load": 6})
    contents = read_journal(path)
    assert ([result.load for result in contents.results], contents.additions) == ([1.0], ())
    assert [copy.read_bytes() for copy in tmp_path.glob("*.before-force-*")] == [whole]


def test_a_journal_that_another_process_writes_is_not_replaced(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    with Journal.open(path, {"max_load": 5}) as journal:
        whole = path.read_bytes()
        with pytest.raises(SearchError, match="Another process is writing the journal"):
            adopt_journal(path, path, {"max_load": 6})
        assert path.read_bytes() == whole
        assert [one.name for one in tmp_path.iterdir()] == ["t.jsonl"]
        journal.append(_result(2.0))
    adopt_journal(path, path, {"max_load": 6})
    assert [result.load for result in read_journal(path).results] == [1.0, 2.0]


def test_a_header_cut_off_while_it_was_written_starts_the_journal_anew(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path)
    path.write_bytes(path.read_bytes()[:20])
    _journal(path, 1.0)
    assert [result.load for result in read_journal(path).results] == [1.0]


def test_a_journal_of_another_search_is_refused_and_the_difference_named(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    with pytest.raises(SearchError, match="max_load was 5, now 6"):
        Journal.open(path, {"max_load": 6})
    assert len(read_journal(path).results) == 1


ONE_WAY = '{"name": "port0>port1", "intended_frames": 10, "sent_frames": 10, "received_frames": 9}'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("not json", "not a trial"),
        ("[]", "not a trial"),
        ('{"input": {}}', "not a trial"),
        ("{}", "input: missing; output: missing"),
        ('{"verification": {}}', "verification.time: missing"),
        ('{"verified": 1, "input": {}, "output": {}}', "verified: must be true or false, not 1"),
        ('{"input": {"duration": 1, "load": 1, "lead": 1}, "output": {}}', "input.lead: unknown"),
        ('{"input": {"duration": 1, "load": 1e999}, "output": {}}', "input.load: must be a finite number, not inf"),
        ('{"input": {"duration": -1, "load": 1}, "output": {"loss_ratio": 0}}', "not a trial"),
        ('{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": NaN}}', "not a trial"),
        (
            '{"input": {"duration": 1, "load": true}, "output": {"loss_ratio": 0}}',
            "input.load: must be a number, not True",
        ),
        (
            '{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": "0"}}',
            "output.loss_ratio: must be a number, not '0'",
        ),
        (
            '{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": 0, "sent_frames": "5"}}',
            "output.sent_frames: must be a whole number, not '5'",
        ),
        (
            '{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": 0, "repeats": true}}',
            "repeats: must be a whole number, not True",
        ),
        (
            '{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": 0, "sent_frames": -5}}',
            "output.sent_frames: must be at least 0, not -5",
        ),
        (
            '{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": 0, "sent_frames": 9, "lost_frames": 1}}',
            "loss_ratio is 0.0, but the counted frames give 0.11",
        ),
        (
            f'{{"input": {{"duration": 1, "load": 1}}, "output": {{"loss_ratio": 0.1, "lost_frames": 2, '
            f'"directions": [{ONE_WAY}]}}}}',
            "lost_frames is 2, but the directions' counters add up to 1",
        ),
        (
            f'{{"input": {{"duration": 1, "load": 1}}, "output": {{"loss_ratio": 0, "directions": [{ONE_WAY}]}}}}',
            "loss_ratio is 0.0, but the counted frames give 0.1",
        ),
    ],
)
def test_a_line_that_cannot_be_true_is_named_with_its_number(tmp_path, line, problem):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    *_, last = path.read_text().splitlines()
    # A digest that fits, so that it is the line's contents that are refused.
    line = add_digest(line.encode() if line.endswith("}") else b"[1}", last[-34:-2])[0].decode()
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(SearchError, match=rf"t\.jsonl, line 3: .*{problem}.*lossratio archive repair"):
        read_journal(path)


@pytest.mark.whole
def test_no_flip_of_a_bit_is_accepted(tmp_path):
    path = tmp_path / "t.jsonl"
    with Journal.open(path, {"max_load": 5}) as journal:
        journal.append(_result(1.0), verified=False)
    Journal.prove(path)
    _add(path, 1)
    whole, flipped = path.read_bytes(), tmp_path / "flipped.jsonl"
    for place in range(len(whole)):
        # Another bit of each byte: a checksum knows no difference between them.
        flipped.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(SearchError, match=r"flipped\.jsonl, line [1-5]: .*The journal is damaged there"):
            read_journal(flipped)


@pytest.mark.parametrize("order", [[0, 2, 3], [0, 1, 1, 2, 3], [0, 2, 1, 3], [1, 2, 3], [0, 1, 3, 2]])
def test_missing_doubled_and_swapped_lines_are_noticed(tmp_path, order):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0, 2.0, 3.0)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[place] for place in order))
    with pytest.raises(SearchError, match=r"digest does not match|not a journal"):
        read_journal(path)


def test_lines_of_another_journal_are_noticed(tmp_path):
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.jsonl"
    _journal(mine, 1.0, 2.0)
    with Journal.open(other, {"max_load": 6}) as journal:
        journal.append(_result(1.0))
        journal.append(_result(2.0))
    lines = [path.read_text().splitlines(keepends=True) for path in (mine, other)]
    mine.write_text("".join([*lines[0][:2], lines[1][2]]))
    with pytest.raises(SearchError, match="line 3: its digest does not match: the line was changed after"):
        read_journal(mine)


def test_the_chain_goes_on_after_whatever_happens_to_a_journal(tmp_path):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0, 2.0)
    path.write_bytes(path.read_bytes()[:-10])
    _journal(path, 3.0)
    with Journal.open(path, {"max_load": 5}) as journal:
        journal.append(_result(4.0), verified=False)
    _journal(path, 5.0)
    adopt_journal(path, path, {"max_load": 6})
    with Journal.open(path, {"max_load": 6}) as journal:
        journal.append(_result(6.0))
    assert [result.load for result in read_journal(path).results] == [1.0, 3.0, 5.0, 6.0]


def test_trials_that_are_not_adopted_stay_in_a_copy(tmp_path):
    path = tmp_path / "t.jsonl"
    limits = {"min_load_fps": 0.0, "max_load_fps": 2.0}
    with Journal.open(path, {**limits, "max_load_fps": 5.0}) as journal:
        for load in (1.0, 2.0, 3.0):
            journal.append(_result(load))
    contents = path.read_bytes()
    for _ in range(2):
        adopt_journal(path, path, limits)
        assert [result.load for result in read_journal(path).results] == [1.0, 2.0]
        assert [copy.read_bytes() for copy in tmp_path.glob("*.before-force-*")] == [contents]


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (TrialOutput(0.0, sent_frames=100, lost_frames=1), "loss_ratio is 0.0, but the counted frames give 0.01"),
        (TrialOutput(0.0, forwarding_rate=math.inf), "Infinity is not a number"),
    ],
)
def test_outputs_that_could_not_be_read_again_are_never_written(tmp_path, output, problem):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    with Journal.open(path, {"max_load": 5}) as journal:
        with pytest.raises(
            SearchError, match=rf"answer at 100 frames/s cannot be stored: .*{problem}.* Correct the mea"
        ):
            journal.append(TrialResult(TrialInput(1.0, 100.0), output))
        journal.append(_result(2.0))
    assert [result.load for result in read_journal(path).results] == [1.0, 2.0]


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"format": "other"}) + "\n")
    with pytest.raises(UnknownJournalError, match="not a journal"):
        read_journal(path)
    with pytest.raises(SearchError, match="Cannot read the journal"):
        read_journal(tmp_path / "missing.jsonl")


def test_repairs_are_kept(tmp_path):
    repaired = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0, repairs=("Node TG: the connection was lost.",)))
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        journal.append(repaired)
    assert read_journal(tmp_path / "journal.jsonl").results == (repaired,)


def test_changes_of_the_testbed_are_kept(tmp_path):
    incidents = (
        Incident("TG", "TG", "tg0", "interface tg0 of TG was set down", "repaired"),
        Incident("controller", "the controller", None, "the controller was suspended for 3.0 s", "stands"),
    )
    result = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0, incidents=incidents))
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        journal.append(result)
    assert read_journal(tmp_path / "journal.jsonl").results == (result,)


def test_bursts_and_schedules_are_kept_with_their_timelines(tmp_path):
    sut = Device(capacity=100e3, downtime=0.5, resets=(2.5,))
    measurer = SimulatedMeasurer(sut, seed=1, directions=2)
    trials = (TrialInput.burst(50, 7e4), TrialInput.schedule(Step(2.0, 55e3), Step(3.0, 27e3)))
    results = tuple(TrialResult(trial, measurer.measure(trial)) for trial in trials)
    assert results[1].output.timelines[0].outages
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        for result in results:
            journal.append(result)
    assert read_journal(tmp_path / "journal.jsonl").results == results


def test_other_trials_are_written_as_in_earlier_versions(tmp_path):
    _journal(tmp_path / "journal.jsonl", 5.0)
    line = json.loads((tmp_path / "journal.jsonl").read_text().splitlines()[1])
    assert list(line["input"]) == ["duration", "load"]


@contextmanager
def little_room():
    """Files may grow to 1,000 bytes, as if the disk were full then; also those that pytest writes, so not for long."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def append_forever(journal, result):
    while True:
        journal.append(result)


def test_a_full_disk_is_one_clear_error_and_what_was_written_stays(tmp_path):
    path = tmp_path / "journal.jsonl"
    result = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0))
    message = r"Cannot write to the journal .*: File too large\. .*resume the run"
    with Journal.open(path, {}) as journal, pytest.raises(StorageError, match=message), little_room():
        append_forever(journal, result)
    assert 1 < len(read_journal(path).results) < 20


def test_a_journal_that_cannot_be_begun_is_an_error_of_the_disk(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"Cannot open the journal .*file/journal\.jsonl: (Not a dir|File exists)"):
        Journal.open(tmp_path / "file" / "journal.jsonl", {})


def test_early_verdicts_are_kept_and_contradictions_in_them_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    direction = DirectionCounters("a>b", intended_frames=1000, sent_frames=250, received_frames=240)
    counted = {"sent_frames": 250, "lost_frames": 10, "unsent_frames": 0, "directions": (direction,)}
    ended = TrialResult(TrialInput(1.0, 1000.0, certain_above=0.005), TrialOutput(0.01, decided_after=0.25, **counted))
    whole = TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.5))
    with Journal.open(path, {}) as journal:
        journal.append(ended)
        journal.append(whole)
        with pytest.raises(SearchError, match=r"loss_ratio is 0\.04, but the counted frames give 0\.01"):
            journal.append(TrialResult(ended.input, TrialOutput(0.04, decided_after=0.25, **counted)))
    assert read_journal(path).results == (ended, whole)
    assert "certain_above" not in path.read_text().splitlines()[2]

from __future__ import annotations

import json
import resource
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossratio.errors import SearchError, StorageError
from lossratio.journal import Journal, read_journal
from lossratio.trial import DirectionCounters, TrialInput, TrialOutput, TrialResult

counts = st.integers(0, 10**12)
directions = st.builds(
    DirectionCounters,
    name=st.text(max_size=20),
    intended=counts,
    sent=counts,
    received=counts,
    unsent=counts,
    generator_drops=counts,
    late=counts,
    elapsed=st.none() | st.floats(0, 1e6),
)
results = st.builds(
    TrialResult,
    input=st.builds(TrialInput, duration=st.floats(1e-6, 1e6), load=st.floats(1e-3, 1e10)),
    output=st.builds(
        TrialOutput,
        loss_ratio=st.floats(0, 1),
        effective_duration=st.none() | st.floats(0, 1e6),
        elapsed=st.none() | st.floats(0, 1e6),
        forwarding_rate=st.none() | st.floats(0, 1e10),
        sent_frames=st.none() | counts.filter(bool),
        lost_frames=st.none() | st.integers(-(10**6), 10**12),
        unsent_frames=st.none() | counts,
        directions=st.lists(directions, max_size=2).map(tuple),
    ),
)


@given(st.lists(results, max_size=5))
def test_what_was_written_is_read_back_exactly(written):
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


def test_what_was_appended_can_be_withdrawn_and_what_was_there_before_stays(tmp_path):
    path = tmp_path / "t.jsonl"
    for earlier in ([], [1.0]):
        _journal(path, *earlier)
        with Journal.open(path, {"max_load": 5}) as journal:
            journal.append(_result(2.0))
            journal.append(_result(3.0))
        journal.withdraw()
        assert [result.load for result in read_journal(path).results] == earlier


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


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("not json", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"input": {}}', "not a trial"),
        ("{}", "not a trial"),
        ('{"input": {"duration": -1, "load": 1}, "output": {"loss_ratio": 0}}', "not a trial"),
        ('{"input": {"duration": 1, "load": 1}, "output": {"loss_ratio": NaN}}', "not a trial"),
    ],
)
def test_a_damaged_line_is_named_with_its_number(tmp_path, line, problem):
    path = tmp_path / "t.jsonl"
    _journal(path, 1.0)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(SearchError, match=f"line 3: {problem}"):
        read_journal(path)


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"format": "other"}) + "\n")
    with pytest.raises(SearchError, match="not a journal"):
        read_journal(path)
    with pytest.raises(SearchError, match="Cannot read the journal"):
        read_journal(tmp_path / "missing.jsonl")


def test_repairs_are_kept(tmp_path):
    repaired = TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0, repairs=("Node TG: the connection was lost.",)))
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        journal.append(repaired)
    assert read_journal(tmp_path / "journal.jsonl").results == (repaired,)


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

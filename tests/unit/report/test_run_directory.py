import os
import re

import pytest
from hypothesis import given, strategies as st
from report_examples import as_json, mrr, throughput, with_digest

from lossratio.errors import ReportError, StorageError
from lossratio.results.run_directory import RunDirectory, file_stem, read_result
from lossratio.trials.journal import Journal

NAMES = st.text(st.sampled_from("aA1 _-.~/\\%äµ\n\0"), max_size=8) | st.text(max_size=400)


@pytest.fixture(scope="module")
def result():
    return throughput()


@pytest.mark.whole
@given(st.lists(NAMES, min_size=2, max_size=20, unique=True))
def test_no_two_names_share_a_file(names):
    assert len({file_stem(name) for name in names}) == len(names)


@given(NAMES)
def test_a_file_name_is_safe_everywhere(name):
    stem = file_stem(name)
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", stem)
    assert not stem.startswith((".", "-"))
    assert len(f".{stem}.json.part") < 150


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("Performance.Linux Bridge.64B-1c-eth-l2bdbase-ndrpdr", "Performance.Linux_Bridge.64B-1c-eth-l2bdbase-ndrpdr"),
        ("../etc/passwd", "etc_passwd~d6ec7f2ba55a"),
        ("IMIX_v4_1", "IMIX_v4_1~6fb3e3dc2bb0"),
    ],
)
def test_file_names_are_readable(name, stem):
    assert file_stem(name).partition("~")[0] == stem.partition("~")[0]
    assert ("~" in file_stem(name)) == ("~" in stem)


def test_written_data_are_read_back(tmp_path, result):
    run = RunDirectory(tmp_path / "run")
    path = run.write(result)
    assert path == tmp_path / "run" / "results" / "Performance.Linux_Bridge.64B-1c-eth-l2bdbase-ndrpdr.json"
    assert read_result(path) == result
    assert run.results() == (result,)


def test_all_results_of_a_run_come_in_the_order_of_the_tests(tmp_path, result):
    run = RunDirectory(tmp_path)
    later = mrr()
    run.write(later)
    earlier = result.model_copy(update={"started": result.started.replace(year=2025)})
    run.write(earlier)
    assert run.results() == (earlier, later)


def test_the_journal_of_a_test_is_beside_its_result(tmp_path, result):
    path = RunDirectory(tmp_path).journal_path(result.test.full_name)
    Journal.open(path, {}).close()
    assert path.parent == tmp_path / "trials"
    assert path.stem == RunDirectory(tmp_path).result_path(result.test.full_name).stem


def test_a_result_replaces_an_earlier_one_and_leaves_nothing_else(tmp_path, result):
    run = RunDirectory(tmp_path)
    run.write(result)
    run.write(throughput(error="agent lost"))
    assert [result.error for result in run.results()] == ["agent lost"]
    assert len(os.listdir(tmp_path / "results")) == 1


def test_a_result_that_cannot_be_written_leaves_the_earlier_one(tmp_path, result, monkeypatch):
    run = RunDirectory(tmp_path)
    path = run.write(result)
    monkeypatch.setattr(os, "fsync", no_space_left)
    with pytest.raises(StorageError, match=r"No space left on device.*trials are in the journal .*trials"):
        run.write(throughput(error="agent lost"))
    assert read_result(path) == result
    assert len(os.listdir(path.parent)) == 1


def no_space_left(handle):
    raise OSError(28, os.strerror(28))


def test_a_directory_that_cannot_be_made_is_an_error_that_says_where(tmp_path, result):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"Cannot write the result of .*/file/results/.*: Not a directory"):
        RunDirectory(tmp_path / "file").write(result)


def test_a_missing_result_is_named(tmp_path):
    with pytest.raises(ReportError, match=r"nothing\.json: No such file"):
        read_result(tmp_path / "nothing.json")


def test_a_directory_without_results_is_not_that_of_a_run(tmp_path):
    with pytest.raises(ReportError, match="is not the directory of a run"):
        RunDirectory(tmp_path).results()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: {"goals": 5}, "is not a result: its 'format' is None"),
        (lambda data: {"format": "lossratio-topology/1"}, "is not a result: its 'format' is 'lossratio-topology/1'"),
        (
            lambda data: {**data, "format": "lossratio-result/3"},
            "in the format 'lossratio-result/3', which this version",
        ),
        (lambda data: {**data, "format": "lossratio-result/1"}, "its 'format' is 'lossratio-result/1', not"),
        (lambda data: {**data, "kind": "telemetry"}, "'telemetry'"),
        (lambda data: {**data, "remark": "fine"}, "throughput.remark: unknown field"),
        (lambda data: {**data, "goals": 5}, "throughput.goals"),
    ],
)
def test_a_file_that_is_no_result_is_refused_with_the_reason(tmp_path, result, change, complaint):
    path = tmp_path / "a.json"
    path.write_bytes(with_digest(change(as_json(result))))
    with pytest.raises(ReportError, match=re.escape(complaint)) as caught:
        read_result(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", [b"", b'{"format": "lossratio-res', b"\xff\xfe"])
def test_a_damaged_file_is_said_to_be_damaged(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(ReportError, match=r"a\.json is damaged"):
        read_result(path)

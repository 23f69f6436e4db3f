"""No result and no journal takes the place of another one, and what belongs together is one run."""

from __future__ import annotations

import os
import stat

import pytest
from measurement_examples import PROFILE, place, policed

from lossratio.errors import ReportError, SearchError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.report import write_report
from lossratio.report.run import read_run, runs_in
from lossratio.results.model import TestIdentity
from lossratio.results.note import noted
from lossratio.results.run_directory import RunDirectory, read_result, write_whole
from lossratio.trials import TrialInput, TrialOutput, TrialResult, journal
from lossratio.trials.journal import Journal, is_being_written
from lossratio.trials.journal_reading import read_journal

TEST = TestIdentity(name="a test", suite="a suite")


def measure(directory, name="a test"):
    return measure_mrr(policed(police="50 kfps"), MrrRequest(profile=PROFILE, trials=2), place(directory, name))


def test_a_journal_has_one_writer(tmp_path):
    path = tmp_path / "one.jsonl"
    with Journal.open(path, {}):
        assert is_being_written(path)
        for begin in (Journal.open, Journal.begin):
            with pytest.raises(SearchError, match="Another process is writing the journal"):
                begin(path, {})
    assert not is_being_written(path)
    assert read_journal(path).entries == ()


def test_files_of_an_earlier_run_in_the_same_directory_are_kept(tmp_path):
    first, second, third = (measure(tmp_path) for _ in range(3))
    directory = RunDirectory(tmp_path)
    assert directory.results() == (third,)
    kept = sorted(path.name for path in (tmp_path / "earlier").iterdir())
    assert kept == [f"a_suite.a_test.{number}.{suffix}" for number in (1, 2) for suffix in ("json", "jsonl")]
    results = [read_result(tmp_path / "earlier" / f"a_suite.a_test.{number}.json") for number in (1, 2)]
    assert results == [first, second]


def test_the_result_of_a_script_that_ended_at_the_same_moment_is_kept(tmp_path):
    directory = RunDirectory(tmp_path)
    first = measure(tmp_path / "first").model_copy(update={"remarks": (noted("of the first script"),)})
    second = measure(tmp_path / "second")
    for result in (first, second):
        # Neither has seen anything of the other one when it looked, before its first trial.
        directory.write(result)
    assert directory.results() == (second,)
    (kept,) = (tmp_path / "earlier").iterdir()
    assert read_result(kept) == first


def test_what_is_added_to_a_result_takes_the_place_of_the_result_alone(tmp_path):
    directory = RunDirectory(tmp_path)
    result = measure(tmp_path)
    more = result.model_copy(update={"remarks": (noted("latency was not measured"),)})
    directory.write(more)
    assert directory.results() == (more,)
    assert not (tmp_path / "earlier").exists()
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["a_suite.a_test.json"]


def test_results_are_kept_where_the_file_system_has_no_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    first, second = (measure(tmp_path / name) for name in ("first", "second"))
    directory = RunDirectory(tmp_path)
    for result in (first, second):
        directory.write(result)
    assert directory.results() == (second,)
    assert len(list((tmp_path / "earlier").iterdir())) == 1


def test_a_test_that_another_process_measures_now_is_not_begun(tmp_path):
    directory = RunDirectory(tmp_path)
    with (
        Journal.open(directory.journal_path(TEST.full_name), {}),
        pytest.raises(SearchError, match=r"Another process is writing the results of a suite\.a test to"),
    ):
        directory.keep_earlier(TEST.full_name)
    assert directory.journal_path(TEST.full_name).exists()


def test_a_test_that_another_run_has_claimed_is_not_measured_until_that_run_ends(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    claim = directory.claim(TEST.full_name)
    with pytest.raises(
        SearchError, match=r"Another process is writing the results of a suite\.a test to .*--outputdir DIR"
    ):
        directory.claim(TEST.full_name)
    other = directory.claim("a suite.another test")
    claim.release()
    directory.claim(TEST.full_name).release()
    other.release()
    assert list(directory.path.iterdir()) == []


def test_the_claim_of_a_process_that_was_killed_keeps_nobody_out(tmp_path):
    directory = RunDirectory(tmp_path)
    claim = directory.claim(TEST.full_name)
    os.close(claim.file)
    directory.claim(TEST.full_name).release()


def test_a_journal_that_another_process_begins_at_the_same_moment_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "one.jsonl"
    lock = journal._locked

    def lock_a_moment_later(path, mode):
        monkeypatch.setattr(journal, "_locked", lock)
        Journal.open(path, {"of": "the other one"}).close()
        return lock(path, mode)

    monkeypatch.setattr(journal, "_locked", lock_a_moment_later)
    with pytest.raises(SearchError, match="Another process is writing the journal"):
        Journal.open(path, {})
    assert read_journal(path).search == {"of": "the other one"}


def test_trials_that_another_process_adds_at_the_same_moment_are_kept(tmp_path, monkeypatch):
    path = tmp_path / "one.jsonl"
    Journal.open(path, {}).close()
    read = journal.read_journal

    def read_a_moment_earlier(path):
        contents = read(path)
        monkeypatch.setattr(journal, "read_journal", read)
        with Journal.open(path, {}) as other:
            other.append(TrialResult(TrialInput(1.0, 100.0), TrialOutput(0.0)))
        return contents

    monkeypatch.setattr(journal, "read_journal", read_a_moment_earlier)
    with pytest.raises(SearchError, match="Another process is writing the journal"):
        Journal.open(path, {})
    assert len(read_journal(path).results) == 1


def test_the_processes_of_a_parallel_runner_are_one_run(tmp_path):
    for number, name in enumerate(("one", "two")):
        measure(tmp_path / "pabot_results" / str(number), name)
    assert runs_in(tmp_path) == [tmp_path]
    run = read_run(tmp_path)
    assert [result.test.name for result in run.results] == ["one", "two"]
    assert run.lacks == ()


@pytest.mark.parametrize("name", ["trials/a_suite.a_test.jsonl", "results/a_suite.a_test.json"])
def test_a_report_takes_the_place_of_nothing_that_was_measured(tmp_path, name):
    measure(tmp_path)
    before = (tmp_path / name).read_bytes()
    with pytest.raises(ReportError, match=r"is of the format lossratio-.*, and a report would replace it\."):
        write_report(tmp_path / name, "a report")
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<?xml version="1.0" encoding="UTF-8"?>\n<robot generator="Robot 7.3" schemaversion="5">\n', "the output"),
        ("*** Settings ***\nDocumentation    A report is no test.\n", "a suite"),
    ],
)
def test_a_report_replaces_no_output_and_no_suite_of_robot_framework(tmp_path, text, kind):
    path = tmp_path / "of-robot"
    path.write_text(text)
    with pytest.raises(ReportError, match=f"is {kind} of Robot Framework, and a report would replace it"):
        write_report(path, "a report")
    assert path.read_text() == text


def test_a_report_is_replaced_by_the_next_one_and_a_link_to_it_stays(tmp_path):
    (tmp_path / "link").symlink_to("report.json")
    for text in ('{"format": "lossratio-report/1"}', "the next one"):
        write_report(tmp_path / "link", text)
        assert (tmp_path / "report.json").read_text() == text
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_user_wants_and_a_replaced_one_keeps_its_own(tmp_path, umask, mode):
    path = tmp_path / "report.json"
    earlier = os.umask(umask)
    try:
        write_whole(path, b"a report")
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.chmod(0o640)
        write_whole(path, b"the next one")
    finally:
        os.umask(earlier)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() == b"the next one"
    assert [one.name for one in tmp_path.iterdir()] == ["report.json"]


def test_what_is_written_to_a_pipe_does_not_take_the_place_of_the_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        write_whole(tmp_path / "pipe", b"a report")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"a report")
    assert os.read(reader, 100) == b"a report"
    os.close(reader)

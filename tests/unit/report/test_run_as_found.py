import json
from pathlib import Path

import pytest
from report_examples import as_json, mrr, throughput

from lossratio.errors import ReportError
from lossratio.report.page import report_page
from lossratio.report.run import read_run, runs_in
from lossratio.results.run_directory import RunDirectory
from lossratio.trials.journal import Journal


@pytest.fixture
def run(tmp_path):
    directory = RunDirectory(tmp_path / "nightly")
    directory.write(mrr())
    return directory


def cut_off(run, result, trials, warm_up=None):
    """A journal of the first trials of a search, as a run that was killed leaves it."""
    search = {
        "algorithm": "MLRsearch",
        "goals": [as_json(result)["goals"][index]["goal"] for index in range(len(result.goals))],
        "settings": {"warm_up_duration_s": warm_up},
    }
    with Journal.open(run.journal_path("Suite.killed"), search) as journal:
        for trial in result.trials[:trials]:
            journal.append(trial.as_result())


def test_a_run_that_is_whole_has_no_problems(run):
    read_again = read_run(run.path)
    assert not read_again.lacks
    assert [result.test.name for result in read_again.results] == ["64B-1c-eth-l2bdbase-mrr"]
    assert read_again.doubts == ((),)


def test_a_run_that_was_cut_off_is_reported_as_far_as_it_goes(run):
    cut_off(run, throughput(), 12)
    (test,) = read_run(run.path).having("cut off")
    assert (test.full_name, test.trials) == ("Suite.killed", 12)
    assert test.reason.endswith("12 trials of it; the last one: 150.52 kfps for 1 s, loss 0.3475 %")
    assert test.known == (
        "NDR: so far 149.77 to 150.52 kfps per interface, not proved",
        "PDR: so far 150.52 to 151.28 kfps per interface, not proved",
    )
    page = report_page([read_run(run.path)], "nightly")
    assert "nightly is incomplete" in page
    assert "Suite.killed" in page


def test_a_last_line_that_was_cut_off_is_left_out(run):
    cut_off(run, throughput(), 3)
    path = run.journal_path("Suite.killed")
    path.write_bytes(path.read_bytes()[:-20])
    assert read_run(run.path).without_result[0].trials == 2


def test_a_run_that_was_killed_before_its_first_result_is_reported(tmp_path):
    directory = RunDirectory(tmp_path)
    cut_off(directory, throughput(), 0)
    run = read_run(tmp_path)
    assert (run.results, run.without_result[0].trials, run.without_result[0].known) == ((), 0, ())


def test_a_damaged_file_is_named_and_the_rest_goes_on(run):
    (run.path / "results" / "half.json").write_text('{"format": "lossratio-res')
    newer = as_json(throughput()) | {"format": "lossratio-result/3"}
    (run.path / "results" / "newer.json").write_text(json.dumps(newer))
    (run.path / "trials").mkdir()
    (run.path / "trials" / "bad.jsonl").write_text("{}\n")
    read_again = read_run(run.path)
    assert len(read_again.results) == 1
    half, newer, journal = read_again.problems
    assert "half.json is damaged" in half
    assert "newer.json in the format 'lossratio-result/3'" in newer
    assert "bad.jsonl, line 1: this is not a journal" in journal


def test_a_damaged_journal_of_a_result_is_named_and_the_result_is_reported(run):
    cut_off(run, throughput(), 3)
    journal = run.journal_path("Suite.killed").rename(run.journal_path(mrr().test.full_name))
    assert not read_run(run.path).lacks
    begin, first, *others = journal.read_bytes().splitlines(keepends=True)
    changed = first.replace(b"150", b"151", 1)
    assert changed != first
    journal.write_bytes(b"".join([begin, changed, *others]))
    read_again = read_run(run.path)
    (problem,) = read_again.lacks
    assert f"{journal}, line 2" in problem
    assert len(read_again.results) == 1


def test_a_path_that_is_no_run_directory_is_refused(tmp_path):
    with pytest.raises(ReportError, match="is not the directory of a run"):
        read_run(tmp_path)
    with pytest.raises(ReportError, match="is not the directory of a run"):
        read_run(tmp_path / "missing")


def test_a_directory_whose_results_are_a_run_is_a_folder_of_runs(tmp_path):
    """`lossratio init LAB` measures into LAB/results, and `lossratio run` into results/NAME."""
    RunDirectory(tmp_path / "lab" / "results").write(mrr())
    (tmp_path / "lab" / "results" / "run.json").write_text("{}")
    assert runs_in(tmp_path / "lab") == [tmp_path / "lab" / "results"]
    with pytest.raises(ReportError, match=rf"Name one that is in it: {tmp_path}/lab/results\.$"):
        read_run(tmp_path / "lab")
    for number in range(5):
        RunDirectory(tmp_path / "here" / "results" / f"night-{number}").write(mrr())
    assert len(runs_in(tmp_path / "here")) == len(runs_in(tmp_path / "here" / "results")) == 5
    with pytest.raises(ReportError, match=r"night-0, .+night-1, .+night-2, and 2 more\.$"):
        read_run(tmp_path / "here")


def test_what_is_no_run_is_said_to_be_missing_or_empty(tmp_path):
    with pytest.raises(ReportError, match="there is no such directory"):
        runs_in(tmp_path / "missing")
    with pytest.raises(ReportError, match="no directory 'results' or 'trials', and neither has any folder in it"):
        runs_in(tmp_path)


def test_an_empty_run_is_not_mistaken_for_the_directory_above(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReportError, match=r"Nothing to report in \.: it has no results and no journals\.$"):
        read_run(Path())


def test_a_run_of_damaged_files_only_is_refused_with_their_names(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.json").write_text("")
    with pytest.raises(ReportError, match=r"Nothing to report in .*a\.json is damaged"):
        read_run(tmp_path)


@pytest.mark.parametrize("other", ["nightly", "./nightly", "link", "."])
def test_a_run_is_not_compared_with_itself(run, lossratio, tmp_path, other):
    (tmp_path / "link").symlink_to("nightly")
    refused = lossratio("compare", "nightly", other)
    assert refused.status == 2
    assert "are the same. Name earlier runs first, and later runs second." in refused.err

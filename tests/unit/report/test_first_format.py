"""What 0.3.0 wrote is the first format that is kept: each later version reads it, and goes on with it."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lossratio.report.history.analysis import add_runs
from lossratio.report.history.store import History
from lossratio.results import RunDirectory, read_result
from lossratio.trials import read_journal

RUN = Path(__file__).parents[1] / "data" / "0.3.0"
RESULTS = sorted((RUN / "results").glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_of_0_3_0_is_read_with_the_trials_of_its_journal(path, tmp_path):
    result = read_result(path)
    assert result.conditions.controller.lossratio_version == "0.3.0"
    assert read_result(RunDirectory(tmp_path).write(result)) == result
    if result.kind != "reconfiguration":
        # It cannot be resumed, and its search has a journal of its own.
        journal = read_journal(RUN / "trials" / f"{path.stem}.jsonl")
        # Only a journal says whether a trial may keep unsent frames.
        asked = [replace(one.input, keeps_unsent=False) for one in journal.results]
        assert [trial.as_result().input for trial in result.trials] == asked


def test_there_are_results_of_0_3_0():
    assert {read_result(path).kind for path in RESULTS} == {
        "frame_loss",
        "mrr",
        "reconfiguration",
        "soak",
        "throughput",
    }


@pytest.mark.whole
def test_a_history_of_0_3_0_is_read_and_has_the_run_already(tmp_path):
    history = History(Path(shutil.copytree(RUN / "history", tmp_path / "history")))
    before = history.read()
    assert (before.problems, len(before.table)) == ((), 10)
    add_runs(history, [RUN])
    assert history.read().table.equals(before.table)

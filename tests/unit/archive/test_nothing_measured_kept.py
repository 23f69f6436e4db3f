"""Tests that failed before they measured anything, in the archive and in the trend."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone

import pytest
from click.testing import CliRunner

from lossratio.commands.night import fetch, send
from lossratio.commands.trend import trend
from lossratio.report import note_failure, read_run
from lossratio.report.history import History
from lossratio.report.history.archive import ObjectStore


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def failed(tmp_path):
    """A run of \'lossratio run\' in which two tests failed before they measured anything."""
    path = tmp_path / "failed"
    path.mkdir()
    (path / "run.json").write_text('{"topology": {"name": "simulated"}}')
    for name in ("64B-mrr", "64B-soak"):
        note_failure(path, f"Suite.{name}", "Set-up failed:\nno link", suite="Suite")
    return path


def invoke(command, *arguments):
    return CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)


def test_a_run_in_which_nothing_was_measured_goes_to_its_testbed_and_comes_back(failed, tmp_path):
    archive = tmp_path / "archive"
    assert invoke(send, failed, "--results", archive).stderr == ""
    today = datetime.now(timezone.utc).date()
    names = ObjectStore(str(archive)).names("runs/testbed=simulated/date=*/*.tar.gz")
    assert [name.split("/")[2] for name in names] in ([f"date={today}"], [f"date={today - timedelta(days=1)}"])
    invoke(fetch, tmp_path / "before", "--results", archive, "--testbed", "simulated")
    (back,) = (tmp_path / "before").iterdir()
    assert read_run(back).without_result == read_run(failed).without_result


@pytest.mark.whole
def test_the_trend_lists_a_test_that_measured_nothing_and_gives_each_reason_once(failed, tmp_path):
    history = tmp_path / "history"
    for _ in range(2):
        done = invoke(
            trend, history, "--add", failed, "--json", tmp_path / "trend.json", "--html", tmp_path / "trend.html"
        )
    assert "0 series of 0 results" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("nothing measured")]
    assert line.startswith("nothing measured on simulated, 2")
    assert line.endswith("UTC: Suite.64B-mrr, Suite.64B-soak: Set-up failed: no link")
    listed = json.loads((tmp_path / "trend.json").read_text())["unmeasured"]
    assert [(test["test"], test["reason"]) for test in listed] == [
        ("Suite.64B-mrr", "Set-up failed: no link"),
        ("Suite.64B-soak", "Set-up failed: no link"),
    ]
    assert line in (tmp_path / "trend.html").read_text()
    assert "64B-soak" not in invoke(trend, history, "--test", "*mrr").stdout


@pytest.mark.whole
def test_a_test_that_was_measured_since_is_listed_no_more_and_no_failure_is_in_its_series(run, tmp_path):
    (result,) = read_run(run).results
    tonight = tmp_path / "tonight"
    shutil.copytree(run, tonight)
    for name, later in (("before", -1), ("after", 1)):
        failed = tmp_path / name
        failed.mkdir()
        line = {"test": result.test.full_name, "message": "no link", "suite": "Suite"}
        time = (result.ended + timedelta(hours=later)).isoformat()
        (failed / "failures.jsonl").write_text(json.dumps({**line, "time": time}))
        (failed / "run.json").write_text('{"topology": {"name": "simulated"}}')
    history = tmp_path / "history"
    assert "nothing measured" not in invoke(trend, history, "--add", tmp_path / "before", "--add", tonight).stdout
    done = invoke(trend, history, "--add", tmp_path / "after")
    assert "1 series of 1 result:" in done.stdout
    assert "nothing measured" in done.stdout
    stored = History(history).read()
    assert (stored.table.num_rows, len(stored.unmeasured)) == (1, 1)


def test_a_test_whose_testbed_nobody_knows_is_named_and_not_added(failed, tmp_path):
    (failed / "run.json").unlink()
    done = invoke(send, failed, "--results", tmp_path / "archive")
    assert f"{failed}: Suite.64B-mrr measured nothing and is not added" in done.stderr
    assert ObjectStore(str(tmp_path / "archive")).names("history/**") == []

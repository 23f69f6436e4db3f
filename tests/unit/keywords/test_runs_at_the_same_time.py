"""Runs in one output directory at the same time: neither moves the other one's results away."""

from __future__ import annotations

import pytest
from robot_runs import run_suite, write_suite

from lossratio.results.run_directory import RunDirectory

TESTS = """
First
    Measure MRR    64B    trials=1

Second
    Measure MRR    64B    trials=1
"""

LOOKS = """
from pathlib import Path

from lossratio.errors import SearchError
from lossratio.results.run_directory import RunDirectory


def is_claimed(directory, test):
    try:
        RunDirectory(Path(directory)).claim(test).release()
    except SearchError:
        return
    raise AssertionError(f"{test} is free.")
"""


@pytest.fixture
def suite(tmp_path):
    return write_suite(tmp_path, TESTS)


def results_in(tmp_path):
    return [result.test.full_name for result in RunDirectory(tmp_path / "run").results()]


@pytest.mark.whole
def test_a_later_run_is_refused_while_the_first_one_runs(suite, tmp_path):
    first = run_suite(suite)
    assert first.status == 0
    held = RunDirectory(first.directory).claim("Suite.First")
    later = run_suite(suite)
    message = later.tests["First"].message
    held.release()
    assert "Another process is writing the results of Suite.First to" in message
    assert "--outputdir DIR" in message
    assert later.tests["Second"].passed
    assert results_in(tmp_path) == ["Suite.First", "Suite.Second"]
    kept = [path.name for path in (first.directory / "earlier").iterdir()]
    assert sorted(kept) == ["Suite.Second.1.json", "Suite.Second.1.jsonl"]


def test_a_test_is_claimed_until_its_run_ends_and_no_longer(suite, tmp_path):
    looks = tmp_path / "Looks.py"
    looks.write_text(LOOKS)
    text = suite.read_text().replace("Second\n", "Second\n    Is Claimed    ${OUTPUT DIR}    Suite.First\n")
    suite.write_text(text.replace("*** Test Cases", f"Library    {looks}\n*** Test Cases"))
    run = run_suite(suite)
    assert run.status == 0
    assert list(run.directory.glob(".*.lock")) == []

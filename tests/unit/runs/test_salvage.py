"""Outputs of Robot Framework that were cut off anywhere."""

from __future__ import annotations

import io

import pytest
import robot
from robot.api import ExecutionResult

from lossratio.runs.attempts import merged, salvage, verdicts_of

SUITE = """*** Settings ***
Suite Setup       Log    größer < "kleiner" &
Suite Teardown    Log    </test></suite>
*** Test Cases ***
One
    Log    <test name="none">
Two
    [Setup]    Log    here
    Fail    ${{'x' * 300}}
Three
    No Operation
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    for name in ("a", "b"):
        (directory / "suites").mkdir(exist_ok=True)
        (directory / "suites" / f"{name}.robot").write_text(SUITE)
    quiet = {"stdout": io.StringIO(), "stderr": io.StringIO(), "log": None, "report": None}
    robot.run(str(directory / "suites"), outputdir=str(directory), **quiet)
    return (directory / "output.xml").read_bytes()


def test_a_whole_output_stays_as_it_is(output, tmp_path):
    (tmp_path / "output.xml").write_bytes(output)
    assert salvage(tmp_path / "output.xml") == output


@pytest.mark.whole
def test_wherever_it_was_cut_off_the_tests_that_were_finished_are_kept(output, tmp_path):
    cut, saved = tmp_path / "cut.xml", tmp_path / "saved.xml"
    whole = [test.full_name for test in ExecutionResult(io.BytesIO(output)).suite.all_tests]
    kept = 0
    for size in range(0, len(output) - 1, 97):
        cut.write_bytes(output[:size])
        data = salvage(cut)
        if data is None:
            assert kept == 0
            continue
        saved.write_bytes(data)
        result = merged([saved])
        names = [verdict.name for verdict in verdicts_of(result, tmp_path)]
        assert names == whole[: len(names)]
        assert len(names) == output[:size].count(b"</test>")
        kept = len(names)
    assert kept == len(whole)


@pytest.mark.parametrize("data", [b"", b"<?xml", b"<robot>", b"not XML at all"])
def test_where_there_is_nothing_there_is_nothing_to_keep(tmp_path, data):
    (tmp_path / "output.xml").write_bytes(data)
    assert salvage(tmp_path / "output.xml") is None
    assert salvage(tmp_path / "missing.xml") is None

"""Tests that need more than the testbed has: they are skipped, and reports have the reason once."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from runner_examples import ROOT, SIMULATED, write_suite

from lossratio.errors import NotMeasuredHereError
from lossratio.report import compare, read_run, render
from lossratio.report.history.unmeasured import left_out_of
from lossratio.testbed import open_testbed

SET_UP = f"    Set Up Testbed    {SIMULATED}"
MEASURES = "Measures\n" + SET_UP + "    dut=linux_bridge\n    Measure MRR    64B    trials=1\n"
LIBRARY = "Library    lossratio.keywords.LossRatio    quick\nTest Teardown    Tear Down Testbed"
REASON = (
    "a path through 2 DUTs was requested, but the topology has 1 (DUT1). Ask for fewer, or choose a topology with more."
)


def suites(tmp_path):
    """Two suites: one with a test that fits and two that do not, and one whose set-up asks for a DUT too many."""
    folder = tmp_path / "suites"
    folder.mkdir()
    tests = MEASURES + "Longer\n" + SET_UP + "    duts=2\nNewer\n" + SET_UP + "    links=2\n"
    write_suite(folder, tests, settings=LIBRARY).rename(folder / "a.robot")
    settings = LIBRARY + "\nSuite Setup    Set Up Testbed    ${TOPOLOGY}    duts=2"
    tests = "One\n    Measure MRR    64B\nTwo\n    Measure MRR    64B\n"
    write_suite(folder, tests, settings=settings).rename(folder / "b.robot")
    return folder


@pytest.mark.whole
def test_tests_that_the_testbed_is_too_small_for_are_skipped_and_each_reason_is_said_once(lossratio, tmp_path):
    out = tmp_path / "out"
    done = lossratio("run", "--topology", SIMULATED, suites(tmp_path), "--", "--outputdir", out)
    assert done.status == 0, done.err
    assert "1 of 5 tests passed; 4 not measured here. Exit status 0." in done.err
    assert done.err.count(REASON) == 1
    run = read_run(out)
    assert sorted(test.full_name for test in run.skipped) == ["A.Longer", "A.Newer", "B.One", "B.Two"]
    assert (run.having("failed"), run.lacks) == ((), ())
    page = (out / "lossratio.html").read_text()
    assert (page.count(REASON), page.count("4 tests not measured here"), page.count("is incomplete")) == (1, 1, 0)
    assert render("md", [run]).count(REASON) == 1
    rows = list(csv.DictReader(io.StringIO(render("csv", [run]))))
    skipped = [row for row in rows if row["outcome"] == "not measured here"]
    assert [(row["suite"], row["test"], REASON in row["reason"]) for row in skipped] == [
        ("A", "Longer", True),
        ("A", "Newer", False),
        ("B", "One", True),
        ("B", "Two", True),
    ]
    (exported,) = json.loads(render("json", [run]))["runs"]
    assert [test["full_name"] for test in exported["without_result"]] == ["A.Longer", "A.Newer", "B.One", "B.Two"]
    junit = ElementTree.fromstring(render("junit", [run]))  # noqa: S314
    assert junit.find("testsuite").attrib["skipped"] == "4"
    classes = [case.get("classname") for case in junit.iter("testcase")]
    assert classes == ["A", "A", "A", "B", "B"]
    metrics = render("openmetrics", [run])
    assert metrics.count("lossratio_not_measured_here{") == 4
    reported = lossratio("report", out)
    assert (reported.status, reported.err.count(REASON)) == (0, 1)


@pytest.mark.whole
def test_a_run_that_is_too_large_for_the_testbed_has_a_page_and_is_not_repeated(lossratio, tmp_path):
    out = tmp_path / "out"
    file = write_suite(tmp_path, "Longer\n" + SET_UP + "    duts=2\n", settings=LIBRARY)
    assert lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", out).status == 5
    assert "1 test not measured here" in (out / "lossratio.html").read_text()
    resumed = lossratio("run", "--resume", out)
    assert (resumed.status, "1 not measured here" in resumed.err, resumed.err.count(REASON)) == (5, True, 1)


@pytest.mark.whole
def test_a_comparison_says_that_a_test_was_not_measured_here(lossratio, tmp_path):
    for name, tests, status in (("a", MEASURES, 0), ("b", MEASURES.replace("dut=linux_bridge", "duts=2"), 5)):
        folder = tmp_path / name
        folder.mkdir()
        file = write_suite(folder, tests, settings=LIBRARY)
        assert lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", folder / "out").status == status
    a, b = (read_run(tmp_path / name / "out") for name in "ab")
    assert [quantity.note for quantity in compare([a], [b]).quantities] == ["not measured here in B"]


OTHER_SKIPS = (
    MEASURES
    + "Longer\n"
    + SET_UP
    + "    duts=2\n"
    + "Later\n    Skip    Wait for the new cards.\n"
    + "Tagged\n    [Tags]    slow\n    No Operation\n"
)


@pytest.mark.whole
@pytest.mark.parametrize("runner", ["lossratio", "robot"])
def test_only_what_does_not_fit_is_not_measured_here_and_another_skip_has_its_own_reason(lossratio, tmp_path, runner):
    out = tmp_path / "out"
    file = write_suite(tmp_path, OTHER_SKIPS, settings=LIBRARY)
    options = ["--skip", "slow", "--outputdir", out]
    if runner == "lossratio":
        done = lossratio("run", "--topology", SIMULATED, file, "--", *options)
        assert done.status == 0, done.err
        assert "1 of 4 tests passed; 1 not measured here; 2 skipped. Exit status 0." in done.err
        assert "Skipped, 1 test: Wait for the new cards." in done.err
    else:
        command = [sys.executable, "-m", "robot", *map(str, options), "--variable", f"TOPOLOGY:{SIMULATED}", str(file)]
        subprocess.run(command, check=True, capture_output=True)

    run = read_run(out)
    skips = {test.name: (test.state, test.reason) for test in run.skipped}
    assert {name: what for name, (what, _) in skips.items()} == {
        "Longer": "not measured here",
        "Later": "skipped",
        "Tagged": "skipped",
    }
    assert skips["Later"][1] == "Wait for the new cards."
    page = render("html", [run])
    assert "1 test not measured here · 2 tests skipped" in page
    assert (page.count("<strong>Not measured here:"), page.count("<strong>Skipped:")) == (1, 1)
    rows = {row["test"]: row["outcome"] for row in csv.DictReader(io.StringIO(render("csv", [run])))}
    assert (rows["Longer"], rows["Later"]) == ("not measured here", "skipped")
    markdown = render("md", [run])
    assert "- 1 test skipped: Wait for the new cards. (" in markdown
    metrics = render("openmetrics", [run])
    assert (metrics.count("lossratio_not_measured_here{"), metrics.count("lossratio_skipped{")) == (1, 2)
    reported = lossratio("report", out)
    assert (reported.err.count("1 test not measured here:"), reported.err.count("1 test skipped:")) == (1, 2)
    exported = lossratio("csit", "export", out, tmp_path / "csit")
    assert "Not exported: 1 test not measured here: " in exported.err
    assert "Not exported: 1 test skipped: Wait for the new cards. (" in exported.err
    assert any(f"{out}: not added: 1 test not measured here: " in line for line in left_out_of(run))
    if runner == "lossratio":
        resumed = lossratio("run", "--resume", out)
        assert "1 not measured here; 2 skipped; all tests had finished before, and none ran again." in resumed.err


WRONG_VALUES = ["duts=-1", "links=0", "nic=Intel-E810QC", "nic=Intel-X710", "dut=linux_brige", "duts=many"]


@pytest.mark.whole
@pytest.mark.parametrize("arguments", WRONG_VALUES)
def test_a_wrong_value_is_still_a_failed_test(lossratio, tmp_path, arguments):
    file = write_suite(tmp_path, f"Wrong\n{SET_UP}    {arguments}\n", settings=LIBRARY)
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", tmp_path / "out")
    assert (done.status in (1, 2), "not measured here" in done.err) == (True, False)


@pytest.mark.whole
def test_parallel_links_are_not_measured_where_there_is_one(lossratio, tmp_path):
    file = write_suite(tmp_path, "Wide\n" + SET_UP + "    links=2\n", settings=LIBRARY)
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", tmp_path / "out")
    assert (done.status, "1 not measured here" in done.err) == (5, True)


NOTHING = "Every test of this run was skipped, so that nothing was measured. This one: "


@pytest.mark.whole
def test_a_run_of_plain_robot_in_which_every_test_is_skipped_is_not_green(tmp_path):
    folder = suites(tmp_path)
    write_suite(folder, "Longer\n" + SET_UP + "    duts=2\n", settings=LIBRARY).rename(folder / "a.robot")
    command = [sys.executable, "-m", "robot", "--outputdir", str(tmp_path), "--variable", f"TOPOLOGY:{SIMULATED}"]
    done = subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.count(NOTHING)) == (1, 1)
    (failed,) = read_run(tmp_path).having("failed")
    assert failed.reason.startswith(NOTHING)
    assert failed.reason.endswith(REASON)


@pytest.mark.parametrize(
    ("topology", "asked", "message"),
    [
        ("local-2links", {"links": 3}, "3 parallel links were requested, but there are 2"),
        ("local-3n", {"duts": 3}, r"a path through 3 DUTs was requested, but the topology has 2 \(DUT1, DUT2\)\."),
        ("local", {"duts": 0}, "no unused link between TG and TG"),
    ],
)
def test_a_path_that_is_not_there_is_known_before_anything_is_touched(topology, asked, message):
    with pytest.raises(NotMeasuredHereError, match=message):
        open_testbed(ROOT / "topologies" / f"{topology}.yaml", dut="linux_bridge", **asked)

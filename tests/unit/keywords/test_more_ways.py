"""More ways to call Robot Framework: each test has one series for each device, and no result is lost."""

from __future__ import annotations

import io

import pytest
import robot
from robot_runs import SIMULATED, run_suite, write_suite

from lossratio.report.run import read_run, runs_in
from lossratio.results.run_directory import RunDirectory

TESTS = """
64B mrr
    [Tags]    small
    Measure MRR    64B    trials=1

1518B mrr
    Measure MRR    1518B    trials=1
"""
NAMES = ["Suite.1518B mrr", "Suite.64B mrr"]
RENAMES = """
class Renames:
    def start_suite(self, suite):
        suite.name = "Night 7"

    visit_suite = start_suite
"""
BY_RATE = """
Suite Setup       Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=${RATE}
Suite Teardown    Tear Down Testbed
"""


@pytest.fixture
def suite(tmp_path):
    return write_suite(tmp_path, TESTS)


def names(directory):
    return sorted(result.test.full_name for result in RunDirectory(directory).results())


@pytest.mark.whole
@pytest.mark.parametrize(
    "options",
    [
        {"name": "Another Night"},
        {"splitlog": True},
        {"metadata": "Night:7", "doc": "nightly", "settag": "night"},
        {"runemptysuite": True, "exclude": "none"},
        {"rpa": True},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_of_robot_framework_do_not_rename_tests(suite, options):
    run = run_suite(suite, options=options)
    assert run.status == 0
    assert names(run.directory) == NAMES


@pytest.mark.whole
@pytest.mark.parametrize("options", [{"test": "64B mrr"}, {"include": "small"}, {"test": "6*"}], ids=str)
def test_a_test_that_runs_alone_keeps_its_name(suite, options):
    assert names(run_suite(suite, options=options).directory) == ["Suite.64B mrr"]


@pytest.mark.whole
def test_a_variable_that_changes_the_device_makes_two_series_and_keeps_both(tmp_path):
    suite = write_suite(tmp_path, TESTS, BY_RATE)
    slow, fast, again = (
        run_suite(suite, name, RATE=rate)
        for name, rate in (("slow", "50 kfps"), ("fast", "60 kfps"), ("again", "50kfps"))
    )
    assert names(slow.directory) == names(fast.directory) == names(again.directory) == NAMES
    devices = [RunDirectory(run.directory).results()[0].conditions.measured_on for run in (slow, fast, again)]
    assert devices == [f"linux_bridge, police={rate}" for rate in (50_000, 60_000, 50_000)]


@pytest.mark.whole
def test_one_suite_measured_twice_into_one_directory_keeps_the_earlier_results(tmp_path):
    suite = write_suite(tmp_path, TESTS, BY_RATE)
    for rate in ("50 kfps", "60 kfps"):
        run = run_suite(suite, RATE=rate)
    assert names(run.directory) == NAMES
    assert len(list((run.directory / "earlier").glob("*.json"))) == 2


@pytest.mark.whole
def test_tests_of_one_name_in_one_suite_are_two_results(tmp_path):
    once = "\n64B mrr\n    Measure MRR    64B    trials=1\n"
    run = run_suite(write_suite(tmp_path, once + once))
    assert names(run.directory) == ["Suite.64B mrr", "Suite.64B mrr (2)"]


@pytest.mark.whole
def test_names_that_differ_in_case_alone_are_two_results(tmp_path):
    run = run_suite(write_suite(tmp_path, TESTS + "\n64B MRR\n    Measure MRR    64B    trials=1\n"))
    assert names(run.directory) == ["Suite.1518B mrr", "Suite.64B MRR", "Suite.64B mrr"]
    assert len(list((run.directory / "trials").iterdir())) == 3


@pytest.mark.whole
@pytest.mark.parametrize("two", [("01__a.robot", "02__a.robot"), ("a_b.robot", "A B.robot")])
def test_files_of_one_name_are_refused_before_the_first_trial_with_a_way_out(tmp_path, two):
    folder = tmp_path / "core"
    folder.mkdir()
    files = [write_suite(folder, TESTS).rename(folder / name) for name in two]
    (folder / "robot.toml").unlink()
    (tmp_path / "robot.toml").touch()
    for file in files:
        run = run_suite(file)
        assert run.status == 2
        message = run.tests["64B mrr"].message
        assert "They would share a series" in message
        assert message.endswith("give one its own name: Metadata    Id    NAME.")
        assert all(str(each) in message for each in files)
        assert not RunDirectory(run.directory).has_files
    files[1].write_text(files[1].read_text().replace("*** Settings ***", "*** Settings ***\nMetadata    Id    Other"))
    suites = [name for file in files for name in names(run_suite(file, file.stem).directory)]
    assert len(set(suites)) == 4


@pytest.mark.whole
def test_files_of_one_name_with_other_tests_are_suites_as_before(tmp_path):
    first, second = tmp_path / "01__suite.robot", tmp_path / "02__suite.robot"
    write_suite(tmp_path, "\n64B mrr\n    Measure MRR    64B    trials=1\n").rename(first)
    write_suite(tmp_path, "\n1518B mrr\n    Measure MRR    1518B    trials=1\n").rename(second)
    found = [name for file in (first, second) for name in names(run_suite(file, file.stem).directory)]
    assert sorted(found) == NAMES


@pytest.mark.whole
def test_long_names_and_names_in_any_script_are_kept(tmp_path):
    long = "very " * 80 + "long"
    tests = "".join(f"\n{name}\n    Measure MRR    64B    trials=1\n" for name in (long, long + "er", "größe 测试 / 1"))
    run = run_suite(write_suite(tmp_path, tests))
    assert run.status == 0
    assert names(run.directory) == sorted(f"Suite.{name}" for name in (long, long + "er", "größe 测试 / 1"))


@pytest.mark.whole
def test_what_failed_and_is_run_again_is_one_result_of_its_test(suite, tmp_path):
    suite.write_text(suite.read_text() + "    Should Be True    ${PASSES}\n")
    first = run_suite(suite, "first", PASSES="False")
    options = {"rerunfailed": str(first.directory / "output.xml")}
    second = run_suite(suite, "first/again", options, PASSES="True")
    assert (first.status, second.status) == (1, 0)
    assert names(second.directory) == ["Suite.1518B mrr"]
    outputs = [str(run.directory / "output.xml") for run in (first, second)]
    console = io.StringIO()
    assert robot.rebot(*outputs, merge=True, outputdir=str(tmp_path / "merged"), stdout=console, stderr=console) == 0
    assert names(first.directory) == NAMES


@pytest.mark.whole
def test_a_run_of_lossratio_twice_in_one_directory_keeps_both(suite, lossratio, tmp_path):
    run = ("run", suite, "--topology", "simulated", "--", "--outputdir", tmp_path / "run", "--console", "none")
    assert [lossratio(*run).status for _ in range(2)] == [0, 0]
    assert names(tmp_path / "run") == NAMES
    assert len(list((tmp_path / "run" / "earlier").glob("*.json"))) == 2


@pytest.mark.whole
def test_a_job_gives_the_tests_the_names_that_robot_gives_them(suite, lossratio, tmp_path):
    job = tmp_path / "nightly.yaml"
    job.write_text(
        "format: lossratio-job/1\nname: nightly\ntopologies: [lab.yaml]\ntests:\n- {suites: [suite.robot]}\n"
    )
    (tmp_path / "lab.yaml").write_text(SIMULATED.read_text())
    done = lossratio("run", "--job", job, "--", "--outputdir", tmp_path / "run", "--console", "none")
    assert done.status == 0, done.err
    assert names(tmp_path / "run") == NAMES


@pytest.mark.whole
def test_a_folder_of_a_parallel_runner_is_one_run_with_the_same_names(suite, tmp_path):
    for number, test in enumerate(("64B mrr", "1518B mrr")):
        options = {"test": test, "name": f"Process {number}"}
        assert run_suite(suite, f"parallel/pabot_results/{number}", options).status == 0
    folder = tmp_path / "parallel"
    assert runs_in(folder) == [folder]
    assert sorted(result.test.full_name for result in read_run(folder).results) == NAMES


def test_a_suite_that_a_modifier_renames_keeps_its_name(suite, tmp_path):
    modifier = tmp_path / "Renames.py"
    modifier.write_text(RENAMES)
    run = run_suite(suite, options={"prerunmodifier": str(modifier)})
    assert names(run.directory) == NAMES


@pytest.mark.whole
def test_a_relative_output_directory_is_the_same_run(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    console = io.StringIO()
    options = {"variable": f"TOPOLOGY:{SIMULATED}", "stdout": console, "stderr": console}
    assert robot.run("suite.robot", outputdir="nights/7", **options) == 0
    assert names(tmp_path / "nights" / "7") == NAMES


@pytest.mark.whole
def test_an_id_in_a_folder_holds_in_runs_and_in_what_failed(tmp_path):
    folder = tmp_path / "moved"
    folder.mkdir()
    suite = write_suite(folder, TESTS + "\nFails\n    Fail    on purpose\n")
    (folder / "__init__.robot").write_text("*** Settings ***\nMetadata    Id    Lab.Core\n")
    run = run_suite(suite)
    assert names(run.directory) == [f"Lab.Core.{name}" for name in NAMES]
    assert [failed.full_name for failed in read_run(run.directory).having("failed")] == ["Lab.Core.Suite.Fails"]

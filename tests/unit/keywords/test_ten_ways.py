"""However Robot Framework is called, the same tests have the same names, and each has a result of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from robot.api import ExecutionResult
from robot_runs import called

from lossratio.results.identity import suite_identity
from lossratio.results.run_directory import RunDirectory

SUITE = """\
*** Settings ***
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    simulated    dut=linux_router    police={rate} kfps
Suite Teardown    Tear Down Testbed

*** Test Cases ***
64B-1c-ip4-mrr
    Measure MRR    64B    trials=2

1518B-1c-ip4-mrr
    Measure MRR    1518B    trials=2
"""
TESTS = {
    "Edge.Ip4.64B-1c-ip4-mrr",
    "Edge.Ip4.1518B-1c-ip4-mrr",
    "Core.Ip4.64B-1c-ip4-mrr",
    "Core.Ip4.1518B-1c-ip4-mrr",
    "Ip6.64B-1c-ip4-mrr",
    "Ip6.1518B-1c-ip4-mrr",
}
FILES = ("edge/ip4.robot", "core/ip4.robot", "ip6.robot")


@pytest.fixture
def project(tmp_path):
    """A project with three suites, two of one name."""
    folder = tmp_path / "project"
    for number, name in enumerate(FILES, start=2):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SUITE.format(rate=10 * number))
    (folder / "pyproject.toml").touch()
    return folder


def robot(folder, *arguments, output="run"):
    """Calls Robot Framework in a folder, and returns the names of the results that it leaves."""
    directory = folder.parent / output
    assert called(folder, "--outputdir", directory, *arguments) == 0
    return names(directory)


def names(run):
    return sorted(result.test.full_name for result in RunDirectory(run).results())


@pytest.mark.whole
@pytest.mark.parametrize(
    "arguments",
    [
        FILES,
        (*reversed(FILES),),
        (".",),
        ("--name", "Night", *FILES),
        ("--name", "Night", "."),
        ("edge", "core", "ip6.robot"),
        ("--randomize", "all", "."),
        ("--prerunmodifier", "lossratio.keywords.Catalogue:simulated", *FILES),
    ],
    ids=["files", "in another order", "folder", "named", "folder, named", "folders", "at random", "expanded"],
)
def test_the_same_tests_have_the_same_names_however_they_are_called(project, arguments):
    assert robot(project, *arguments) == sorted(TESTS)


@pytest.mark.whole
def test_one_suite_at_a_time_and_from_elsewhere(project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    found = [robot(elsewhere, project / name, output=f"run{number}") for number, name in enumerate(FILES)]
    assert sorted(name for names_of_run in found for name in names_of_run) == sorted(TESTS)


@pytest.mark.whole
def test_an_argument_file(project):
    (project / "all.args").write_text("".join(f"{name}\n" for name in FILES))
    assert robot(project, "--argumentfile", "all.args") == sorted(TESTS)


@pytest.mark.whole
def test_a_checkout_in_another_place_has_the_same_names(project, tmp_path):
    other = tmp_path / "other" / "checkout"
    shutil.copytree(project, other)
    assert robot(other, ".") == sorted(TESTS)


@pytest.mark.whole
def test_an_id_keeps_the_name_of_a_suite_that_moves(project):
    moved = project / "core" / "router" / "forwarding.robot"
    moved.parent.mkdir()
    text = (project / "core" / "ip4.robot").read_text()
    moved.write_text(text.replace("*** Settings ***\n", "*** Settings ***\nMetadata    Id    Core.Ip4\n"))
    (project / "core" / "ip4.robot").unlink()
    assert robot(project, ".") == sorted(TESTS)


@pytest.mark.parametrize("name", ["Id", "ID", "id"])
def test_an_id_is_found_in_any_case(name):
    assert suite_identity("/nowhere/ip4.robot", {name: "Core.Ip4"}, "Ip4") == "Core.Ip4"


def test_a_suite_without_a_file_has_the_name_that_it_is_given():
    assert suite_identity("", {"Variation": "Intel-X710"}, "Made By A Script") == "Made By A Script.Intel-X710"


@pytest.mark.whole
def test_outside_of_any_project_the_folder_distinguishes_files_of_one_name(project):
    (project / "pyproject.toml").unlink()
    assert set(robot(project, *FILES[:2])) == {name for name in TESTS if not name.startswith("Ip6")}


@pytest.mark.whole
def test_one_suite_twice_in_a_run_is_refused_before_its_first_trial(project):
    assert called(project, "--outputdir", "twice", FILES[2], FILES[2]) == 2
    failed = [test for test in ExecutionResult(project / "twice" / "output.xml").suite.all_tests if test.failed]
    assert "already measured the test Ip6.64B-1c-ip4-mrr in another suite" in failed[0].message
    assert len(names(project / "twice")) == 2


@pytest.mark.whole
def test_a_name_of_robot_framework_is_kept_beside_the_identity(project):
    robot(project, "--name", "Night", *FILES)
    results = RunDirectory(Path(project.parent / "run")).results()
    assert {result.test.long_name.split(".")[0] for result in results} == {"Night"}

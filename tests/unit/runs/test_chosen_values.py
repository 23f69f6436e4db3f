"""The sizes and cores that a user names replace those of a suite that is made for many of them."""

from __future__ import annotations

import pytest
import robot.running
from runner_examples import SIMULATED

from lossratio.files.shipped import SUITES
from lossratio.keywords import Catalogue, problem_with_variable
from lossratio.runs.assignments import assignments_of
from lossratio.runs.robot_run import RobotOptionsError, RunRequest, selected

JOB = """format: lossratio-job/1
name: nightly
topologies: [{topology}]
tests: [{{suites: [linux_bridge], include: [mrr]{more}}}]
variables: {{FRAME_SIZE: 128B}}
"""


def chosen_by(request):
    (assignment,) = assignments_of(request)
    options, suites = request.robot_command(assignment.suites)
    root = selected(options, suites, [assignment.modifier], {"TOPOLOGY": assignment.file})
    return [test.name.removesuffix("-eth-l2bdbase-mrr") for test in root.all_tests]


@pytest.mark.parametrize(
    ("given", "tests"),
    [
        (["FRAME_SIZE:1518B"], ["1518B-1c"]),
        (["FRAME_SIZE:64B,IMIX", "CORES:2"], ["64B-2c", "IMIX-2c"]),
        (["FRAME_SIZE:64B", "FRAME_SIZE:78B"], ["78B-1c"]),
    ],
)
def test_variables_of_the_command_line_choose_what_a_suite_is_made_for(given, tests):
    options = tuple(word for variable in given for word in ("--variable", variable))
    suites = (SUITES.own_path("linux_bridge"),)
    assert chosen_by(RunRequest((SIMULATED,), suites, ("mrr",), options)) == tests


@pytest.mark.parametrize("words", [["--variable=FRAME_SIZE:1518B"], ["-vframe_size:1518B"], ["-A", "arguments"]])
def test_a_variable_in_any_form_of_its_option_chooses_too(words, tmp_path, monkeypatch):
    (tmp_path / "arguments").write_text("-v FRAME_SIZE:1518B\n")
    monkeypatch.chdir(tmp_path)
    suites = (SUITES.own_path("linux_bridge"),)
    assert chosen_by(RunRequest((SIMULATED,), suites, ("mrr",), tuple(words))) == ["1518B-1c"]


def test_a_size_that_no_frame_has_is_refused_also_among_the_options_of_robot_framework():
    suites = (SUITES.own_path("linux_bridge"),)
    with pytest.raises(RobotOptionsError, match="--variable FRAME_SIZE:63B: 63 is not between 64 and 9000 bytes"):
        assignments_of(RunRequest((SIMULATED,), suites, (), ("-vFRAME_SIZE:63B",)))


@pytest.mark.parametrize(
    ("arguments", "program", "tests"),
    [
        ((), "robot", ["1518B-2c-eth-l2bdbase-mrr"]),
        (("frame_sizes=64B",), "/usr/lib/robot/__main__.py", ["64B-2c-eth-l2bdbase-mrr"]),
        (("frame_sizes=64B",), "/usr/bin/other", ["64B-1c-eth-l2bdbase-mrr"]),
    ],
)
def test_variables_of_plain_robot_framework_choose_unless_an_argument_of_the_modifier_does(
    arguments, program, tests, monkeypatch
):
    suite = SUITES.own_path("linux_bridge")
    words = ["-v", "FRAME_SIZE:1518B", "--variable", "CORES:2", str(suite)]
    monkeypatch.setattr("sys.argv", [program, *words])
    root = robot.running.TestSuite.from_file_system(suite)
    root.visit(Catalogue(*arguments))
    assert [test.name for test in root.all_tests if "mrr" in test.tags] == tests


@pytest.mark.parametrize(
    ("more", "options", "tests"),
    [
        ("", (), ["128B-1c"]),
        (", frame_sizes: [64B], cores: [2]", (), ["64B-2c"]),
        (", frame_sizes: [64B], cores: [2]", ("--variable", "FRAME_SIZE:IMIX"), ["IMIX-2c"]),
    ],
)
def test_those_of_a_job_come_after_those_of_its_tests_and_of_the_command_line(tmp_path, more, options, tests):
    job = tmp_path / "job.yaml"
    job.write_text(JOB.format(topology=SIMULATED, more=more))
    assert chosen_by(RunRequest((), (), (), options, job=job)) == tests


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("CORES", "x", "'x' is not a whole number"),
        ("CORES", "1,0", "'0' is not above 0"),
        ("FRAME_SIZE", "64B,63B", "63 is not between 64 and 9000 bytes"),
    ],
)
def test_values_that_no_suite_can_be_made_for_are_told(name, value, problem):
    assert str(problem_with_variable(name, value)).startswith(problem)


def test_several_values_are_no_problem():
    assert problem_with_variable("CORES", "1,2") is problem_with_variable("FRAME_SIZE", "64B,IMIX") is None


@pytest.mark.parametrize("number", [1, 2])
def test_an_option_of_robot_framework_that_would_take_a_suite_for_its_value_is_named(number):
    suites = (SUITES.own_path("linux_bridge"),) * number
    request = RunRequest((SIMULATED,), suites, robot_options=("--variable",))
    with pytest.raises(RobotOptionsError, match="wrong: --variable has no value"):
        request.robot_command(suites)

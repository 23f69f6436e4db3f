from __future__ import annotations

import shlex
import signal

import pytest
from robot.errors import ExecutionFailed
from robot.utils import XmlWriter
from runner_examples import SIMULATED, write_suite

from lossratio.errors import ArchiveError, DutError, NodeError
from lossratio.report import forget_failure, note_failure, read_run
from lossratio.runs import RunRequest, run
from lossratio.runs.attempts import merged, verdicts_of
from lossratio.runs.verdicts import TestVerdict, exit_status, failure_kind, kinds_of_failures
from lossratio.traffic import AgentRefusalError
from lossratio.trials.counters import NegativeLossError
from lossratio.values.exit_status import ExitStatus, FailureKind

PASSES = "Passes\n    No Operation\n"
FAILS = "Fails\n    Fail    too slow\n"


def raises(error):
    return f"{error}\n    Raise Error    {error}\n"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("tests", "status"),
    [
        (PASSES, 0),
        (PASSES + FAILS, 1),
        (FAILS + raises("RegressionError"), 3),
        (FAILS + raises("NodeError"), 69),
        (raises("TrafficError"), 69),
        (raises("NodeError") + raises("ReservationError"), 75),
        (raises("NodeError") + raises("RegressionError"), 3),
        (raises("DutError"), 1),
        (raises("TesterError") + FAILS, 69),
        (raises("LinkError"), 69),
        (raises("TopologyError"), 2),
        (raises("ProfileError"), 2),
        (PASSES + raises("NotMeasuredHereError"), 0),
        (FAILS + raises("NotMeasuredHereError"), 1),
        (FAILS + "No keyword of this name\n    Nonsense\n", 2),
        ("No argument of this name\n    Measure MRR    64B    max_laod=1 kfps\n", 2),
        ("No such argument\n    Measure MRR    frame_size=64B    max_laod=1 kfps\n", 2),
        ("No expression\n    Should Be True    1 / 0\n", 1),
    ],
)
def test_the_exit_status_shows_why_tests_failed(lossratio, tmp_path, tests, status):
    file = write_suite(tmp_path, tests)
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", tmp_path / "out")
    assert (done.status, f"Exit status {status}." in done.err) == (status, True)
    assert (tmp_path / "out" / "output.xml").exists()


@pytest.mark.whole
def test_a_suite_that_sets_up_another_topology_than_the_run_was_asked_for_is_a_warning(lossratio, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(SIMULATED.read_text().replace("name: simulated", "name: other"))
    for asked, is_other in ((SIMULATED, True), (other, False)):
        file = write_suite(tmp_path, PASSES, settings=f"Suite Setup    Set Up Testbed    {other}")
        done = lossratio("run", "--topology", asked, file, "--", "--outputdir", tmp_path / str(is_other))
        assert (f"This suite sets up {other}, although the run was asked for {asked}" in done.err) is is_other


@pytest.mark.whole
def test_a_set_up_that_fails_counts_as_what_it_failed_of(lossratio, tmp_path):
    file = write_suite(tmp_path, PASSES, settings="Suite Setup    Raise Error    NodeError")
    assert lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", tmp_path / "out").status == 69


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topology", "missing.yaml", "suite.robot"], "Cannot read missing.yaml"),
        (["--topology", SIMULATED, "missing.robot"], "missing.robot"),
        (["--topology", SIMULATED, "suite.robot", "--", "--nonsense"], "--nonsense"),
        (["--topology", SIMULATED, "suite.robot", "--", "--help"], "Use robot itself"),
        (["--topology", SIMULATED], "Name the suites"),
        (["suite.robot"], "Name the testbed, for example --topology local"),
        (["--topology", SIMULATED, "--wait", "soon", "suite.robot"], "soon"),
        (["--topology", SIMULATED, "--topology", "missing.yaml", "suite.robot"], "Cannot read missing.yaml"),
        (["--topology", "missing", "suite.robot"], "There is no file missing. These come with lossratio: local"),
        (["suite.robot", "--topology"], "Option '--topology' requires an argument."),
        (["--topology", SIMULATED, "--include", "absent", "suite.robot"], "tag 'absent'. Their tags are: a."),
        (
            ["--topology", SIMULATED, "--include", "a", "--include", "nightly", "suite.robot"],
            "no test matches --include nightly. Correct it, or leave it out. Their tags are: a.",
        ),
        (["--topology", SIMULATED, "suite.robot", "--", "--test", "absent"], "name 'absent'. Their names are: Passes."),
        (
            ["--topology", SIMULATED, "suite.robot", "--", "--outputdir", "suite.robot"],
            "Error: suite.robot: Not a directory. Choose another directory: --output DIR.\n",
        ),
    ],
)
def test_bad_input_is_one_message_and_touches_nothing(lossratio, tmp_path, arguments, message):
    write_suite(tmp_path, "Passes\n    [Tags]    a\n    No Operation\n")
    done = lossratio("run", *arguments)
    assert done.status == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"robot.toml", "suite.robot"}


@pytest.mark.parametrize("dry", [(), ("--dryrun",)])
@pytest.mark.parametrize(
    ("model", "said"),
    [("Intel-X710", "the file gives no port a 'model'"), ("Intel-E810CX", "Did you mean 'Intel-E810CQ'?")],
)
def test_a_nic_that_the_testbed_cannot_have_is_bad_input_before_the_run(lossratio, tmp_path, model, said, dry):
    settings = f"Suite Setup    Set Up Testbed    ${{TOPOLOGY}}    nic={model}"
    write_suite(tmp_path, "Passes\n    No Operation\n", settings=settings)
    done = lossratio("run", "--topology", SIMULATED, "suite.robot", "--", *dry, "--outputdir", tmp_path / "out")
    assert done.status == 2
    assert "suite.robot:4: Topology simulated: " in done.err
    assert said in done.err


MEASURES = """*** Settings ***
Library    lossratio.keywords.LossRatio
{settings}
*** Test Cases ***
Same
    {keyword}    64B
"""


def two_suites(folder, settings="", keyword="Measure MRR"):
    for name in ("east", "west"):
        file = folder / name / "core" / "ip4.robot"
        file.parent.mkdir(parents=True)
        file.write_text(MEASURES.format(settings=settings.format(name=name), keyword=keyword))
    return folder / "east" / "core" / "ip4.robot", folder / "west" / "core" / "ip4.robot"


def test_two_suites_with_the_same_test_are_refused_before_anything_is_measured(lossratio, tmp_path):
    east, west = two_suites(tmp_path / "lab")
    for command in (("--topology", SIMULATED, tmp_path / "lab"), ("--topology", SIMULATED, east, west)):
        refused = lossratio("run", *command, "--output", tmp_path / "out")
        said = f"Error: Nothing was run: {east} and {west} have the same test Core.Ip4.Same, and would write the same"
        assert (refused.status, refused.err[: len(said)]) == (2, said)
    twice = lossratio("run", "--topology", SIMULATED, east, east.parent, "--output", tmp_path / "out")
    assert f"the suite {east} is selected twice, and its test Core.Ip4.Same would write" in twice.err
    assert not (tmp_path / "out").exists()


@pytest.mark.whole
@pytest.mark.parametrize("given", [{"settings": "Metadata    Id    {name}"}, {"keyword": "Log"}])
def test_suites_with_a_name_of_their_own_or_without_measurements_run_together(lossratio, tmp_path, given):
    two_suites(tmp_path / "lab", **given)
    done = lossratio(
        "run", "--topology", SIMULATED, tmp_path / "lab", "--", "--dryrun", "--outputdir", tmp_path / "out"
    )
    assert done.status == 0, done.err


@pytest.mark.whole
def test_a_run_has_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    request = RunRequest(
        (SIMULATED,), (write_suite(tmp_path, PASSES),), name="night", robot_options=("--console", "none")
    )
    assert [str(run(request).directory) for _ in range(3)] == [f"results/night{end}" for end in ("", "-2", "-3")]
    assert len(list(tmp_path.glob("results/*/run.json"))) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_before_its_tests_says_that_nothing_is_lost(number, lossratio, tmp_path, monkeypatch):
    monkeypatch.setattr("lossratio.runs.robot_run.TestSuiteBuilder", lambda **given: signal.raise_signal(number))
    done = lossratio("run", "--topology", SIMULATED, write_suite(tmp_path, PASSES))
    assert (done.status, "Nothing that was measured is lost" in done.err) == (130, True), done.err


def test_a_run_that_is_stopped_while_its_page_is_written_says_how_to_write_it(lossratio, tmp_path, monkeypatch):
    monkeypatch.setattr("lossratio.runs.robot_run.write_reports", lambda *given: signal.raise_signal(signal.SIGINT))
    out = tmp_path / "out"
    done = lossratio("run", "--topology", SIMULATED, write_suite(tmp_path, PASSES), "--", "--outputdir", out)
    assert f"To write it: lossratio report {shlex.quote(str(out))}\n" in done.err


def test_options_behind_the_dashes_are_robots(lossratio, tmp_path):
    file = write_suite(tmp_path, "Chosen\n    [Tags]    a    b\n    Should Be Equal    ${WHAT}    right\n" + FAILS)
    robot = ["--outputdir", tmp_path / "out", "--variable", "WHAT:right", "--name", "Other", "--log", "NONE"]
    done = lossratio("run", "--topology", SIMULATED, "--include", "aANDb", file, "--", *robot)
    assert done.status == 0
    assert 'name="Other"' in (tmp_path / "out" / "output.xml").read_text()
    assert not (tmp_path / "out" / "log.html").exists()


def test_without_a_directory_the_output_is_under_the_name_of_the_testbed(lossratio, tmp_path):
    write_suite(tmp_path, PASSES)
    lossratio("run", "--topology", SIMULATED, "suite.robot")
    (directory,) = (tmp_path / "results").iterdir()
    assert directory.name.startswith("simulated-")
    assert (directory / "output.xml").exists()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NodeError("Node TG: no connection"), FailureKind.INFRASTRUCTURE),
        (AgentRefusalError("Node TG", "refused"), FailureKind.INFRASTRUCTURE),
        (ArchiveError("s3://bucket does not answer"), FailureKind.INFRASTRUCTURE),
        (NegativeLossError("More frames were received than sent"), FailureKind.TEST),
        (DutError("DUT1 receives 10 frames and forwards none"), FailureKind.TEST),
        (ExecutionFailed("Execution terminated by signal"), FailureKind.INTERRUPTED),
        (AssertionError("Execution terminated by signal"), FailureKind.TEST),
        (ValueError("NodeError: no number"), FailureKind.TEST),
    ],
)
def test_the_kind_of_failure_is_that_of_the_exception_with_any_message(error, kind):
    assert failure_kind(error) is kind


OWN_WORDS = """
Own Words
    Fail    my TrafficError: too slow
"""
RERAISED = """
Other Words For It
    TRY
        Raise Error    NodeError
    EXCEPT
        Fail    TrafficError: the testbed is no good
    END
"""
HANDLED = """
Handled
    Run Keyword And Expect Error    *    Raise Error    TrafficError    too slow
    Run Keyword And Ignore Error    Raise Error    NodeError
    Fail    TrafficError: too slow
"""
OWN_CLASS = """
Error Of Another Library
    Raise Own Error    TrafficError    too slow
"""
PASSED_ON = """
Passed On
    TRY
        Raise Error    NodeError
    EXCEPT    AS    ${error}
        Fail    Not measured: ${error}
    END
"""
IN_DEPTH = """
In Depth
    IF    True
        Wait Until Keyword Succeeds    2x    0s    Raise Error    LinkError
    END
"""
TWO = """
Two
    Run Keyword And Continue On Failure    Raise Error    DutError    DUT1 is dead
    Raise Error    TesterError    tg0 was set down
"""
TEAR_DOWN = """
Tear Down
    Fail    too slow
    [Teardown]    Raise Error    NodeError
"""
LONG = """
Long
    Run Keyword And Continue On Failure    Fail    ${{"x\\n" * 90}}
    Run Keyword And Continue On Failure    Raise Error    NodeError    ${{"y\\n" * 90}}
    Fail    ${{"z\\n" * 90}}
"""


def test_an_error_that_an_interrupt_caused_counts_as_an_interrupt():
    def log_in():
        try:
            raise ExecutionFailed("Execution terminated by signal", exit=True)
        except ExecutionFailed as cause:
            raise NodeError("Node TG: no SSH connection.") from cause

    with pytest.raises(NodeError) as caught:
        log_in()
    assert failure_kind(caught.value) is FailureKind.INTERRUPTED


@pytest.mark.whole
@pytest.mark.parametrize(
    ("tests", "status"),
    [
        (OWN_WORDS, 1),
        (raises("TrafficError") + OWN_WORDS, 69),
        (RERAISED, 1),
        (HANDLED, 1),
        (OWN_CLASS, 1),
        (PASSED_ON, 69),
        (IN_DEPTH, 69),
        (TWO, 69),
        (TEAR_DOWN, 69),
        (LONG, 69),
    ],
)
def test_only_an_exception_that_failed_the_test_counts_and_no_words(lossratio, tmp_path, tests, status):
    file, out = write_suite(tmp_path, tests), tmp_path / "out"
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", out)
    assert done.status == status, done.err
    # The output alone does not say why a test failed; the record beside it does.
    kinds = [verdict.failure for verdict in verdicts_of(merged([out / "output.xml"]), out)]
    assert kinds[-1] is (FailureKind.TEST if status == 1 or tests.endswith(OWN_WORDS) else FailureKind.INFRASTRUCTURE)


def test_a_record_that_was_cut_off_or_is_none_leaves_the_test_to_another_attempt(tmp_path):
    assert kinds_of_failures(tmp_path) == {}
    note_failure(tmp_path, "A.First", "no link", failure=FailureKind.INFRASTRUCTURE.value)
    note_failure(tmp_path, "A.First", "too slow", failure=FailureKind.TEST.value)
    note_failure(tmp_path, "A.Second", "too slow", failure=FailureKind.TEST.value)
    path = tmp_path / "failures.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert kinds_of_failures(tmp_path) == {"A.First": FailureKind.TEST}
    assert not TestVerdict("A.Second", "FAIL", "too slow", FailureKind.NO_VERDICT).is_final


@pytest.mark.parametrize(("code", "status"), [(252, 2), (253, 130), (255, 70)])
def test_errors_that_stop_robot_itself_have_a_status_of_their_own(code, status):
    assert exit_status(code, [TestVerdict("t", "FAIL", "too slow", FailureKind.TEST)]) is ExitStatus(status)


def test_ctrl_c_while_robot_writes_a_message_is_an_interrupt_and_no_bad_input(lossratio, tmp_path, monkeypatch):
    write, signals = XmlWriter.content, [signal.SIGINT]

    def interrupted(writer, text=None, *others, **more):
        write(writer, text, *others, **more)
        if text == "half" and signals:
            signal.raise_signal(signals.pop())

    monkeypatch.setattr(XmlWriter, "content", interrupted)
    file, out = write_suite(tmp_path, "Writes\n    Log    half\n" + PASSES), tmp_path / "out"
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", out)
    way_on = f"lossratio run --resume {shlex.quote(str(out))}"
    assert (done.status, way_on in done.err) == (130, True), done.err
    monkeypatch.undo()
    resumed = lossratio("run", "--resume", out)
    assert (resumed.status, "2 of 2 tests passed" in resumed.err) == (0, True), resumed.err


def test_a_test_that_a_second_ctrl_c_cut_off_is_counted_and_reported(lossratio, tmp_path):
    out = tmp_path / "out"
    file = write_suite(tmp_path, PASSES + "Stopped\n    Stop By Force\nNever\n    No Operation\n")
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", out)
    assert (done.status, "1 of 2 tests passed; 1 failed (interrupted). Exit" in done.err) == (130, True), done.err
    error = "somebody stopped the run by force"
    assert [(one.name, one.reason) for one in read_run(out).having("failed")] == [("Stopped", error)]


def test_a_tear_down_that_fails_counts_although_the_tests_had_passed_by_then(lossratio, tmp_path):
    file = write_suite(tmp_path, PASSES, settings="Suite Teardown    Raise Error    NodeError")
    done = lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", tmp_path / "out")
    assert (done.status, "0 of 1 test passed" in done.err) == (69, True)


@pytest.mark.whole
def test_tests_that_were_never_begun_after_a_failure_are_not_finished(lossratio, tmp_path):
    file = write_suite(tmp_path, raises("NodeError") + PASSES)
    robot = ["--outputdir", tmp_path / "out", "--exitonfailure"]
    assert lossratio("run", "--topology", SIMULATED, file, "--", *robot).status == 69
    left_out = verdicts_of(merged([tmp_path / "out" / "output.xml"]), tmp_path / "out")[1]
    assert (left_out.status, left_out.is_final) == ("FAIL", False)


@pytest.mark.whole
def test_a_test_that_measured_nothing_is_in_the_reports_until_it_passes(lossratio, tmp_path, monkeypatch):
    monkeypatch.setenv("OUTCOME", "FAIL")
    tests = "Measures\n    Measure MRR    64B    trials=1\nOther\n    Should Be Equal    %{OUTCOME}    PASS\n"
    settings = "Suite Setup    Set Up Testbed    ${TOPOLOGY}\nResource    lossratio/resources/performance.resource"
    file, out = write_suite(tmp_path, tests, settings=settings), tmp_path / "out"
    assert lossratio("run", "--topology", SIMULATED, file, "--", "--outputdir", out).status == 1
    assert [(one.name, one.reason) for one in read_run(out).having("failed")] == [("Other", "FAIL != PASS")]
    assert "before it measured anything: " in (out / "lossratio.html").read_text()
    forget_failure(out, read_run(out).without_result[0].full_name)
    assert (read_run(out).without_result, kinds_of_failures(out)) == ((), {})


SKIPPED = TestVerdict("a", "SKIP", "needs two DUTs", None, is_misfit=True)


@pytest.mark.parametrize(
    ("verdicts", "troubles", "status"),
    [
        ([SKIPPED, SKIPPED], [], 5),
        ([SKIPPED, TestVerdict("b", "PASS", "", None)], [], 0),
        ([SKIPPED, TestVerdict("b", "FAIL", "too slow", FailureKind.TEST)], [], 1),
        ([SKIPPED], ["Cannot record the verdict."], 69),
        ([], [], 0),
    ],
)
def test_a_run_in_which_every_test_was_skipped_has_a_status_of_its_own(verdicts, troubles, status):
    assert exit_status(0, verdicts, troubles) is ExitStatus(status)

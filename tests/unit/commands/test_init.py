"""A new lab in three files, from answers: they are checked, and they run."""

from __future__ import annotations

import io
import signal

import pytest
import robot
from click.testing import CliRunner
from local_testbeds import needs_testbed, own_state

from lossratio.commands.init import init
from lossratio.errors import TopologyError
from lossratio.measurements.measure import PlannedTrials
from lossratio.runs.job import load_job
from lossratio.topology import load_topology


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Answers the questions of the command, in its own directory."""
    monkeypatch.chdir(tmp_path)

    def run(answers, *arguments):
        done = CliRunner().invoke(init, arguments, input=answers)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    return run


@pytest.mark.smoke
@pytest.mark.netns
@needs_testbed
def test_enter_alone_makes_a_lab_that_can_be_measured(ask, tmp_path, monkeypatch):
    # One trial measures; ten of a second at full rate cost half a minute of CPU.
    monkeypatch.setattr("lossratio.measurements.PlannedTrials", lambda trials: PlannedTrials(trials[:1]))
    shown = ask("\n" * 8, "labs")
    assert "lossratio check labs/lab1.yaml\n  lossratio run --job labs/lab1-job.yaml" in shown
    assert load_topology("labs/lab1.yaml").path().hops[0].node_name == "DUT1"
    assert load_job("labs/lab1-job.yaml").file.variables == {"GOALS": "csit"}
    suite = (tmp_path / "labs" / "lab1.robot").read_text()
    # The policer gives the search its upper bound.
    assert "dut=linux_bridge    police=10 kfps\n" in suite
    assert "[Cfg] lab1: linux_bridge, police=10 kfps.\n" in suite
    with own_state():
        status = robot.run(
            "labs/lab1.robot",
            prerunmodifier="lossratio.keywords.Catalogue:labs/lab1.yaml:frame_sizes=64B",
            include="mrr",
            outputdir="out",
            console="none",
            stdout=io.StringIO(),
            stderr=io.StringIO(),
        )
    assert status == 0
    assert list((tmp_path / "out" / "results").glob("*mrr.json"))


def test_answers_that_do_not_do_are_asked_again_and_a_device_without_a_log_in_is_a_black_box(ask):
    shown = ask("my lab\nmy-lab\nn\nnetns:tg\n2 Mfps\na/b\neth7\neth8\n\n")
    assert "'my lab' cannot be used. Enter letters, digits" in shown
    assert "'a/b' cannot be used. Enter a name in Linux such as eth1" in shown
    topology = load_topology("my-lab.yaml")
    assert (topology.nodes["TG"].netns, topology.nodes["TG"].generator.max_rate) == ("tg", 2e6)
    assert topology.nodes["DUT1"].place == ""
    with open("my-lab.robot") as suite:
        assert "dut=black_box\n" in suite.read()


@pytest.mark.parametrize(("answers", "question"), [("", "Name of the testbed"), ("lab1\nn\n", "Where is the traffic")])
def test_an_input_that_ends_too_early_is_bad_input_and_no_ctrl_c(lossratio, tmp_path, monkeypatch, answers, question):
    monkeypatch.setattr("sys.stdin", io.StringIO(answers))
    status, out, err = lossratio("init", "our-lab")
    assert status == 2
    assert question in out.splitlines()[-1]
    assert (
        err
        == "\nError: The input ended before this question was answered. Answer each question on a line of its own.\n"
    )
    assert not (tmp_path / "our-lab").exists()


def test_ctrl_c_at_a_question_is_an_interrupt(lossratio, monkeypatch):
    monkeypatch.setattr("sys.stdin.readline", lambda *size: signal.raise_signal(signal.SIGINT), raising=False)
    assert lossratio("init", "our-lab")[::2] == (130, "Stopped.\n")


def test_nothing_is_overwritten(ask, tmp_path):
    ask("\n" * 8)
    (tmp_path / "lab1.yaml").unlink()
    before = (tmp_path / "lab1.robot").read_text()
    # The first answer is enough to know.
    with pytest.raises(TopologyError, match=r"^These files already exist: lab1.robot, lab1-job.yaml. Remove them"):
        ask("\n")
    assert (tmp_path / "lab1.robot").read_text() == before
    assert not (tmp_path / "lab1.yaml").exists()


def test_a_directory_that_takes_no_files_is_refused_before_the_first_question(lossratio, tmp_path):
    (tmp_path / "file").touch()
    status, out, err = lossratio("init", tmp_path / "file" / "lab")
    assert (status, out) == (2, "")
    assert err.endswith(". Choose another directory: lossratio init DIR.\n")

"""A new lab in three files, from answers or from TRex's configuration: they are checked, and they run."""

from __future__ import annotations

import io
import signal

import pytest
import robot
import yaml
from click.testing import CliRunner
from local_testbeds import needs_testbed, own_state

from lossratio.commands.init import init
from lossratio.errors import TopologyError
from lossratio.measurements.measure import PlannedTrials
from lossratio.runs.job import load_job
from lossratio.topology import load_topology

TREX = """\
- version: 2
  port_limit: 2
  interfaces: ["03:00.0", "0000:03:00.1", "13:00.0"]
  prefix: second
  zmq_rpc_port: 4511
  port_info:
    - dest_mac: [0x2, 0, 0, 0, 0, 0xa1]
      src_mac: 02:00:00:00:00:01
    - dest_mac: "02:00:00:00:00:01"
      src_mac: [0x2, 0, 0, 0, 0, 0x2]
  platform:
    master_thread_id: 0
    latency_thread_id: 1
    dual_if: [{socket: 0, threads: [2, 3]}]
"""


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
    # The policer gives the search its upper bound, and the self-test proves that the tester sends more than that.
    assert load_job("labs/lab1-job.yaml").file.self_test.load == "11 kfps"
    assert load_job("labs/lab1-job.yaml").file.variables == {"GOALS": "csit"}
    suite = (tmp_path / "labs" / "lab1.robot").read_text()
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


def test_the_tg_is_that_of_trex_with_its_cores_and_next_hops(ask, tmp_path):
    (tmp_path / "trex_cfg.yaml").write_text(TREX)
    ask("lab3\ntg.lab.example\nme\ndut.lab.example\n\nlinux_router\nens1\nens2\n", "--trex", "trex_cfg.yaml")
    tg = yaml.safe_load((tmp_path / "lab3.yaml").read_text())["nodes"]["TG"]
    assert (tg["host"], tg["username"], tg["sudo"]) == ("tg.lab.example", "me", True)
    assert tg["generator"] == {
        "kind": "trex",
        "master_core": 0,
        "latency_core": 1,
        "cores": [{"socket": 0, "threads": [2, 3]}],
        "prefix": "second",
        "rpc_port": 4511,
    }
    assert tg["interfaces"] == {
        "port0": {"pci_address": "0000:03:00.0", "mac_address": "02:00:00:00:00:01", "link": "west"},
        "port1": {"pci_address": "0000:03:00.1", "mac_address": "02:00:00:00:00:02", "link": "east"},
    }
    ask("lab4\nnetns:tg\n\n", "--trex", "trex_cfg.yaml")
    # The other next hop is the opposite port, as behind a bridge.
    assert "dut=black_box    west_mac=02:00:00:00:00:a1\n" in (tmp_path / "lab4.robot").read_text()


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


def test_a_configuration_of_trex_that_cannot_be_read_is_refused_before_the_first_question(lossratio):
    status, out, err = lossratio("init", "lab", "--trex", "missing.yaml")
    assert (status, out) == (2, "")
    assert "Cannot read missing.yaml: No such file" in err


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


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- interfaces: [dummy, eth1]\n", "has 1 .'dummy' does not count"),
        ("- version: 2\n", "trex_cfg.yaml:1: interfaces"),
        ("nonsense", "this file must hold fields"),
    ],
)
def test_a_configuration_without_two_ports_is_refused(ask, tmp_path, text, error):
    (tmp_path / "trex_cfg.yaml").write_text(text)
    with pytest.raises(TopologyError, match=error):
        ask("\nnetns:tg\n\n", "--trex", "trex_cfg.yaml")

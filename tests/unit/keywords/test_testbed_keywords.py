from __future__ import annotations

import re

import pytest
import yaml
from password_server import PASSWORD, password_server
from robot_runs import ROOT, run_suite, write_suite

from lossratio.keywords import testbed
from lossratio.topology import load_topology

TOPOLOGIES = ROOT / "topologies"


@pytest.mark.parametrize(("asked", "warnings"), [("local", 0), (TOPOLOGIES / "local.yaml", 1), ("simulated", 0)])
def test_only_another_topology_that_the_run_was_asked_for_is_a_warning(monkeypatch, asked, warnings):
    """The resource file sets ``local`` in each run, so with `Catalogue` nobody asked for it."""
    warned = []
    monkeypatch.setattr(testbed.BuiltIn, "get_variable_value", lambda _, name, default: asked)
    monkeypatch.setattr(testbed.logger, "warn", warned.append)
    testbed._warn_of_another(load_topology("simulated"), "simulated")
    assert len(warned) == warnings


@pytest.mark.whole
def test_a_testbed_may_be_torn_down_twice_and_set_up_again(tmp_path):
    tests = """
A Test
    Tear Down Testbed
    Set Up Testbed    ${TOPOLOGY}
    Measure MRR    64B    trials=1
    Tear Down Testbed
    Tear Down Testbed
    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge
    Measure MRR    64B    trials=1
"""
    assert run_suite(write_suite(tmp_path, tests, "")).status == 0


@pytest.mark.whole
def test_a_search_of_one_testbed_is_not_continued_on_another(tmp_path):
    tests = """
Another Device
    Find Conditional Throughput    {"loss_ratio": 0, "duration_sum": 1, "width": "20 %"}    frame_size=64B
    Tear Down Testbed
    Set Up Testbed    ${TOPOLOGY}
    Run Keyword And Expect Error    SearchError: No search has been made since*    Collect Telemetry
    Run Keyword And Expect Error    SearchError: No search in this test on this testbed*    Measure Latency
"""
    run = run_suite(write_suite(tmp_path, tests))
    assert run.tests["Another Device"].passed, run.tests["Another Device"].message


@pytest.mark.whole
def test_a_second_set_up_is_refused_and_the_first_stays(tmp_path):
    tests = """
Again
    Set Up Testbed    ${TOPOLOGY}
Still There
    Measure MRR    64B    trials=1
"""
    run = run_suite(write_suite(tmp_path, tests))
    assert "already set up" in run.tests["Again"].message
    assert run.tests["Still There"].passed


@pytest.mark.whole
def test_without_a_testbed_nothing_is_measured(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Find NDR And PDR    64B\n", ""))
    assert "No testbed is set up" in run.tests["A Test"].message


@pytest.mark.whole
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("missing.yaml", r"TopologyError: Cannot read missing.yaml"),
        ("${TOPOLOGY}    dut=linux_brigde", r"no kind of DUT 'linux_brigde'.*linux_bridge"),
        ("${TOPOLOGY}    dut=linux_bridge    polise=1", r"no option 'polise'.*police"),
        ("${TOPOLOGY}    police=50 kfps", r"police belong to a kind of DUT"),
    ],
)
def test_a_set_up_that_fails_fails_the_suite_with_one_error_and_is_torn_down(tmp_path, arguments, message):
    settings = f"Suite Setup    Set Up Testbed    {arguments}\nSuite Teardown    Tear Down Testbed"
    run = run_suite(write_suite(tmp_path, "A Test\n    Measure MRR    64B\n", settings))
    assert run.tests["A Test"].failed
    assert run.tests["A Test"].message.startswith("Parent suite setup failed:")
    assert re.search(message, run.tests["A Test"].message)
    assert "teardown" not in run.tests["A Test"].message


@pytest.mark.whole
def test_a_measurement_in_a_suite_setup_belongs_to_the_suite(tmp_path):
    settings = """
Suite Setup    Run Keywords    Set Up Testbed    ${TOPOLOGY}    dut=linux_bridge    police=50 kfps
...    AND    Measure MRR    64B    trials=1
"""
    run = run_suite(write_suite(tmp_path, "A Test\n    Throughput Should Be At Least    1 kpps\n", settings))
    assert (run.directory / "results" / "Suite.Suite_Setup.json").exists()
    assert "kind 'mrr'" in run.tests["A Test"].message


@pytest.mark.whole
def test_suites_do_not_share_a_testbed(tmp_path):
    (tmp_path / "suites").mkdir()
    write_suite(tmp_path, "First\n    Set Up Testbed    ${TOPOLOGY}\n", "").rename(tmp_path / "suites" / "1.robot")
    write_suite(tmp_path, "Second\n    Measure MRR    64B\n", "").rename(tmp_path / "suites" / "2.robot")
    run = run_suite(tmp_path / "suites")
    assert run.tests["First"].passed
    assert "No testbed is set up" in run.tests["Second"].message


@pytest.fixture
def with_password(tmp_path, monkeypatch):
    """A topology whose TG asks for a password, and whose DUT is not there."""
    for name in ("LOSSRATIO_PASSWORD", "LOSSRATIO_PASSWORD_TG", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    data = yaml.safe_load((ROOT / "topologies" / "local.yaml").read_text())
    with password_server() as served:
        node = {"host": "127.0.0.1", "username": "tester", "connect_timeout": "20 s"}
        data["nodes"]["TG"].update(node, port=served.port, host_key=served.host_key)
        data["nodes"]["DUT1"].update(node, port=1, host_key=served.host_key)
        file = tmp_path / "lab.yaml"
        file.write_text(yaml.safe_dump({**data, "testbed": "lab", "reservation": None}))
        yield file


@pytest.mark.whole
@pytest.mark.parametrize(
    ("given", "message"),
    [(PASSWORD, r"NodeError: Node DUT1 .*connection refused"), ("wrong horse", r"NodeError: Node TG .*log-in refused")],
)
def test_a_password_is_a_secret_that_no_log_shows(tmp_path, with_password, monkeypatch, given, message):
    monkeypatch.setenv("LAB_PASSWORD", given)
    tests = """
A Test
    VAR    ${password: Secret}    %{LAB_PASSWORD}
    Set Up Testbed    ${TOPOLOGY}    password=${password}
"""
    run = run_suite(write_suite(tmp_path, tests, ""), TOPOLOGY=with_password)
    assert re.match(message, run.tests["A Test"].message)
    for file in run.directory.iterdir():
        assert given not in file.read_text()


def test_a_password_that_is_no_secret_is_refused(tmp_path):
    run = run_suite(write_suite(tmp_path, "A Test\n    Set Up Testbed    ${TOPOLOGY}    password=open\n", ""))
    assert "Secret" in run.tests["A Test"].message

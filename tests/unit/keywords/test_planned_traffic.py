"""Streams that a generator cannot send are refused before a machine is touched, with the test that has them."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from robot.errors import DataError
from robot.running import TestSuite as Suite
from robot_runs import SIMULATED, RobotRun, called, write_suite

from lossratio.commands.main import commands
from lossratio.errors import DutError, ProfileError
from lossratio.exit_status import ExitStatus
from lossratio.keywords import LossRatio, check_planned_streams, named_profiles
from lossratio.measurements.open_testbed import open_testbed
from lossratio.runs import RunRequest, run
from lossratio.shipped import TOPOLOGIES
from lossratio.testbed import open_testbed as open_plain
from lossratio.topology import load_topology
from lossratio.traffic import load_profile

PROFILE = """
format: lossratio-traffic-profile/1
name: classes
ipv4: {}
udp: {}
streams:
  - {name: voice, share: 1, dscp: 46}
  - {name: data, share: 3}
"""
SUITE = """
Steady
    Find NDR And PDR    64B
Classes
    Find NDR And PDR    64B    profile=${CURDIR}/classes.yaml
"""
TREX = TOPOLOGIES.path("local-trex")
REFUSED = (
    "Test Suite.Classes: Topology local-trex: the generator trex does not send the 'streams' of traffic profile "
    "classes. Use 'kind: afpacket', 'kind: xdp' or 'kind: auto', or a profile without streams."
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "classes.yaml").write_text(PROFILE)
    return tmp_path


@pytest.fixture
def untouched(monkeypatch):
    """Opening a testbed, or reserving one, ends the test."""

    def touched(*arguments, **options):
        raise AssertionError("a machine was touched")

    monkeypatch.setattr("lossratio.testbed.opening.open_testbed", touched)
    monkeypatch.setattr(sys.modules["lossratio.runs.run"], "reserved", touched)
    monkeypatch.setattr("lossratio.testbed.opening._open", touched)


def profiles_of(tests):
    suite = Suite.from_string(f"*** Test Cases ***\n{tests}")
    return [named.profile for named in named_profiles(LossRatio, suite.tests)]


@pytest.mark.parametrize(
    ("steps", "profiles"),
    [
        (["Find NDR And PDR    64B"], []),
        (["Find NDR And PDR    64B    two.yaml"], ["two.yaml"]),
        (["LossRatio.find_ndr_and_pdr    64B    max_load=1 kfps    two.yaml"], ["two.yaml"]),
        (["Measure MRR    profile=two.yaml    frame_size=64B"], ["two.yaml"]),
        (["[Template]    Measure MRR", "64B    two.yaml", "64B    profile=${three}"], ["two.yaml", "${three}"]),
        (["IF    ${x}", "Measure MRR    64B    ${two}", "END"], ["${two}"]),
        (["FOR    ${x}    IN    1", "IF    ${x}", "Measure MRR    64B    two.yaml", "END", "END"], ["two.yaml"]),
        (["[Setup]    Start Traffic    1 kfps    64B    two.yaml", "Log    profile=no"], ["two.yaml"]),
        (["Find Conditional Throughput    NDR    frame_size=64B    profile=two.yaml"], ["two.yaml"]),
        (["Run RFC 2544    throughput    profile=two.yaml"], ["two.yaml"]),
        (["Measure MRR    64B    warm_up=1 s    warm_up_profile=two.yaml"], ["two.yaml"]),
        (["Measure MRR    @{sizes}    two.yaml"], []),
        (["Log    64B    two.yaml"], []),
    ],
)
def test_profiles_of_tests_are_found(steps, profiles):
    lines = "".join(f"    {step}\n" for step in steps)
    assert profiles_of(f"One\n{lines}") == profiles


def test_profiles_that_are_not_known_yet_are_left_to_their_tests(folder):
    suite = Suite.from_string("*** Test Cases ***\nOne\n    Measure MRR    64B    ${later}")

    def replaced(text):
        raise DataError(f"Variable '{text}' not found.")

    check_planned_streams(named_profiles(LossRatio, suite.tests), load_topology(TREX), replaced)
    missing = Suite.from_string("*** Test Cases ***\nOne\n    Measure MRR    64B    nowhere.yaml")
    check_planned_streams(named_profiles(LossRatio, missing.tests), load_topology(TREX), str)


def test_the_set_up_of_a_suite_refuses_them(folder, untouched):
    suite = write_suite(folder, SUITE)
    called(folder, "--outputdir", "out", "--variable", f"TOPOLOGY:{TREX}", suite)
    run = RobotRun(folder / "out", 2)
    assert f"ProfileError: {REFUSED}" in run.tests["Steady"].message


def test_a_suite_of_suites_is_looked_through(folder, untouched):
    (folder / "inner").mkdir()
    (folder / "inner" / "classes.yaml").write_text(PROFILE)
    write_suite(folder / "inner", SUITE, settings="")
    settings = "Library    LossRatio\nSuite Setup    Set Up Testbed    ${TOPOLOGY}"
    (folder / "inner" / "__init__.robot").write_text(f"*** Settings ***\n{settings}\n")
    called(folder, "--outputdir", "out", "--variable", f"TOPOLOGY:{TREX}", "inner")
    run = RobotRun(folder / "out", 2)
    assert REFUSED.replace("Suite.", "Inner.Suite.") in run.tests["Steady"].message


def test_a_suite_without_them_is_measured_as_before(folder):
    suite = write_suite(folder, "One\n    Measure MRR    64B    trials=1    trial_duration=0.1 s")
    assert called(folder, "--outputdir", "out", "--variable", f"TOPOLOGY:{SIMULATED}", suite) == 0


@pytest.mark.whole
def test_a_dry_run_shows_them(folder, untouched):
    suite = write_suite(folder, SUITE)
    called(folder, "--outputdir", "out", "--dryrun", "--variable", f"TOPOLOGY:{TREX}", suite)
    assert RobotRun(folder / "out", 0).errors == [REFUSED]


def test_a_run_refuses_them_before_it_reserves_a_testbed(folder, untouched, monkeypatch):
    monkeypatch.chdir(folder)
    outcome = run(RunRequest((TREX,), (write_suite(folder, SUITE),)))
    assert (outcome.status, outcome.error) == (ExitStatus.BAD_INPUT, REFUSED)
    assert not (folder / "results").exists()


def test_a_run_knows_the_variables_of_the_suite_and_of_the_command_line(folder, untouched, monkeypatch):
    monkeypatch.chdir(folder)
    tests = "Classes\n    Measure MRR    64B    ${PROFILE}\n*** Variables ***\n${PROFILE}    ethip4-udp\n"
    request = RunRequest((TREX,), (write_suite(folder, tests),))
    with pytest.raises(AssertionError, match="a machine was touched"):
        run(request)
    outcome = run(replace(request, robot_options=("--variable", "PROFILE:classes.yaml")))
    assert (outcome.status, outcome.error) == (ExitStatus.BAD_INPUT, REFUSED)


def test_check_refuses_a_profile(folder):
    profile = str(folder / "classes.yaml")
    done = CliRunner().invoke(commands, ["check", str(TREX), "--profile", profile])
    assert isinstance(done.exception, ProfileError)
    assert str(done.exception) == REFUSED.partition(": ")[2]
    local = str(TOPOLOGIES.path("local"))
    assert CliRunner().invoke(commands, ["check", local, "--profile", profile]).exit_code == 0


def test_a_testbed_is_not_opened_for_traffic_that_it_cannot_send(folder, untouched):
    traffic = load_profile(folder / "classes.yaml", frame_size=64)
    with pytest.raises(ProfileError, match="the generator trex does not send"):
        open_plain(TREX, traffics=[traffic])


def test_a_script_is_refused_before_another_device_is_set_up(folder):
    with open_testbed(SIMULATED, dut="linux_bridge", options={"police": "50 kfps"}, results=folder) as testbed:
        with pytest.raises(ProfileError, match="of a simulated testbed does not send"):
            testbed.mrr(64, str(folder / "classes.yaml"), dut="linux_router", options={"police": "9 kfps"})
        assert "linux_bridge" in repr(testbed)
        with pytest.raises(DutError):
            testbed.mrr(64, dut="no_such_kind")

"""Streams that a generator cannot send are refused where they are asked for, and nothing else is."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from robot_runs import SIMULATED, RobotRun, called, write_suite

from lossratio.commands.main import commands
from lossratio.errors import DutError, ProfileError
from lossratio.files.shipped import TOPOLOGIES
from lossratio.measurements.open_testbed import open_testbed
from lossratio.testbed import open_testbed as open_plain
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
Classes
    Measure MRR    64B    profile=${CURDIR}/classes.yaml
Steady
    Measure MRR    64B    trials=1    trial_duration=0.1 s
"""
TREX = TOPOLOGIES.path("local-trex")
REFUSED = (
    "Topology local-trex: the generator trex does not send the 'streams' of traffic profile "
    "classes. Use 'kind: afpacket', 'kind: xdp' or 'kind: auto', or a profile without streams."
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "classes.yaml").write_text(PROFILE)
    return tmp_path


@pytest.mark.whole
def test_only_the_test_that_asks_for_them_fails(folder):
    called(folder, "--outputdir", "out", "--variable", f"TOPOLOGY:{SIMULATED}", write_suite(folder, SUITE))
    run = RobotRun(folder / "out", 1)
    assert "does not send the 'streams' of traffic profile classes" in run.tests["Classes"].message
    assert run.tests["Steady"].status == "PASS"


def test_check_refuses_a_profile(folder):
    profile = str(folder / "classes.yaml")
    done = CliRunner().invoke(commands, ["check", str(TREX), "--profile", profile])
    assert isinstance(done.exception, ProfileError)
    assert str(done.exception) == REFUSED
    local = str(TOPOLOGIES.path("local"))
    assert CliRunner().invoke(commands, ["check", local, "--profile", profile]).exit_code == 0


def test_a_testbed_is_not_opened_for_traffic_that_it_cannot_send(folder, monkeypatch):
    monkeypatch.delattr("lossratio.testbed.opening._open")
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

"""Topologies and suites that come with lossratio are given by name, wherever a file can be given."""

from __future__ import annotations

import pytest

from lossratio import open_testbed
from lossratio.errors import JobError, TopologyError
from lossratio.files.shipped import SUITES, TOPOLOGIES
from lossratio.runs.job import load_job
from lossratio.topology import load_topology
from lossratio.values.names import did_you_mean

JOB = "format: lossratio-job/1\nname: ours\ntopologies: [{}]\ntests: [{{suites: [{}]}}]\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.whole
def test_each_topology_can_be_loaded_by_its_name_and_has_two_ports():
    names = TOPOLOGIES.names()
    topologies = [load_topology(name) for name in names]
    assert len(names) > 5
    assert [topology.name for topology in topologies] == list(names)
    assert all(len(topology.path().ports) >= 2 for topology in topologies)


def test_a_testbed_is_opened_by_the_name_of_its_topology():
    with open_testbed("simulated") as testbed:
        assert testbed.ndr_pdr("64B", goals="quick").goals[0].result.regular


def test_a_file_of_the_user_goes_before_what_comes_with_lossratio(tmp_path):
    (tmp_path / "local").write_text(TOPOLOGIES.path("simulated").read_text())
    assert load_topology("local").name == "simulated"
    (tmp_path / "simulated").mkdir()
    assert load_topology("simulated").name == "simulated"
    (tmp_path / "linux_bridge").mkdir()
    assert SUITES.path("linux_bridge").resolve() == tmp_path / "linux_bridge"


def test_an_unknown_name_is_an_error_with_the_nearest_one_or_the_names_there_are():
    with pytest.raises(TopologyError, match=r"no file simulatd\. Did you mean 'simulated'\?$"):
        load_topology("simulatd")
    with pytest.raises(TopologyError, match=r"no file xyz\. These come with lossratio: local, .*-device\.$"):
        load_topology("xyz")


@pytest.mark.parametrize("path", ["lab.yaml", "labs/lab"])
def test_a_path_that_does_not_exist_is_no_name(path):
    with pytest.raises(TopologyError, match=rf"^Cannot read {path}: No such file or directory\. Check the path.*\.$"):
        load_topology(path)


def test_a_job_names_suites_and_topologies_that_come_with_lossratio(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.format("simulated", "linux_bridge"))
    job = load_job("job.yaml")
    assert job.suites_on(job.testbeds[0])[0].name == "linux_bridge.robot"
    assert job.testbeds[0].topology.name == "simulated"


def test_a_job_with_misspelt_names_is_refused_with_the_nearest_ones(tmp_path):
    (tmp_path / "job.yaml").write_text(JOB.format("lokal", "linux_brige"))
    with pytest.raises(JobError) as refused:
        load_job("job.yaml")
    assert "job.yaml:3: topologies.0: there is no file lokal" in str(refused.value)
    assert "Did you mean 'local'?" in str(refused.value)
    assert "Did you mean 'linux_bridge'?" in str(refused.value)


@pytest.mark.parametrize(("given", "meant"), [("vpp_ip4", "vpp"), ("bridge", "linux_bridge"), ("markdown", "md")])
def test_a_name_that_is_longer_or_shorter_than_the_right_one_is_recognized(given, meant):
    assert did_you_mean(given, ["linux_bridge", "vpp", "md"]) == f" Did you mean {meant!r}?"


def test_nothing_near_is_no_hint():
    assert did_you_mean("xyz", ["local", "simulated"]) == ""

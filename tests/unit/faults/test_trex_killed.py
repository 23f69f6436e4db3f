"""TRex's server is killed in the midst of a measurement, on a real testbed: started anew, and the trial repeated."""

from __future__ import annotations

import sys

import pytest
import yaml
from local_testbeds import LOCAL, needs_testbed
from trex_installation import install

from lossratio.errors import TrafficError
from lossratio.measurements.measurement import TestPlace
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeSession
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.testbed import Recovery
from lossratio.topology import load_topology
from lossratio.traffic import load_profile

pytestmark = [pytest.mark.netns, needs_testbed]
REQUEST = MrrRequest(profile=load_profile("ethip4-udp", frame_size="64B"), max_load=10e3, trials=3, trial_duration=0.2)
RECOVERY = Recovery(pauses=(0.1, 0.2), patience=10.0)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A local testbed whose tester has TRex: its topology file, and the testbed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    topology = yaml.safe_load(LOCAL.read_text())
    directory = str(install(tmp_path / "trex"))
    generator = {"kind": "trex", "software": True, "directory": directory, "python": sys.executable}
    topology["name"] = "trex-killed"
    topology["nodes"]["TG"]["generator"] = {**generator, "start_timeout": "20 s"}
    file = tmp_path / "topology.yaml"
    file.write_text(yaml.safe_dump(topology))
    running = LocalTestbed.up(load_topology(file), keep=True)
    yield file, running
    running.down()


@pytest.fixture
def on_tg(lab):
    """Runs a line of shell on the TG node."""
    with NodeSession.connect("TG", lab[1].topology.nodes["TG"]) as session:
        yield lambda line: session.run("sh", "-c", line, check=False).stdout


def measured(lab, tmp_path, act):
    """An MRR, with something that happens after its first trial: its result, also if it failed."""
    place = TestPlace(TestIdentity(name="mrr", suite="faults"), RunDirectory(tmp_path / "run"))
    bench = open_testbed(lab[0], dut="linux_bridge", recovery=RECOVERY)
    try:
        measure_mrr(bench, REQUEST, place, lambda progress: act() if progress.number == 1 else None)
    finally:
        bench.close()
        result = read_result(place.directory.result_path(place.test.full_name))
    return result


KILL = "kill -KILL $(cut -d ' ' -f 1 /run/lossratio/trex-*/pid)"


def test_a_server_that_is_killed_is_started_anew_and_the_trial_repeated(lab, on_tg, tmp_path):
    result = measured(lab, tmp_path, lambda: on_tg(KILL))
    assert len(result.trials) == 3
    (repair,) = [repair for trial in result.trials for repair in trial.repairs]
    assert "TRex" in repair
    assert on_tg("pgrep -f '[_]t-rex-64|/[a]gent-'") == ""


def test_changes_of_the_tg_are_seen_beside_trex_too(lab, on_tg, tmp_path):
    result = measured(lab, tmp_path, lambda: on_tg("ip link set dev tg0 mtu 2000"))
    on_tg("ip link set dev tg0 mtu 9216")
    # A busy host may take CPU time from the machine besides.
    (incident,) = [incident for trial in result.trials for incident in trial.incidents if incident.interface]
    assert (len(result.trials), incident.guilty, incident.interface, incident.done) == (3, "TG", "tg0", "repaired")
    assert incident.change == "the MTU of interface tg0 of TG was 9216, and is now 2000"


def test_a_server_that_cannot_be_started_again_is_one_clear_error_and_keeps_the_trials(lab, on_tg, tmp_path):
    program = tmp_path / "trex" / "_t-rex-64"

    def kill_for_good():
        program.write_text("#!/bin/sh\necho 'EAL: cannot open the card'\nexit 1\n")
        on_tg(KILL)

    with pytest.raises(TrafficError, match=r"does not start .*cannot open the card"):
        measured(lab, tmp_path, kill_for_good)
    result = read_result(RunDirectory(tmp_path / "run").result_path("faults.mrr"))
    assert len(result.trials) == 1
    assert "cannot open the card" in result.error
    assert on_tg("pgrep -f '[_]t-rex-64|/[a]gent-'") == ""

"""What breaks between two trials of a real testbed: the guilty side is named, and nobody else."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import place
from testbed_processes import lose_connections
from waiting import wait_until

from lossratio.dut.linux import node_dut
from lossratio.errors import DutError, LossRatioError, NodeError, TesterError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeSession
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.runs.verdicts import failure_kind
from lossratio.testbed import watch
from lossratio.testbed.changes import Way, changes_between
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.running_traffic import start_traffic
from lossratio.testbed.testbed import Recovery
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials.journal_reading import read_journal
from lossratio.values.exit_status import FailureKind

pytestmark = [pytest.mark.netns, needs_testbed]
TRIALS = 4
BEFORE = 2
"""Trials before something breaks."""
REQUEST = MrrRequest(
    profile=load_profile("ethip4-udp", frame_size=512), max_load=2e3, trials=TRIALS, trial_duration=0.2
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A testbed that is there to stay: its file, and a log-in on each node."""
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("topology"), "blame")
        testbed = LocalTestbed.up(load_topology(file), keep=True)
        sessions = {name: NodeSession.connect(name, node) for name, node in testbed.topology.nodes.items()}
        yield file, sessions
        for session in sessions.values():
            session.close()
        testbed.down()


@pytest.fixture(scope="module")
def testbed(lab):
    testbed = open_testbed(lab[0], dut="linux_bridge", recovery=Recovery(pauses=(0.1, 0.1)))
    yield testbed
    testbed.close()


@pytest.fixture(autouse=True)
def each_test_has_a_log_in_on_each_node(lab):
    for session in lab[1].values():
        session.restore()


def setting(lab, node, interface, *values):
    return lambda: [lab[1][node].run("ip", "link", "set", "dev", interface, *value.split()) for value in values]


def breaking(act):
    """Breaks something after some trials."""
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if len(seen) == BEFORE:
            act()

    return on_progress


def incident_of(trial):
    """The one incident at an interface. A busy host may take CPU time from this machine besides."""
    (incident,) = [incident for incident in trial.incidents if incident.interface]
    return incident


def failure_of(testbed, directory, act):
    """The error that a measurement ends with, how many trials its journal keeps, and what kind of failure it is."""
    with pytest.raises(LossRatioError) as raised:
        measure_mrr(testbed, REQUEST, place(directory), breaking(act))
    kept = len(read_journal(directory / "trials" / "a_suite.a_test.jsonl").entries)
    return raised.value, kept, failure_kind(raised.value)


@pytest.mark.parametrize(
    ("interface", "broken", "mended", "message"),
    [
        ("tg1", "mtu 300", "mtu 9216", "the MTU of interface tg1 of TG was 9216, and is now 300. Restore it (ip link"),
        ("tg0", "down", "up", "interface tg0 of TG was set down. Set it up again (ip link"),
    ],
)
def test_a_fault_of_the_tg_is_never_the_duts_and_good_trials_are_resumed(
    testbed, lab, tmp_path, interface, broken, mended, message
):
    try:
        error, kept, kind = failure_of(testbed, tmp_path, setting(lab, "TG", interface, broken))
    finally:
        setting(lab, "TG", interface, mended)()
    assert f"The TG is to blame: {message}" in str(error)
    assert (type(error), kept, kind) == (TesterError, BEFORE, FailureKind.INFRASTRUCTURE)
    failed = read_result(tmp_path / "results" / "a_suite.a_test.json")
    assert (failed.outcome, failed.guilty) == (Outcome.FAILED, "TG")
    progress = []
    resumed = measure_mrr(testbed, REQUEST, place(tmp_path / "again", resume=tmp_path), progress.append)
    assert (resumed.outcome, len(resumed.trials), len(progress)) == (Outcome.MEASURED, TRIALS, TRIALS - BEFORE)


def test_a_port_of_the_tg_that_is_down_when_the_dut_is_set_up_is_the_tgs_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(node_dut, "LINK_TIMEOUT", 0.2)
    with own_state():
        file = local_topology(tmp_path, "blame-at-set-up")
        local = LocalTestbed.up(load_topology(file), keep=True)
        try:
            with NodeSession.connect("TG", local.topology.nodes["TG"]) as session:
                session.run("ip", "link", "set", "dev", "tg1", "down")
            with pytest.raises(TesterError, match=r"interface tg1 of TG is down.*DUT1: no link on dut1"):
                open_testbed(file, dut="linux_bridge")
        finally:
            local.down()


def test_a_tg_that_is_itself_again_repeats_the_one_trial_that_saw_the_change(testbed, lab, tmp_path):
    mending = logging.Handler()
    mending.emit = lambda record: setting(lab, "TG", "tg1", "mtu 9216")()
    log = logging.getLogger("lossratio.testbed.repair")
    log.addHandler(mending)
    try:
        result = measure_mrr(testbed, REQUEST, place(tmp_path), breaking(setting(lab, "TG", "tg1", "mtu 300")))
    finally:
        log.removeHandler(mending)
    assert [trial.lost_frames for trial in result.trials] == [0] * TRIALS
    incident = incident_of(result.trials[BEFORE])
    assert (incident.guilty, incident.node, incident.interface, incident.done) == ("TG", "TG", "tg1", "repaired")
    assert [len(trial.repairs) for trial in result.trials] == [0, 0, 1, 0]


def test_a_link_that_flaps_is_nobodys_fault_but_the_wires(testbed, lab, tmp_path):
    flap = setting(lab, "DUT1", "dut1", "down", "up")
    result = measure_mrr(testbed, REQUEST, place(tmp_path), breaking(flap))
    assert (result.outcome, len(result.trials)) == (Outcome.MEASURED, TRIALS)
    incident = incident_of(result.trials[BEFORE])
    assert (incident.guilty, incident.node, incident.interface) == ("wire", "DUT1, TG", "DUT1.dut1 - TG.tg1")


def test_traffic_besides_trials_is_not_believed_either(testbed, lab):
    with start_traffic(testbed, REQUEST.profile, 1e3) as traffic:
        setting(lab, "TG", "tg1", "mtu 300")()
        try:
            with pytest.raises(TesterError, match="MTU of interface tg1 of TG was 9216, and is now 300"):
                traffic.stop()
        finally:
            setting(lab, "TG", "tg1", "mtu 9216")()


def test_a_fingerprint_is_what_the_kernels_of_the_nodes_say(lab):
    _, sessions = lab
    with closing(FingerprintReader(sessions, {"TG": ("tg0", "tg1", "eth9"), "DUT1": ("dut0",)})) as reader:
        before, after = reader.read(), reader.read()
        assert {name: tuple(facts.ports) for name, facts in after.nodes.items()} == {
            "TG": ("tg0", "tg1"),
            "DUT1": ("dut0",),
        }
        for name, node in after.nodes.items():
            earlier = before.nodes[name]
            assert node.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            assert earlier.uptime <= node.uptime <= after.controller.running + 0.01
            assert node.awake is None or earlier.awake <= node.awake <= node.uptime + 0.01
            assert None not in (node.stolen, node.pressure)
            assert earlier.asked <= earlier.answered <= node.asked
        port = after.nodes["TG"].ports["tg0"]
        assert (port.mtu, port.is_up, port.has_carrier, port.damaged, port.refused) == (9216, True, True, 0, 0)
        assert {change.rule.change for change in changes_between(before, after, Way(("TG",), ()))} <= {"stolen"}
        with pytest.raises(NodeError):
            lose_connections(sessions["TG"])
        for session in sessions.values():
            session.restore()
        assert reader.read().nodes["TG"].boot_id == after.nodes["TG"].boot_id


def test_the_time_for_which_a_program_has_no_cpu_is_that_of_its_threads(lab, tmp_path):
    _, sessions = lab
    file = tmp_path / "pid"
    spin = f"echo $$ 4711 >> '{file}'; while [ -e '{file}' ]; do :; done"
    command = ("taskset", "-c", str(min(os.sched_getaffinity(0))), "sh", "-c", spin)
    with ExitStack() as ends:
        for _ in range(6):
            ends.callback(sessions["DUT1"].start(*command).close)
        wait_until(lambda: file.exists() and len(file.read_text().splitlines()) == 6)
        ends.callback(file.unlink)
        first = file.read_text().split()[0]
        reader = FingerprintReader(sessions, {}, lambda: {"DUT1": (str(file), str(tmp_path / "none"))})
        with closing(reader):
            least = waited(sessions["DUT1"], first)
            before = reader.read()
            # Six on a CPU have a sixth of it each. A host that stalls takes time from all of them, so it takes longer.
            wait_until(lambda: "waited" in changes_of(before, reader.read()))
            enough = waited(sessions["DUT1"], first)
            after = reader.read()
            most = waited(sessions["DUT1"], first)
    threads = before.nodes["DUT1"].threads, after.nodes["DUT1"].threads
    assert [list(found) for found in threads] == [[first], [first]]
    assert least <= threads[0][first].waited < enough <= threads[1][first].waited <= most
    assert after.nodes["TG"].threads == {}
    changes = changes_of(before, after)
    assert changes.keys() <= {"waited", "stolen"}
    assert changes["waited"].startswith("the thread sh of")


def waited(session, thread):
    return int(session.run("cat", f"/proc/{thread}/schedstat").stdout.split()[1]) / 1e9


def changes_of(before, after):
    return {change.rule.change: str(change) for change in changes_between(before, after, Way(("TG",), ()))}


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("broken", "mended", "message", "verified_every", "known_good"),
    [
        # All else is as it was set up.
        ("mtu 300", "mtu 9216", "the MTU of interface dut1 of DUT1 was 9216, and is now 300.", 1e9, BEFORE),
        ("down", "up", "interface dut1 of DUT1 was set down.", 1e9, 0),
        ("down", "up", "interface dut1 of DUT1 was set down.", 0.0, BEFORE),
    ],
)
def test_a_fault_of_the_dut_is_its_result(
    testbed, lab, tmp_path, monkeypatch, broken, mended, message, verified_every, known_good
):
    monkeypatch.setattr(watch, "VERIFY_SECONDS", verified_every)
    try:
        error, kept, kind = failure_of(testbed, tmp_path, setting(lab, "DUT1", "dut1", broken))
    finally:
        setting(lab, "DUT1", "dut1", mended)()
    assert f"The DUT is to blame: {message}" in str(error)
    assert (isinstance(error, DutError), kept, kind) == (True, known_good, FailureKind.TEST)
    failed = read_result(tmp_path / "results" / "a_suite.a_test.json")
    assert (failed.outcome, failed.guilty) == (Outcome.FAILED, "DUT")

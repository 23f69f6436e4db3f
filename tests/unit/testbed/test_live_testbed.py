"""The live testbed on what a lab has, too: real sshd, real namespaces, real frames."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import yaml
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place
from testbed_processes import agents, connections, lose_connections
from waiting import wait_until

from lossratio.errors import DutError, NodeError, NotMeasuredHereError, TopologyError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeProcess, NodeSession
from lossratio.results.findings import doubts_of
from lossratio.results.model import Outcome
from lossratio.results.note import NoteKind
from lossratio.results.run_directory import read_result
from lossratio.testbed import local
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.reservation.lease import TestbedReservedError
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput
from lossratio.trials.journal_reading import read_journal

pytestmark = [pytest.mark.netns, needs_testbed]
BRIEF = MrrRequest(profile=PROFILE, max_load=20e3, trials=2, trial_duration=0.2)
LONG = MrrRequest(profile=PROFILE, max_load=2e3, trials=5, trial_duration=1.0)


def lab_of(testbed):
    """A local testbed as a file describes one in a lab; its reservation stays inside of it."""
    topology = testbed.topology.model_dump(mode="json", exclude_none=True)
    return {**topology, "reservation": {"directory": "/run/lossratio"}}


def is_up(name):
    return any(testbed.name == name for testbed in local.status())


@pytest.fixture(scope="module", autouse=True)
def state_home():
    """A state directory of these tests' own."""
    with own_state():
        yield


@pytest.fixture(scope="module")
def kept(state_home, tmp_path_factory):
    """A testbed that is there to stay, and the file that describes it."""
    file = local_topology(tmp_path_factory.mktemp("topology"), "bench")
    testbed = LocalTestbed.up(load_topology(file), keep=True)
    yield file, testbed
    testbed.down()


@pytest.fixture
def policed(kept):
    testbed = open_testbed(kept[0], dut="linux_bridge", options={"police": "10 kfps"})
    yield testbed
    testbed.close()


@pytest.fixture
def log_in(kept):
    sessions = {name: NodeSession.connect(name, node) for name, node in kept[1].topology.nodes.items()}
    yield sessions
    for session in sessions.values():
        session.close()


def after(trials, act):
    """Acts during the trial that follows so many."""
    seen = []

    def on_trial(trial):
        seen.append(trial)
        if len(seen) == trials:
            act()

    return on_trial


@pytest.mark.smoke
def test_a_policed_bridge_passes_no_more_than_its_truth(policed, tmp_path):
    result = measure_mrr(policed, BRIEF, place(tmp_path))
    assert result.trials
    for trial in result.trials:
        assert len(trial.directions) == 2
        for direction in trial.directions:
            assert 0 < direction.received_frames <= 10_000 * direction.elapsed_s + 200 + 10
            # A trial that a busy machine stretches has more, which were not sent.
            assert direction.sent_frames <= 4000 <= direction.sent_frames + direction.unsent_frames


def test_traffic_begins_when_devices_that_were_asked_something_are_quiet_again(policed, monkeypatch):
    steps = []
    dut = policed.duts[0]
    monkeypatch.setattr(type(dut), "reset", lambda self: steps.append("ask"))
    monkeypatch.setattr(type(dut), "resets", property(lambda self: True))
    monkeypatch.setattr(type(dut), "wakeful_time", property(lambda self: 8.25))
    sleep = time.sleep
    with policed.ready_for(load_profile("ethip4-ip4base", frame_size=64)) as ready:
        monkeypatch.setattr(time, "sleep", lambda seconds: steps.append("wait") if seconds == 8.25 else sleep(seconds))
        steps.clear()
        ready.measurer.measure(TrialInput(0.1, 1000.0))
    assert steps[:2] == ["ask", "wait"]


def test_frames_that_are_too_large_for_a_device_are_refused_before_any_is_sent(policed, monkeypatch):
    limits = []
    monkeypatch.setattr(policed, "_passing", lambda *_: pytest.fail("frames were sent"))

    def refuse(dut, largest):
        limits.append(largest)
        raise DutError("at most 1518 bytes")

    monkeypatch.setattr(type(policed.duts[0]), "check_frames", refuse)
    with (
        pytest.raises(DutError, match="at most 1518"),
        policed.ready_for(load_profile("ethip4-udp", frame_size="IMIX")),
    ):
        pass
    assert limits == [1518]


@pytest.mark.quiet
def test_late_frames_of_the_last_trial_are_reported(policed, log_in, tmp_path, unseen):
    # It holds frames for 0.3 s: they are late, and gone before the end of a trial that a busy host has had repeated.
    queue = ("tbf", "rate", "400kbit", "burst", "1600", "limit", "15k")
    log_in["DUT1"].run("tc", "qdisc", "replace", "dev", "dut1", "root", *queue)
    try:
        result = measure_mrr(policed, BRIEF.but(max_load=5e3, trials=1), place(tmp_path))
    finally:
        log_in["DUT1"].run("tc", "qdisc", "delete", "dev", "dut1", "root")
    (trial,) = result.trials
    assert 0 < trial.missing.late <= trial.lost_frames
    # CPU time that the host takes is a doubt, too.
    assert NoteKind.LATE_FRAMES in [doubt.kind for doubt in doubts_of([result])[0]]


def test_the_result_states_where_and_how_it_was_measured(policed, kept, tmp_path):
    conditions = measure_mrr(policed, BRIEF, place(tmp_path)).conditions
    assert conditions.testbed.topology == load_topology(kept[0]).model_dump(mode="json")
    assert {name: facts.kernel for name, facts in conditions.nodes.items()} == dict.fromkeys(
        ("TG", "DUT1"), os.uname().release
    )
    assert conditions.duts["DUT1"]["options"]["police"] == 10_000
    assert any("type bridge" in command for command in conditions.duts["DUT1"]["commands"])
    assert conditions.generator["kind"] == "afpacket"
    assert conditions.generator["ports"].keys() == {"tg0", "tg1"}
    assert conditions.timing.recovery_s == 0.02
    assert conditions.load.directions == ("port0>port1", "port1>port0")


def test_a_lab_testbed_is_reached_as_its_file_says(kept, tmp_path):
    file = tmp_path / "lab.yaml"
    data = lab_of(kept[1])
    file.write_text(yaml.safe_dump({**data, "testbed": "lab"}))
    testbed = open_testbed(file, dut="linux_bridge", options={"police": "10 kfps"})
    result = measure_mrr(testbed, BRIEF, place(tmp_path))
    testbed.close()
    assert result.outcome is Outcome.MEASURED
    assert result.conditions.testbed.topology["nodes"]["TG"]["port"] == kept[1].topology.nodes["TG"].port


@pytest.mark.parametrize(("name", "node"), [("tg1", "TG"), ("dut0", "DUT1")])
def test_an_interface_that_is_not_there_is_named_with_those_that_are(kept, tmp_path, name, node):
    file = tmp_path / "lab.yaml"
    data = lab_of(kept[1])
    file.write_text(yaml.safe_dump({**data, "testbed": "lab"}).replace(name, "eth9"))
    with pytest.raises((TopologyError, DutError), match=rf"{node}.* no interface 'eth9'.*topology file"):
        open_testbed(file, dut="linux_bridge")


def in_a_trial(dut, act):
    """A thread that acts when the frames of a trial flow through the DUT."""

    def received():
        return int(dut.run("cat", "/sys/class/net/dut0/statistics/rx_packets").stdout)

    def wait_and_act():
        before = received()
        wait_until(lambda: received() > before + 100)
        act()

    return threading.Thread(target=wait_and_act)


def the_repaired(result):
    """The index of the only trial that was repaired: the third, or a later one on a host that is late to break it."""
    (number,) = [number for number, trial in enumerate(result.trials) if trial.repairs]
    assert len(result.trials[number].repairs) == 1
    assert number >= 2
    return number


@pytest.mark.smoke
def test_a_trial_whose_agent_is_killed_is_repeated_with_a_new_one(policed, log_in, tmp_path):
    (agent,) = agents(log_in["TG"])
    killer = in_a_trial(log_in["DUT1"], lambda: log_in["TG"].run("kill", "-KILL", agent))
    result = measure_mrr(policed, LONG, place(tmp_path, "killed"), after(2, killer.start))
    killer.join()
    assert (result.outcome, len(result.trials)) == (Outcome.MEASURED, 5)
    assert "Killed" in result.trials[the_repaired(result)].repairs[0]
    assert agents(log_in["TG"])


def lose_all_connections(session):
    """Kills the server of every connection to the testbed, this one's too, and waits until all of them are gone."""
    servers = set(connections(session))
    with pytest.raises(NodeError, match="connection was lost"):
        lose_connections(session)
    session.restore()
    wait_until(lambda: servers.isdisjoint(connections(session)))


def test_a_trial_whose_connection_is_lost_is_repeated_over_a_new_one(policed, log_in, tmp_path):
    killer = in_a_trial(log_in["DUT1"], lambda: lose_all_connections(log_in["TG"]))
    result = measure_mrr(policed, LONG, place(tmp_path, "lost"), after(2, killer.start))
    killer.join()
    assert (result.outcome, len(result.trials)) == (Outcome.MEASURED, 5)
    number = the_repaired(result)
    assert "the connection was lost" in result.trials[number].repairs[0]
    assert read_journal(tmp_path / "trials" / "a_suite.lost.jsonl").entries[number].result.output.repairs


def test_a_connection_that_is_lost_after_the_last_trial_costs_no_trial(policed, log_in, tmp_path, monkeypatch):
    (dut,) = policed.duts
    verify = dut.verify
    calls = []

    def verify_over_lost_connections():
        calls.append("verify")
        # The first call is before the first trial.
        if len(calls) == 2:
            lose_all_connections(log_in["TG"])
        verify()

    monkeypatch.setattr(dut, "verify", verify_over_lost_connections)
    result = measure_mrr(policed, BRIEF, place(tmp_path))
    assert (result.outcome, len(result.trials), len(calls)) == (Outcome.MEASURED, 2, 3)
    # The agent ended with its connection: the next measurement needs another one.
    following = measure_mrr(policed, BRIEF, place(tmp_path, "following"))
    assert (following.outcome, len(following.trials)) == (Outcome.MEASURED, 2)


def test_a_measurement_after_the_agent_was_killed_has_another_one(policed, log_in, tmp_path, monkeypatch):
    measure_mrr(policed, BRIEF, place(tmp_path))
    # The news of its end may come late.
    monkeypatch.setattr(NodeProcess, "exit_status", None)
    # The agent's children may end with it, before it is their turn.
    log_in["TG"].run("kill", "-KILL", *agents(log_in["TG"]), check=False)
    wait_until(lambda: not agents(log_in["TG"]))
    result = measure_mrr(policed, BRIEF, place(tmp_path, "following"))
    assert (result.outcome, len(result.trials)) == (Outcome.MEASURED, 2)


def test_a_dut_is_put_back_also_after_its_connection_was_lost(kept, log_in):
    before = log_in["DUT1"].run("nft", "list", "ruleset").stdout
    testbed = open_testbed(kept[0], dut="linux_bridge", options={"police": "10 kfps"})
    lose_all_connections(log_in["TG"])
    testbed.close()
    log_in["DUT1"].restore()
    assert log_in["DUT1"].run("nft", "list", "ruleset").stdout == before


def test_a_dut_that_is_gone_is_said_not_to_be_put_back(tmp_path):
    file = local_topology(tmp_path, "bench-gone")
    testbed = open_testbed(file, dut="linux_bridge")
    (running,) = (status for status in local.status() if status.name == file.stem)
    running.down()
    with pytest.raises(NodeError, match=r"DUT1 could not be restored to its earlier state: Node DUT1 "):
        testbed.close()


def test_an_interrupt_stops_the_traffic_and_keeps_every_finished_trial(policed, log_in, tmp_path):
    def interrupt(number, frame):
        raise KeyboardInterrupt

    def interrupt_soon():
        signal.setitimer(signal.ITIMER_REAL, 0.3)

    earlier = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            measure_mrr(policed, LONG, place(tmp_path, "interrupted"), after(2, interrupt_soon))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
    assert agents(log_in["TG"]) == []
    entries = read_journal(tmp_path / "trials" / "a_suite.interrupted.jsonl").entries
    failed = read_result(tmp_path / "results" / "a_suite.interrupted.json")
    assert 2 <= len(entries) == len(failed.trials) < 5
    resumed = measure_mrr(policed, LONG, place(tmp_path / "again", "interrupted", resume=tmp_path))
    assert [trial.as_result().input for trial in resumed.trials[: len(entries)]] == [
        entry.result.input for entry in entries
    ]
    assert len(resumed.trials) == 5


def test_a_testbed_is_not_set_up_for_two_at_once(policed, kept, tmp_path):
    with pytest.raises(TestbedReservedError, match="measuring linux_bridge"):
        open_testbed(kept[0], dut="linux_bridge")
    assert measure_mrr(policed, BRIEF, place(tmp_path)).outcome is Outcome.MEASURED


def test_a_dut_that_is_not_as_it_was_set_up_is_not_measured(policed, log_in, tmp_path):
    log_in["DUT1"].run("ip", "link", "set", "dev", "dut0", "nomaster")
    with pytest.raises(DutError, match="DUT1"):
        measure_mrr(policed, BRIEF, place(tmp_path))
    assert not (tmp_path / "trials").exists()


def test_a_dut_that_lost_its_policer_meanwhile_has_no_result(kept, log_in, tmp_path):
    def flush():
        log_in["DUT1"].run("nft", "flush", "ruleset")

    testbed = open_testbed(kept[0], dut="linux_bridge", options={"police": "10 kfps"})
    try:
        with pytest.raises(DutError, match=r"DUT1 has changed since its set-up: .*nftables table"):
            measure_mrr(testbed, BRIEF, place(tmp_path), after(1, flush))
    finally:
        with pytest.raises(DutError, match="because another program has changed it since"):
            testbed.close()
    failed = read_result(tmp_path / "results" / "a_suite.a_test.json")
    # Whether the trial after it was measured depends on when the DUT was looked at last.
    assert (failed.outcome, failed.mrr) == (Outcome.FAILED, None)
    assert len(failed.trials) in (1, 2)


def test_duts_that_nobody_set_up_are_a_black_hole(kept, tmp_path):
    testbed = open_testbed(kept[0])
    with pytest.raises(DutError, match=r"DUT1 receives [\d,]+ frames and forwards none .* black hole"):
        measure_mrr(testbed, BRIEF, place(tmp_path))
    testbed.close()


def test_closing_puts_everything_back_and_may_be_done_twice(kept, log_in):
    def state():
        return (
            log_in["DUT1"].run("ip", "-oneline", "link").stdout,
            log_in["DUT1"].run("nft", "list", "ruleset").stdout,
        )

    before = state()
    testbed = open_testbed(kept[0], dut="linux_bridge", options={"police": "10 kfps"})
    assert state() != before
    testbed.close()
    testbed.close()
    assert state() == before
    assert agents(log_in["TG"]) == []


def test_a_program_that_ends_without_closing_leaves_nothing(kept, log_in):
    before = log_in["DUT1"].run("nft", "list", "ruleset").stdout
    code = (
        "import sys; from lossratio.testbed.opening import open_testbed; open_testbed(sys.argv[1], dut='linux_bridge')"
    )
    subprocess.run([sys.executable, "-c", code, str(kept[0])], check=True, timeout=240)
    assert log_in["DUT1"].run("nft", "list", "ruleset").stdout == before


def test_a_testbed_that_was_not_up_lives_as_long_as_it_is_needed(tmp_path):
    file = local_topology(tmp_path, "bench-own")
    testbed = open_testbed(file, dut="linux_bridge")
    assert is_up(file.stem)
    testbed.close()
    assert not is_up(file.stem)


def test_a_set_up_that_fails_leaves_nothing(tmp_path):
    file = local_topology(tmp_path, "bench-failed")
    with pytest.raises(NotMeasuredHereError, match="999"):
        open_testbed(file, dut="linux_bridge", options={"rps_cpus": "999"})
    assert not is_up(file.stem)

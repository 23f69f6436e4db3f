"""Senders go on only as long as somebody lets them: whatever becomes of the agent and of the controller."""

import os
import signal
import threading
import time

import pytest
from traffic_lab import configure, received_by
from waiting import wait_until
from whole_trials import hold_load, run_trial, whole

from lossratio.traffic import AgentRefusalError

pytestmark = pytest.mark.netns
LOAD = 1000.0
QUIET = 0.5


@pytest.fixture
def frozen(session):
    """Freezes the agent; it goes on in the end."""
    pids = []

    def freeze():
        pids.append(session.processes[-1].process.pid)
        os.kill(pids[-1], signal.SIGSTOP)

    yield freeze
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def wait_until_it_flows(bridged):
    before = received_by(bridged, "dut0")
    wait_until(lambda: received_by(bridged, "dut0") > before + LOAD / 10)


def wait_until_it_has_stopped(bridged):
    def is_quiet():
        before = received_by(bridged, "dut0")
        time.sleep(QUIET)
        return received_by(bridged, "dut0") < before + QUIET * LOAD / 10

    wait_until(is_quiet, 60.0)


def test_senders_of_a_frozen_agent_stop_by_themselves(agent, bridged, frozen):
    configure(agent)
    hold_load(agent, LOAD)
    wait_until_it_flows(bridged)
    frozen()
    wait_until_it_has_stopped(bridged)


def test_a_trial_whose_agent_was_frozen_is_an_error_and_not_a_number(agent, bridged, session):
    configure(agent)

    def freeze():
        wait_until_it_flows(bridged)
        pid = session.processes[-1].process.pid
        os.kill(pid, signal.SIGSTOP)
        wait_until_it_has_stopped(bridged)
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=freeze)
    thread.start()
    words = r"senders stopped because they heard nothing from their agent for 1\.\d+ s \(process \d+: T\)"
    with pytest.raises(AgentRefusalError, match=words) as caught:
        run_trial(agent, LOAD, 20.0)
    thread.join()
    assert caught.value.kind == "abandoned"


def test_running_traffic_outlasts_the_deadline_when_everybody_is_alive(agent, bridged):
    configure(agent)
    before = received_by(bridged, "dut0")
    hold_load(agent, LOAD)
    time.sleep(2.5)
    wait_until(lambda: received_by(bridged, "dut0") > before + 2 * LOAD)
    assert agent.stop().directions[0].sent > 2 * LOAD


def test_traffic_ends_when_the_controller_falls_silent_although_its_connection_is_there(agent, bridged, monkeypatch):
    monkeypatch.setattr(agent._conversation, "_show_life", lambda: None)
    configure(agent)
    hold_load(agent, LOAD)
    wait_until_it_flows(bridged)
    wait_until_it_has_stopped(bridged)


def test_a_trial_outlasts_the_silence_that_ends_traffic(agent):
    configure(agent)
    assert whole(run_trial, agent, 100.0, 6.5)[0].sent_frames == 650

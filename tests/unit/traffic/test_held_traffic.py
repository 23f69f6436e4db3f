"""Traffic without an end: what the agent answers while it flows, and when its controller is silent or gone."""

import json
import os
from contextlib import suppress
from types import SimpleNamespace

import pytest

from lossratio.agent.core.plan import ABILITIES, Answer
from lossratio.agent.core.protocol import (
    MOST_STALLED,
    PROTOCOL,
    SILENCE_SECONDS,
    STALL_SECONDS,
    AgentError,
    Channel,
    ControllerGoneError,
)
from lossratio.agent.server import Agent


class HeldGenerator:
    """A generator of traffic without an end, which only looks whether the controller is there."""

    def run(self, plan, control):
        control.has_begun()
        while not control.wants_end():
            control.check()
            if plan.ramp:
                raise AgentError("interface_down", "The link is down.")
        return Answer([])


class Clock:
    """A clock that goes on only when a test says so: no machine is so busy that it matters."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("lossratio.agent.core.protocol.time", made)
    return made


@pytest.fixture
def controller(clock):
    """The controller's ends of two pipes, and the agent's channel at the other ends, with an agent."""
    reading, writing = os.pipe()
    answered, answers = os.pipe()
    channel = Channel(reading, answers)
    agent = Agent(channel)
    agent._generator = HeldGenerator()
    agent._can = ABILITIES
    yield writing, channel, agent, answered
    for descriptor in (reading, writing, answered, answers):
        with suppress(OSError):
            os.close(descriptor)


HOLD = {"id": 1, "op": "run", "plan": {"steps": [[9.0, None]]}}


def hear(controller, *requests):
    """What the agent replies to requests that come at once."""
    writing, _, agent, answered = controller
    first, *others = (json.dumps(request).encode() + b"\n" for request in requests)
    os.write(writing, b"".join(others) or b"\n")
    agent.hear(first)
    return [json.loads(line) for line in os.read(answered, 1 << 16).splitlines()]


def test_traffic_without_an_end_is_answered_when_it_flows_and_when_it_is_stopped(controller):
    requests = ({"id": 2, "op": "clock"}, {"id": 3, "op": "run", "plan": {"steps": []}}, {"id": 4, "op": "stop"})
    begun, clock, busy, stopped = hear(controller, HOLD, *requests)
    assert (begun, clock["id"], clock["result"].keys()) == ({"id": 1, "result": {}}, 2, {"now"})
    assert (busy["id"], busy["error"]["kind"]) == (3, "busy")
    assert (stopped["id"], stopped["result"]["directions"]) == (4, [])
    (nothing,) = hear(controller, {"id": 5, "op": "stop"})
    assert (nothing["id"], nothing["error"]["kind"]) == (5, "not_running")


def test_a_fault_in_traffic_without_an_end_is_the_answer_to_its_stop(controller):
    hold = {**HOLD, "plan": {**HOLD["plan"], "ramp": 1.0}}
    begun, fault = hear(controller, hold, {"id": 2, "op": "stop"})
    assert begun == {"id": 1, "result": {}}
    assert fault == {"id": 2, "error": {"kind": "interface_down", "message": "The link is down."}}


def test_traffic_without_an_end_that_ends_by_itself_is_answered_when_it_is_stopped(controller):
    def end_at_once(plan, control):
        control.has_begun()
        return Answer([])

    _, _, agent, _ = controller
    agent._generator = SimpleNamespace(run=end_at_once)
    begun, stopped = hear(controller, HOLD, {"id": 2, "op": "stop"})
    assert (begun, stopped["id"]) == ({"id": 1, "result": {}}, 2)
    assert stopped["result"]["directions"] == []


def test_a_controller_that_is_gone_after_a_fault_in_its_traffic_ends_the_agent(controller):
    writing, _, agent, _ = controller
    os.write(writing, json.dumps({"id": 2, "op": "hello", "protocol": PROTOCOL}).encode() + b"\n")
    os.close(writing)

    def fail(plan, control):
        control.has_begun()
        raise AgentError("interface_down", "The link is down.")

    agent._generator = SimpleNamespace(run=fail)
    with pytest.raises(ControllerGoneError, match="closed the connection"):
        agent.answer(HOLD)


def test_a_controller_that_a_busy_machine_keeps_silent_gets_late_frames(controller, clock):
    _, channel, agent, _ = controller
    channel._heard = clock.now - 2 * SILENCE_SECONDS
    agent._generator = SimpleNamespace(run=lambda plan, control: Answer([], late={}))
    assert agent.answer({"op": "run", "plan": {"steps": [], "wait": 0.01}})["late"] == {}


def test_traffic_of_a_silent_controller_ends_while_it_flows(controller, clock):
    writing, channel, agent, _ = controller
    channel._heard = clock.now - 2 * SILENCE_SECONDS
    with pytest.raises(ControllerGoneError, match=f"silent for {SILENCE_SECONDS:g} s"):
        agent.answer(HOLD)
    # It had been heard, and only not been listened to.
    channel._heard = clock.now - 2 * SILENCE_SECONDS
    os.write(writing, b"\n")
    agent.check()


def test_time_in_which_the_agent_s_machine_stood_still_is_no_silence_of_the_controller(controller, clock):
    _, channel, agent, _ = controller
    clock.now += 2 * SILENCE_SECONDS
    agent.check()
    channel._heard -= SILENCE_SECONDS + 0.1
    with pytest.raises(ControllerGoneError):
        agent.check()


def test_an_agent_that_always_stands_still_stops_its_traffic_nevertheless(controller, clock):
    _, _, agent, _ = controller

    def stand_still(seconds):
        clock.now += seconds
        agent.check()

    for _ in range(round(MOST_STALLED / (2 * STALL_SECONDS))):
        stand_still(2 * STALL_SECONDS)
    with pytest.raises(ControllerGoneError, match="it was silent"):
        stand_still(SILENCE_SECONDS + 0.1)


def test_a_controller_that_has_closed_its_end_is_gone_while_traffic_flows(controller):
    writing, _, agent, _ = controller
    os.close(writing)
    with pytest.raises(ControllerGoneError, match="closed the connection"):
        agent.answer(HOLD)

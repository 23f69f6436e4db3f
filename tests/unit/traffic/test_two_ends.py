"""A TG of two nodes: one end sends, the other one counts, and both answer as one agent."""

from __future__ import annotations

import json
import signal
import time
from collections import deque

import pytest
from local_session import PYTHON, LocalSession
from netns import NetnsLab
from traffic_lab import received_by

from lossratio.errors import NodeError, TrafficError
from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.agent.core.meeting import Meeting, Sent
from lossratio.traffic.agent.core.protocol import AgentError
from lossratio.traffic.two_ends import TwoEnds, port_at

# Both interfaces have the same name, as those of hosts mostly have.
WEST = TrafficPort("west", port_at("CLIENT", "eth1"))
EAST = TrafficPort("east", port_at("SERVER", "eth1"))
PAIR = PortPair(WEST, EAST)
COUNT = 1000


class ScriptedAgent:
    """An agent that answers with these messages, each a part of a line without the request's id."""

    def __init__(self, *messages):
        self.messages = deque(messages)
        self.told = []
        self.is_closed = False

    def write_line(self, text):
        self.told.append(json.loads(text) if text else text)

    def read_line(self, timeout, meanwhile=None):
        message = self.messages.popleft()
        if isinstance(message, Exception):
            raise message
        return json.dumps({"id": 1, **message})

    def close(self):
        self.is_closed = True
        return 0


def asked(client, server, **request):
    relay = TwoEnds({"CLIENT": client, "SERVER": server})
    relay._ends = {"west>east": ("CLIENT", "SERVER")}
    relay.write_line(json.dumps({"id": 1, **request}))
    return json.loads(relay.read_line(1.0))


def ready(tag, now=0.0):
    return {"meet": {"ready": tag, "now": now}}


def counted(**fields):
    return {"result": {"directions": [{"name": "west>east", **fields}]}}


def test_what_left_is_the_senders_and_what_came_back_the_receivers():
    sent = {"sent": {"west>east": {"frames": 9, "first": 3, "elapsed": 1.0}}}
    client = ScriptedAgent(ready(7), {"meet": sent}, counted(sent_frames=9))
    server = ScriptedAgent(ready(7), {"meet": {"sent": {}}}, counted(received_frames=8))
    answer = asked(client, server, op="trial", load=9.0, duration=1.0)
    assert answer["result"]["directions"] == [{"name": "west>east", "sent_frames": 9, "received_frames": 8}]
    assert server.told[2] == {"op": "met", "said": sent}


def test_both_ends_begin_at_one_instant_by_clocks_of_their_own():
    now = time.monotonic()
    client = ScriptedAgent(ready(7, now - 1000.0), counted())
    server = ScriptedAgent(ready(7, now + 5000.0), counted())
    asked(client, server, op="start", load=9.0)
    # A busy machine may read the one line later than the other.
    assert server.told[1]["at"] - client.told[1]["at"] == pytest.approx(6000.0, abs=1.0)


def test_an_end_that_cannot_begin_is_named_and_the_other_one_is_let_go():
    refusal = {"error": {"kind": "interface_down", "message": "Interface eth1 is down."}}
    client = ScriptedAgent(ready(7), {"error": {"kind": "other_end", "message": "It cannot go on."}})
    server = ScriptedAgent(refusal)
    answer = asked(client, server, op="trial", load=9.0, duration=1.0)
    assert answer["error"] == {"kind": "interface_down", "message": "at SERVER: Interface eth1 is down."}
    assert client.told[-1] == {"op": "met"}


def test_an_end_that_dies_is_named():
    client = ScriptedAgent(ready(7))
    server = ScriptedAgent(NodeError("Node SERVER: the agent was ended by a signal."))
    with pytest.raises(NodeError, match="Node SERVER"):
        asked(client, server, op="trial", load=9.0, duration=1.0)


def test_ends_that_are_not_at_the_same_point_give_no_counters():
    with pytest.raises(NodeError, match="out of step"):
        asked(ScriptedAgent(ready(7)), ScriptedAgent(counted()), op="trial", load=9.0, duration=1.0)


def test_an_end_with_another_tag_than_the_other_one_sends_nothing():
    meeting = Meeting(lambda said: {"op": "met", "said": {"ready": said["ready"] + 8}, "at": 0.0})
    with pytest.raises(AgentError, match="tag 16, but the other end at 24"):
        meeting.ready(16)


def test_an_end_whose_partner_is_elsewhere_counts_nothing():
    meeting = Meeting(lambda said: {"op": "met", "said": {"ready": 1}})
    with pytest.raises(AgentError, match="elsewhere"):
        meeting.sent({"west>east": Sent(1, 0, 1.0)})


def test_questions_go_to_the_end_that_has_the_port():
    client, server = ScriptedAgent({"result": {"macs": [["02:00:00:00:00:01"]]}}), ScriptedAgent()
    questions = [{"port": "CLIENT:eth1", "source": "10.0.0.2", "target": "10.0.0.1", "tags": ""}]
    assert asked(client, server, op="resolve", questions=questions)["result"] == {"macs": [["02:00:00:00:00:01"]]}
    assert client.told[0]["questions"][0]["port"] == "eth1"
    assert server.told == []


@pytest.fixture(scope="module")
def lab():
    with NetnsLab() as lab:
        for name in ("client", "dut1", "server"):
            lab.namespace(name)
        lab.veth("client", "eth1", "dut1", "dut0")
        lab.veth("server", "eth1", "dut1", "dut1")
        lab.bridge("dut1", "br0", "dut0", "dut1")
        yield lab


@pytest.fixture
def ends(lab, tmp_path):
    sessions = []
    for name in ("CLIENT", "SERVER"):
        directory = tmp_path / name
        directory.mkdir()
        session = LocalSession(lab, name.lower(), directory)
        session.name = name
        sessions.append(session)
    return sessions


@pytest.fixture
def agent(ends):
    with AgentClient.start(*ends, python=PYTHON, patience=20.0) as agent:
        yield agent


def ready_to_send(agent, **options):
    traffic = load_profile("ethip4-udp-hosts", frame_size=128, **options)
    agent.configure(make_configuration(traffic, [PAIR], settle_time=0.2), options={"catch_up": 10.0})


@pytest.mark.netns
def test_both_ways_are_counted_at_the_other_end_and_by_the_kernel(lab, agent):
    ready_to_send(agent)
    before = {node: received_by(lab, "eth1", node) for node in ("client", "server")}
    counters = agent.trial(COUNT, 1.0)
    assert [(way.name, way.sent_frames, way.received_frames) for way in counters] == [
        ("west>east", COUNT, COUNT),
        ("east>west", COUNT, COUNT),
    ]
    assert all(way.examined_frames == COUNT and not way.faulty for way in counters)
    # Other frames, such as those of the bridge, may come besides.
    for node in before:
        assert received_by(lab, "eth1", node) - before[node] >= COUNT


@pytest.mark.netns
def test_a_device_that_loses_and_changes_frames_is_seen_from_two_nodes(lab, agent):
    rules = (
        'table netdev faults {\nchain west {\ntype filter hook ingress device "dut0" priority 0;\n'
        "udp sport 1024-1150 drop\n}\nchain east {\n"
        'type filter hook ingress device "dut1" priority 0;\nudp sport 1024 udp sport set 9\n}\n}\n'
    )
    ready_to_send(agent)
    lab.run("dut1", "nft", "-f", "-", input=rules)
    try:
        west, east = agent.trial(COUNT, 1.016)
    finally:
        lab.run("dut1", "nft", "delete", "table", "netdev", "faults")
    # 1016 frames are four rounds of 254 flows: 127 flows are dropped on the one way, and one is changed on the other.
    assert (west.sent_frames, west.received_frames) == (1016, 508)
    assert (east.received_frames, east.corrupted_frames) == (1012, 4)


@pytest.mark.netns
def test_traffic_that_is_stopped_is_counted_at_both_ends_and_goes_one_way(lab, agent):
    ready_to_send(agent, bidirectional=False)
    agent.start_traffic(COUNT)
    time.sleep(0.3)
    stopped = agent.stop_traffic(0.1)
    assert stopped.sent == stopped.received > 0
    assert stopped.late == 0


@pytest.mark.netns
def test_what_needs_both_ends_on_one_node_is_refused_and_the_next_trial_is_measured(agent):
    ready_to_send(agent)
    with pytest.raises(TrafficError, match="Latency needs both ends of a path on one node"):
        agent.latency(COUNT, 0.2)
    with pytest.raises(TrafficError, match="Locating losses in time needs both ends"):
        agent.start_traffic(COUNT, watch=True)
    assert all(way.lost == 0 for way in agent.trial(COUNT, 0.2))


@pytest.mark.netns
@pytest.mark.parametrize("victim", ["CLIENT", "SERVER"])
def test_an_agent_that_is_killed_is_named_and_the_other_one_ends(ends, agent, victim):
    ready_to_send(agent)
    processes = {session.name: session.processes[-1].process for session in ends}
    processes[victim].kill()
    processes[victim].wait(10)
    # The stand-in for a session's process calls every node TG.
    with pytest.raises(TrafficError, match="the process ended with -9"):
        agent.trial(COUNT, 1.0)
    for process in processes.values():
        assert process.wait(10) is not None


@pytest.mark.netns
def test_an_agent_that_is_frozen_gives_no_counters(ends):
    with AgentClient.start(*ends, python=PYTHON, patience=2.0) as agent:
        ready_to_send(agent)
        frozen = ends[1].processes[-1].process
        frozen.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(TrafficError, match="no answer within"):
                agent.trial(COUNT, 0.5)
        finally:
            frozen.send_signal(signal.SIGCONT)

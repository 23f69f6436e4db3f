"""A TG of two nodes: one end sends, the other one counts, and both answer as one agent."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import deque
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from local_session import PYTHON, LocalSession
from netns import NetnsLab
from traffic_lab import hold, received_by, sent_by
from whole_trials import hold_load, run_latency, run_timed, run_trial, run_watched, whole

from lossratio.agent.afpacket.generator import AfPacketGenerator
from lossratio.agent.core.early_verdict import ReceivedSoFar, SentSoFar
from lossratio.agent.core.meeting import Meeting, Sight
from lossratio.agent.core.protocol import AgentError
from lossratio.errors import NodeError, TrafficError
from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration, two_ends
from lossratio.traffic.two_ends import TwoEnds, port_at

# Both interfaces have the same name, as those of hosts mostly have.
WEST = TrafficPort("west", port_at("CLIENT", "eth1"))
EAST = TrafficPort("east", port_at("SERVER", "eth1"))
PAIR = PortPair(WEST, EAST)
ENDS = {"west": port_at("CLIENT", "eth1"), "east": port_at("SERVER", "eth1")}
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
    relay._division._ends = {"west>east": ("CLIENT", "SERVER")}
    relay.write_line(json.dumps({"id": 1, **request}))
    return json.loads(relay.read_line(1.0))


def ready(tag, now=0.0):
    return {"meet": {"ready": tag, "now": now}}


def counted(**fields):
    return {"result": {"directions": [{"name": "west>east", **fields}]}}


@pytest.mark.smoke
def test_what_left_is_the_senders_and_what_came_back_the_receivers():
    sent = {"sent": {"west>east": {"frames": 9, "first": 3, "elapsed": 1.0}}}
    client = ScriptedAgent(ready(7), {"meet": sent}, counted(sent_frames=9))
    server = ScriptedAgent(ready(7), {"meet": {"sent": {}}}, counted(received_frames=8))
    answer = asked(client, server, op="run", load=9.0, duration=1.0)
    assert answer["result"]["directions"] == [{"name": "west>east", "sent_frames": 9, "received_frames": 8}]
    assert server.told[2] == {"op": "met", "said": sent}


def test_a_direction_that_is_no_longer_sent_is_not_counted():
    """Traffic in one direction may follow traffic in both, with the same agents."""
    facts = {"result": {"ports": {"eth1": {}}, "integrity": {"in_trials": True, "not_checked": []}}}
    both, one = ({"directions": [{"name": "west>east"}, {"name": "east>west"}]}, counted()["result"])
    agents = [ScriptedAgent(facts, {"result": both}, facts, {"result": one}) for _ in range(2)]
    relay = TwoEnds({"CLIENT": agents[0], "SERVER": agents[1]})
    names = []
    for ways in (("west>east", "east>west"), ("west>east",)):
        directions = [
            {
                "name": way,
                **dict(zip(("transmit", "receive"), (ENDS[end] for end in way.split(">")), strict=True)),
                "source_mac": "02:00:00:00:00:01",
                "destination_mac": "02:00:00:00:00:02",
            }
            for way in ways
        ]
        configuration = {"ports": list(ENDS.values()), "directions": directions, "speakers": []}
        for request in ({"op": "configure", "configuration": configuration}, {"op": "stop"}):
            relay.write_line(json.dumps({"id": 1, **request}))
            answer = json.loads(relay.read_line(1.0))
        names.append([way["name"] for way in answer["result"]["directions"]])
    assert names == [["west>east", "east>west"], ["west>east"]]


def test_both_ends_begin_at_one_instant_by_clocks_of_their_own(monkeypatch):
    now = 1234.0
    monkeypatch.setattr("lossratio.traffic.two_ends.time", SimpleNamespace(monotonic=lambda: now))
    client = ScriptedAgent(ready(7, now - 1000.0), counted())
    server = ScriptedAgent(ready(7, now + 5000.0), counted())
    asked(client, server, op="start", load=9.0)
    assert server.told[1]["at"] - client.told[1]["at"] == pytest.approx(6000.0)


def test_an_end_that_cannot_begin_is_named_and_the_other_one_is_let_go():
    refusal = {"error": {"kind": "interface_down", "message": "Interface eth1 is down."}}
    client = ScriptedAgent(ready(7), {"error": {"kind": "other_end", "message": "It cannot go on."}})
    server = ScriptedAgent(refusal)
    answer = asked(client, server, op="run", load=9.0, duration=1.0)
    assert answer["error"] == {"kind": "interface_down", "message": "at SERVER: Interface eth1 is down."}
    assert client.told[-1] == {"op": "met"}


def test_an_end_that_holds_traffic_is_stopped_at_once_if_the_other_one_cannot():
    refusal = {"error": {"kind": "interface_down", "message": "Interface eth1 is down."}}
    cannot = {"error": {"kind": "other_end", "message": "It cannot go on."}}
    client = ScriptedAgent({"result": {}}, {"meet": {"sent": {}}}, cannot)
    answer = asked(client, ScriptedAgent(refusal), op="run", plan={"steps": [[9.0, None]]})
    assert answer["error"]["message"] == "at SERVER: Interface eth1 is down."
    assert client.told[1:] == [{"id": 1, "op": "stop"}, {"op": "met"}]


def test_an_end_that_dies_is_named():
    client = ScriptedAgent(ready(7))
    server = ScriptedAgent(NodeError("Node SERVER: the agent was ended by a signal."))
    with pytest.raises(NodeError, match="Node SERVER"):
        asked(client, server, op="run", load=9.0, duration=1.0)


def test_ends_that_are_not_at_the_same_point_give_no_counters():
    with pytest.raises(NodeError, match="out of step"):
        asked(ScriptedAgent(ready(7)), ScriptedAgent(counted()), op="run", load=9.0, duration=1.0)


def test_an_end_with_another_tag_than_the_other_one_sends_nothing():
    meeting = Meeting(lambda said: {"op": "met", "said": {"ready": said["ready"] + 8}, "at": 0.0})
    with pytest.raises(AgentError, match="tag 16, and the other at 24"):
        meeting.ready(16)


def test_an_end_whose_partner_is_elsewhere_counts_nothing():
    meeting = Meeting(lambda said: {"op": "met", "said": {"ready": 1}})
    with pytest.raises(AgentError, match="out of step"):
        meeting.tell("sent", {"west>east": {"frames": 1}})


def test_both_ends_see_the_same_of_a_running_trial_and_count_arrivals_after_departures():
    said = {}

    def seen_by(end):
        def exchange(message):
            said[end] = message["look"]
            return {"op": "met", "said": {"look": said["server" if end == "client" else "client"]}}

        return Meeting(exchange)

    client, server = seen_by("client"), seen_by("server")
    views = []
    for left, back in ((10, 0), (20, 9)):
        at_client = Sight({"west>east": SentSoFar(left, 0, 0)}, {}, has_ended=False)
        at_server = Sight({}, {"west>east": ReceivedSoFar(back, 0)}, has_ended=True)
        said = {"client": asdict(at_client), "server": asdict(at_server)}
        views.append((client.look(at_client), server.look(at_server)))
    assert all(one == other for one, other in views)
    # Nobody knows yet what had left before the first look.
    assert views[0][0] == Sight({}, {"west>east": ReceivedSoFar(0, 0)}, has_ended=False)
    assert views[1][0] == Sight({"west>east": SentSoFar(10, 0, 0)}, {"west>east": ReceivedSoFar(9, 0)}, has_ended=False)


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
        for interface in ("dut0", "dut1"):
            lab.run("dut1", "ethtool", "-K", interface, "gro", "on")
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


@pytest.mark.netns
def test_an_end_without_numpy_measures_with_one_that_has_it(lab, ends, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError\n")
    far = LocalSession(lab, "server", tmp_path, PYTHONPATH=str(tmp_path))
    far.name = "SERVER"
    with AgentClient.start(ends[0], far, python=PYTHON, patience=20.0) as agent:
        assert agent.facts.numpy is None
        ready_to_send(agent)
        ways = whole(run_trial, agent, COUNT, 1.0)
        assert [(way.sent_frames, way.received_frames, way.faulty) for way in ways] == [(COUNT, COUNT, 0)] * 2
        # Only the near end compares what comes to it.
        assert sorted(bool(way.examined_frames) for way in ways) == [False, True]


def test_what_one_end_does_not_examine_is_said_with_its_node():
    examining = {"in_trials": True, "checked": ["length"], "not_checked": []}
    counting = {"in_trials": False, "checked": [], "not_checked": ["everything"]}
    for first, second, node in ((examining, counting, "B"), (counting, examining, "A")):
        ends = {"A": {"integrity": first, "ports": {}}, "B": {"integrity": second, "ports": {}}}
        merged = two_ends._Division(["A", "B"])._generator_facts(ends)["integrity"]
        assert merged == {**examining, "not_checked": [f"at {node}: everything"]}


generators = pytest.mark.parametrize("generator", ["afpacket", "xdp"])


def ready_to_send(agent, generator="afpacket", **options):
    traffic = load_profile("ethip4-udp-hosts", frame_size=128, **options)
    configuration = make_configuration(traffic, [PAIR], settle_time=0.2)
    agent.configure(configuration, generator=generator, options={"catch_up": 10.0})


@pytest.mark.netns
@generators
def test_both_ways_are_counted_at_the_other_end_and_by_the_kernel(lab, agent, generator):
    ready_to_send(agent, generator)
    before = {node: received_by(lab, "eth1", node) for node in ("client", "server")}
    counters = whole(run_trial, agent, COUNT, 1.0)
    assert [(way.name, way.sent_frames, way.received_frames) for way in counters] == [
        ("west>east", COUNT, COUNT),
        ("east>west", COUNT, COUNT),
    ]
    assert all(way.examined_frames == COUNT and not way.faulty for way in counters)
    # Other frames, such as those of the bridge, may come besides.
    for node in before:
        assert received_by(lab, "eth1", node) - before[node] >= COUNT


@pytest.mark.netns
@generators
def test_a_device_that_loses_and_changes_frames_is_seen_from_two_nodes(lab, agent, generator):
    rules = (
        'table netdev faults {\nchain west {\ntype filter hook ingress device "dut0" priority 0;\n'
        "udp sport 1024-1150 drop\n}\nchain east {\n"
        'type filter hook ingress device "dut1" priority 0;\nudp sport 1024 udp sport set 9\n}\n}\n'
    )
    ready_to_send(agent, generator)
    lab.run("dut1", "nft", "-f", "-", input=rules)
    try:
        west, east = whole(run_trial, agent, COUNT, 1.016)
    finally:
        lab.run("dut1", "nft", "delete", "table", "netdev", "faults")
    # 1016 frames are four rounds of 254 flows: 127 flows are dropped on the one way, and one is changed on the other.
    assert (west.sent_frames, west.received_frames) == (1016, 508)
    assert (east.received_frames, east.corrupted_frames) == (1012, 4)


@pytest.mark.netns
@generators
def test_traffic_that_is_stopped_is_counted_at_both_ends_and_goes_one_way(lab, agent, generator):
    ready_to_send(agent, generator, bidirectional=False)
    hold_load(agent, COUNT)
    time.sleep(0.3)
    stopped = agent.stop(0.1)
    assert stopped.sent == stopped.received > 0
    assert stopped.late == 0


def test_frames_without_an_end_are_examined_while_they_flow_although_their_first_one_left_elsewhere():
    arriving = SimpleNamespace(name="east>west", looks=[])
    arriving.note_arrivals = lambda first, least: arriving.looks.append(first)
    made = object.__new__(AfPacketGenerator)
    made._sending = [SimpleNamespace(name="west>east", first=lambda: 5)]
    made._receiving, made._conversations = [arriving], []
    told = {}

    def tell(point, own):
        told[point] = own
        return {"east>west": {"first": 9}}

    made._meeting = SimpleNamespace(tell=tell)
    made._tell_firsts()
    made._note_arrivals()
    assert told == {"begun": {"west>east": {"first": 5}}}
    assert arriving.looks == [9]


@pytest.mark.netns
def test_what_needs_both_ends_on_one_node_is_refused_and_the_next_trial_is_measured(agent):
    ready_to_send(agent)
    with pytest.raises(TrafficError, match="Locating losses in time needs both ends"):
        hold_load(agent, COUNT, watch=True)
    assert all(way.lost == 0 for way in whole(run_trial, agent, COUNT, 0.2))


def in_the_middle(deed, seconds=0.5):
    """Does it that long after now, while a trial runs."""
    timer = threading.Timer(seconds, deed)
    timer.start()
    return timer


def is_silent(lab, node):
    """Whether nothing but a stray frame of the kernel leaves a node in the time of 300 frames of a trial."""
    before = sent_by(lab, "eth1", node)
    time.sleep(0.3)
    return sent_by(lab, "eth1", node) - before < 10


@pytest.mark.netns
@generators
@pytest.mark.parametrize(("victim", "survivor"), [("CLIENT", "SERVER"), ("SERVER", "CLIENT")])
def test_an_agent_that_is_killed_in_a_trial_is_named_and_the_other_one_ends(
    lab, ends, agent, generator, victim, survivor
):
    ready_to_send(agent, generator)
    processes = {session.name: session.processes[-1].process for session in ends}
    timer = in_the_middle(processes[victim].kill)
    with pytest.raises(TrafficError, match=f"Node {victim}: the process ended with -9"):
        run_trial(agent, COUNT, 1.5)
    timer.join()
    assert processes[survivor].wait(10) is not None
    assert is_silent(lab, "client")
    assert is_silent(lab, "server")


@pytest.mark.netns
@pytest.mark.parametrize("victim", [0, 1])
def test_an_agent_is_alive_only_if_both_ends_are(ends, agent, victim):
    assert agent.is_alive()
    ends[victim].processes[-1].process.kill()
    assert not agent.is_alive()


@pytest.mark.netns
@pytest.mark.parametrize("victim", [0, 1])
def test_an_agent_that_is_frozen_in_a_trial_is_named_and_the_other_one_ends(lab, ends, victim):
    with AgentClient.start(*ends, python=PYTHON, patience=20.0) as agent:
        ready_to_send(agent)
        agent._conversation.patience = 0.5
        ends[victim].processes[-1].seconds_to_end = 0.2
        frozen, other = (ends[number].processes[-1].process for number in (victim, 1 - victim))
        timer = in_the_middle(lambda: frozen.send_signal(signal.SIGSTOP), 0.3)
        try:
            with pytest.raises(TrafficError, match=f"Node {ends[victim].name}: no answer within"):
                run_trial(agent, COUNT, 0.6)
            assert other.wait(10) is not None
            assert is_silent(lab, ends[1 - victim].name.lower())
        finally:
            timer.join()
            frozen.send_signal(signal.SIGCONT)
    # It ends by itself once it goes on, and sends nothing more.
    assert frozen.wait(10) is not None
    assert is_silent(lab, ends[victim].name.lower())


SET_BACK = """
import os, time
its = time.time_ns
time.time_ns = lambda: its() - 3600 * 10**9 * os.path.exists({file!r})
time.time = lambda: time.time_ns() / 1e9
"""
"""What makes a Python's system clock one that is set back an hour as soon as a file exists."""


@pytest.mark.netns
@generators
def test_the_system_clock_of_one_end_may_be_set_back_an_hour_in_a_trial(lab, tmp_path, generator):
    is_set = tmp_path / "is-set"
    (tmp_path / "sitecustomize.py").write_text(SET_BACK.format(file=str(is_set)))
    client = LocalSession(lab, "client", tmp_path)
    server = LocalSession(lab, "server", tmp_path, PYTHONPATH=str(tmp_path))
    client.name, server.name = "CLIENT", "SERVER"
    with AgentClient.start(client, server, python=PYTHON, patience=20.0) as agent:
        ready_to_send(agent, generator)

        def trial():
            is_set.unlink(missing_ok=True)
            timer = in_the_middle(is_set.touch)
            counters = run_trial(agent, COUNT, 1.0)
            timer.join()
            return counters

        counters = whole(trial)
    assert [(way.sent_frames, way.received_frames) for way in counters] == [(COUNT, COUNT)] * 2
    # The clock was set for those that ask it.
    asked = server.run(PYTHON, "-c", "import time; print(time.time())").stdout
    assert float(asked) < time.time() - 3000.0


@pytest.fixture
def losing(lab):
    """A device that drops half of the flows on their way to the east."""
    rules = (
        'table netdev faults {\nchain west {\ntype filter hook ingress device "dut0" priority 0;\n'
        "udp sport 1024-1150 drop\n}\n}\n"
    )
    lab.run("dut1", "nft", "-f", "-", input=rules)
    yield
    lab.run("dut1", "nft", "delete", "table", "netdev", "faults")


@pytest.mark.netns
@generators
def test_a_trial_whose_loss_is_certain_ends_early_at_both_ends(agent, losing, generator):
    ready_to_send(agent, generator)
    watched = whole(run_watched, agent, COUNT, 10.0, above=0.01, in_flight=0.05)
    assert watched.ended
    west, east = watched.directions
    assert west.intended_frames == east.intended_frames == 10 * COUNT
    assert 0.3 < west.received_frames / west.sent_frames < 0.7
    assert east.received_frames == east.sent_frames < 5 * COUNT


@pytest.mark.netns
@generators
def test_a_trial_without_loss_is_watched_to_its_end_and_notes_are_of_both_ends(agent, generator):
    ready_to_send(agent, generator)
    notes = []
    agent.see = lambda sent, received: notes.append((sent, received))
    watched = whole(run_watched, agent, COUNT, 1.3, above=0.01, in_flight=0.05)
    assert not watched.ended
    assert all(way.sent_frames == way.received_frames == 1.3 * COUNT for way in watched.directions)
    assert all(way.lost == 0 for way in whole(run_trial, agent, COUNT, 0.7))
    # What has left is an older count than what has come back: at first, it may be from before the traffic.
    assert len(notes) >= 3
    assert all(0 <= sent <= received for sent, received in notes), notes
    assert any(sent > 0 for sent, _ in notes)


@pytest.mark.netns
@generators
def test_bursts_have_their_rate_and_every_frame_at_both_ends(agent, generator):
    ready_to_send(agent, generator)
    courses = []

    def burst():
        answer = run_timed(agent, (10_000.0, 0.05), is_burst=True)
        courses.append(answer.timelines)
        return answer.directions

    counters = whole(burst)
    assert [(way.sent_frames, way.received_frames) for way in counters] == [(500, 500)] * 2
    assert all(line.steps[0].sent == 500 and line.rate > 0 for line in courses[-1])


@pytest.mark.netns
def test_latency_is_measured_where_both_ends_have_one_kernel(lab, agent):
    ready_to_send(agent)
    # Of 62,000 bytes in half a second, 58,250 get through in time: the last ones wait for 33 ms.
    hold(lab, "dut1", 900_000)
    try:
        output = whole(run_latency, agent, COUNT, 0.5)
    finally:
        lab.run("dut1", "tc", "qdisc", "del", "dev", "dut1", "root")
    east, west = output.latency
    assert east.error is west.error is None
    assert east.received_frames == east.sent_frames == west.received_frames == 50
    assert east.most_us > 20_000
    assert east.least_us > 0
    assert west.least_us > 0
    assert all(way.sent_frames == way.received_frames == COUNT // 2 for way in output.directions)

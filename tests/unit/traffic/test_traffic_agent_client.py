"""The conversation with the agent, and what does not belong into it."""

import ast
import json
import sys
import time
from dataclasses import asdict, fields
from types import SimpleNamespace
from typing import get_type_hints

import pytest
from at_least_one import at_least_one
from local_session import PYTHON
from waiting import PATIENCE
from whole_trials import hold_load, run_latency, run_timed, run_trial

from lossratio.agent.core.links import Link
from lossratio.agent.core.plan import Exchange as ExchangeOfAgent, Plan
from lossratio.agent.core.ports import same_wire
from lossratio.agent.core.protocol import PROTOCOL, read_record
from lossratio.agent.core.requests import Hello
from lossratio.errors import NodeError, TrafficError
from lossratio.topology import AfPacketGenerator
from lossratio.traffic import AgentClient, PortPair, TrafficPort, load_profile, make_configuration, start_agent
from lossratio.traffic.client import pack_agent
from lossratio.trials import Exchange

HELLO = {
    "protocol": PROTOCOL,
    "python": "3.11.0",
    "numpy": None,
    "kernel": "Linux 6.1",
    "machine": "x86_64",
    "cpu": "a processor",
    "cpus": 2,
    "interfaces": {},
}


PORTS = PortPair(TrafficPort("a", "tg0"), TrafficPort("b", "tg1"))
ONE_WAY = make_configuration(load_profile("ethip4-udp", frame_size=64, bidirectional=False), [PORTS], settle_time=0.0)


class ScriptedProcess:
    """A process whose lines are written down beforehand."""

    def __init__(self, *lines):
        self.lines = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
        self.written = []
        self.is_closed = False

    def write_line(self, text):
        self.written.append(json.loads(text))

    def read_line(self, timeout, meanwhile=None):
        if not self.lines:
            raise NodeError(f"Node TG: no answer within {timeout:g} s.")
        return self.lines.pop(0)

    def close(self):
        self.is_closed = True

    @property
    def exit_status(self):
        return None


def greeting(**changes):
    return {"id": 1, "result": {**HELLO, **changes}}


def configured(*lines):
    """An agent that was configured to send one way, with its process; these lines are its answers to what follows."""
    process = ScriptedProcess(greeting(), {"id": 2, "result": {}}, *lines)
    agent = AgentClient("TG", process)
    agent.configure(ONE_WAY)
    return agent, process


def test_a_slow_node_is_given_more_time_in_its_topology():
    agent = AgentClient("TG", ScriptedProcess(greeting()))
    with pytest.raises(
        TrafficError, match=r"within 30 s.*operation 'configure'.*topology file, e\.g\. answer_timeout: 2 "
    ):
        agent.configure(ONE_WAY)


@pytest.mark.parametrize(("patience", "waits"), [(None, "within 120 s"), (45.0, "within 45 s")])
def test_the_topology_says_how_long_an_answer_may_take_unless_the_caller_does(monkeypatch, patience, waits):
    settings = AfPacketGenerator.model_validate({"kind": "afpacket", "answer_timeout": "2 min"})
    made = SimpleNamespace(start=lambda start, python: ScriptedProcess(greeting()))
    monkeypatch.setattr("lossratio.traffic.client.pack_agent", lambda: made)
    session = SimpleNamespace(name="TG", start=None, run=lambda *_, **__: None)
    agent = start_agent(settings, session, patience=patience)
    with pytest.raises(TrafficError, match=waits):
        agent.configure(ONE_WAY)


def sources():
    return {name: source for name, source in pack_agent().sources.items() if not name.endswith(".o")}


@pytest.mark.whole
def test_the_agent_is_written_for_python_3_8():
    for name, source in at_least_one(sources().items()):
        ast.parse(source, name, feature_version=(3, 8))


@pytest.mark.whole
def test_the_agent_needs_nothing_but_the_standard_library_and_numpy():
    allowed = {*sys.stdlib_module_names, "numpy", *(name.partition(".")[0] for name in sources())}
    for name, source in at_least_one(sources().items()):
        for node in at_least_one(ast.walk(ast.parse(source))):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= allowed, name
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module.partition(".")[0] in allowed, name


def test_facts_are_what_the_agent_said():
    facts = AgentClient("TG", ScriptedProcess(greeting(python="3.9.2"))).facts
    assert (facts.python, facts.numpy, facts.cpus) == ("3.9.2", None, 2)


@pytest.mark.parametrize(
    "line",
    [
        "Welcome to TG!",
        "",
        "[]",
        "42",
        {"id": 7, "result": {}},
        {"id": 1},
        {"id": 1, "result": 3},
        {"id": 1, "result": {"protocol": PROTOCOL}},
    ],
)
def test_garbage_instead_of_an_answer_is_shown_and_ends_the_conversation(line):
    process = ScriptedProcess(line)
    with pytest.raises(TrafficError, match=r"Node TG: the traffic agent's output was"):
        AgentClient("TG", process)
    assert process.is_closed


def test_garbage_mid_trial_ends_the_conversation():
    process = ScriptedProcess(greeting(), "Broadcast message from root: reboot now")
    agent = AgentClient("TG", process)
    with pytest.raises(TrafficError, match="reboot now"):
        run_trial(agent, 1000.0, 1.0)
    assert process.is_closed
    with pytest.raises(TrafficError, match="has ended"):
        run_trial(agent, 1000.0, 1.0)


def test_another_version_of_the_protocol_is_refused():
    process = ScriptedProcess(greeting(protocol=PROTOCOL + 1))
    with pytest.raises(
        TrafficError, match=f"speaks protocol {PROTOCOL + 1}, but this lossratio speaks protocol {PROTOCOL}"
    ):
        AgentClient("TG", process)
    assert process.is_closed


def test_an_answer_that_does_not_come_is_an_error_with_the_node_s_name():
    process = ScriptedProcess(greeting())
    with pytest.raises(TrafficError, match=r"Node TG: no answer within 31 s.*'run'"):
        run_trial(AgentClient("TG", process), 1000.0, 1.0)
    assert process.is_closed


@pytest.mark.parametrize(("lines", "is_alive"), [([{"id": 2, "result": {}}], True), ([], False)])
def test_an_agent_is_alive_if_it_answers_though_nobody_told_that_it_had_ended(lines, is_alive):
    process = ScriptedProcess(greeting(), *lines)
    agent = AgentClient("TG", process)
    assert process.exit_status is None
    assert agent.is_alive() is is_alive
    assert process.is_closed is not is_alive


ANSWER = {"latency": None, "certain_after": None, "ended": False, "most_missing": {}}
COUNTERS = {
    "name": "a>b",
    "intended_frames": 9,
    "sent_frames": 8,
    "received_frames": 7,
    "unsent_frames": 1,
    "generator_drop_frames": 2,
    "examination": None,
}
COUNTERS |= {"late_frames": 3, "elapsed_s": 1.0, "load_ratio": 1.0}
LATENCY = {"direction": "a>b", "sent_frames": 5, "received_frames": 4, "out_of_order_frames": 1}
LATENCY |= {"duplicate_frames": 2, "resolution_us": 0.1}
LATENCY |= {"least_us": 1.0, "mean_us": 2.0, "most_us": 3.0, "jitter_us": 0.5, "hdr": None, "error": None}
LATENCY |= {"histogram": [[1.0, 3], [3.0, 1]]}


def answered(number, *directions, **more):
    """A line with an answer to a plan."""
    return {"id": number, "result": {**ANSWER, "directions": [*directions], **more}}


def answering(*directions, **more):
    """An agent that was configured to send one way, and answers a plan."""
    return configured(answered(3, *directions, **more))[0]


def test_a_trial_is_one_line_out_and_one_line_in():
    agent, process = configured({"id": 3, "result": {**ANSWER, "directions": [COUNTERS]}})
    (direction,) = run_trial(agent, 9.0, 1.0)
    (request,) = process.written[2:]
    plan = request.pop("plan")
    assert request == {"id": 3, "op": "run"}
    assert read_record(Plan, plan) == Plan(((9.0, 1.0),))
    assert (direction.intended_frames, direction.sent_frames, direction.received_frames, direction.unsent_frames) == (
        9,
        8,
        7,
        1,
    )
    assert (direction.generator_drop_frames, direction.late_frames, direction.elapsed_s) == (2, 3, 1.0)


@pytest.mark.parametrize("missing", COUNTERS)
def test_counters_that_lack_something_are_garbage(missing):
    counters = {name: value for name, value in COUNTERS.items() if name != missing}
    with pytest.raises(TrafficError, match="instead of an answer"):
        run_trial(answering(counters), 9.0, 1.0)


@pytest.mark.parametrize("count", ["8", 8.5, None, True])
def test_a_count_that_is_no_whole_number_is_garbage(count):
    with pytest.raises(TrafficError, match="instead of an answer"):
        run_trial(answering({**COUNTERS, "received_frames": count}), 9.0, 1.0)


@pytest.mark.parametrize("names", [[], ["b>a"], ["a>b", "a>b"], ["a>b", "b>a"]])
def test_counters_of_other_directions_than_those_configured_are_garbage(names):
    directions = [{**COUNTERS, "name": name} for name in names]
    agent, process = configured({"id": 3, "result": {**ANSWER, "directions": directions}})
    with pytest.raises(TrafficError, match="instead of an answer"):
        run_trial(agent, 9.0, 1.0)
    assert process.is_closed


def test_a_latency_trial_has_counters_and_latencies():
    agent, process = configured({"id": 3, "result": {**ANSWER, "directions": [COUNTERS], "latency": [LATENCY]}})
    output = run_latency(agent, 9.0, 1.0)
    assert process.written[2]["plan"]["latency"] is True
    (latency,) = output.latency
    assert (output.directions[0].sent_frames, latency.sent_frames, latency.received_frames) == (8, 5, 4)
    assert (latency.out_of_order_frames, latency.duplicate_frames, latency.resolution_us) == (1, 2, 0.1)
    assert (latency.least_us, latency.mean_us, latency.most_us, latency.jitter_us) == (1.0, 2.0, 3.0, 0.5)
    assert latency.middle_us is None
    assert latency.histogram == ((1.0, 3), (3.0, 1))


@pytest.mark.parametrize("missing", ["direction", "least_us", "error", "histogram"])
def test_a_latency_that_lacks_something_is_garbage(missing):
    latency = {name: value for name, value in LATENCY.items() if name != missing}
    with pytest.raises(TrafficError, match="instead of an answer"):
        run_latency(answering(COUNTERS, latency=[latency]), 9.0, 1.0)


def test_stopped_traffic_has_its_late_frames_apart():
    late = {"id": 5, "result": {**ANSWER, "late": {"a>b": [1, 3]}}}
    agent, process = configured({"id": 3, "result": {}}, answered(4, {**COUNTERS, "late_frames": 2}), late)
    hold_load(agent, 9.0)
    stopped = agent.stop(0.5)
    assert process.written[3] == {"id": 4, "op": "stop"}
    assert (process.written[4]["plan"]["steps"], process.written[4]["plan"]["wait"]) == ([], 0.5)
    assert stopped.directions[0].late_frames == 5
    assert (stopped.sent, stopped.received, stopped.late, stopped.lost, stopped.unsent) == (8, 7, 1, 0, 1)


def test_late_frames_are_counted_by_direction():
    agent, process = configured({"id": 3, "result": {"late": {"a>b": [5, 2]}}}, {"id": 4, "result": {"late": {}}})
    assert agent.late_frames(0.5) == {"a>b": (5, 2)}
    assert (process.written[2]["op"], process.written[2]["plan"]["wait"]) == ("run", 0.5)
    with pytest.raises(TrafficError, match="instead of an answer"):
        agent.late_frames(0.5)


@pytest.mark.netns
def test_the_agent_leaves_no_file_on_the_node(session):
    session.put = None
    AgentClient.start(session, python=PYTHON).close()
    assert [path.name for path in session.directory.iterdir()] == ["stderr0"]


@pytest.mark.netns
def test_the_agent_refuses_another_version_of_the_protocol(agent):
    with pytest.raises(TrafficError, match=f"speaks protocol {PROTOCOL}, but the request is for 99"):
        agent._ask("hello", Hello(99))


@pytest.mark.netns
def test_the_agent_answers_garbage_with_an_error(agent):
    for line in ("garbage", "[]", '{"id": 5}'):
        agent._conversation.process.write_line(line)
        answer = json.loads(agent._conversation.process.read_line(PATIENCE))
        assert answer["error"]["kind"] == "bad_request"


@pytest.mark.netns
def test_a_python_that_is_not_there_is_an_error_with_its_name(session):
    with pytest.raises(
        TrafficError,
        match=r"no-such-python.*directory, in the traffic agent's operation 'hello'\. .*'python' in the topology",
    ):
        AgentClient.start(session, python="no-such-python")


@pytest.mark.netns
def test_a_program_that_is_killed_at_its_start_is_an_error_about_that_and_not_about_python(session, tmp_path):
    killed = tmp_path / "killed-python"
    killed.write_text("#!/bin/sh\nkill -KILL $$\n")
    killed.chmod(0o755)
    with pytest.raises(
        TrafficError,
        match=r"ended with -9, in the traffic agent's operation 'hello'\. Measure again. If .* when memory runs out\.$",
    ):
        AgentClient.start(session, python=str(killed))


@pytest.mark.netns
def test_python_may_take_longer_to_start_than_an_answer_takes(session, tmp_path):
    slow = tmp_path / "slow-python"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {PYTHON} "$@"\n')
    slow.chmod(0o755)
    AgentClient.start(session, python=str(slow), patience=0.1).close()


@pytest.mark.netns
def test_the_agent_reports_the_mac_addresses_of_the_ports(agent, bridged):
    assert agent.facts.interfaces["tg0"] == bridged.mac("tg", "tg0")


def link(index, name, master=None, lower=None):
    return Link(index, name, b"", 1500, "", True, master, lower, 0, 0, 0)


def test_a_wire_is_shared_through_bridges_bonds_and_vlans():
    links = [
        link(1, "lo"),
        link(2, "eth0", master=10),
        link(3, "eth1", master=10),
        link(4, "eth2"),
        link(10, "bond0"),
        link(11, "bond0.5", lower=10),
        link(12, "br0"),
        link(13, "bond0.6", lower=10, master=12),
        link(14, "eth2.7", lower=4),
        link(15, "gone", master=99, lower=98),
    ]
    by_index = {link.index: link for link in links}
    assert same_wire(2, by_index) == {2, 3, 10, 11, 12, 13}
    assert same_wire(12, by_index) == same_wire(2, by_index)
    assert same_wire(4, by_index) == {4, 14}
    assert same_wire(15, by_index) == {15}


BURST = {
    "began": 5000.0,
    "resolution": 1e-4,
    "rate": 999.0,
    "steps": [{"start": 0.0, "elapsed": 0.1, "intended": 9, "sent": 8, "lost": None, "last_lost": None}],
    "outages": [],
    "outage_count": 0,
    "silences": [],
}


def test_a_burst_began_on_the_controller_s_clock_and_lost_the_frames_that_are_missing():
    clocks = [{"id": number, "result": {"now": 6000.0}} for number in range(4, 9)]
    agent, process = configured({"id": 3, "result": {**ANSWER, "directions": [{**COUNTERS, "course": BURST}]}}, *clocks)
    before = time.monotonic()
    answer = run_timed(agent, (1000.0, 0.1), is_burst=True)
    (timeline,) = answer.timelines
    assert process.written[2]["plan"]["steps"] == [[1000.0, 0.1]]
    assert before <= timeline.began + 1000.0 <= time.monotonic()
    assert 0 < timeline.clock_error < 1.0
    assert (answer.directions[0].received_frames, timeline.lost, timeline.rate, timeline.last_lost) == (
        7,
        1,
        999.0,
        None,
    )


OUTAGE = {"frames": 1.5, "first_sent": 0.0, "last_sent": 0.0, "start": 0.0, "end": 0.0}


@pytest.mark.parametrize(
    "broken", [{"course": {}}, {}, {"course": {**BURST, "outages": [OUTAGE]}}, {"course": {**BURST, "outage": 0}}]
)
def test_an_answer_without_a_course_is_refused(broken):
    clocks = [{"id": number, "result": {"now": 6000.0}} for number in range(4, 9)]
    agent, _ = configured({"id": 3, "result": {**ANSWER, "directions": [{**COUNTERS, **broken}]}}, *clocks)
    with pytest.raises(TrafficError, match="instead of an answer"):
        run_timed(agent, (1000.0, 0.1), is_burst=True)


def test_the_agent_reads_what_goes_over_connections_field_by_field():
    assert [field.name for field in fields(ExchangeOfAgent)] == [field.name for field in fields(Exchange)]
    assert get_type_hints(ExchangeOfAgent) == get_type_hints(Exchange)
    for exchange in (Exchange(), Exchange(2.0, 3, "fin", established=True), Exchange(closing="rst")):
        assert asdict(read_record(ExchangeOfAgent, asdict(exchange))) == asdict(exchange)

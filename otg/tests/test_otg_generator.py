"""The program that asks a tester of the Open Traffic Generator: its counters, and testers that fail."""

import socket
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from performed import hold, late, latency, perform
from ports import refusing_port
from waiting import PATIENCE

from lossratio.agent.core.protocol import AgentError, ControllerGoneError
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.answers import read_counters
from lossratio.trials.counters import output_from_counters
from lossratio.trials.trial_input import TrialInput
from lossratio_otg import program

PAIR = PortPair(TrafficPort("port0", "port0"), TrafficPort("port1", "port1"))
NAMES = ("port0>port1", "port1>port0")
PORTS = {"port0": "port0 t", "port1": "port1 t"}


class StandIn:
    """A tester that sends everything at once, and loses what it is told."""

    made = None

    def __init__(self, address, verify, timeout):
        self.address = address
        self.config = self.state = None
        self.lost, self.sent_of_all, self.reads, self.behind = 0, 1.0, 0, 0
        self.latency = {"minimum_ns": 1000.0, "average_ns": "2000", "maximum_ns": 9000.0}
        self.is_taken = False
        StandIn.made = self

    def version(self):
        return "stand-in (OTG 1.61.0)"

    def configure(self, config):
        self.config, self.reads, self.state = config, 0, None

    def transmit(self, state):
        self.state = state

    def metrics(self, kind):
        if kind == "flow":
            return {flow["name"]: {"latency": self.latency} for flow in self.config["flows"]}
        self.reads += 1
        ports = {name: {"frames_tx": "0", "frames_rx": "0"} for name in PORTS.values()}
        for flow in self.config["flows"]:
            packets = flow["duration"].get("fixed_packets", {"packets": 100})["packets"]
            sent = int(packets * self.sent_of_all)
            way = flow["tx_rx"]["port"]
            ports[way["tx_name"]]["frames_tx"] = str(sent)
            seen = sent - self.lost - (5 if self.reads <= self.behind else 0)
            ports[way["rx_names"][0]]["frames_rx"] = str(seen)
        return {"other": {}} if self.is_taken else ports

    def close(self):
        pass


class Clock:
    """Time passes only while somebody waits, and a tick for each look: stalls of this machine change nothing."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1e-6
        return self.now

    def pause(self, seconds, check):
        self.now += seconds
        check()


@pytest.fixture
def made(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(program, "Tester", StandIn)
    monkeypatch.setattr(program, "_PATIENCE", 0.1)
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.setattr(program.agent, "pause", clock.pause)
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.0)
    flows = [
        {"name": name, "tx_rx": {"choice": "port", "port": {"tx_name": f"{ends[0]} t", "rx_names": [f"{ends[1]} t"]}}}
        for name, ends in ((name, name.split(">")) for name in NAMES)
    ]
    return program.OtgGenerator(configuration, "http://tester", True, 1.0, 0.05, {"ports": [], "flows": flows}, PORTS)


def measured(generator, load=1000.0, duration=0.02):
    trial = TrialInput(duration, load)
    counters = read_counters({"directions": perform(generator, load, duration).directions}, NAMES)
    return output_from_counters(trial, counters)


def test_counters_are_those_of_the_ports_and_rates_are_whole_numbers(made):
    StandIn.made.lost = 2
    output = measured(made, load=1000.3, duration=0.02)
    rates = [flow["rate"]["pps"] for flow in StandIn.made.config["flows"]]
    assert rates == [1000, 1000]
    assert [(each.sent_frames, each.received_frames, each.unsent_frames) for each in output.directions] == [
        (20, 18, 0)
    ] * 2
    assert output.loss_ratio == 0.1
    assert all(each.load_ratio == 1000 / 1000.3 and each.stretch_s >= 0.0 for each in output.directions)


def test_metrics_that_are_behind_are_waited_for(made):
    StandIn.made.behind = 2
    assert measured(made).loss_ratio == 0.0
    assert StandIn.made.reads == 3


def test_a_tester_that_was_slow_leaves_frames_unsent(made, monkeypatch):
    clock = iter([0.0, 0.0, 0.0, 0.5, 0.5])
    monkeypatch.setattr(program.time, "monotonic", lambda: next(clock, 0.5))
    monkeypatch.setattr(program.agent, "pause", lambda *_: None)
    output = measured(made)
    assert [(each.intended_frames, each.sent_frames) for each in output.directions] == [(500, 20)] * 2
    assert output.unsent_frames == pytest.approx(960, abs=4)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_configuration_that_never_starts_and_metrics_that_stall_are_errors(made, share):
    StandIn.made.sent_of_all = share
    with pytest.raises(AgentError, match=rf"its ports had sent port0>port1: {int(20 * share)} of 20") as caught:
        measured(made)
    assert caught.value.kind == "stalled"
    assert StandIn.made.state == "stop"


def test_another_clients_configuration_is_no_result(made):
    StandIn.made.is_taken = True
    with pytest.raises(AgentError, match="Another client may have changed its configuration"):
        measured(made)


def test_a_ramp_is_refused(made):
    with pytest.raises(AgentError, match="OTG has no ramp"):
        perform(made, 1000.0, 0.02, ramp=0.1)


def test_latency_has_least_mean_and_largest_only(made):
    output = latency(made, 1000.0, 0.02, NAMES)
    assert [(each.least_us, each.mean_us, each.most_us, each.jitter_us) for each in output.latency] == [
        (1.0, 2.0, 9.0, None)
    ] * 2
    StandIn.made.latency = {}
    output = latency(made, 1000.0, 0.02, NAMES)
    assert {each.error for each in output.latency} == {"The tester gave no latency for this flow."}


def test_traffic_without_an_end_is_stopped_and_counted(made):
    (first, second) = read_counters(asdict(hold(made, 1000.0)), NAMES)
    assert StandIn.made.config["flows"][0]["duration"]["choice"] == "continuous"
    assert first.sent_frames + second.sent_frames == first.received_frames + second.received_frames == 200
    assert (first.unsent_frames, second.unsent_frames, StandIn.made.state) == (0, 0, "stop")
    assert late(made) == {name: [0] for name in NAMES}


def test_traffic_without_an_end_is_stopped_after_a_fault(made):
    def wait_for_a_sign_of_life():
        program.time.now += 2 * program._LIFE_SECONDS
        StandIn.made.is_taken = True
        yield

    with pytest.raises(AgentError, match="Another client"):
        hold(made, 1000.0, wait_for_a_sign_of_life())
    assert StandIn.made.state == "stop"


def test_a_closed_generator_has_stopped_its_traffic(made):
    def gone():
        raise ControllerGoneError

    with pytest.raises(ControllerGoneError):
        perform(made, 1000.0, 1.0, gone)
    assert StandIn.made.state == "start"
    made.close()
    assert StandIn.made.state == "stop"


class Liar(BaseHTTPRequestHandler):
    answer = b""
    status = 200

    def do_GET(self):
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (200, b"<html>", "answers GET /capabilities/version, but not with JSON"),
        (200, b"[]", r"refused GET /capabilities/version: \[\]"),
        (500, b'{"errors": ["out of licences"]}', "refused GET /capabilities/version: out of licences"),
        (404, b"null", "refused GET /capabilities/version: None"),
    ],
)
def test_answers_that_are_none_are_errors(status, answer, message):
    Liar.status, Liar.answer = status, answer
    with HTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(AgentError, match=message):
            program.Tester(f"http://127.0.0.1:{server.server_port}", True, PATIENCE).version()
        thread.join()


def test_a_tester_that_is_not_there_is_named():
    with refusing_port() as port:
        address = f"http://127.0.0.1:{port}"
        with pytest.raises(AgentError, match=f"The tester {address} does not answer") as caught:
            program.Tester(address, True, 1.0).version()
    assert caught.value.kind == "server_lost"


def test_a_tester_that_never_answers_is_lost_after_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(AgentError, match="timed out"):
        program.Tester(f"http://127.0.0.1:{silent.getsockname()[1]}", True, 0.1).version()

"""What goes wrong on the TG node, and what is said about it."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, make_dataclass

import faulty_device
import pytest
from at_least_one import at_least_one
from local_session import PYTHON, LocalSession, bare_python
from processes import children_of
from traffic_lab import PAIR, configure, drop, received_by
from waiting import is_running, wait_until
from whole_trials import hold_load, run_latency, run_trial, whole

from lossratio.errors import TrafficError
from lossratio.traffic import (
    AgentClient,
    AgentRefusalError,
    TrafficPort,
    check_path,
    load_profile,
    make_configuration,
    spread_over_flows,
)
from lossratio.trials import Exchange

pytestmark = pytest.mark.netns


def ask(agent, operation, **fields):
    """Sends a request with any fields."""
    return agent._ask(operation, make_dataclass("Request", fields)(**fields))


def refusal(action, *arguments, **options):
    with pytest.raises(AgentRefusalError, match="Node TG: ") as caught:
        action(*arguments, **options)
    return caught.value.kind, str(caught.value)


def test_an_interface_that_does_not_exist_is_named_with_those_there_are(agent):
    kind, message = refusal(configure, agent, west=TrafficPort("port0", "eth7"))
    assert kind == "no_such_interface"
    assert "eth7" in message
    assert "lo, tg0, tg1" in message


def test_an_interface_that_is_down_is_refused(agent, bridged):
    bridged.run("tg", "ip", "link", "set", "dev", "tg1", "down")
    kind, message = refusal(configure, agent)
    assert (kind, "tg1 or its link is down" in message) == ("interface_down", True)


@pytest.mark.smoke
@pytest.mark.parametrize(("namespace", "interface"), [("tg", "tg0"), ("dut1", "dut0"), ("dut1", "dut1")])
def test_an_interface_that_goes_down_mid_trial_is_an_error_and_not_a_number(agent, bridged, namespace, interface):
    configure(agent, bidirectional=False)
    check_path(agent)
    link = ("ip", "link", "set", "dev", interface)

    def interrupt():
        before = received_by(bridged, "dut0")
        wait_until(lambda: received_by(bridged, "dut0") > before + 10)
        bridged.run(namespace, *link, "down")
        bridged.run(namespace, *link, "up")

    thread = threading.Thread(target=interrupt)
    thread.start()
    kind, _ = refusal(run_trial, agent, 1000.0, 2.0)
    thread.join()
    assert kind == "interface_down"
    check_path(agent)


def test_frames_larger_than_the_mtu_are_refused(agent, bridged):
    bridged.run("tg", "ip", "link", "set", "dev", "tg0", "mtu", "1400")
    kind, message = refusal(configure, agent, "IMIX_v4_1")
    assert (kind, "whose MTU is 1400" in message) == ("unsupported", True)


def test_a_trial_without_a_load_or_a_duration_is_refused(agent):
    configure(agent)
    for load, duration in ((0, 1), (-5.0, 1), (1000, 0), (1000, -1), (float("inf"), 1), ("x", 1), (None, None)):
        assert refusal(ask, agent, "trial", load=load, duration=duration)[0] == "bad_request"


def test_operations_in_the_wrong_order_are_refused(agent):
    assert refusal(run_trial, agent, 1000.0, 0.1)[0] == "not_configured"
    configure(agent)
    assert refusal(agent.stop)[0] == "not_running"
    hold_load(agent, 100.0)
    assert refusal(hold_load, agent, 100.0)[0] == "busy"
    assert refusal(run_trial, agent, 1000.0, 0.1)[0] == "busy"
    agent.stop()
    assert run_trial(agent, 1000.0, 0.01)


def test_requests_that_make_no_sense_are_answered_and_change_nothing(agent):
    configure(agent)
    assert refusal(ask, agent, "dance")[0] == "bad_request"
    assert run_trial(agent, 1000.0, 0.01)


def test_a_time_that_is_false_is_no_time(agent):
    configure(agent)
    for field in ("wait", "ramp", "above", "in_flight"):
        assert refusal(ask, agent, "run", plan={"steps": [[1000.0, 0.01]], field: False})[0] == "bad_request"
    assert ask(agent, "run", plan={"steps": [], "wait": 0})


NO_EXCHANGES = (
    {"answer_ratio": 0},
    {"answer_ratio": True},
    {"answer_ratio": "1"},
    {"data_frames": -1},
    {"data_frames": 1.5},
    {"closing": "end"},
    {"closing": []},
    {"established": 1},
    {"answers": 2},
)


def test_an_exchange_that_makes_no_sense_is_refused_and_the_agent_stays(agent):
    configure(agent)
    for change in NO_EXCHANGES:
        exchange = {**asdict(Exchange()), **change}
        plan = {"steps": [[1000.0, 0.01]], "connections": 10, "exchange": exchange}
        assert refusal(ask, agent, "run", plan=plan)[0] == "bad_request", change
        assert run_trial(agent, 1000.0, 0.01)


RUN = {"steps": [[1000.0, 0.01]]}
PROBE = {"ports": ["tg0"], "sends": [], "networks": [], "speakers": [], "listen": [], "seconds": 0.1}


INCOMPLETE = (
    ("run", {}),
    ("run", {"plan": {**RUN, "connections": 2.5, "exchange": asdict(Exchange())}}),
    ("run", {"plan": {}}),
    ("run", {"plan": {"steps": [1]}}),
    ("run", {"plan": {"steps": [[1000.0, None], [1000.0, 0.01]]}}),
    ("resolve", {"questions": None, "seconds": 1.0}),
    ("run", {"plan": {**RUN, "is_burst": 1}}),
    ("run", {"plan": {**RUN, "latency": True, "above": 0.5}}),
    ("run", {"plan": {**RUN, "is_brust": True}}),
    ("run", {"plan": {"steps": [[1000.0, None]], "locates": "false"}}),
    ("run", {"plan": {**RUN, "exchange": []}}),
    ("probe", {**PROBE, "ports": "tg0"}),
    ("probe", {**PROBE, "sends": [["tg0"]]}),
    ("probe", {**PROBE, "speakers": None}),
    ("probe", {**PROBE, "networks": [1]}),
    ("probe", {**PROBE, "seconds": True}),
)


def test_a_request_that_lacks_a_part_is_refused_and_the_agent_stays(agent):
    configure(agent)
    for operation, request in INCOMPLETE:
        assert refusal(ask, agent, operation, **request)[0] == "bad_request", (operation, request)
        assert run_trial(agent, 1000.0, 0.01)


def test_a_broken_configuration_is_refused(agent):
    good = asdict(make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.0))
    broken = ({"ports": []}, {"directions": []}, {"directions": [{}]}, {"settle_time": -1}, {"settle_time": "x"})
    for change in at_least_one(broken):
        assert (
            refusal(ask, agent, "configure", generator="afpacket", configuration={**good, **change})[0] == "bad_request"
        )


def test_a_generator_that_the_agent_has_no_program_for_is_refused(agent):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PAIR], settle_time=0.0)
    kind, message = refusal(agent.configure, configuration, generator="pktgen")
    assert (kind, "no program for a generator 'pktgen'" in message) == ("unsupported", True)


def test_a_black_hole_is_found_before_a_search(agent, bridged):
    configure(agent, settle_time=0.01)
    for interface in ("dut0", "dut1"):
        drop(bridged, interface, "ether type ip")
    with pytest.raises(TrafficError, match=r"black hole.*port0>port1.*port1>port0"):
        check_path(agent)


@pytest.mark.parametrize(("interface", "direction"), [("dut0", "port0>port1"), ("dut1", "port1>port0")])
def test_a_one_way_path_is_found_before_a_search(agent, bridged, interface, direction):
    configure(agent, settle_time=0.01)
    drop(bridged, interface, "ether type ip")
    with pytest.raises(
        TrafficError, match=rf"in one direction only: nothing arrives in direction {direction} \(sent \d+"
    ):
        check_path(agent)


def spreading(agent, **options):
    """Makes an agent ready, and gives what makes it ready for flows from all over."""
    traffic = load_profile(options.get("profile", "ethip4-udp"), frame_size=64)
    whole = make_configuration(traffic, [PAIR], settle_time=0.1)
    agent.configure(whole)
    return lambda: agent.configure(spread_over_flows(whole))


def test_where_a_device_drops_all_flows_the_error_names_their_number(agent, bridged):
    spread = spreading(agent, profile="ethip4-udp-10kflows")
    drop(bridged, "dut0", "ip saddr 198.18.0.0/16")
    words = r"none of 1,024 of 10,000 flows, from all over"
    with pytest.raises(TrafficError, match=rf"port0>port1 \(sent [\d,]+ frames, received 0: {words}\)"):
        check_path(agent, spread=spread)


@pytest.mark.parametrize("half", ["198.18.0.0-198.18.0.127", "198.18.0.128-198.18.0.255"])
def test_a_device_that_forwards_half_of_the_flows_is_no_dead_path(agent, bridged, half):
    spread = spreading(agent)
    drop(bridged, "dut0", f"ip saddr {half}")
    east, west = check_path(agent, spread=spread)
    assert min(east.received_frames, west.received_frames) > 0


def test_a_device_that_forwards_every_second_flow_is_no_dead_path(agent, bridged):
    configure(agent, settle_time=0.1)
    drop(bridged, "dut0", "ip saddr & 0.0.0.1 == 1")
    east, west = check_path(agent)
    assert 0 < east.received_frames < west.received_frames


def test_a_device_that_loses_nearly_all_frames_is_no_dead_path(agent, bridged):
    spread = spreading(agent)
    # Each direction gets through with one frame of 256.
    for interface in ("dut0", "dut1"):
        drop(bridged, interface, "ether type ip numgen inc mod 256 < 255")
    east, west = check_path(agent, spread=spread)
    assert min(east.received_frames, west.received_frames) > 0


def test_a_device_that_begins_slowly_is_no_dead_path(agent, bridged):
    spread = spreading(agent)
    drop(bridged, "dut0", "ether type ip")

    def begin():
        bridged.run("dut1", "nft", "delete", "table", "netdev", "faults")
        spread()

    east, west = check_path(agent, spread=begin)
    assert min(east.received_frames, west.received_frames) > 0


def test_a_path_that_is_slower_than_was_said_is_measured_where_trials_count_some_of_its_frames(agent, bridged, caplog):
    for interface in ("dut0", "dut1"):
        bridged.run("dut1", "ip", "link", "set", interface, "nomaster")
    script = (sys.executable, faulty_device.__file__, "dut0", "dut1", "late")
    device = bridged.popen("dut1", *script, stdout=subprocess.PIPE, text=True)
    assert device.stdout.readline() == "ready\n"
    configure(agent, settle_time=0.01)
    east, _ = check_path(agent)
    assert 0 < east.received_frames < east.sent_frames
    assert "at first, nothing came through in direction port0>port1" in caplog.text
    assert "option 'hold'" in caplog.text


def test_an_interface_with_the_default_route_is_refused_before_any_frame(agent, bridged):
    bridged.run("tg", "ip", "address", "add", "192.0.2.1/24", "dev", "tg1")
    bridged.run("tg", "ip", "route", "add", "default", "via", "192.0.2.2", "dev", "tg1", "table", "77")
    before = received_by(bridged, "dut0")
    kind, message = refusal(configure, agent)
    assert (kind, "tg1: it carries a default route" in message) == ("forbidden_interface", True)
    assert received_by(bridged, "dut0") == before


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("0.0.0.0/1 dev mgmt", "128.0.0.0/1 dev tg1"), "tg1: it carries a part of the default route (128.0.0.0/1)"),
        (
            ("0.0.0.0/1 dev tg1", "128.0.0.0/1 dev mgmt table 7"),
            "tg1: it carries a part of the default route (0.0.0.0/1)",
        ),
        (("::/1 dev mgmt", "8000::/1 dev tg1"), "tg1: it carries a part of the default route (8000::/1)"),
    ],
    ids=["0/1+128/1", "128/1+0/1", "::/1+8000::/1"],
)
def test_an_interface_with_a_piece_of_the_default_route_is_refused(agent, bridged, pieces, said):
    bridged.veth("tg", "mgmt", "dut1", "other")
    if ":" in pieces[0]:
        bridged.run("tg", "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0")
    for piece in pieces:
        bridged.run("tg", "ip", "route", "add", *piece.split())
    kind, message = refusal(configure, agent)
    assert (kind, said in message) == ("forbidden_interface", True), message


def test_interfaces_with_routes_to_some_networks_are_not_refused(agent, bridged):
    bridged.veth("tg", "mgmt", "dut1", "other")
    for route in ("0.0.0.0/1 dev tg1", "10.0.0.0/8 dev tg1", "198.18.0.0/15 dev tg0", "default dev mgmt"):
        bridged.run("tg", "ip", "route", "add", *route.split())
    configure(agent)


def test_an_interface_whose_frames_would_be_forwarded_along_a_piece_of_the_default_route_is_refused(agent, bridged):
    bridged.veth("tg", "mgmt", "dut1", "other")
    bridged.run("tg", "sysctl", "-qw", "net.ipv4.conf.tg1.forwarding=1")
    bridged.run("tg", "ip", "route", "add", "198.19.0.0/16", "dev", "tg1")
    bridged.run("tg", "ip", "route", "add", "0.0.0.0/1", "dev", "mgmt")
    configure(agent)
    bridged.run("tg", "ip", "route", "add", "128.0.0.0/1", "dev", "mgmt")
    kind, message = refusal(configure, agent)
    assert kind == "forbidden_interface"
    assert "would forward the test traffic to its route to 128.0.0.0/1" in message


def test_an_interface_below_a_bridge_with_the_default_route_is_refused(agent, bridged):
    bridged.bridge("tg", "mgmt", "tg0")
    bridged.run("tg", "ip", "address", "add", "192.0.2.1/24", "dev", "mgmt")
    bridged.run("tg", "ip", "route", "add", "default", "via", "192.0.2.2")
    kind, message = refusal(configure, agent)
    assert (kind, "tg0: mgmt, on the same wire, carries a default route" in message) == ("forbidden_interface", True)


def test_an_interface_whose_frames_would_be_forwarded_to_other_networks_is_refused(agent, bridged):
    bridged.veth("tg", "mgmt", "dut1", "other")
    bridged.run("tg", "ip", "address", "add", "192.0.2.1/24", "dev", "mgmt")
    bridged.run("tg", "sysctl", "-qw", "net.ipv4.conf.tg1.forwarding=1")
    configure(agent)
    bridged.run("tg", "ip", "route", "add", "default", "via", "192.0.2.2")
    kind, message = refusal(configure, agent)
    assert (kind, "sysctl -w net.ipv4.conf.tg1.forwarding=0" in message) == ("forbidden_interface", True)


@pytest.mark.parametrize("connection", ["192.0.2.2 40000 192.0.2.1 22", "198.51.100.7 40000 203.0.113.5 22"])
def test_an_interface_with_the_ssh_session_is_refused(bridged, tmp_path, connection):
    bridged.run("tg", "ip", "address", "add", "192.0.2.1/24", "dev", "tg0")
    bridged.run("tg", "ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.2")
    session = LocalSession(bridged, "tg", tmp_path, SSH_CONNECTION=connection)
    with AgentClient.start(session, python=PYTHON) as agent:
        kind, message = refusal(configure, agent)
    assert (kind, "tg0: it carries the SSH session" in message) == ("forbidden_interface", True)


def test_the_ssh_session_is_known_even_where_sudo_has_cleared_the_environment(bridged, tmp_path):
    bridged.run("tg", "ip", "address", "add", "192.0.2.1/24", "dev", "tg0")
    python = tmp_path / "sudo-python"
    python.write_text(f'#!/bin/sh\nunset SSH_CONNECTION\n"{PYTHON}" "$@"\n')
    python.chmod(0o755)
    session = LocalSession(bridged, "tg", tmp_path, SSH_CONNECTION="192.0.2.2 40000 192.0.2.1 22")
    with AgentClient.start(session, python=str(python)) as agent:
        assert refusal(configure, agent)[0] == "forbidden_interface"


def test_traffic_stops_when_the_controller_goes_mid_trial(agent, bridged, session):
    configure(agent)
    process = session.processes[0].process
    senders = children_of(process.pid)
    assert len(senders) == 2
    agent._conversation.process.write_line('{"id": 9, "op": "run", "plan": {"steps": [[1000, 60]]}}')
    before = received_by(bridged, "dut0")
    wait_until(lambda: received_by(bridged, "dut0") > before)
    process.stdin.close()
    assert process.wait() == 0
    wait_until(lambda: not any(map(is_running, senders)))
    assert "the controller is gone" in session.processes[0].stderr_tail()


def test_traffic_stops_when_the_controller_goes_while_it_runs_around_other_work(agent, session):
    configure(agent)
    hold_load(agent, 1000.0)
    process = session.processes[0].process
    senders = children_of(process.pid)
    process.stdin.close()
    assert process.wait() == 0
    wait_until(lambda: not any(map(is_running, senders)))


def test_an_agent_killed_mid_trial_is_one_clear_error_and_its_senders_die_with_it(agent, bridged, session):
    configure(agent)
    pid = session.processes[0].process.pid
    senders = children_of(pid)
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(
        TrafficError, match=r"Node TG.*traffic agent's operation 'run'.*The next measurement restarts it"
    ):
        run_trial(agent, 1000.0, 30.0)
    wait_until(lambda: not any(map(is_running, senders)))
    with pytest.raises(TrafficError, match="has ended"):
        run_trial(agent, 1000.0, 0.1)


def test_a_sender_that_dies_mid_trial_is_an_error_and_the_agent_stays(agent, session):
    configure(agent)
    sender = children_of(session.processes[0].process.pid)[0]
    threading.Timer(0.3, os.kill, (sender, signal.SIGKILL)).start()
    assert refusal(run_trial, agent, 1000.0, 5.0)[0] == "sender_died"
    configure(agent)
    assert run_trial(agent, 1000.0, 0.01)


def test_no_direction_goes_on_when_another_cannot_start(agent, bridged, session):
    configure(agent)
    second = children_of(session.processes[0].process.pid)[1]
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: not is_running(second))
    assert refusal(hold_load, agent, 1000.0)[0] == "sender_died"
    before = received_by(bridged, "dut0")
    time.sleep(0.2)
    assert received_by(bridged, "dut0") == before


def test_a_port_that_was_replaced_between_trials_is_no_loss(agent, bridged):
    configure(agent, bidirectional=False)
    run_trial(agent, 1000.0, 0.02)
    bridged.run("tg", "ip", "link", "delete", "dev", "tg1")
    bridged.veth("tg", "tg1", "dut1", "dut1")
    bridged.run("dut1", "ip", "link", "set", "dev", "dut1", "master", "br0")
    kind, message = refusal(run_trial, agent, 1000.0, 0.02)
    assert (kind, "tg1 was removed" in message) == ("interface_replaced", True)
    configure(agent, bidirectional=False)
    assert whole(run_trial, agent, 1000.0, 0.02)[0].received_frames == 20


def test_an_interrupt_mid_trial_ends_the_traffic(agent, session):
    configure(agent)
    process = session.processes[0]

    def interrupted(timeout, meanwhile):
        raise KeyboardInterrupt

    process.read_line = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_trial(agent, 1000.0, 30.0)
    assert process.process.wait() == 0


def test_an_agent_without_numpy_says_for_what_it_is_needed(session, tmp_path):
    with AgentClient.start(session, python=bare_python(tmp_path)) as agent:
        assert agent.facts.numpy is None
        configure(agent)
        kind, message = refusal(run_latency, agent, 1000.0, 0.1)
    assert (kind, "apt install python3-numpy" in message) == ("unsupported", True)
    assert "cannot measure latency" in message

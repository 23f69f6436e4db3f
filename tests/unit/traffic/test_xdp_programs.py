"""The programs of the generator inside the kernel: where they are refused, and how they come and go."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
from local_session import PYTHON
from traffic_lab import EAST, WEST, received_by
from waiting import wait_until
from whole_trials import hold_load, run_trial, whole
from xdp_lab import NEEDS, configure

from lossratio.topology import AutoGenerator
from lossratio.traffic import AgentClient, AgentRefusalError, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.generators.base import GeneratorNode
from lossratio.traffic.generators.own import Auto

pytestmark = NEEDS

NODE = GeneratorNode(session=None, interfaces={}, cpus=1)


def attached(lab, namespace="tg"):
    return "xdp" in lab.run(namespace, "ip", "link", "show").stdout


def refusal(agent, **arguments):
    with pytest.raises(AgentRefusalError) as refused:
        configure(agent, **arguments)
    return refused.value


def test_a_driver_that_takes_no_frames_of_programs_is_refused_with_the_way_out(bridged, agent):
    for interface in ("dut0", "dut1"):
        bridged.run("dut1", "ethtool", "-K", interface, "gro", "off")
    error = refusal(agent)
    assert error.kind == "no_xdp"
    assert re.search("The driver of tg[01] does not send frames of XDP programs", str(error))
    assert "ethtool -K OTHER_END gro on" in str(error)


def test_frames_beyond_a_page_are_refused_with_the_way_out(ready, agent):
    for namespace, interface in (("tg", "tg0"), ("tg", "tg1"), ("dut1", "dut0"), ("dut1", "dut1")):
        ready.run(namespace, "ip", "link", "set", "dev", interface, "mtu", "9216")
    error = refusal(agent, frame_size=9000)
    assert error.kind == "no_xdp"
    assert "9000 bytes do not fit into a page of memory" in str(error)
    # A large MTU alone is in nobody's way.
    configure(agent)
    assert [direction.received_frames for direction in whole(run_trial, agent, 1_000, 0.1)] == [100, 100]


def test_somebody_elses_program_is_named_and_never_replaced(ready, agent, session):
    with AgentClient.start(session, python=PYTHON) as other:
        configure(other)
        error = refusal(agent)
        assert error.kind == "xdp_attached"
        assert "Interface tg1 already has an XDP program: " in str(error)
        assert "(lossratio_recv)" in str(error)
        assert [direction.received_frames for direction in whole(run_trial, other, 1_000, 0.1)] == [100, 100]
    configure(agent)


def test_auto_takes_the_embedded_generator_where_there_can_be_no_programs_and_says_why(bridged, agent):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PortPair(WEST, EAST)], settle_time=0)
    generator = Auto(AutoGenerator(kind="auto", catch_up=10.0, cpus=(0,)), node=NODE, ports=())
    for gro, kind in (("off", "afpacket"), ("on", "xdp")):
        for interface in ("dut0", "dut1"):
            bridged.run("dut1", "ethtool", "-K", interface, "gro", gro)
        facts = generator.configure(agent, configuration)
        assert facts["kind"] == facts["generator"] == kind
        assert ("does not send frames of XDP programs" in facts.get("instead_of_xdp_because", "")) == (gro == "off")
        assert facts["catch_up"] == 10.0


def test_auto_is_refused_what_the_embedded_generator_would_be_refused_too(ready, agent):
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [PortPair(WEST, EAST)], settle_time=0)
    ready.run("dut1", "ip", "link", "set", "dev", "dut0", "down")
    with pytest.raises(AgentRefusalError, match="Interface tg0 or its link is down"):
        Auto(AutoGenerator(kind="auto"), node=NODE, ports=()).configure(agent, configuration)


def test_a_processor_that_is_not_there_is_refused(ready, agent):
    error = refusal(agent, cpus=[4095])
    assert "'cpus' name CPU [4095]" in str(error)


@pytest.mark.smoke
def test_programs_go_with_the_agent_however_it_ends(ready, session):
    agent = AgentClient.start(session, python=PYTHON)
    configure(agent)
    assert attached(ready)
    hold_load(agent, 2_000)
    pid = session.processes[-1].process.pid
    os.kill(pid, signal.SIGKILL)
    agent.close()
    wait_until(lambda: not attached(ready))
    quiet = received_by(ready, "dut0")
    time.sleep(0.2)
    assert received_by(ready, "dut0") == quiet


def test_a_stopped_agent_sends_nothing_after_the_end(ready, session):
    agent = AgentClient.start(session, python=PYTHON)
    configure(agent)
    hold_load(agent, 2_000)
    pid = session.processes[-1].process.pid
    os.kill(pid, signal.SIGSTOP)

    def is_quiet():
        before = received_by(ready, "dut0")
        time.sleep(0.5)
        return received_by(ready, "dut0") == before

    wait_until(is_quiet, 60.0)
    os.kill(pid, signal.SIGKILL)
    agent.close()


def test_a_link_with_fewer_receive_queues_than_its_other_end_sends_from_is_received_behind_the_driver(ready, agent):
    ends = (TrafficPort("a", "qa"), TrafficPort("b", "qb"))
    link = ("link", "add", "qa", "numtxqueues", "4", "type", "veth", "peer", "name", "qb", "numrxqueues", "1")
    ready.run("tg", "ip", *link)
    for end in ("qa", "qb"):
        ready.run("tg", "ip", "link", "set", "dev", end, "up")
    traffic = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
    configuration = make_configuration(traffic, [PortPair(*ends)], settle_time=0.1)
    ready.run("tg", "ethtool", "-K", "qb", "gro", "off")
    # Without a program in the driver, a veth needs GRO to take frames.
    with pytest.raises(AgentRefusalError, match=r"qa does not send frames of XDP programs.*gro on"):
        agent.configure(configuration, generator="xdp", options={"catch_up": 10.0})
    ready.run("tg", "ethtool", "-K", "qb", "gro", "on")
    facts = agent.configure(configuration, generator="xdp", options={"catch_up": 10.0})
    assert facts["receives"] == {"qb": "generic"}
    (east,) = whole(run_trial, agent, 5_000, 0.1)
    assert (east.sent_frames, east.received_frames, east.examined_frames, east.faulty) == (500, 500, 500, 0)

"""The agent over real SSH, on a real local testbed."""

import json
import threading
import time

import pytest
from local_testbeds import LOCAL, needs_testbed
from traffic_lab import configure
from waiting import wait_until
from whole_trials import run_trial

from lossratio.errors import TrafficError
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology
from lossratio.traffic import AgentClient, check_path

pytestmark = [pytest.mark.netns, needs_testbed]


@pytest.fixture
def nodes():
    with LocalTestbed.up(load_topology(LOCAL)) as testbed:
        yield testbed.topology.nodes


def received_by(session, interface):
    (link,) = json.loads(session.run("ip", "-json", "-stats", "link", "show", "dev", interface).stdout)
    return link["stats64"]["rx"]["packets"]


def is_still(session, interface):
    before = received_by(session, interface)
    time.sleep(0.3)
    return received_by(session, interface) == before


@pytest.mark.smoke
def test_trials_go_over_ssh_and_a_lost_connection_stops_the_traffic(nodes):
    with (
        NodeSession.connect("TG", nodes["TG"]) as tg,
        NodeSession.connect("DUT1", nodes["DUT1"]) as dut,
        AgentClient.start(tg, python=nodes["TG"].generator.python) as agent,
    ):
        dut.run("ip", "link", "add", "name", "br0", "type", "bridge")
        for name in ("dut0", "dut1"):
            dut.run("ip", "link", "set", "dev", name, "master", "br0")
        dut.run("ip", "link", "set", "dev", "br0", "up")
        configure(agent)
        check_path(agent)
        assert [direction.received_frames for direction in run_trial(agent, 1000.0, 0.1)] > [0, 0]
        threading.Timer(0.5, tg.close).start()
        with pytest.raises(TrafficError, match=r"Node TG.*connection was lost.*The next measurement restarts it"):
            run_trial(agent, 1000.0, 30.0)
        wait_until(lambda: is_still(dut, "dut0"))

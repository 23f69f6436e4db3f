"""A device that can be reset is as before a trial, before frames of any kind: those of checks fill tables, too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from test_path_check import HOPS, INTERFACES, PATH, Agent, CountingDut, Nodes, checked

from lossratio.errors import LinkError
from lossratio.testbed.path_check import check_hops, look_at_fields
from lossratio.testbed.set_up import LiveLink
from lossratio.traffic import Answer, DeadPathError, TrafficMeasurer, check_path, checks
from lossratio.trials import DirectionCounters, Exchange, TrialInput

DEAD = {"port0>port1": 0, "port1>port0": 0}


class Recorder:
    """An agent and a device that note in which order they are asked."""

    late_frames = Agent.late_frames
    received = DEAD
    counted = (DirectionCounters("port0>port1", 100, 100, 100),)

    def __init__(self):
        self.log = []

    def reset(self):
        self.log.append("reset")

    def run(self, plan):
        self.log.append("run")
        return Answer(self.counted)

    def hold(self, plan):
        self.log.append("hold")


@pytest.mark.parametrize(
    ("asked", "traffic"),
    [
        (lambda measurer: measurer.measure(TrialInput(1.0, 100.0)), "run"),
        (lambda measurer: measurer.measure(TrialInput(1.0, 100.0, exchange=Exchange())), "run"),
        (lambda measurer: measurer.latency(100.0, 1.0), "run"),
        (lambda measurer: measurer.start_traffic(100.0), "hold"),
    ],
)
def test_traffic_of_each_kind_comes_after_a_reset(asked, traffic):
    agent = Recorder()
    measures = TrafficMeasurer(agent, reset=agent.reset, forget=lambda: agent.log.append("forget"))
    for _ in range(2):
        asked(measures)
    seen = [step for step in agent.log if step != "forget"]
    assert seen == ["reset", traffic] * 2


def test_each_attempt_at_a_trial_comes_after_a_reset():
    agent = Recorder()
    agent.counted = (DirectionCounters("a>b", 100, 90, 90, 10),)
    TrafficMeasurer(agent, reset=agent.reset, repeats=1).measure(TrialInput(1.0, 100.0))
    assert agent.log == ["reset", "run"] * 2


def test_the_seconds_in_which_a_device_recovers_come_after_its_reset(monkeypatch):
    agent = Recorder()
    monkeypatch.setattr("time.sleep", lambda seconds: agent.log.append("rest") if seconds else None)
    measures = TrafficMeasurer(agent, reset=agent.reset, idle_time=60.0)
    for _ in range(2):
        measures.measure(TrialInput(1.0, 100.0))
    assert agent.log == ["reset", "rest", "run"] * 2


def test_every_command_of_a_hook_comes_before_the_wait_for_quiet(monkeypatch):
    """Also one that empties a table of connections, which once disturbed the trial that followed."""
    agent = Recorder()
    monkeypatch.setattr("time.sleep", lambda seconds: agent.log.append("rest") if seconds else None)
    measures = TrafficMeasurer(
        agent, reset=agent.reset, forget=lambda: agent.log.append("forget"), idle_time=60.0, quiet_since=0.0
    )
    for _ in range(2):
        measures.measure(TrialInput(1.0, 100.0, exchange=Exchange()))
        measures.measure(TrialInput(1.0, 100.0, rest=1e9))
    assert agent.log[-7:] == ["forget", "reset", "rest", "run", "reset", "rest", "run"]


@pytest.fixture
def log(monkeypatch):
    """What agents and devices were asked for; nobody waits for late frames."""
    monkeypatch.setattr(checks, "LATE_SECONDS", 0.0)
    return []


@dataclass
class Logging(Agent):
    """An agent through which nothing gets, and which notes what it is asked for."""

    log: list[str] = field(default_factory=list)

    def run(self, plan):
        self.log.append("trial")
        return super().run(plan)

    def probe(self, *asked, **more):
        self.log.append("probe")
        return super().probe(*asked, **more)


def test_each_attempt_of_the_check_of_a_path_comes_after_a_reset(log):
    agent = Logging(DEAD, log=log)
    with pytest.raises(DeadPathError):
        check_path(agent, spread=lambda: None, reset=lambda: log.append("reset"))
    assert log == ["reset", "trial"] * 9


def test_frames_that_are_followed_and_those_that_are_looked_at_come_after_a_reset(log):
    agent = Logging(DEAD, log=log, facts=INTERFACES)
    traffic = replace(checked(agent), reset=lambda: log.append("reset"))
    dut = CountingDut(HOPS[0], {"west": 0, "east": 0}, {"west": 0, "east": 0})
    with pytest.raises(LinkError):
        check_hops(traffic, [LiveLink(PATH, (dut,), None)], Nodes())
    assert set(log[::2]) == {"reset"}
    assert {"trial", "probe"} == set(log[1::2])
    log.clear()
    look_at_fields(traffic)
    assert log == ["reset", "probe"]

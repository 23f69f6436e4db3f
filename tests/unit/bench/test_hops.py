"""A path that lets nothing through is an error that says at which hop frames are lost, by what the DUTs count."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lossratio.bench.hops import check_hops
from lossratio.bench.live_set_up import LiveLink
from lossratio.dut import DutCounters
from lossratio.topology import Hop, Interface, Port, TrafficPath
from lossratio.traffic.path_check import DeadPathError
from lossratio.trial import DirectionCounters

SENT = 10


def port(node, name):
    return Port(node, name, Interface(link=f"{node}-{name}"))


HOPS = tuple(Hop(name, port(name, "port0"), port(name, "port1")) for name in ("DUT1", "DUT2"))
PATH = TrafficPath("TG", port("TG", "port0"), port("TG", "port1"), HOPS)


@dataclass
class Agent:
    """An agent whose frames come back in some directions only."""

    received: dict[str, int]
    node_name: str = "TG"

    def trial(self, load, duration):
        return tuple(
            DirectionCounters(name, intended=SENT, sent=SENT, received=count) for name, count in self.received.items()
        )


@dataclass
class CountingDut:
    """A DUT that counts what it is told to for each trial."""

    hop: Hop
    received: dict[str, int]
    transmitted: dict[str, int]
    dropped: dict[str, int] = field(default_factory=dict)
    _readings: int = 0

    def read_counters(self):
        self._readings += 1
        times = self._readings - 1
        return DutCounters(
            *({k: v * times for k, v in each.items()} for each in (self.received, self.transmitted, self.dropped))
        )


def forwarding(hop):
    both = {"west": SENT, "east": SENT}
    return CountingDut(hop, both, both)


def error_of(received, duts):
    with pytest.raises(DeadPathError) as raised:
        check_hops(Agent(received), [LiveLink(PATH, tuple(duts), None)])
    return str(raised.value)


def test_nothing_is_said_where_frames_get_through():
    check_hops(Agent({"port0>port1": SENT, "port1>port0": SENT}), [LiveLink(PATH, (forwarding(HOPS[0]),), None)])


def test_a_dut_that_lets_nothing_out_is_named_with_the_place_where_it_drops():
    dut = CountingDut(HOPS[1], {"west": SENT, "east": SENT}, {"west": SENT, "east": 0}, {"policer west>east": SENT})
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(HOPS[0]), dut])
    assert "works one way only" in message
    assert message.endswith(
        "port0>port1: DUT2 receives 10 frames and lets none out (dropped: 10 at policer west>east)."
    )


def test_a_link_on_which_nothing_arrives_is_named_by_its_ends():
    deaf = CountingDut(HOPS[1], {"west": 0, "east": 0}, {"west": 0, "east": 0})
    message = error_of({"port0>port1": 0, "port1>port0": 0}, [forwarding(HOPS[0]), deaf])
    assert "port0>port1: DUT1 sends, and nothing arrives at DUT2; look at the link between them." in message
    assert "port1>port0: TG.port1 sends, and nothing arrives at DUT2; look at the link between them." in message


def test_a_last_link_that_loses_everything_is_named():
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(each) for each in HOPS])
    assert message.endswith("DUT2 sends 10 frames on, and nothing arrives at TG.port1; look at the link between them.")


def test_without_duts_that_can_be_asked_it_is_left_at_the_direction():
    assert "black hole" in error_of({"port0>port1": 0, "port1>port0": 0}, [])


def test_of_parallel_links_the_one_that_fails_is_named():
    second = TrafficPath("TG", port("TG", "port2"), port("TG", "port3"), HOPS[:1])
    deaf = CountingDut(HOPS[0], {"west": 0, "east": 0}, {"west": 0, "east": 0})
    received = {"port0>port1": SENT, "port1>port0": SENT, "port2>port3": 0, "port3>port2": 0}
    links = [LiveLink(PATH, (forwarding(HOPS[0]),), None), LiveLink(second, (deaf,), None)]
    with pytest.raises(DeadPathError) as raised:
        check_hops(Agent(received), links)
    message = str(raised.value)
    assert "black hole" in message
    assert "Parallel link 2 of 2, port2>port3: TG.port2 sends, and nothing arrives at DUT1" in message
    assert "Parallel link 1" not in message

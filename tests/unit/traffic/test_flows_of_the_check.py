"""The check of a path stands for all flows of the traffic: it sends some from all over, each one as trials send it."""

from itertools import pairwise

import numpy as np
import pytest
from at_least_one import at_least_one

from lossratio.agent.afpacket.frames import build_frames
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration, spread_over_flows
from lossratio.traffic.configuration import MOST_SPREAD

PAIR = PortPair(TrafficPort("west", "tg0"), TrafficPort("east", "tg1"))
RANDOM = """
format: lossratio-traffic-profile/1
name: random
ipv4:
  source: {count: 60, order: random}
  destination: {count: 48}
udp:
  source_port: {first: 1024, count: 25, order: random}
"""


@pytest.fixture(params=["ethip4-udp", "ethip4-udp-10kflows", "random.yaml"])
def configuration(request, tmp_path):
    (tmp_path / "random.yaml").write_text(RANDOM)
    profile = str(tmp_path / request.param) if request.param.endswith(".yaml") else request.param
    return make_configuration(load_profile(profile, frame_size=64), [PAIR], settle_time=0.0)


def headers(spec, count):
    cycle = build_frames(spec, b"\1" * 6, b"\2" * 6)
    data, _ = cycle.frames(np.arange(count))
    return [row[: spec.tag_offset].tobytes() for row in data]


def test_each_of_its_flows_is_one_of_the_traffic_and_comes_once(configuration):
    for spread, whole in at_least_one(
        zip(spread_over_flows(configuration).directions, configuration.directions, strict=True)
    ):
        count = min(whole.frames.flows, MOST_SPREAD)
        some = headers(spread.frames, count)
        assert spread.frames.flows == len(set(some)) == count
        assert set(some) <= set(headers(whole.frames, whole.frames.flows))


def places(configuration, count):
    """The numbers of the first flows of the check, among all."""
    whole, spread = (each.directions[0].frames for each in (configuration, spread_over_flows(configuration)))
    numbers = {header: number for number, header in enumerate(headers(whole, whole.flows))}
    return [numbers[header] for header in headers(spread, count)], whole.flows


@pytest.mark.parametrize("count", [10, 50, 200])
def test_its_first_flows_are_spread_evenly(configuration, count):
    first, flows = places(configuration, count)
    ends = [0, *sorted(first), flows]
    assert max(after - before for before, after in pairwise(ends)) <= 3 * flows / count


@pytest.mark.parametrize("queues", [2, 4, 8, 16])
def test_its_first_flows_are_not_all_of_one_queue(configuration, queues):
    first, _ = places(configuration, 10 * queues)
    assert {number % queues for number in first} == set(range(queues))

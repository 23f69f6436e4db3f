"""Bursts with TRex, and the schedules that it refuses."""

import pytest
from performed import perform
from trex_lab import generator, trial
from trex_stand_in import Server, StandIn

from lossratio.agent.core.plan import BURSTS, CONNECTIONS, PLACES, SCHEDULES, TWO_NODES
from lossratio.traffic.answers import read_counters


def burst(trex, frames, load=10_000.0):
    directions = perform(trex, load, frames / load, is_burst=True, locates=True).directions
    names = [direction["name"] for direction in directions]
    return read_counters({"directions": directions}, names), [direction["course"] for direction in directions]


def test_a_burst_has_exactly_its_frames_and_the_load_is_there_again_afterwards():
    server = Server(lost=(0.1, 0.0))
    trex = generator(server)
    (west, east), courses = burst(trex, 20_000)
    assert (west.intended_frames, west.sent_frames, west.received_frames, west.unsent_frames) == (
        20_000,
        20_000,
        18_000,
        0,
    )
    assert east.received_frames == 20_000
    assert [course["rate"] for course in courses] == [None, None]
    assert {type(stream.mode) for stream in server.ports[0].streams.values()} == {StandIn.STLTXCont}
    west, _ = trial(server, trex=trex)
    assert (west.sent_frames, west.received_frames) == (10_001, 9001)


def test_a_short_burst_comes_after_a_long_one_that_shows_the_rate_and_does_not_count():
    server = Server()
    trex = generator(server)
    ((west, _), _), began = burst(trex, 50), server.now
    assert (west.sent_frames, server.calls.count("start")) == (50, 2)
    burst(trex, 70)
    burst(trex, 70, load=5000.0)
    assert server.calls.count("start") == 4
    assert server.now - began < 1.0
    burst(trex, 70, load=20_000.0)
    assert server.calls.count("start") == 6


def test_a_rate_that_trex_does_not_keep_is_seen_before_a_short_burst_counts():
    (west, _), (course, _) = burst(generator(Server(capacity=8000.0)), 50)
    assert west.unsent_frames > 0
    assert course["rate"] == pytest.approx(8000.0, rel=0.05)


def test_frames_of_several_sizes_are_divided_in_a_burst():
    server = Server()
    trex = generator(server, frame_size="IMIX_v4_1")
    maker = trex._makers["port0>port1"]
    modes = [stream.mode for stream in maker.burst_streams(10_000.0, 0.01)]
    assert [mode.total_pkts for mode in modes] == [59, 33, 8]
    (west, _), _ = burst(trex, 10_000)
    assert west.sent_frames == 10_000


def test_schedules_and_outages_are_refused_because_frames_have_neither_numbers_nor_times():
    can = generator(Server()).facts()["can"]
    assert BURSTS in can
    assert not {SCHEDULES, PLACES, CONNECTIONS, TWO_NODES}.intersection(can)

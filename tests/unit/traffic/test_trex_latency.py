"""Latency frames of TRex: what they are part of, and what is known if some of them are lost."""

from __future__ import annotations

import pytest
from performed import latency, perform
from trex_lab import BOTH_WAYS, generator
from trex_stand_in import Server


def measured(sent=100, received=100, hdrh="HISTFAAAAB", into=1, **errors):
    counts = {"dropped": 0, "out_of_order": 0, "dup": 0, "seq_too_high": 0, "seq_too_low": 0}
    latency = {
        "jitter": 3,
        "average": 42.5,
        "total_max": 90,
        "total_min": 12,
        "last_max": 90,
        "histogram": {100: 1, 20: 5},
    }
    return {
        "frames": {"tx_pkts": {0: sent, "total": sent}, "rx_pkts": {into: received, "total": received}},
        "err_cntrs": {**counts, **errors},
        "latency": {**latency, "hdrh": hdrh} if hdrh else latency,
    }


def test_latency_frames_are_a_part_of_the_load():
    server = Server(latency={1: measured(received=103, dup=3, out_of_order=2), 2: measured(hdrh=None, into=0)})
    trex = generator(server)
    answer = latency(trex, 10_000.0, 1.0, BOTH_WAYS)
    assert [direction.sent_frames for direction in answer.directions] == [10_001, 10_000]
    west, east = answer.latency
    assert (west.least_us, west.mean_us, west.most_us, west.jitter_us) == (12.0, 42.5, 90.0, 3.0)
    assert (west.received_frames, west.duplicate_frames, west.out_of_order_frames) == (100, 3, 2)
    assert (west.hdr, west.histogram) == ("HISTFAAAAB", ())
    assert (east.hdr, east.histogram) == (None, ())
    assert all(len(port.streams) == 1 for port in server.ports.values())


def test_latency_frames_are_counted_for_as_long_as_frames_may_be_in_flight():
    server = Server(latency={1: measured(), 2: measured(into=0)})
    perform(generator(server, settle_time=0.25), 10_000.0, 1.0, latency=True)
    # TRex counts them until it is stopped.
    assert server.latency_waits == [0]
    assert server.ports[0].stopped > 1.25
    slow = Server(latency={1: measured(), 2: measured(into=0)}, capacity=5_000.0)
    perform(generator(slow, settle_time=0.25), 10_000.0, 1.0, latency=True)
    assert slow.latency_waits == [250]


def test_a_direction_whose_latency_frames_are_all_lost_keeps_the_other_s_latency():
    server = Server(latency={1: measured(received=0), 2: measured(into=0)})
    west, east = latency(generator(server), 10_000.0, 1.0, BOTH_WAYS).latency
    assert west.error == "none of its latency frames came back"
    assert (west.sent_frames, west.mean_us) == (100, None)
    assert east.error is None


def test_frames_without_room_for_latency_s_header_say_so_and_the_load_is_counted():
    trex = generator(Server(), profile="ethip6-udp", frame_size=78)
    answer = latency(trex, 1_000.0, 1.0, BOTH_WAYS)
    assert [direction.sent_frames for direction in answer.directions] == pytest.approx([1_000, 1_000], abs=2)
    assert all("latency frames need" in latency.error for latency in answer.latency)

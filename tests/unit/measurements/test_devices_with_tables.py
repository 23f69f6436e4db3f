"""Devices that nobody described, with every kind of table: the right number, or an error that says what they are."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from flow_tables import (
    ROOM,
    Bucket,
    Expiring,
    FailingOpen,
    HardlyReset,
    Losing,
    Lru,
    NeverReset,
    OneWay,
    Parts,
    Plain,
    PortBlocks,
    RandomNat,
    Stateless,
)
from measurement_examples import place
from tabled_testbed import TabledTestbed

from lossratio.errors import DutError
from lossratio.measurements import measure
from lossratio.measurements.connection_capacity import CapacityRequest, ConnectionCapacity
from lossratio.measurements.connection_mrr import ConnectionMrr, ConnectionMrrRequest
from lossratio.measurements.connection_rate import ConnectionRate, ConnectionRateRequest
from lossratio.measurements.connections import lines_of_losses
from lossratio.mlrsearch import SearchGoal
from lossratio.results import Outcome, findings_of
from lossratio.traffic import load_profile
from lossratio.trials import DirectionCounters

PROFILE = load_profile("ethip4-udp-connections", frame_size=100)
WIDTH = 0.02
GOAL = (SearchGoal(0.0, 0.5, 0.5, 0.5, WIDTH, name="connection rate"),)
OF_NUMBER = r"loses connections because of their number, not because they are opened too fast: of [\d,]+ connections"
RATE = 2000.0
"""Connections per second of devices that limit them; a burst of ten comes first."""
TABLES = {
    "plain": (Plain(), OF_NUMBER),
    "buckets": (Parts(128, 8), OF_NUMBER),
    "large buckets": (Parts(16, 32), OF_NUMBER),
    "shards": (Parts(4, 150), OF_NUMBER),
    "LRU": (Lru(), OF_NUMBER),
    "port blocks": (PortBlocks(), OF_NUMBER),
    "NAT with random ports": (RandomNat(), OF_NUMBER),
    "lets pass what it has no room for": (FailingOpen(), OF_NUMBER),
    "a reset that does nothing": (NeverReset(), r"does not forget connections: .* over 200 of 200 earlier connections"),
    "a reset that leaves some": (HardlyReset(), r"does not forget connections: .* over 50 of 200 earlier connections"),
}
LIMITED = {
    "bucket of tokens": Bucket(RATE),
    "bucket of tokens before a table with a little more room": Bucket(RATE, room=1200),
    "time-out that no trial reaches": Expiring(1.2, Bucket(RATE)),
}


def rate_of(device, tmp_path, **asked):
    request = ConnectionRateRequest(profile=PROFILE, goals=GOAL, max_load=20e3, **asked)
    result = measure(ConnectionRate(), TabledTestbed(device, tmp_path), request, place(tmp_path / "run"))
    (finding,) = findings_of([result])
    return result, finding


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if "a reset that" in kind else pytest.mark.whole) for kind in TABLES]
)
def test_a_table_is_no_rate(tmp_path, kind):
    device, error = TABLES[kind]
    with pytest.raises(DutError, match=re.compile(error, re.DOTALL)):
        rate_of(device, tmp_path)


@pytest.mark.whole
@pytest.mark.parametrize("kind", LIMITED)
def test_a_rate_that_is_limited_is_found_whatever_comes_after_it(tmp_path, kind):
    result, finding = rate_of(LIMITED[kind], tmp_path)
    truth = RATE + 10.0 / 0.5
    assert result.outcome is Outcome.MEASURED
    assert finding.lower_bound <= truth * (1.0 + WIDTH)
    assert finding.upper_bound >= truth * (1.0 - WIDTH)


@pytest.mark.whole
def test_a_device_that_loses_each_tenth_frame_has_neither_a_table_nor_a_rate(tmp_path):
    result, finding = rate_of(Losing(), tmp_path)
    assert (result.outcome, finding.value) == (Outcome.IRREGULAR, None)
    request = ConnectionMrrRequest(profile=PROFILE, trials=5, trial_duration=0.5, max_load=3000.0)
    mrr = measure(ConnectionMrr(), TabledTestbed(Losing(), tmp_path), request, place(tmp_path / "mrr"))
    assert mrr.connections.mean_per_second == pytest.approx(2700.0, rel=0.03)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("device", "capacity"),
    [(Plain(), ROOM), (Lru(), ROOM), (FailingOpen(), ROOM), (Parts(4, 150), None), (Bucket(1e6, room=333), 333)],
)
def test_the_capacity_is_the_most_connections_without_loss(tmp_path, device, capacity):
    request = CapacityRequest(profile=PROFILE, max_load=20e3, first=100, most=5000, repeats=2)
    testbed = TabledTestbed(device, tmp_path)
    result = measure(ConnectionCapacity(), testbed, request, place(tmp_path / "run"))
    if capacity is None:
        capacity = next(count for count in range(5000) if device.west(count, 0.0) is None)
    assert result.capacity.median_connections == capacity
    assert any(
        remark.text.startswith("BOX forgets connections: after a reset, no answer came back")
        for remark in result.remarks
    )


@pytest.mark.parametrize("device", [Stateless(), OneWay(10**6)])
def test_where_answers_pass_that_nobody_asked_for_nothing_is_said_about_a_reset(tmp_path, device):
    request = CapacityRequest(profile=PROFILE, max_load=20e3, first=100, most=500, repeats=1)
    result = measure(ConnectionCapacity(), TabledTestbed(device, tmp_path), request, place(tmp_path / "run"))
    (remark,) = (note.text for note in result.remarks if "forgets" in note.text)
    assert remark == "it is not known whether BOX forgets connections: it accepts unsolicited answers"


@pytest.mark.parametrize("load", [100.0, 3000.0, 996.24])
def test_a_connection_mrr_is_never_above_what_was_offered(tmp_path, load):
    request = ConnectionMrrRequest(profile=PROFILE, trials=1, trial_duration=0.4, max_load=load)
    result = measure(ConnectionMrr(), TabledTestbed(Plain(10**6), tmp_path), request, place(tmp_path / "run"))
    assert result.connections.mean_per_second == pytest.approx(load)
    assert result.connections.mean_per_second <= load * (1.0 + 1e-12)


def counted(left, late=0, unsent=0, **more):
    """A trial of 100 connections, of which so many were left after each pass."""
    way = DirectionCounters("a>b", 100, 100, left[-1], left_frames=left, **more)
    return SimpleNamespace(directions=(way,), late_frames=late, unsent_frames=unsent)


@pytest.mark.parametrize(
    ("protocol", "trials", "line"),
    [
        ("UDP", [counted((100, 100))], None),
        ("UDP", [counted((90, 90)), counted((95, 80))], "15 with the first frame; 15 with the answer"),
        ("UDP", [counted((100, 60), misdelivered_frames=40)], "40 with the answer; 40 answered from other addresses"),
        ("UDP", [counted((100, 70), late=30)], "30 with the answer; 30 late, not lost"),
        ("UDP", [counted((100, 100), duplicated_frames=7)], "7 frames that came twice"),
        (
            "TCP",
            [counted((75, 75, 75), rejection_frames=20)],
            "25 with the SYN; 20 rejections (RST or ICMP) by the device",
        ),
        ("TCP", [counted((100, 98, 48, 48))], "2 with the SYN-ACK; 50 with the ACK"),
        ("TCP", [counted((100, 100, 100, 100, 1))], "99 with frame 5"),
        # What the tester did not send is missing for another reason.
        ("UDP", [counted((100, 0), unsent=1)], None),
    ],
)
def test_the_report_says_how_connections_ended(protocol, trials, line):
    traffic = SimpleNamespace(frame_format=f"Ethernet II, IPv4, {protocol}")
    result = SimpleNamespace(trials=trials, conditions=SimpleNamespace(traffic=traffic))
    said = [text.split(maxsplit=2)[2] for text in lines_of_losses(result)]
    assert said == ([] if line is None else [line])

"""What is measured within another measurement has all of its settings: its warm-up, its look for memory, telemetry."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from measurement_examples import PROFILE, SIMULATED, InFrontOfTestbed, place
from test_telemetry_and_reconfiguration import CountedTestbed

import lossratio.measurements
from lossratio.measurements import measure, warm_up_like
from lossratio.measurements.connection_mrr import ConnectionMrr, ConnectionMrrRequest
from lossratio.measurements.latency.measure import LatencyPoint, LatencyRequest, measure_latency
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.telemetry import TelemetryRequest, measure_telemetry
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import Integrity

SETTINGS = {"rest": 0.25, "integrity": Integrity.OFF}
QUICK = {"trials": 2, "trial_duration": 0.1, "max_load": 10e3}


class Asked(InFrontOfTestbed):
    """A testbed that notes what it is asked to be ready for, and the trials that it performs then."""

    def __init__(self, testbed):
        super().__init__(testbed)
        self.asked, self.trials = [], []

    def ready_for(self, profile, settings):
        self.asked.append((profile.name, settings))
        return super().ready_for(profile, settings)

    def measure(self, trial):
        self.trials.append(trial)
        return super().measure(trial)

    @property
    def settings(self):
        return [settings for _, settings in self.asked]


@pytest.fixture
def box(tmp_path):
    file = tmp_path / "box.yaml"
    model = "model: connection_table, rate: 20 kcps, burst: 400"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", model))
    return Asked(open_testbed(file, dut="black_box"))


def test_warm_up_and_look_for_memory_have_the_settings_of_their_measurement(box, tmp_path):
    warm_up = warm_up_like(PROFILE, 0.1, "ethip4-udp-hosts")
    request = MrrRequest(profile=PROFILE, warm_up=warm_up, ramp=0.05, **SETTINGS, **QUICK)
    measure_mrr(box, request, place(tmp_path / "run"))
    names = [name for name, _ in box.asked]
    assert (names[0], len(names)) == ("ethip4-udp-hosts", 3)
    assert {settings.integrity for settings in box.settings} == {Integrity.OFF}
    assert {settings.ramp for settings in box.settings} == {0.05}
    assert {settings.rest for settings in box.settings} == {0.25}
    # The look for memory, after the warm-up, has longer rests before its first and its last trial.
    assert [trial.rest for trial in box.trials] == [0.0, 4.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0]


def test_a_look_for_memory_of_a_device_with_connections_opens_connections(box, tmp_path):
    profile = load_profile("ethip4-udp-h1024-p63", frame_size=100)
    request = ConnectionMrrRequest(profile=profile, stateless=True, **QUICK)
    result = measure(ConnectionMrr(), box, request, place(tmp_path / "run"))
    assert {settings.connects for settings in box.settings} == {True}
    assert {settings.integrity for settings in box.settings} == {Integrity.OFF}
    assert all(trial.exchange is not None for trial in box.trials)
    (remark,) = (note.text for note in result.remarks if "remember" in note.text)
    assert "in trials of 0.5 s at 10,000 connections/s it established 5,000 connections after 4 s" in remark


def test_a_look_for_memory_opens_no_more_connections_than_the_traffic_has(box, tmp_path):
    profile = load_profile("ethip4-udp-h16-p63", frame_size=100)
    request = ConnectionMrrRequest(profile=profile, stateless=True, **QUICK)
    measure(ConnectionMrr(), box, request, place(tmp_path / "run"))
    assert max(round(trial.load * trial.duration) for trial in box.trials) <= 1008


def test_telemetry_and_latency_have_the_settings_that_they_are_asked_for_with(box, tmp_path):
    request = LatencyRequest(profile=PROFILE, points=(LatencyPoint(5e3),), duration=0.1, **SETTINGS)
    result = measure_latency(box, request, place(tmp_path / "run"))
    assert {settings.integrity for settings in box.settings} == {Integrity.OFF}
    counted = Asked(CountedTestbed(result, attempts=[1]))
    measure_telemetry(counted, TelemetryRequest(profile=PROFILE, load=1e4, **SETTINGS))
    ((_, settings),) = counted.asked
    assert (settings.integrity, settings.rest) == (Integrity.OFF, 0.25)


@pytest.mark.whole
def test_nothing_but_the_request_makes_a_testbed_ready_for_a_measurement():
    callers = set()
    for file in Path(lossratio.measurements.__file__).parent.rglob("*.py"):
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        if any(isinstance(called, ast.Attribute) and called.attr == "ready_for" for called in calls):
            callers.add(file.name)
    # An open testbed has the method of the testbed that it opens.
    assert callers == {"request.py", "open_testbed.py"}

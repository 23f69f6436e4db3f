"""The connection MRR and the critical connection rate: on simulated devices with a known truth."""

from __future__ import annotations

import pytest
from measurement_examples import SIMULATED, place

from lossratio.errors import DutError
from lossratio.measurements import measure
from lossratio.measurements.connection_mrr import ConnectionMrr, ConnectionMrrRequest
from lossratio.measurements.connection_soak import ConnectionSoak, ConnectionSoakRequest
from lossratio.measurements.connections import TableMeasurer
from lossratio.results import findings_of, message, view_of
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import DirectionCounters, TrialInput, output_from_counters


def simulated(tmp_path, model):
    file = tmp_path / "device.yaml"
    sut = f"model: connection_table, {model}"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    return open_testbed(file)


def measured(tmp_path, model, hosts=1024, **asked):
    profile = load_profile(f"ethip4-udp-h{hosts}-p63", frame_size=100)
    request = ConnectionMrrRequest(profile=profile, trials=3, **asked)
    result = measure(ConnectionMrr(), simulated(tmp_path, model), request, place(tmp_path / "run"))
    assert read_result(RunDirectory(tmp_path / "run").result_path(result.test.full_name)) == result
    return result


def test_it_is_the_rate_of_a_bucket_and_opens_no_more_connections_than_the_traffic_has(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400")
    assert result.max_load.rate.per_interface_fps == 64_512
    (finding,) = findings_of([result])
    assert finding.value == pytest.approx(20_400.0, rel=1e-3)
    assert finding.unit.name == "connections/s"
    assert "opened at 64,512 connections/s" in message(result)
    assert view_of(result).csit(result)["receive_rate"]["rate"]["unit"] == "cps"


def test_a_shorter_trial_opens_them_faster(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400", trial_duration=0.5)
    assert result.max_load.rate.per_interface_fps == 129_024
    assert result.connections.mean_per_second == pytest.approx(20_800.0, rel=1e-3)


@pytest.mark.parametrize("kind", [ConnectionMrr(), ConnectionSoak()])
def test_a_table_that_is_full_is_no_rate(tmp_path, kind):
    request = kind.request(profile=load_profile("ethip4-udp-h1024-p63", frame_size=100))
    testbed = simulated(tmp_path, "rate: 20 kcps, burst: 400, room: 18000")
    with pytest.raises(DutError, match=r"keeps 18,000 connections and takes no more, .* no rate: one of 2 s at"):
        measure(kind, testbed, request, place(tmp_path / "run"))


def test_a_device_that_loses_the_same_share_of_all_connections_has_no_full_table(tmp_path):
    file = tmp_path / "device.yaml"
    model = "model: constant_loss, loss_ratio: 0.1"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", model))
    request = ConnectionMrrRequest(
        profile=load_profile("ethip4-udp-h1024-p63", frame_size=100), trials=3, max_load=20e3
    )
    result = measure(ConnectionMrr(), open_testbed(file), request, place(tmp_path / "run"))
    assert result.connections.mean_per_second == pytest.approx(18_000.0, rel=0.01)


class Counts:
    """Gives counters of trials with so many connections missing, of which some turn out to be late in the next one."""

    def __init__(self, *missing, late=0):
        self.missing = list(missing)
        self.late = late
        self.trials = []

    def measure(self, trial):
        self.trials.append(trial)
        opened = round(trial.load * trial.duration)
        missing = self.missing.pop(0)
        late = self.late if len(self.trials) > 1 else 0
        counted = {"sent_frames": opened, "received_frames": opened - missing, "late_frames": late}
        return output_from_counters(trial, [DirectionCounters("port0>port1", opened, **counted)])


def test_a_full_table_has_a_control_that_opens_what_there_is_room_for():
    full = Counts(2000, 2000, 0)
    with pytest.raises(DutError, match="keeps 8,000 connections and takes no more"):
        TableMeasurer(full, 60.0).measure(TrialInput(1.0, 10_000.0))
    assert [round(trial.load * trial.duration) for trial in full.trials] == [10_000, 10_000, 7_600]


@pytest.mark.parametrize("counts", [Counts(2000, 2000, 1520), Counts(2000, 2000, 0, late=2000)])
def test_connections_that_a_control_loses_too_or_that_were_late_show_no_full_table(counts):
    assert TableMeasurer(counts, 60.0).measure(TrialInput(1.0, 10_000.0)).lost_frames == 2000


@pytest.mark.long
def test_the_critical_rate_of_a_bucket_is_in_its_interval(tmp_path):
    profile = load_profile("ethip4-udp-h1024-p63", frame_size=100)
    request = ConnectionSoakRequest(profile=profile, timeout=120.0, target_loss_ratio=1e-3)
    testbed = simulated(tmp_path, "rate: 20 kcps, burst: 400")
    result = measure(ConnectionSoak(), testbed, request, place(tmp_path / "run"))
    (finding,) = findings_of([result])
    truth = 20_400.0
    assert finding.lower_bound <= truth * 1.01
    assert finding.upper_bound >= truth * 0.99
    assert abs(finding.value - truth) < 0.02 * truth
    assert finding.unit.name == "connections/s"
    assert "connections/s" in message(result)
    assert {trial.duration_s for trial in result.trials} == {1.0}

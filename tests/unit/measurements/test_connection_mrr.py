"""The connection MRR on simulated devices with a known truth."""

from __future__ import annotations

import pytest
from measurement_examples import SIMULATED, place

from lossratio.errors import DutError
from lossratio.measurements import measure
from lossratio.measurements.connection_mrr import ConnectionMrr, ConnectionMrrRequest
from lossratio.measurements.connection_tables import TableMeasurer
from lossratio.measurements.mrr_requirement import require_mrr
from lossratio.results import findings_of, message, view_of
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import DirectionCounters, LateFrames, TrialInput, output_from_counters


def simulated(tmp_path, model):
    file = tmp_path / "device.yaml"
    sut = f"model: connection_table, {model}"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    return open_testbed(file)


def measured(tmp_path, model, hosts=1024, **asked):
    profile = load_profile(f"ethip4-udp-h{hosts}-p63", frame_size=100)
    request = ConnectionMrrRequest(**{"profile": profile, "trials": 3, **asked})
    result = measure(ConnectionMrr(), simulated(tmp_path, model), request, place(tmp_path / "run"))
    assert read_result(RunDirectory(tmp_path / "run").result_path(result.test.full_name)) == result
    return result


def test_it_is_the_rate_of_a_bucket_and_opens_no_more_connections_than_the_traffic_has(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400")
    assert result.max_load.rate.per_interface_fps == 64_512
    (finding,) = findings_of([result])
    assert finding.value == pytest.approx(20_400.0, rel=1e-3)
    assert finding.unit.name == "connections/s"
    established = f"establishes {finding.value:,.0f} connections/s when 64,512 are opened each second in trials of 1 s."
    assert message(result).startswith(f"Connection MRR: {established}\n")
    assert "opened at 64,512 connections/s" in message(result)
    assert view_of(result).csit(result)["receive_rate"]["rate"]["unit"] == "cps"


def test_a_single_trial_shows_no_standard_deviation(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400", trials=1)
    (finding,) = findings_of([result])
    assert finding.value is not None
    assert finding.deviation is None
    assert "standard deviation" not in message(result)


def test_a_device_that_loses_no_connection_may_establish_more(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400", trials=1, max_load=10_000.0)
    assert message(result).startswith(
        "Connection MRR: establishes 10,000 connections/s when 10,000 are opened each second "
        "in a trial of 1 s: no connection is lost, "
        "so a higher rate may be possible.\n"
    )


def test_connections_that_the_generator_did_not_open_are_not_said_to_be_opened(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400", trials=1, max_load=10_000.0)
    counts = {"sent_frames": 3_000, "unsent_frames": 7_000, "lost_frames": 0, "directions": ()}
    starved = result.trials[0].model_copy(update=counts)
    text = message(result.model_copy(update={"trials": (starved,)}))
    assert "when about 3,000 (10,000 asked) are opened each second" in text
    assert "opened at about 3,000 connections/s (10,000 asked)" in text


def test_it_can_be_demanded(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400")
    require_mrr(result, 20_000.0)
    with pytest.raises(
        AssertionError, match=r"^connection MRR is 20,400 connections/s; it should be at least 30,000 con"
    ):
        require_mrr(result, 30_000.0)


def test_a_shorter_trial_opens_them_faster(tmp_path):
    result = measured(tmp_path, "rate: 20 kcps, burst: 400", trial_duration=0.5)
    assert result.max_load.rate.per_interface_fps == 129_024
    assert result.connections.mean_per_second == pytest.approx(20_800.0, rel=1e-3)


def test_a_table_that_is_full_is_no_rate(tmp_path):
    request = ConnectionMrrRequest(profile=load_profile("ethip4-udp-h1024-p63", frame_size=100))
    testbed = simulated(tmp_path, "rate: 20 kcps, burst: 400, room: 18000")
    with pytest.raises(DutError, match=r"because of their number, .* connections, 18,000 were established at"):
        measure(ConnectionMrr(), testbed, request, place(tmp_path / "run"))


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

    def __init__(self, *missing, late=0, unsent=0):
        self.missing = list(missing)
        self.late, self.unsent = late, unsent
        self.trials = []

    def measure(self, trial):
        self.trials.append(trial)
        opened = round(trial.load * trial.duration)
        sent = opened - self.unsent
        missing = self.missing.pop(0)
        late = self.late if len(self.trials) > 1 else 0
        counted = {"sent_frames": sent, "received_frames": sent - missing, "late_frames": late}
        way = DirectionCounters("port0>port1", opened, unsent_frames=self.unsent, **counted)
        return output_from_counters(trial, [way], elapsed=trial.duration)


def asking(measurer):
    profile = load_profile("ethip4-udp-connections", frame_size=100)
    return TableMeasurer(measurer, ConnectionMrrRequest(profile=profile), 60.0, LateFrames())


def test_a_full_table_loses_at_half_the_rate_too_and_has_room_for_fewer():
    full = Counts(2000, 4000, 4000, 0)
    error = (
        r"because of their number, .* of 12,000 connections, 8,000 were established at .*; of only 4,000, it lost 0\."
    )
    with pytest.raises(DutError, match=error):
        asking(full).measure(TrialInput(1.0, 10_000.0))
    assert [(round(trial.load * trial.duration), round(trial.load)) for trial in full.trials] == [
        (10_000, 10_000),
        (12_000, 4_000),
        (12_000, 10_000),
        (4_000, 1_333),
    ]


@pytest.mark.parametrize(
    ("counts", "asked"),
    [
        # None is lost at half the rate; fewer than at the whole one; the same share of fewer; and they are only late.
        (Counts(2000, 0), 1),
        (Counts(2000, 3000, 4000), 2),
        (Counts(2000, 4000, 4000, 1000), 3),
        (Counts(2000, 4000, 4000, late=2000), 2),
    ],
)
def test_connections_that_are_lost_for_another_reason_show_no_full_table(counts, asked):
    output = asking(counts).measure(TrialInput(1.0, 10_000.0))
    assert output.lost_frames == 2000
    assert output.elapsed == pytest.approx(sum(trial.duration for trial in counts.trials))
    assert len(counts.trials) == 1 + asked


def test_a_device_is_asked_once_whether_its_rate_is_limited_and_thrice_if_it_hardly_loses_any():
    clear = asking(Counts(2000, 0, 2000))
    clear.measure(TrialInput(1.0, 10_000.0))
    clear.measure(TrialInput(1.0, 10_000.0))
    hardly = Counts(*[3, 3] * 3, 3)
    measurer = asking(hardly)
    for _ in range(4):
        measurer.measure(TrialInput(1.0, 10_000.0))
    assert not hardly.missing


def test_nobody_is_asked_about_trials_that_lost_nothing_or_that_the_tester_spoilt():
    assert len(asked_after(Counts(0))) == 1
    assert len(asked_after(Counts(2000, unsent=5))) == 1


def asked_after(counts):
    asking(counts).measure(TrialInput(1.0, 10_000.0))
    return counts.trials

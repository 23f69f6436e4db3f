"""How traffic starts: ramps and warm-ups, on the simulated testbed."""

import math

import pytest
from measurement_examples import NO_LOSS, PROFILE, place, policed

from lossratio.errors import SearchError
from lossratio.measurements.frame_loss import FrameLossRequest, measure_frame_loss_rate
from lossratio.measurements.latency import LatencyPoint, LatencyRequest, measure_latency
from lossratio.measurements.measure import WarmUp, warm_up_like
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.recovery import RecoveryRequest, measure_recovery
from lossratio.measurements.reset import ResetRequest, measure_reset
from lossratio.measurements.soak.measure import SoakRequest, find_critical_load
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.traffic import load_profile


def search(directory, **changes):
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, max_load=20e3, **changes)
    return find_conditional_throughput(policed(police="10 kfps"), request, place(directory))


def ramps(result):
    return [
        deviation.instead
        for deviation in result.conditions.timing.deviations
        if deviation.step == "start of the traffic"
    ]


def test_without_a_ramp_none_is_stated(tmp_path):
    result = search(tmp_path)
    assert result.conditions.timing.ramp_s == 0.0
    assert ramps(result) == []


def test_a_ramp_is_stated_and_takes_its_time(tmp_path):
    plain, ramped = (search(tmp_path, ramp=ramp) for ramp in (0.0, 0.25))
    assert ramped.conditions.timing.ramp_s == 0.25
    assert ramps(ramped) == ["a ramp of 0.25 s before it, in which the load grows from zero and no frame is counted"]
    assert [trial.elapsed_s - 0.25 for trial in ramped.trials] == pytest.approx(
        [trial.elapsed_s for trial in plain.trials]
    )


def recoveries(result):
    return [
        deviation.instead
        for deviation in result.conditions.timing.deviations
        if deviation.step == "wait for the DUT to restabilise"
    ]


def test_a_rest_takes_its_time_before_each_trial_and_is_stated_once(tmp_path):
    plain, rested, patient = (search(tmp_path, rest=rest) for rest in (0.0, 1.5, 5.0))
    assert recoveries(plain) == [f"{plain.conditions.timing.recovery_s:g} s"]
    assert rested.conditions.timing.recovery_s == 1.5
    assert recoveries(rested) == ["1.5 s"]
    assert recoveries(patient) == []
    more = 1.5 - plain.conditions.timing.recovery_s
    assert sum(trial.elapsed_s for trial in rested.trials) == pytest.approx(
        sum(trial.elapsed_s for trial in plain.trials) + more * len(plain.trials)
    )


def test_a_rest_shorter_than_the_dut_needs_changes_nothing(tmp_path):
    plain, rested = (search(tmp_path, rest=rest) for rest in (0.0, 0.001))
    assert rested.conditions == plain.conditions


@pytest.mark.parametrize("rest", [-1.0, math.inf])
def test_a_rest_that_is_no_time_is_refused(tmp_path, rest):
    with pytest.raises(SearchError, match="rest"):
        search(tmp_path, rest=rest)


@pytest.mark.parametrize(
    ("measure", "request_type", "settings"),
    [
        (measure_mrr, MrrRequest, {"trials": 1}),
        (measure_frame_loss_rate, FrameLossRequest, {"trial_duration": 0.1}),
        (measure_recovery, RecoveryRequest, {"throughput": 5e3, "repeats": 1}),
        (measure_reset, ResetRequest, {"throughput": 5e3, "repeats": 1, "hitless": True}),
        (measure_latency, LatencyRequest, {"points": (LatencyPoint(5e3),)}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_each_measurement_may_have_a_rest(tmp_path, measure, request_type, settings):
    settings = settings if request_type is LatencyRequest else {**settings, "max_load": 20e3}
    request = request_type(profile=PROFILE, rest=0.5, **settings)
    result = measure(policed(police="10 kfps"), request, place(tmp_path))
    assert result.conditions.timing.recovery_s == 0.5


def test_an_mrr_may_have_a_ramp(tmp_path):
    request = MrrRequest(profile=PROFILE, max_load=20e3, trials=1, ramp=0.5)
    assert measure_mrr(policed(police="10 kfps"), request, place(tmp_path)).conditions.timing.ramp_s == 0.5


def test_a_warm_up_has_traffic_of_its_own_and_counts_for_nothing(tmp_path):
    plain = search(tmp_path)
    warm_up = WarmUp(duration=2.0, profile=load_profile("ethip4-ip4base", frame_size=1518))
    result = search(tmp_path, warm_up=warm_up)
    assert [trial.as_result() for trial in result.trials] == [trial.as_result() for trial in plain.trials]
    (remark,) = [note.text for note in result.remarks if "warm-up" in note.text]
    assert "a warm-up of 2 s came before the first trial, at 20.000 kfps per interface" in remark
    assert "with the traffic profile ethip4-ip4base" in remark
    assert result.settings["warm_up"]["duration_s"] == 2.0


def test_a_soak_test_may_have_both(tmp_path):
    request = SoakRequest(profile=PROFILE, max_load=20e3, timeout=10.0, warm_up=warm_up_like(PROFILE, 1.0), ramp=0.25)
    result = find_critical_load(policed(police="10 kfps"), request, place(tmp_path))
    assert result.conditions.timing.ramp_s == 0.25
    assert any("a warm-up of 1 s" in remark.text for remark in result.remarks)


def test_a_warm_up_is_like_the_measurement_unless_it_has_a_profile():
    assert warm_up_like(PROFILE, None) is None
    assert warm_up_like(PROFILE, 2.0) == WarmUp(duration=2.0, profile=PROFILE)
    own = warm_up_like(PROFILE, 2.0, "ethip4-ip4base")
    assert (own.profile.name, own.profile.frame_size) == ("ethip4-ip4base", 64)
    with pytest.raises(SearchError, match="The warm-up with ethip4-ip4base has no duration"):
        warm_up_like(PROFILE, None, "ethip4-ip4base")

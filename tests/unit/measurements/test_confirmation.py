"""A confirmation of a critical load says before how many frames it takes, and a verdict from counts alone after."""

import pytest
from measurement_examples import PROFILE, SIMULATED, StallingTestbed, place

from lossratio.errors import SearchError, TrafficError
from lossratio.measurements import measure
from lossratio.measurements.confirmation import Confirmation, ConfirmationRequest, bounds_of
from lossratio.results.findings import message
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.testbed.live import open_testbed
from lossratio.trials.trial import TrialInput, TrialOutput, TrialResult


def test_a_load_below_the_capacity_is_verified_by_as_many_frames_as_were_said_before(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    assert (result.outcome, result.statement.verdict) == (Outcome.MEASURED, "verified")
    assert len(result.trials) == request.planned_trials == 10
    assert any("takes 1e+06 frames of each interface: 10 trials, 20 s" in remark for remark in result.remarks)
    assert "with a certainty of 97.5 %: verified: 0 of" in message(result)
    assert read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name)) == result


def test_a_load_above_the_capacity_is_contradicted_soon(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=200e3, loss_ratio=1e-3)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    assert (result.outcome, result.statement.verdict) == (Outcome.IRREGULAR, "contradicted")
    assert len(result.trials) < request.planned_trials
    assert result.reason.startswith("contradicted: ")


def test_what_takes_too_long_is_refused_before_anything_is_sent(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=1e3, loss_ratio=1e-9)
    with pytest.raises(SearchError, match=r"7.38e\+09 frames of each interface.*longest is 86400 s"):
        measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    above = ConfirmationRequest(profile=PROFILE, load=1e9, loss_ratio=1e-3)
    with pytest.raises(SearchError, match="is above the maximum load"):
        measure(Confirmation(), open_testbed(SIMULATED), above, place(tmp_path))


def test_two_lost_frames_of_those_that_are_planned_still_verify():
    request = ConfirmationRequest(profile=PROFILE, load=1e6, loss_ratio=1e-6, trial_duration=0.5)
    trials = request.planned_trials
    lost = [1, 1] + [0] * (trials - 2)
    results = [
        TrialResult(TrialInput(0.5, 1e6), TrialOutput(count / 5e5, sent_frames=500_000, lost_frames=count))
        for count in lost
    ]
    assert bounds_of(results).most <= 1e-6
    assert bounds_of(results[:-2]).most > 1e-6 or trials == 10


def test_a_trial_that_the_generator_could_not_send_is_replaced(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5)
    result = measure(Confirmation(), StallingTestbed(3), request, place(tmp_path))
    assert [trial.number for trial in result.trials if not trial.is_evidence] == [3]
    assert "could not send 18,000 of 200,000 frames" in result.trials[2].set_aside
    assert (len(result.trials), result.statement.trials, result.statement.verdict) == (11, 10, "verified")
    assert read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name)) == result


def test_a_load_that_the_generator_cannot_send_is_an_error_and_no_verdict(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5)
    with pytest.raises(TrafficError, match=r"4 of the last 4 trials were set aside .* could not send"):
        measure(Confirmation(), StallingTestbed(*range(1, 99)), request, place(tmp_path))
    failed = read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name))
    assert (failed.outcome, failed.statement) == (Outcome.FAILED, None)
    assert not any(trial.is_evidence for trial in failed.trials)

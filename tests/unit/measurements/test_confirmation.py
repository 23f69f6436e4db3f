"""A confirmation of a critical load says before how many frames it takes, and a verdict from counts alone after."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from measurement_examples import PROFILE, SIMULATED, InFrontOfTestbed, StallingTestbed, place

from lossratio.errors import SearchError, TrafficError
from lossratio.measurements import measure
from lossratio.measurements.confirmation import Confirmation, ConfirmationRequest, bounds_of
from lossratio.measurements.soak import SoakResult
from lossratio.report.markdown import markdown_report
from lossratio.report.run import read_run
from lossratio.results.findings import message, notes_of
from lossratio.results.model import Outcome
from lossratio.results.note import Weight
from lossratio.results.run_directory import read_result
from lossratio.testbed.opening import open_testbed
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


def test_a_load_below_the_capacity_is_verified_by_as_many_frames_as_were_said_before(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5, batch=1)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    assert (result.outcome, result.statement.verdict) == (Outcome.MEASURED, "verified")
    assert len(result.trials) == request.planned_trials == 12
    assert any(
        "one by one, takes 1,200,000 frames from each interface: 12 trials, 24 s" in remark.text
        for remark in result.remarks
    )
    first = "Confirmed: at 50,000 frames/s of 64 B each way in trials of 2 s, at most one frame in 100,000 is lost."
    assert message(result).startswith(f"{first}\nThe certainty is about trials like these: ")
    assert "with a certainty of 97.5 %: verified: 0 of" in message(result)
    assert f"| {first}" in markdown_report([read_run(tmp_path)])
    assert read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name)) == result


def test_a_load_above_the_capacity_is_contradicted_soon(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=200e3, loss_ratio=1e-3)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    assert (result.outcome, result.statement.verdict) == (Outcome.IRREGULAR, "contradicted")
    assert len(result.trials) < request.planned_trials
    assert result.reason.startswith("contradicted: ")


def test_what_takes_too_long_is_refused_before_anything_is_sent(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=1e3, loss_ratio=1e-9, batch=1)
    with pytest.raises(
        SearchError, match=r"11,\d{3},\d{3},\d{3} frames from each interface: .* trials, [0-9]+ d .*'longest' is 1 day"
    ):
        measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    above = ConfirmationRequest(profile=PROFILE, load=1e9, loss_ratio=1e-3)
    with pytest.raises(SearchError, match="is above the maximum load"):
        measure(Confirmation(), open_testbed(SIMULATED), above, place(tmp_path))


def test_five_lost_frames_of_those_that_are_planned_still_verify():
    request = ConfirmationRequest(profile=PROFILE, load=1e6, loss_ratio=1e-6, trial_duration=0.5, batch=1)
    trials = request.planned_trials
    lost = [1] * 5 + [0] * (trials - 5)
    results = [
        TrialResult(TrialInput(0.5, 1e6), TrialOutput(count / 5e5, sent_frames=500_000, lost_frames=count))
        for count in lost
    ]
    assert bounds_of(results).most <= 1e-6
    assert bounds_of([*results[:-1], results[0]]).most > 1e-6


def lost_in_batches(request, mean, rng):
    """Trials of a request, that lose so many batches each on average."""
    frames = round(request.load * request.trial_duration)
    lost = round(request.batch) * rng.poisson(mean, request.planned_trials)
    trial = TrialInput(request.trial_duration, request.load)
    # Made once for all trials that lose as much: there are half a million of them.
    results = {
        count: TrialResult(trial, TrialOutput(count / frames, sent_frames=frames, lost_frames=int(count)))
        for count in np.unique(lost)
    }
    return [results[count] for count in lost]


@pytest.mark.whole
@pytest.mark.parametrize("batch", [1, 32, 256])
def test_half_the_ratio_is_verified_in_a_third_and_the_double_one_never(batch):
    request = ConfirmationRequest(profile=PROFILE, load=12e6, loss_ratio=1e-7, batch=batch)
    rng = np.random.default_rng(batch)
    batches = request.load * request.trial_duration * request.loss_ratio / batch
    half = [bounds_of(lost_in_batches(request, 0.5 * batches, rng), batch=batch).most for _ in range(100)]
    double = [bounds_of(lost_in_batches(request, 2.0 * batches, rng), batch=batch).most for _ in range(100)]
    assert np.count_nonzero(np.array(half) <= 1e-7) > 35
    assert np.count_nonzero(np.array(double) <= 1e-7) <= 2


@pytest.mark.whole
@pytest.mark.parametrize(("targets", "least", "most"), [(0.5, 35, 40), (1.0, 0, 3), (2.0, 0, 0)])
def test_ten_trials_that_lose_single_frames_outweigh_an_assumed_batch(targets, least, most):
    request = ConfirmationRequest(profile=PROFILE, load=12e6, loss_ratio=1e-7)
    rng = np.random.default_rng(7)
    mean = targets * request.load * request.trial_duration * request.loss_ratio
    lost = [rng.poisson(mean, request.planned_trials) for _ in range(40)]
    frames = round(request.load * request.trial_duration)
    trial = TrialInput(request.trial_duration, request.load)
    verified = 0
    for counts in lost:
        results = [
            TrialResult(trial, TrialOutput(count / frames, sent_frames=frames, lost_frames=int(count)))
            for count in counts
        ]
        verified += bounds_of(results, batch=request.batch).most <= request.loss_ratio
        assert bounds_of(results, batch=request.batch) == bounds_of(results, batch=1.0)
    assert least <= verified <= most


def test_a_certainty_is_said_to_be_about_states_that_the_trials_had(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5, batch=1)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    _, about = notes_of(result, (), Weight.HEADLINE)
    # With a probability of 2.5 %, a state that one out of so many trials has is in none of the twelve.
    assert (1.0 - 1.0 / result.statement.unseen_burst_trials) ** 12 == pytest.approx(0.025)
    assert "fewer than one out of 3.8 of them" in about.text
    contradicted = measure(
        Confirmation(), open_testbed(SIMULATED), request.but(load=200e3, loss_ratio=1e-3), place(tmp_path / "above")
    )
    assert "certainty is about" not in message(contradicted)


def test_the_plan_and_the_headline_say_how_many_frames_are_lost_at_a_time(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-3)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    assert result.batch == 32.0
    assert any("if up to 32 frames are lost at a time, takes" in remark.text for remark in result.remarks)
    assert "if up to 32 frames are lost at a time, with a certainty of 97.5 %" in message(result)


def test_a_contradicted_load_fails_its_test(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=200e3, loss_ratio=1e-3)
    result = measure(Confirmation(), open_testbed(SIMULATED), request, place(tmp_path))
    with pytest.raises(AssertionError, match="The load is not confirmed: contradicted: "):
        Confirmation().demand(result, request.load)


def test_a_trial_that_the_generator_could_not_send_is_replaced(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5, batch=1)
    result = measure(Confirmation(), StallingTestbed(3), request, place(tmp_path))
    assert [trial.number for trial in result.trials if not trial.is_evidence] == [3]
    assert "could not send 18,000 of 200,000 frames" in result.trials[2].set_aside
    assert (len(result.trials), result.statement.trials, result.statement.verdict) == (13, 12, "verified")
    assert read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name)) == result


def test_a_load_that_the_generator_cannot_send_is_an_error_and_no_verdict(tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-5, batch=1)
    with pytest.raises(
        TrafficError, match=r"4 of the last 4 trials were set aside .* could not send.* lower the load \(load\)"
    ):
        measure(Confirmation(), StallingTestbed(*range(1, 99)), request, place(tmp_path))
    failed = read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name))
    assert (failed.outcome, failed.statement) == (Outcome.FAILED, None)
    assert not any(trial.is_evidence for trial in failed.trials)


class LateTestbed(InFrontOfTestbed):
    """The simulated testbed behind a generator that waits too briefly for some of the missing frames."""

    def __init__(self, share):
        super().__init__(open_testbed(SIMULATED))
        self._share = share

    def measure(self, trial):
        output = super().measure(trial)
        return replace(output, late_frames=round(self._share * output.lost_frames))


@pytest.mark.parametrize(("share", "verdict"), [(1.0, "extrapolated"), (0.9999, "extrapolated"), (0.0, "contradicted")])
def test_frames_that_were_only_late_do_not_contradict_a_load(share, verdict, tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=200e3, loss_ratio=1e-3)
    result = measure(Confirmation(), LateTestbed(share), request, place(tmp_path))
    late = sum(trial.missing.late for trial in result.trials)
    assert (result.outcome, result.statement.verdict) == (Outcome.IRREGULAR, verdict)
    words = f"{late:,} more frames were only late, not lost: a longer wait would show whether the load passes. Increase"
    assert (words in result.reason) is (verdict == "extrapolated")
    assert result.statement.lost_frames == sum(trial.missing.lost_by_sut for trial in result.trials)
    lost = f"{verdict}: {result.statement.lost_frames:,} of {result.statement.frames:,} frames were lost"
    assert result.reason.startswith(lost)
    demand = pytest.raises(AssertionError) if verdict == "contradicted" else nullcontext()
    with demand:
        Confirmation().demand(result, request.load)


class Suite:
    """A suite with a last result, which may be an error."""

    def __init__(self, last):
        self.last = last
        self.shown = []

    @property
    def last_result(self):
        if isinstance(self.last, Exception):
            raise self.last
        return self.last

    def request(self, fields):
        return ConfirmationRequest(profile=PROFILE, **fields)

    def show(self, text):
        self.shown.append(text)


def soaked(batch, clump=1.0, contradicted=90e3):
    found = SimpleNamespace(batch_frames=batch, clump_frames=clump, contradicted=contradicted)
    return SoakResult.model_construct(critical_load=found)


@pytest.mark.parametrize(
    ("last", "fields", "batch"),
    [
        (soaked(64.0), {}, 64.0),
        (soaked(None), {}, 1.0),
        (soaked(None, 5.0), {}, 5.0),
        (soaked(64.0), {"batch": 8.0}, 8.0),
        (soaked(None, contradicted=None), {}, 32.0),
        (SoakResult.model_construct(critical_load=None), {}, 32.0),
        (SimpleNamespace(), {}, 32.0),
        (SearchError("Nothing was measured yet."), {}, 32.0),
    ],
)
def test_the_batch_is_what_the_soak_test_before_saw(last, fields, batch):
    suite = Suite(last)
    request = Confirmation().asked(suite, {"loss_ratio": 1e-5, **fields}, 50e3)
    assert request.batch == batch
    assert suite.shown == [request.plan(request.planned_trials)]


@pytest.mark.parametrize(("lost", "verdict"), [(1486, "extrapolated"), (90_000, "contradicted")])
def test_an_outage_in_one_trial_is_named_as_larger_than_the_batch(lost, verdict, tmp_path):
    request = ConfirmationRequest(profile=PROFILE, load=50e3, loss_ratio=1e-4)
    result = measure(Confirmation(), OutageTestbed(2, lost), request, place(tmp_path))
    assert result.statement.verdict == verdict
    trials = result.statement.trials
    words = f"only 1 of {trials} trials lost frames, about {lost:,} at a time instead of 32. If this was an outage"
    assert words in result.reason
    if verdict == "contradicted":
        with pytest.raises(AssertionError, match="repeat it with batch="):
            Confirmation().demand(result, request.load)


class OutageTestbed(InFrontOfTestbed):
    """The simulated testbed with an outage that loses so many frames in one of the trials."""

    def __init__(self, number, lost):
        super().__init__(open_testbed(SIMULATED))
        self._number = number
        self._lost = lost
        self._trials = 0

    def measure(self, trial):
        output = super().measure(trial)
        self._trials += 1
        if self._trials != self._number:
            return output
        loss_ratio = self._lost / output.sent_frames
        return TrialOutput(loss_ratio, sent_frames=output.sent_frames, lost_frames=self._lost)

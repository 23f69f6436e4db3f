"""Frame loss rate over load, on a simulated policer: its truth is N + B/T."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from measurement_examples import PROFILE, SIMULATED, place
from report_examples import LINK_LIMIT, counted_trial, result_of, run

from lossratio.errors import SearchError
from lossratio.measurements.frame_loss import FrameLossRate, FrameLossRequest, measure_frame_loss_rate
from lossratio.report import render
from lossratio.report.run import read_run
from lossratio.results import LoadOrigin
from lossratio.results.findings import message
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.testbed.opening import open_testbed
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_output import TrialOutput

PASSED = 51_000
"""Frames that a policer of 50 kfps with bursts of 20 ms passes in 1 s."""


@pytest.fixture
def policed():
    testbed = open_testbed(SIMULATED, dut="linux_bridge", options={"police": "50 kfps"})
    yield testbed
    testbed.close()


def test_the_loss_at_each_load_is_the_policers(policed, tmp_path):
    request = FrameLossRequest(profile=PROFILE, max_load=100e3, trial_duration=1.0)
    result = measure_frame_loss_rate(policed, request, place(tmp_path))
    frame_loss = result.frame_loss
    assert (result.outcome, frame_loss.is_complete) == (Outcome.MEASURED, True)
    loads = [at_load.load.per_interface_fps for at_load in frame_loss.loads]
    assert loads == pytest.approx([100e3, 90e3, 80e3, 70e3, 60e3, 50e3, 40e3])
    for at_load in frame_loss.loads:
        truth = max(0.0, 1.0 - PASSED / at_load.load.per_interface_fps)
        assert at_load.frame_loss_ratio == pytest.approx(truth, abs=1e-4)
        assert at_load.share_of_max_load_ratio == pytest.approx(at_load.load.per_interface_fps / 100e3)


def test_the_result_is_kept_shown_and_drawn(policed, tmp_path):
    where = place(tmp_path)
    result = measure_frame_loss_rate(
        policed, FrameLossRequest(profile=PROFILE, max_load=100e3, trial_duration=1.0), where
    )
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    text = message(result)
    assert "  100 %  " in text
    assert "loss 49 %" in text
    page = render("html", [read_run(tmp_path)])
    assert "Frame loss rate" in page
    assert "<svg" in page
    assert "100.00 kfps per interface for 1 s: loss 49 %" in page


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        (
            [counted_trial(4e5, lost=50_000, unsent=200_000), counted_trial(3e5), counted_trial(2e5)],
            "25 % of the frames sent are lost at the maximum load of about 200,000 frames/s of 64 B "
            "each way (400,000 asked) in trials of 1 s, and none at 300,000 and 200,000.",
        ),
        (
            [counted_trial(4e5, unsent=40_000), counted_trial(3e5, unsent=1), counted_trial(2e5), counted_trial(1e5)],
            "no frame is lost at the maximum load of about 360,000 frames/s of 64 B each way (400,000 asked) "
            "in trials of 1 s, and none at 3 loads from 300,000 down to 100,000.",
        ),
        (
            [counted_trial(4e5, lost=100_000), counted_trial(2e5, lost=1)],
            "25 % of the frames are lost at the maximum load of 400,000 frames/s of 64 B each way "
            "in trials of 1 s, and some at the "
            "smallest load, too.",
        ),
        (
            [counted_trial(4e5), counted_trial(3e5, lost=1), counted_trial(2e5)],
            "no frame is lost at the maximum load of 400,000 frames/s of 64 B each way "
            "in trials of 1 s, but frames are missing at "
            "smaller loads.",
        ),
    ],
)
def test_the_sentence_is_about_the_frames_that_were_sent_and_the_loads_that_were_tried(trials, said):
    test_run = run("64B-loss")
    maximum = test_run.conditions.max_load(4e5, LoadOrigin.GENERATOR, link_limit=LINK_LIMIT)
    result = result_of(FrameLossRate(), test_run, maximum, [JournalEntry.of(trial) for trial in trials])
    assert message(result).splitlines()[0] == f"Frame loss rate: {said}"


def test_finer_steps_give_more_loads(policed, tmp_path):
    request = FrameLossRequest(profile=PROFILE, max_load=60e3, step=0.025, trial_duration=0.5)
    result = measure_frame_loss_rate(policed, request, place(tmp_path))
    assert [round(at_load.share_of_max_load_ratio, 9) for at_load in result.frame_loss.loads[:3]] == [1.0, 0.975, 0.95]
    assert "  97.5 %  " in message(result)


def falling_loads():
    """The controller of trials of a second from 1000 fps downwards, in steps of 100 fps."""
    request = FrameLossRequest(profile=PROFILE, step=0.1, trial_duration=1.0)
    return FrameLossRate().controller(request, SimpleNamespace(max_load=1000.0))


def test_where_every_load_loses_frames_it_ends_at_the_smallest():
    controller = falling_loads()
    while (trial := controller.next_trial()) is not None:
        controller.record(TrialResult(trial, TrialOutput(0.5, sent_frames=100, lost_frames=50)))
    assert [round(trial.load) for trial in controller.result()] == [1000 - 100 * step for step in range(10)]


def test_one_lossless_load_between_others_does_not_end_it():
    controller = falling_loads()
    for lost in (5, 0, 5, 0, 0):
        trial = controller.next_trial()
        controller.record(TrialResult(trial, TrialOutput(lost / 100, sent_frames=100, lost_frames=lost)))
    assert controller.next_trial() is None


def test_a_load_that_was_not_sent_in_full_does_not_end_it():
    controller = falling_loads()
    for unsent in (10, 1, 0, 0):
        trial = controller.next_trial()
        assert trial is not None
        output = TrialOutput(unsent / 100, sent_frames=100 - unsent, lost_frames=0, unsent_frames=unsent)
        controller.record(TrialResult(trial, output))
    assert controller.next_trial() is None


@pytest.mark.parametrize("step", [0.0, -0.1, 0.11, 1.0])
def test_a_step_above_that_of_the_rfc_is_refused(step):
    with pytest.raises(SearchError, match=r"RFC 2544, section 26\.3"):
        FrameLossRequest(profile=PROFILE, step=step)

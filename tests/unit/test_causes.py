"""Each frame that did not come back has one cause."""

import pytest
from hypothesis import given, strategies as st

from lossratio.trials import (
    DirectionCounters,
    MissingFrames,
    TrialInput,
    TrialOutput,
    TrialResult,
    loss_ratio_without_tester,
    missing_frames,
    output_from_counters,
    sut_loss_ratio,
)

ONE_SECOND = TrialInput(duration=1.0, load=1_000.0)


def result(sent=1_000, received=1_000, **counters):
    direction = DirectionCounters("port0>port1", 1_000, sent_frames=sent, received_frames=received, **counters)
    return TrialResult(ONE_SECOND, output_from_counters(ONE_SECOND, [direction], tolerance=0.0))


def test_frames_that_were_not_sent_are_not_lost_by_the_sut():
    trial = result(sent=900, received=900, refused_frames=40)
    assert missing_frames(trial.output) == MissingFrames(unsent=60, refused=40)
    assert (trial.loss_ratio, sut_loss_ratio(trial), loss_ratio_without_tester(trial)) == (0.1, 0.0, 0.0)


def test_frames_that_the_generator_dropped_are_not_lost_by_the_sut():
    trial = result(received=900, generator_drop_frames=80)
    assert missing_frames(trial.output) == MissingFrames(lost_by_sut=20, generator_drops=80)
    assert (trial.loss_ratio, sut_loss_ratio(trial)) == (0.1, 0.02)


def test_a_share_of_the_frames_that_the_sut_was_sent():
    trial = result(sent=500, received=450)
    assert trial.loss_ratio == 0.55
    assert sut_loss_ratio(trial) == loss_ratio_without_tester(trial) == 0.1


def test_a_trial_without_counters_is_taken_as_it_is():
    trial = TrialResult(ONE_SECOND, TrialOutput(0.25))
    assert missing_frames(trial.output) is None
    assert sut_loss_ratio(trial) == 0.25


def test_sums_without_directions_are_enough():
    trial = TrialResult(ONE_SECOND, TrialOutput(0.2, sent_frames=900, lost_frames=100, unsent_frames=100))
    assert missing_frames(trial.output) == MissingFrames(lost_by_sut=100, unsent=100)
    assert sut_loss_ratio(trial) == pytest.approx(1 / 9)


def test_after_an_early_verdict_the_share_is_of_the_whole_duration():
    trial = TrialInput(1.0, 1_000.0, certain_above=0.01)
    direction = DirectionCounters("port0>port1", 1_000, 90, 60, unsent_frames=10, generator_drop_frames=10)
    output = output_from_counters(trial, [direction], decided_after=0.1)
    assert output.loss_ratio == 0.03
    assert sut_loss_ratio(TrialResult(trial, output)) == 0.02


@given(
    sent=st.integers(1, 1_000),
    received=st.integers(0, 1_000),
    dropped=st.integers(0, 1_000),
    refused=st.integers(0, 1_000),
)
def test_causes_add_up_to_what_is_missing(sent, received, dropped, refused):
    trial = result(sent, min(sent, received), generator_drop_frames=dropped, refused_frames=refused)
    missing = missing_frames(trial.output)
    assert missing.total == trial.output.lost_frames + trial.output.unsent_frames
    assert 0.0 <= sut_loss_ratio(trial) <= loss_ratio_without_tester(trial) <= trial.loss_ratio

"""Losses that the load does not explain: found where a device has no time now and then, and nowhere else."""

from __future__ import annotations

import pytest
from report_examples import counted_trial, mrr, throughput, throughput_of

from lossratio.measurements.mrr import MrrView
from lossratio.results.findings import notes_of
from lossratio.results.note import NoteKind
from lossratio.simulation.constant_capacity import ConstantLoss, SharpKnee
from lossratio.simulation.varying_capacity import PerformanceSpectrum, RareStalls

STARVED = RareStalls(capacity=200_000.0, interval=2.0, stall=0.2, queue=50)


def erratic(result):
    return [note.text for note in notes_of(result) if note.kind is NoteKind.ERRATIC]


@pytest.mark.whole
@pytest.mark.parametrize("measure", [throughput, mrr])
def test_a_device_that_has_no_time_now_and_then_is_doubted(measure):
    (doubt,) = erratic(measure(STARVED))
    assert "of the frames" in doubt
    assert "something other than the load decides" in doubt


@pytest.mark.whole
@pytest.mark.parametrize(
    "sut",
    [SharpKnee(capacity=300_000.0), ConstantLoss(loss_ratio=0.2), PerformanceSpectrum(capacity=300_000.0, jitter=0.01)],
)
def test_a_device_whose_losses_the_load_or_chance_explains_is_not_doubted(sut):
    assert erratic(throughput(sut)) + erratic(mrr(sut)) == []


def test_a_smaller_load_that_loses_far_more_than_a_larger_one_is_doubted():
    trials = [counted_trial(load, lost=lost) for load, lost in [(50_000.0, 20_000), (60_000.0, 0), (90_000.0, 50_000)]]
    (doubt,) = erratic(throughput_of(trials * 3))
    assert "a trial at 50.000 kfps per interface lost 40 % of the frames" in doubt
    assert "60.000 kfps per interface only 0 %" in doubt


@pytest.mark.parametrize(("lost", "is_told"), [(0, False), (3, False), (300, True)])
def test_what_batches_lost_by_chance_explain_is_not_doubted(lost, is_told):
    trials = [counted_trial(1_000.0, lost=lost * number % 700) for number in range(1, 9)]
    assert bool(erratic(throughput_of(trials))) is is_told


def test_rules_of_rates_at_a_fixed_load_ask_for_it():
    assert NoteKind.ERRATIC in {rule.kind for rule in MrrView.rules}

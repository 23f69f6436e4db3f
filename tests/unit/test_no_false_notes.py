"""Boxes without a fault: 80 searches and MRRs, of which no note says that something is wrong."""

from __future__ import annotations

import pytest
from report_examples import mrr, throughput

from lossratio.results.findings import doubts_of
from lossratio.results.note import NoteKind
from lossratio.simulation.constant_capacity import BackgroundLoss, ConstantLoss, SharpKnee, SmoothKnee

pytestmark = pytest.mark.whole
BOXES = {
    "healthy": SharpKnee(capacity=1e7),
    "overloaded": SharpKnee(capacity=200_000.0),
    "overloaded, with a wide knee": SmoothKnee(mrr=200_000.0, spread=5_000.0),
    "randomly losing": ConstantLoss(loss_ratio=0.01),
    "randomly losing, and overloaded": BackgroundLoss(capacity=250_000.0, loss_ratio=1e-3),
}
OF_EACH = 8
TRUE_OF_RANDOM_LOSSES = {NoteKind.LOSS_AT_ANY_LOAD, NoteKind.CHANCE}
"""Doubts that are true where the load is not the cause of all losses, or where chance decides around a bound."""


@pytest.mark.parametrize("name", BOXES)
def test_nothing_is_said_to_be_wrong_with_a_box_that_has_no_fault(name):
    results = [throughput(BOXES[name], seed=seed) for seed in range(OF_EACH)]
    results += [mrr(BOXES[name], seed=seed, trials=20) for seed in range(OF_EACH)]
    said = [doubt for result in results for doubt in doubts_of([result])[0]]
    assert len(results) * len(BOXES) == 80
    assert [str(doubt) for doubt in said if doubt.kind not in TRUE_OF_RANDOM_LOSSES] == []

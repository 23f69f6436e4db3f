"""What an RFC 2544 report says about a goal that allows loss."""

from types import SimpleNamespace

import pytest

from lossratio.measurements.rfc2544.judges import Status, no_loss
from lossratio.measurements.throughput.result import Goal
from lossratio.mlrsearch import NDR


@pytest.mark.parametrize(
    ("loss_ratio", "exceed_ratio", "why"),
    [
        (0.0, 0.004, "up to 0.4 % of trials may lose frames"),
        (0.005, 0.0, "up to 0.5 % of the frames may be lost"),
        (0.005, 0.5, "up to 0.5 % of the frames may be lost, and up to 50 % of trials may lose more"),
    ],
)
def test_a_goal_that_allows_loss_is_different_and_says_how_much(loss_ratio, exceed_ratio, why):
    goal = SimpleNamespace(name=NDR.name, loss_ratio=loss_ratio, exceed_ratio=exceed_ratio)
    assert {"name", "loss_ratio", "exceed_ratio"} <= Goal.model_fields.keys()
    throughput = SimpleNamespace(goals=[SimpleNamespace(goal=goal)])
    assert no_loss(SimpleNamespace(throughputs=[throughput])) == (Status.DIFFERENT, f"goal NDR: {why} (RFC 9971)")

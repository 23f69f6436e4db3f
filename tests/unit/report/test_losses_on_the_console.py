"""What the console says about lost frames."""

from __future__ import annotations

from lossy_devices import Lab, of_flows, spec
from report_examples import mrr

from lossratio.results import TestResult, loss_places_in


def result_of(lab: Lab) -> TestResult:
    """An MRR with the trials of a lab."""
    places = loss_places_in(lab.trials)
    return mrr().model_copy(update={"trials": tuple(lab.trials), "loss_places": places})


def lab_of(device) -> Lab:
    lab = Lab(spec(254), seed=1)
    for load in (40e3, 10e3, 20e3):
        lab.trial(load, 0.5, device(lab.order))
    return lab


def test_the_console_says_where_losses_sit():
    text = str(result_of(lab_of(of_flows({0, 100, 101, 200}))))
    assert "Where losses sit: All lost frames are of 4 of 254 flows" in " ".join(text.split())

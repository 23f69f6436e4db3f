"""The trial after a rest that a user may have at the end of a search."""

import pytest

from lossratio.mlrsearch import NDR, PDR, RFC2544, MLRsearch
from lossratio.trials import TrialOutput, TrialResult

MIN, MAX = 10e3, 1e6


class Weak:
    """A SUT that forwards a part of its capacity for some seconds after each loss."""

    def __init__(self, capacity=400e3, part=0.8, seconds=10.0):
        self._capacity, self._part, self._seconds = capacity, part, seconds
        self._quiet = seconds

    def measure(self, trial):
        self._quiet += trial.rest
        capacity = self._capacity * (self._part if self._quiet < self._seconds else 1.0)
        lost = max(0.0, 1.0 - capacity / trial.load)
        self._quiet = 0.0 if lost else self._quiet + trial.duration
        return TrialResult(trial, TrialOutput(lost))


def searched(controller, sut):
    trials = []
    while (trial := controller.next_trial()) is not None:
        trials.append(sut.measure(trial))
        controller.record(trials[-1])
    return trials


@pytest.mark.whole
@pytest.mark.parametrize("goals", [(NDR, PDR), (PDR,)], ids=str)
@pytest.mark.parametrize(("part", "passes"), [(1.0, False), (0.8, True), (0.97, True)])
def test_one_trial_after_the_rest_is_above_all_bounds_and_passes_if_the_sut_remembers_loss(goals, part, passes):
    controller = MLRsearch(goals, MIN, MAX, memory_rest=15.0)
    trials = searched(controller, Weak(part=part))
    (asked,) = (trial for trial in trials if trial.input.rest)
    upper = max(controller.result()[goal].relevant_upper_bound for goal in goals)
    assert upper * 1.005 < asked.load < upper * 1.02
    assert (asked.loss_ratio == 0.0) is passes
    assert controller.result().finished
    alone = MLRsearch(goals, MIN, MAX)
    searched(alone, Weak(part=part))
    assert dict(alone.result()) == dict(controller.result())


def test_without_a_request_no_trial_follows_a_rest():
    assert not any(trial.input.rest for trial in searched(MLRsearch([NDR], MIN, MAX), Weak()))


def test_the_forecast_counts_the_rest():
    usual, rested = (MLRsearch([RFC2544], MIN, MAX, memory_rest=rest).forecast() for rest in (0.0, 15.0))
    assert rested.seconds == pytest.approx(usual.seconds + 16.0)

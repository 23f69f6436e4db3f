"""Drives controllers with made-up results of trials; older searches of `benchmarks/study` can be imported."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lossratio.trials.trial import Controller, TrialInput, TrialOutput, TrialResult, run_search

sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "study"))


@dataclass
class Answers:
    """A measurer whose loss ratio is a function of the trial; it keeps the trials."""

    loss_ratio: Callable[[TrialInput], float]
    trials: list[TrialInput] = field(default_factory=list)

    def measure(self, trial: TrialInput) -> TrialOutput:
        self.trials.append(trial)
        return TrialOutput(self.loss_ratio(trial))


@pytest.fixture
def searched():
    """Runs a search with a function from trial to loss ratio; its result and its trials."""

    def run(controller: Controller, loss_ratio: Callable[[TrialInput], float]):
        answers = Answers(loss_ratio)
        return run_search(controller, answers), answers.trials

    return run


@pytest.fixture
def capacity():
    """The loss ratio of trials on a SUT that forwards so many frames per second."""

    def loss_ratio(rate: float) -> Callable[[TrialInput], float]:
        return lambda trial: max(0.0, 1.0 - rate / trial.load)

    return loss_ratio


@pytest.fixture
def follow():
    """Answers a controller's next trials with the given loss ratios; the trials."""

    def answer(controller: Controller, *loss_ratios: float) -> list[TrialInput]:
        trials = []
        for loss_ratio in loss_ratios:
            trials.append(controller.next_trial())
            controller.record(TrialResult(trials[-1], TrialOutput(loss_ratio)))
        return trials

    return answer

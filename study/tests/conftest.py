"""Drives controllers with made-up results of trials, and the command as its users run it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from lossratio.trials import Controller, TrialInput, TrialOutput, TrialResult, run_search
from lossratio_study.command import main


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


class Finished(NamedTuple):
    """A command that has ended: its exit status, standard output and standard error."""

    status: int
    out: str
    err: str


@pytest.fixture
def lossratio_study(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Finished]:
    """Runs the command ``lossratio-study`` in the test's own directory."""

    def run(*arguments: object) -> Finished:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["lossratio-study", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        return Finished(status, *capfd.readouterr())

    return run

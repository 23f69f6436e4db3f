"""What one search gave, with all its trials, and how long its controller thought."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter

from lossratio.errors import SearchError
from lossratio.mlrsearch import SearchResult
from lossratio.trial import Controller, Measurer, TrialInput, TrialOutput, TrialResult

MOST_TRIALS = 20_000
"""A search that asks for more has lost its way."""


@dataclass(frozen=True)
class Outcome:
    """A search's result and what it took.

    Attributes:
        result: What was found.
        trials: All trials, in the order measured.
        controller_seconds: Seconds of real time that the controller took for all its decisions.
    """

    result: SearchResult
    trials: tuple[TrialResult, ...]
    controller_seconds: float


@dataclass
class Recorder:
    """A measurer that keeps what another one measured, and how much real time that took.

    Attributes:
        measurer: Performs the trials.
        trials: All trials so far.
        seconds: Seconds of real time that the measurer took for them.
    """

    measurer: Measurer
    trials: list[TrialResult] = field(default_factory=list)
    seconds: float = 0.0

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            SearchError: If there were far too many trials.
        """
        if len(self.trials) >= MOST_TRIALS:
            raise SearchError(f"The search has not ended after {MOST_TRIALS} trials.")
        begin = perf_counter()
        output = self.measurer.measure(trial)
        self.trials.append(TrialResult(trial, output))
        self.seconds += perf_counter() - begin
        return output


def searched(controller: Controller[SearchResult], measurer: Measurer) -> Outcome:
    """Runs a search to its end."""
    recorder = Recorder(measurer)
    begin = perf_counter()
    while (trial := controller.next_trial()) is not None:
        recorder.measure(trial)
        controller.record(recorder.trials[-1])
    result = controller.result()
    return Outcome(result, tuple(recorder.trials), perf_counter() - begin - recorder.seconds)

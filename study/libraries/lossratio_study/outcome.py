"""The outcome of one search: its result, all its trials, and the processor time of its controller."""

from dataclasses import dataclass, field
from time import thread_time

from lossratio.errors import SearchError
from lossratio.mlrsearch import SearchResult
from lossratio.trials import Controller, Measurer, TrialInput, TrialOutput, TrialResult

MOST_TRIALS = 5_000
"""Limit of trials: a search that asks for more has a fault."""


@dataclass(frozen=True)
class Outcome:
    """A search's result and its cost."""

    result: SearchResult
    """The result."""
    trials: tuple[TrialResult, ...]
    """All trials, in the order measured."""
    controller_seconds: float
    """Seconds of processor time that the controller took for all its decisions."""


@dataclass
class Recorder:
    """A measurer that records the trials of another measurer, and their processor time."""

    measurer: Measurer
    """Performs the trials."""
    trials: list[TrialResult] = field(default_factory=list)
    """All trials so far."""
    seconds: float = 0.0
    """Seconds of processor time that the measurer took for them."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial; raises a `SearchError` if there are too many trials."""
        if len(self.trials) >= MOST_TRIALS:
            raise SearchError(f"The search has not ended after {MOST_TRIALS} trials.")
        begin = thread_time()
        output = self.measurer.measure(trial)
        self.trials.append(TrialResult(trial, output))
        self.seconds += thread_time() - begin
        return output


def searched(controller: Controller[SearchResult], measurer: Measurer) -> Outcome:
    """Runs a search to its end."""
    recorder = Recorder(measurer)
    begin = thread_time()
    while (trial := controller.next_trial()) is not None:
        recorder.measure(trial)
        controller.record(recorder.trials[-1])
    return Outcome(controller.result(), tuple(recorder.trials), thread_time() - begin - recorder.seconds)

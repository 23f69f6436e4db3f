"""Trials, and the two sides of a search.

A search has two sides (RFC 9971): a *controller* that chooses trials and draws conclusions, and a *measurer* that
performs them. Neither knows the other; `lossratio.trials.search` carries trials and results between them.
"""

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from lossratio.errors import SearchError
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput
from lossratio.values import checked


@checked(SearchError)
@dataclass(frozen=True)
class TrialResult:
    """A trial's input and output, with the RFC's defaults filled in by its properties."""

    input: TrialInput
    output: TrialOutput

    @property
    def duration(self) -> float:
        """Intended duration, in seconds."""
        return self.input.duration

    @property
    def load(self) -> float:
        """Intended load per transmitting interface, in frames per second."""
        return self.input.load

    @property
    def loss_ratio(self) -> float:
        """Trial loss ratio, 0 to 1."""
        return self.output.loss_ratio

    @property
    def is_early(self) -> bool:
        """Whether an early verdict ended the trial, so that its loss ratio is a lower limit."""
        return self.output.decided_after is not None

    @property
    def traffic_duration(self) -> float:
        """Seconds of traffic: the duration, or less if an early verdict ended it."""
        if self.output.decided_after is None:
            return self.input.duration
        return self.output.decided_after

    @property
    def effective_duration(self) -> float:
        """Seconds that count towards a goal's duration sum."""
        if self.output.effective_duration is None:
            return self.input.duration
        return self.output.effective_duration

    @property
    def elapsed(self) -> float:
        """Seconds that the trial took in total."""
        if self.output.elapsed is None:
            return self.input.duration
        return self.output.elapsed

    @checked(SearchError)
    def of_stream(self, name: str) -> "TrialResult":
        """The same trial for one direction or stream of the traffic, with the loss ratio of its frames alone.

        Unsent frames are divided among the streams in the same proportion as sent frames, and rounded up.

        Raises:
            SearchError: If it is not known how many frames of the stream came back.
        """
        if self.is_early:
            raise SearchError(
                "This trial was ended early, so it is not known what each stream lost. Measure without certain_above."
            )
        for direction in self.output.directions:
            if direction.name == name:
                return self._of_direction(direction)
        sent = lost = unsent = 0
        counted = [direction for direction in self.output.directions if direction.by_stream]
        for direction in counted:
            total = max(1, sum(stream.sent_frames for stream in direction.by_stream))
            for stream in direction.by_stream:
                if stream.name == name:
                    sent += stream.sent_frames
                    lost += abs(stream.sent_frames - stream.received_frames)
                    not_offered = direction.unsent_frames - direction.refused_frames
                    unsent += -(-max(0, not_offered) * stream.sent_frames // total)

        if not sent:
            raise SearchError(
                f"It is not known how many frames of the stream {name!r} came back in the trial at {self.load:.10g} "
                "frames/s. Check that the traffic profile has this stream. If frames came back changed or twice, "
                "measure with integrity=off."
            )

        output = TrialOutput(
            min(1.0, (lost + unsent) / (sent + unsent)),
            effective_duration=self.output.effective_duration,
            elapsed=self.output.elapsed,
            sent_frames=sent,
            lost_frames=lost,
            unsent_frames=unsent,
            repeats=self.output.repeats,
        )
        return TrialResult(self.input, output)

    def _of_direction(self, direction: DirectionCounters) -> "TrialResult":
        """The same trial as if only this direction had been sent."""
        lost = abs(direction.lost)
        missing = lost + direction.unsent_frames
        # Record: what is known of the direction alone. Late frames are only known of all together.
        output = replace(
            self.output,
            loss_ratio=min(1.0, missing / max(1, direction.sent_frames + direction.unsent_frames)),
            forwarding_rate=None,
            sent_frames=direction.sent_frames,
            lost_frames=lost,
            unsent_frames=direction.unsent_frames,
            late_frames=None,
            directions=(direction,),
        )
        return TrialResult(self.input, output)

    @property
    def forwarding_rate(self) -> float:
        """Trial forwarding rate per transmitting interface, in frames per second."""
        rate = self.output.forwarding_rate
        if rate is None:
            return self.input.load * (1.0 - self.output.loss_ratio)
        return rate


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Controller(Protocol[ResultT_co]):
    """A search algorithm: it chooses trials, and takes in their results.

    A controller is deterministic and has neither clock nor I/O, so the same results always lead to the same trials.
    It may have a method `meanwhile`, which `run_search` calls in a thread while a trial runs: it computes what the next
    choice needs, and changes nothing. It may have an attribute `purpose`: why it chose the last trial of `next_trial`.
    If `purpose` has an attribute `rule`, this is the name of the rule that chose the trial.
    """

    def next_trial(self) -> TrialInput | None:
        """The trial to measure next; None when the search is over. Asking again changes nothing."""

    def record(self, result: TrialResult) -> None:
        """Takes in a trial's result. The controller need not have asked for that trial."""

    def result(self) -> ResultT_co:
        """The conclusion so far, at any time; before the end it is marked as not finished."""


class Measurer(Protocol):
    """Performs trials."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            LossRatioError: If it could not be performed, or cannot be trusted.
        """

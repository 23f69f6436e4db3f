"""Frame loss rate over load (RFC 2544, section 26.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, model_validator

from lossratio.records import FrameCount, Rate, Ratio, Record, Seconds
from lossratio.results import Conditions, MaxLoad, Outcome, TestResult, TestRun, describe_trials, differences
from lossratio.trials import JournalEntry, TrialResult


class LossAtLoad(Record):
    """The frames lost at one load."""

    share_of_max_load_ratio: Ratio
    """The load as a share of the maximum load."""
    load: Rate
    """The load."""
    duration_s: Seconds
    """Duration of the trial."""
    frame_loss_ratio: Ratio
    """Frames sent and not received over frames sent; where these are not counted, the trial loss ratio."""
    sent_frames: FrameCount | None
    """Frames sent in all directions; None: not counted."""
    lost_frames: FrameCount | None
    """Frames sent and not received in all directions; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send in all directions; they are no loss. None: not counted."""


class FrameLoss(Record):
    """Frame loss rate over load."""

    loads: tuple[LossAtLoad, ...] = Field(min_length=1)
    """The loads, in the order of measuring: from the maximum load downwards."""
    is_complete: bool
    """Whether the last two loads lost nothing, so that smaller ones need not be measured."""


class FrameLossResult(TestResult):
    """The result of a measurement of the frame loss rate over load."""

    kind: Literal["frame_loss"] = "frame_loss"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load."""
    frame_loss: FrameLoss | None
    """Frame loss rate at each load; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_loads(self) -> FrameLossResult:
        if (self.outcome is Outcome.FAILED) != (self.frame_loss is None):
            raise ValueError("a frame loss rate is missing if and only if the measurement failed")
        return self


def lost_share(trial: TrialResult) -> float:
    """Frames lost over frames sent; the trial loss ratio where these are not counted."""
    sent, lost = trial.output.sent_frames, trial.output.lost_frames
    return trial.loss_ratio if not sent or lost is None else min(1.0, lost / sent)


def frame_loss(trials: Sequence[TrialResult], max_load: float, conditions: Conditions) -> FrameLoss:
    """Describes frame loss rate over load.

    Args:
        trials: The trials, at falling loads.
        max_load: Maximum load, in frames per second per interface.
        conditions: The conditions of the trials.
    """
    return FrameLoss(
        loads=tuple(
            LossAtLoad(
                share_of_max_load_ratio=min(1.0, trial.load / max_load),
                load=conditions.rate(trial.load),
                duration_s=trial.duration,
                frame_loss_ratio=lost_share(trial),
                sent_frames=trial.output.sent_frames,
                lost_frames=trial.output.lost_frames,
                unsent_frames=trial.output.unsent_frames,
            )
            for trial in trials
        ),
        is_complete=ends_without_loss(trials),
    )


def ends_without_loss(trials: Sequence[TrialResult]) -> bool:
    """Whether the last two trials lost nothing: RFC 2544 measures no smaller loads then.

    A trial with unsent frames shows nothing about its load, because that load was not offered.
    """
    return len(trials) >= 2 and all(trial.loss_ratio == 0.0 for trial in trials[-2:])


def frame_loss_result(run: TestRun, max_load: MaxLoad, entries: Sequence[JournalEntry]) -> FrameLossResult:
    """Makes the result of a measurement of the frame loss rate.

    Args:
        run: The test.
        max_load: The largest load.
        entries: All its trials.
    """
    trials = [entry.result for entry in entries]
    loss = frame_loss(trials, max_load.rate.per_interface_fps, run.conditions) if run.error is None else None
    return FrameLossResult(
        **run.stated(),
        outcome=Outcome.FAILED if loss is None else Outcome.MEASURED,
        trials=describe_trials(entries),
        max_load=max_load,
        frame_loss=loss,
    )


def frame_loss_contradictions(result: FrameLossResult, trials: Sequence[TrialResult]) -> Iterator[str]:
    """Differences of the frame loss rate from that of the trials."""
    if result.frame_loss is not None:
        most = result.max_load.rate.per_interface_fps
        yield from differences(result.frame_loss, frame_loss(trials, most, result.conditions), "frame_loss")

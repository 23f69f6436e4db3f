"""The result of a reconfiguration test: the frames lost while the SUT is reconfigured under traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import model_validator

from lossratio.records import FrameCount, Rate, Record, Seconds
from lossratio.results import MaxLoad, Outcome, TestResult, TestRun, describe_trials, differences
from lossratio.trials import JournalEntry


class ReconfigurationLoss(Record):
    """Loss while the SUT was reconfigured."""

    load: Rate
    """The load during the reconfiguration."""
    lost_frames: FrameCount
    """Frames lost, without those that the generator could not send."""
    lost_time_s: Seconds
    """Lost frames over the aggregate load: the time without any forwarding that would lose as many."""


class ReconfigurationResult(TestResult):
    """The result of a test that reconfigures the SUT under traffic."""

    kind: Literal["reconfiguration"] = "reconfiguration"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load that was allowed."""
    loss: ReconfigurationLoss | None
    """The loss; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_loss(self) -> ReconfigurationResult:
        if (self.outcome is Outcome.FAILED) != (self.loss is None):
            raise ValueError("a loss is missing if and only if the measurement failed")
        return self


def reconfiguration_loss(load: Rate, lost_frames: int) -> ReconfigurationLoss:
    """Makes the loss, with the lost time.

    Args:
        load: The load during the reconfiguration.
        lost_frames: Frames lost in all directions, without those that the generator could not send.
    """
    return ReconfigurationLoss(load=load, lost_frames=lost_frames, lost_time_s=lost_frames / load.aggregate_fps)


def reconfiguration_result(
    run: TestRun, max_load: MaxLoad, loss: ReconfigurationLoss | None, entries: Sequence[JournalEntry]
) -> ReconfigurationResult:
    """Makes the result of a reconfiguration test.

    Args:
        run: The test.
        max_load: The largest load that was allowed.
        loss: The loss; ignored if the run has an error.
        entries: Its trials: those of the search for the load, if there was one.
    """
    return ReconfigurationResult(
        **run.stated(),
        outcome=Outcome.MEASURED if run.error is None else Outcome.FAILED,
        trials=describe_trials(entries),
        max_load=max_load,
        loss=loss if run.error is None else None,
    )


def reconfiguration_contradictions(result: ReconfigurationResult) -> Iterator[str]:
    """Differences of the lost time from that of the lost frames."""
    if result.loss is not None:
        made = reconfiguration_loss(result.loss.load, result.loss.lost_frames)
        yield from differences(result.loss, made, "loss")

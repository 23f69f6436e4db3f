"""The result of one test, as its file in the run directory holds it: format ``lossratio-result/2``.

A result has a kind (``throughput``, ``mrr``, ``soak``, ``frame_loss``, ``latency``, ``reconfiguration``); what all
kinds share is in `TestResult`. A failed or irregular test is an outcome of its own: nothing in the file stands in for a
number that was not found.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from lossratio.records import FrameCount, Rate, Ratio, Record, Seconds, UtcTime
from lossratio.results.conditions import Conditions, MaxLoad
from lossratio.results.frame_loss import FrameLoss
from lossratio.results.latency import LatencyAtLoad
from lossratio.results.mrr import Mrr
from lossratio.results.reconfiguration import ReconfigurationLoss
from lossratio.results.soak import CriticalLoad
from lossratio.results.spread import GoalSpread
from lossratio.results.telemetry import TelemetryTrial
from lossratio.results.trials import Trial

FORMAT: Literal["lossratio-result/2"] = "lossratio-result/2"
"""Format of the files that this version writes."""

WITHOUT_DIGEST: Literal["lossratio-result/1"] = "lossratio-result/1"
"""Format of the files that versions before wrote: without a digest, and besides that the same."""


class Outcome(str, Enum):
    """What became of a test's measurement."""

    MEASURED = "measured"
    """Everything that was asked for was found."""
    IRREGULAR = "irregular"
    """A goal result is irregular; its reason is with it."""
    FAILED = "failed"
    """The measurement failed, and has no result; ``error`` says why."""


class TestIdentity(Record):
    """Which test it was."""

    __test__ = False

    name: str = Field(min_length=1)
    """Name of the test."""
    suite: str
    """Full name of its suite."""
    documentation: str = ""
    """The test's documentation."""
    tags: tuple[str, ...] = ()
    """The test's tags."""

    @property
    def full_name(self) -> str:
        """Name of the test with its suite's, which is unique within a run."""
        return f"{self.suite}.{self.name}" if self.suite else self.name


class TestResult(Record):
    """What results of all kinds have in common."""

    __test__ = False

    format: Literal["lossratio-result/1", "lossratio-result/2"] = FORMAT
    """Format of the file."""
    test: TestIdentity
    """Which test it was."""
    started: UtcTime
    """When it began."""
    ended: UtcTime
    """When it ended."""
    outcome: Outcome
    """What became of it: ``measured``, ``irregular`` or ``failed``."""
    error: str | None
    """Why the measurement failed; null if it did not."""
    remarks: tuple[str, ...]
    """What a reader of the numbers should know besides, such as warnings about the goals."""
    conditions: Conditions
    """What was measured, where and how."""
    trials: tuple[Trial, ...]
    """Every trial, in the order of measuring."""
    late_frames: FrameCount | None = None
    """Frames of the last trial that came back after its wait for frames in flight, and count as lost; null: not known.
    Those of the others are with the trial after them."""
    guilty: Literal["TG", "wire", "DUT"] | None = None
    """Whose fault it is that the measurement failed, where that is known."""

    @model_validator(mode="after")
    def _a_failure_has_an_error(self) -> TestResult:
        if (self.outcome is Outcome.FAILED) != (self.error is not None):
            raise ValueError("a failed measurement has an error, and no other has one")
        if self.ended < self.started:
            raise ValueError("a test cannot end before it starts")
        return self


class Goal(Record):
    """A search goal, with every attribute."""

    name: str
    """What the goal is called."""
    loss_ratio: Ratio
    """Goal loss ratio."""
    exceed_ratio: Ratio
    """Goal exceed ratio: the share of trial seconds that may lose more than the goal loss ratio."""
    final_trial_duration_s: Seconds
    """Goal final trial duration."""
    duration_sum_s: Seconds
    """Goal duration sum."""
    initial_trial_duration_s: Seconds
    """Goal initial trial duration."""
    width_ratio: Ratio
    """Goal width: the largest difference of the relevant bounds, over what the next field says."""
    width_relative_to: Literal["relevant upper bound"] = "relevant upper bound"
    """What the goal width is relative to."""


class GoalOutcome(Record):
    """A goal result (RFC 9971)."""

    regular: bool
    """Whether it is regular."""
    reason: str | None
    """Why it is irregular; null if it is regular."""
    relevant_lower_bound: Rate | None
    """The largest load below the relevant upper bound that meets the goal; null: none was found."""
    relevant_upper_bound: Rate | None
    """The smallest load that does not meet the goal; null: none was found."""
    conditional_throughput: Rate | None
    """The typical forwarding rate at the relevant lower bound; null without one."""

    @model_validator(mode="after")
    def _is_consistent(self) -> GoalOutcome:
        if self.regular == (self.reason is not None):
            raise ValueError("an irregular goal result has a reason, and a regular one has none")
        bounds = (self.relevant_lower_bound, self.relevant_upper_bound)
        if self.regular and None in bounds:
            raise ValueError("a regular goal result has both bounds")
        if (self.conditional_throughput is None) != (self.relevant_lower_bound is None):
            raise ValueError("there is a conditional throughput if and only if there is a relevant lower bound")
        return self


class GoalReport(Record):
    """A search goal, and what was found for it."""

    goal: Goal
    """The goal."""
    result: GoalOutcome | None
    """What was found; null if the measurement failed."""


class ThroughputResult(TestResult):
    """The result of a search for conditional throughput."""

    kind: Literal["throughput"] = "throughput"
    """The kind of the result."""
    algorithm: str
    """The search algorithm, e.g. ``MLRsearch``."""
    settings: dict[str, JsonValue]
    """The algorithm's other settings."""
    min_load: Rate
    """The smallest load of the search."""
    max_load: MaxLoad
    """The largest load of the search."""
    goals: tuple[GoalReport, ...] = Field(min_length=1)
    """The goals, in the order in which they were given, each with its result."""
    latency: tuple[LatencyAtLoad, ...] = ()
    """Latency at shares of the loads that were found; empty: it was not measured."""
    telemetry: tuple[TelemetryTrial, ...] = ()
    """Trials after the search around which the DUTs were asked; empty: there were none."""
    spread: tuple[GoalSpread, ...] = ()
    """Spread of this result and those before it, where the search was repeated; empty: it was not, or is the first."""

    @model_validator(mode="after")
    def _outcome_is_that_of_the_goals(self) -> ThroughputResult:
        results = [report.result for report in self.goals]
        if self.outcome is Outcome.FAILED:
            if any(result is not None for result in results):
                raise ValueError("a failed measurement has no goal results")
        elif outcome_of(results) is not self.outcome:
            raise ValueError(f"the outcome must be {outcome_of(results).value!r}, as the goal results are")
        return self


class MrrResult(TestResult):
    """The result of a measurement of the maximum receive rate."""

    kind: Literal["mrr"] = "mrr"
    """The kind of the result."""
    max_load: MaxLoad
    """The load of all trials."""
    mrr: Mrr | None
    """The maximum receive rate; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_rate(self) -> MrrResult:
        if (self.outcome is Outcome.FAILED) != (self.mrr is None):
            raise ValueError("a maximum receive rate is missing if and only if the measurement failed")
        return self


class SoakResult(TestResult):
    """The result of a soak test: a search for the critical load."""

    kind: Literal["soak"] = "soak"
    """The kind of the result."""
    target_loss_ratio: Ratio
    """The loss ratio at the critical load."""
    settings: dict[str, JsonValue]
    """The search's other settings, such as the likelihood."""
    min_load: Rate
    """The smallest load of the search."""
    max_load: MaxLoad
    """The largest load of the search."""
    critical_load: CriticalLoad | None
    """The critical load; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_critical_load(self) -> SoakResult:
        if (self.outcome is Outcome.FAILED) != (self.critical_load is None):
            raise ValueError("a critical load is missing if and only if the measurement failed")
        if self.critical_load is not None:
            regular = self.critical_load.reason is None
            if (self.outcome is Outcome.MEASURED) != regular:
                raise ValueError("a soak test is irregular if and only if its critical load has a reason to be")
        return self


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


class LatencyResult(TestResult):
    """The result of a measurement of latency at given loads."""

    kind: Literal["latency"] = "latency"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load."""
    latency: tuple[LatencyAtLoad, ...] = Field(min_length=1)
    """Latency at each load, in the order of measuring."""

    @model_validator(mode="after")
    def _outcome_is_that_of_the_loads(self) -> LatencyResult:
        if (self.outcome is Outcome.FAILED) == any(each.is_measured for each in self.latency):
            raise ValueError("a measurement of latency failed if and only if there is none at all")
        if self.outcome is Outcome.MEASURED and any(each.faults for each in self.latency):
            raise ValueError("a measurement of latency is irregular if some is missing")
        return self


class ReconfigurationResult(TestResult):
    """The result of a test that reconfigures the SUT under traffic."""

    kind: Literal["reconfiguration"] = "reconfiguration"
    """The kind of the result."""
    max_load: MaxLoad
    """The largest load that was allowed."""
    loss: ReconfigurationLoss | None
    """What was lost; null if the measurement failed."""

    @model_validator(mode="after")
    def _only_a_failure_has_no_loss(self) -> ReconfigurationResult:
        if (self.outcome is Outcome.FAILED) != (self.loss is None):
            raise ValueError("a loss is missing if and only if the measurement failed")
        return self


Result: TypeAlias = ThroughputResult | MrrResult | SoakResult | FrameLossResult | LatencyResult | ReconfigurationResult
"""A result of any kind."""

RESULT: TypeAdapter[Result] = TypeAdapter(Annotated[Result, Field(discriminator="kind")])
"""Reads, checks and describes results of any kind."""


def outcome_of(results: list[GoalOutcome | None]) -> Outcome:
    """The outcome of a search that did not fail.

    Args:
        results: The goal results; None counts as irregular.
    """
    regular = all(result is not None and result.regular for result in results)
    return Outcome.MEASURED if regular else Outcome.IRREGULAR

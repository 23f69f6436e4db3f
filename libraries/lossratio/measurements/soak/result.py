"""The result of a soak test: the verified load, the contradicted one, and the counts behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, JsonValue, model_validator

from lossratio.plrsearch import CountedStatement, CsitEstimate, LimitReached
from lossratio.results import MaxLoad, Outcome, TestResult
from lossratio.trials import Seconds, TrialResult
from lossratio.values import Rate, Ratio, Record

_ROUNDING = 1e-9
"""A smaller relative difference of loads counts as rounding."""


class CurvePoint(Record):
    """A point of a fitted curve."""

    load_per_interface_fps: float = Field(gt=0.0)
    """Load of each transmitting interface."""
    loss_ratio: Ratio
    """The expected loss ratio at this load."""


class FittedFunction(Record):
    """The critical load by one fitting function of PLRsearch."""

    name: str
    """Name of the function: ``stretch`` or ``erf``."""
    mean: Rate
    """Mean critical load."""
    stdev: Rate
    """Its standard deviation."""
    mrr_per_interface_fps: float
    """The likeliest limiting forwarding rate."""
    spread_per_interface_fps: float
    """The likeliest width of the knee."""
    curve: tuple[CurvePoint, ...]
    """The likeliest curve."""


class PlrsearchEstimate(Record):
    """The critical load by PLRsearch as in its Internet draft: a model, in which the capacity never varies."""

    mean: Rate
    """Mean critical load; both functions have half the weight."""
    stdev: Rate
    """Its standard deviation."""
    median: Rate
    """Its median."""
    least_95: Rate
    """Lower end of its 95 % interval."""
    most_95: Rate
    """Upper end of its 95 % interval."""
    functions: tuple[FittedFunction, ...]
    """The fitting functions one by one."""


class SeenBucket(Record):
    """A bucket or a buffer: frames that pass only once in each trial, however long it is."""

    frames_per_interface: float
    """Number of these frames."""
    long_run: Rate
    """This rate passes in the long run."""


class SeenPauses(Record):
    """Pauses of one length, in which frames are lost."""

    length_s: Seconds
    """Their length."""
    ring_frames: float
    """Frames that the ring holds that they overflow."""


class CriticalLoad(Record):
    """The load at which the long-term loss ratio is the target, between the verified and the contradicted load."""

    stated: Rate
    """The load that is stated: the verified load, or if there is none, one that the search would try to verify."""
    verified: Rate | None
    """The highest load that is verified (97.5 %); null: no load is."""
    contradicted: Rate | None
    """The lowest load above the stated one that loses more than the target (97.5 %); null: no load does."""
    statement: CountedStatement
    """The frames that verify the load. If no load is verified, the frames at and just below the stated load."""
    reason: str | None
    """Why the result is irregular; null: it is regular."""
    limit: LimitReached | None
    """The end of the range of loads beyond which the critical load may be; null: it is inside."""
    line: Rate | None
    """The load that loses the target by a line through the trials that lose little: a model. Null: they show no
    line."""
    plrsearch: PlrsearchEstimate | None = None
    """PLRsearch's estimate, with the likelihood ``poisson``; null: it was not asked for."""
    csit: CsitEstimate | None = None
    """What FD.io CSIT's code reports; null: the loads were not chosen as in CSIT."""
    rarest_s: Seconds
    """Random losses that occur once in this many seconds were seen with a probability of 97.5 % in the counted trials.
    Rarer losses may have gone unseen."""
    trial_s: Seconds
    """Seconds of most trials."""
    long_s: Seconds | None
    """Seconds of the long trials that passed at the stated load or above; null: none did."""
    clump_frames: float
    """Frames that are lost at a time near the stated load, by the scatter of equal trials."""
    batch_frames: float | None
    """Frames of a batch, of which the losses are multiples; null: not known."""
    once_frames: float
    """Largest number of frames that each trial may have lost once, which do not count."""
    change_ratios: tuple[float, ...]
    """Changes of the rate that the device forwards in overload, as shares of it; earlier trials do not count."""
    bucket: SeenBucket | None
    """A bucket or a buffer of the SUT; null: none is seen."""
    pauses: SeenPauses | None
    """The pauses in which the SUT loses frames; null: none are known well enough."""
    process: tuple[str, ...]
    """How frames are lost, in sentences."""
    ended_by: str | None
    """Why the search ended, e.g. ``timeout`` or ``precision``; null: it was interrupted."""

    @property
    def stated_as(self) -> str:
        """What the stated load is, in a few words."""
        if self.verified is not None:
            return "highest verified load"
        return "load not contradicted" if self.reason is None else "doubtful load"


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
            raise ValueError("a failed soak test has no critical load, and every other one has one")
        if self.critical_load is not None:
            regular = self.critical_load.reason is None
            if (self.outcome is Outcome.MEASURED) != regular:
                raise ValueError(
                    "an irregular soak test has a reason in its critical load, and a measured one has none"
                )
        return self


def critical_load_contradictions(
    said: CriticalLoad, trials: Sequence[TrialResult]
) -> Iterator[str]:
    """Loads that no trial had, and loads and counts that cannot be together."""
    tried = [trial.load for trial in trials]
    for name, rate in (("verified", said.verified), ("contradicted", said.contradicted)):
        load = None if rate is None else rate.per_interface_fps
        if load is not None and not any(
            math.isclose(load, other, rel_tol=_ROUNDING) for other in tried
        ):
            yield f"critical_load.{name} is {load!r}, and no trial had this load"

    stated = said.stated.per_interface_fps
    if said.verified is not None and said.verified != said.stated:
        yield f"critical_load.stated is {stated!r}, and not the verified load"
    if said.contradicted is not None and said.contradicted.per_interface_fps <= stated:
        yield f"critical_load.stated is {stated!r}, and a lower load is contradicted"
    most = sum(trial.output.sent_frames or 0 for trial in trials)
    if said.statement.frames > most:
        yield f"critical_load.statement has {said.statement.frames:,} frames, and {most:,} were sent"

"""Confirmation of a critical load: the loss ratio at one fixed load, from counts alone, without any model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lossratio import plrsearch
from lossratio.errors import SearchError
from lossratio.measurements import (
    NOT_IN_FILES,
    FoundResult,
    Measurement,
    PlannedKind,
    PlannedTrials,
    Request,
    Suite,
)
from lossratio.measurements.soak import TARGET_LOSS_RATIO, batch_seen, timed
from lossratio.measurements.trusted_trials import OnTrustedTrials
from lossratio.plrsearch import CountedStatement, Verdict
from lossratio.results import (
    USUAL,
    Conditions,
    MaxLoad,
    View,
    frames_in_words,
    headline,
    in_trials_of,
    load_in_words,
    numbers,
    offered_in,
)
from lossratio.trials import USUAL_BATCH, MissingFrames, TrialInput, TrialResult, missing_frames
from lossratio.values import (
    LONGEST_TRIAL,
    Duration,
    FrameRate,
    Share,
    counted,
    format_about,
    format_duration,
    format_exact_duration,
    format_frame_rate,
    format_one_in,
    format_target,
    trials_counted,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange

_LEAST_TRIALS = 10
"""The minimum number of trials that verify a load."""
_FRAMES = -math.log(0.025)
"""Divided by the target loss ratio: the number of frames without loss that shows a smaller loss ratio (97.5 %)."""
_LONG = 60.0
"""Seconds from which on a time is in minutes, hours and days."""
_ROOM = 3.2
"""Planned frames, as a multiple of that number. Five losses are allowed, so that a SUT that loses only half of the
ratio is verified in more than a third of all cases."""
_SHOW_BATCH = 10
"""Number of trials with loss that show how many frames are lost at once, so that nothing is assumed."""

_MANY_TIMES = 2.0
"""Bursts that are this many times as large as assumed are named."""


class ConfirmationRequest(Request):
    """Measures whether the loss ratio at one load is at most ``loss_ratio``, without any model, and returns the result.

    The ``load`` is in frames per second per interface. The default frame size is 64B.

    Before the first trial, the console shows how many frames the measurement takes: 11.8 ``batch`` / ``loss_ratio`` for
    each interface, in at least 10 trials. It takes fewer frames if the loss ratio is certainly higher. ``batch`` is the
    number of frames that are lost at a time, because software drops frames in batches. By default, it is the number
    that the soak test right before it in the suite found, or 32 if there was no soak test. A batch of 32 takes 32 times
    as long as a batch of 1. As soon as ten trials have lost frames, their counts show the number instead.

    The verdict is ``verified`` or ``contradicted`` (each with a probability of 97.5 %), or ``extrapolated``, if the
    frames do not decide. The result is irregular unless the verdict is ``verified``, and the test fails if it is
    ``contradicted``.

    | `Confirm Critical Load`    12.05 Mfps    loss_ratio=1e-7
    | `Confirm Critical Load`    12.05 Mfps    IMIX    loss_ratio=1e-6    trial_duration=10 s    batch=1
    """

    unused = frozenset({"min_load"})

    load: Annotated[FrameRate, Field(gt=0.0)]
    """The load per interface that is confirmed."""
    loss_ratio: Annotated[Share, Field(gt=0.0, lt=1.0)] = TARGET_LOSS_RATIO
    """The loss ratio that the SUT may have at the load."""
    trial_duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 2.0
    """Seconds of each trial."""
    batch: Annotated[float, Field(ge=1.0)] = USUAL_BATCH
    """Number of frames that are lost at once, until ten trials with loss show it."""
    longest: Annotated[Duration, Field(gt=0.0), NOT_IN_FILES] = 86_400.0
    """Maximum seconds of traffic. A measurement that would take longer is refused before any frame is sent."""

    @property
    def planned_trials(self) -> int:
        """Number of trials that are enough for a verdict if at most five batches are lost.

        Raises:
            SearchError: If these trials take too long.
        """
        frames = _ROOM * _FRAMES * self.batch / self.loss_ratio
        trials = max(_LEAST_TRIALS, math.ceil(frames / (self.load * self.trial_duration)))
        if trials * self.trial_duration > self.longest:
            longest = format_exact_duration(self.longest)
            raise SearchError(
                f"{self.plan(trials)}, but 'longest' is {longest}. Choose a larger loss ratio or "
                "a smaller batch, or raise 'longest'."
            )
        return trials

    def plan(self, trials: int) -> str:
        """The number of trials and their time, in words."""
        seconds = trials * self.trial_duration
        batch = lost_at_a_time(self.batch)
        frames = counted(round(seconds * self.load), "frame")
        time = format_duration(seconds) if seconds >= _LONG else f"{seconds:.4g} s"
        return (
            f"To confirm a loss ratio of {format_target(self.loss_ratio)} at {format_frame_rate(self.load)}, {batch}, "
            f"takes {frames} from each interface: {trials_counted(trials)}, {time}"
        )


class ConfirmationResult(FoundResult):
    """The result of a confirmation of a critical load."""

    found = "statement"
    kind: Literal["confirmation"] = "confirmation"
    loss_ratio: float = Field(gt=0.0, lt=1.0)
    """The requested loss ratio."""
    batch: float | None = None
    """The requested number of frames that are lost at a time; null: 1."""
    statement: CountedStatement | None
    """The verdict, with the frames that support it; null if the measurement failed."""
    reason: str | None
    """Why the load is not confirmed; null if it is."""


class Confirmation(OnTrustedTrials, PlannedKind[ConfirmationRequest, ConfirmationResult]):
    """The kind: confirmation of a critical load."""

    keyword = "Confirm Critical Load"
    method = "confirmation"
    title = "Confirming the critical load"
    algorithm = "confirmation at a fixed load"
    usual_frame_size = "64B"
    load_argument = "load"

    def asked(
        self, suite: Suite, fields: Mapping[str, Any], load: FrameRate
    ) -> ConfirmationRequest:
        """Shows how many frames the request takes, and returns the request."""
        request: ConfirmationRequest = suite.request({"load": load, **fields})
        if "batch" not in fields and (seen := batch_of_last_soak(suite)) is not None:
            request = request.but(batch=seen)
        suite.show(request.plan(request.planned_trials))
        return request

    def demand(self, result: ConfirmationResult, load: FrameRate | None = None) -> None:
        """Fails if the load is contradicted.

        Raises:
            AssertionError: If more than the ratio is lost at the load.
        """
        said = result.statement
        if said is not None and said.verdict is Verdict.CONTRADICTED:
            raise AssertionError(f"The load is not confirmed: {result.reason or said}.")

    def controller(self, request: ConfirmationRequest, loads: LoadRange) -> PlannedTrials:
        """Equal trials. They end early when a check finds that more frames are certainly lost.

        Raises:
            SearchError: If the load to confirm is above the maximum load.
        """
        if request.load > loads.max_load:
            raise SearchError(
                f"The load to confirm, {format_frame_rate(request.load)}, is above the maximum load, "
                f"{format_frame_rate(loads.max_load)}. Confirm a lower load, or raise max_load."
            )
        trials = request.planned_trials

        def is_refuted(results: Sequence[TrialResult]) -> bool:
            return bounds_of(results, trials, request.batch).least > request.loss_ratio

        trial = TrialInput(request.trial_duration, request.load)
        return PlannedTrials([trial] * trials, is_refuted, self.why_set_aside)

    def remarks(self, request: ConfirmationRequest, controller: PlannedTrials) -> Iterator[str]:
        """How many frames are needed."""
        yield f"{request.plan(request.planned_trials)}."

    def build(
        self,
        measured: Measurement[Any],
        request: ConfirmationRequest,
        inputs: Mapping[str, Any],
        max_load: MaxLoad,
    ) -> ConfirmationResult:
        """The verdict."""
        run = measured.run
        statement = None
        reason = None
        if run.error is None:
            trials = [entry.result for entry in measured.entries]
            statement = confirmed(trials, request, run.conditions)
            reason = _reason(statement, trials, request.batch)

        stated = measured.stated(max_load, reason, self.why_set_aside)
        return ConfirmationResult(
            **stated,
            loss_ratio=request.loss_ratio,
            batch=request.batch,
            statement=statement,
            reason=reason,
        )


def batch_of_last_soak(suite: Suite) -> float | None:
    """Frames lost at once in the suite's last measurement; None: there was none, or it was not a soak test."""
    try:
        return batch_seen(suite.last_result)
    except SearchError:
        return None


def lost_at_a_time(batch: float) -> str:
    """How frames are lost, in a few words."""
    if batch == 1.0:
        return "if frames are lost one by one"
    return f"if up to {batch:.3g} frames are lost at a time"


def bounds_of(
    trials: Sequence[TrialResult], looks: int = 1, batch: float = 1.0, *, counts_late: bool = True
) -> plrsearch.LossBounds:
    """The loss ratio of the trials that are evidence, all at one load.

    Once enough trials have lost frames, the scatter of their counts shows how many are lost at once.

    Args:
        trials: The trials.
        looks: How often the lower bound of the ratio is checked.
        batch: How many frames are lost at once, until the trials show it.
        counts_late: Whether late frames count as lost, as in every trial.
    """
    known = [trial.output for trial in trials if plrsearch.why_set_aside(trial) is None]
    missing = [missing_frames(output) or MissingFrames() for output in known]
    # Frames that came back but were dropped by the generator count as forwarded.
    if counts_late:
        lost_in = [float(frames.without_tester) for frames in missing]
    else:
        lost_in = [float(frames.lost_by_sut) for frames in missing]
    counts = [
        (float(output.sent_frames or 0), lost) for output, lost in zip(known, lost_in, strict=True)
    ]
    import numpy as np

    sent, lost = np.array(counts).reshape(-1, 2).T
    if np.count_nonzero(lost) >= _SHOW_BATCH:
        batch = 1.0
    return plrsearch.LossBounds.of(sent, lost, looks, batch, known=batch > 1.0)


def confirmed(
    trials: Sequence[TrialResult], request: ConfirmationRequest, conditions: Conditions
) -> CountedStatement:
    """The verdict about a load from its trials.

    After each planned trial, a check found out whether they refute the load. The statement's loss is what the SUT lost.
    Late frames neither refute a load, because the SUT did not lose them, nor do they verify it, because they did not
    come back in time.
    """
    target = request.loss_ratio
    lost_by_sut = bounds_of(trials, batch=request.batch, counts_late=False)
    after_each_trial = bounds_of(trials, request.planned_trials, request.batch, counts_late=False)
    with_late = bounds_of(trials, batch=request.batch)
    verdict = Verdict.EXTRAPOLATED
    if after_each_trial.least > target:
        verdict = Verdict.CONTRADICTED
    elif with_late.most <= target and with_late.trials >= _LEAST_TRIALS:
        verdict = Verdict.VERIFIED

    loads = (trials[0].load, trials[0].load)
    statement = CountedStatement.of(verdict, target, loads, lost_by_sut)
    return timed(statement.of_trials(trials[0].duration), conditions)


def _reason(statement: CountedStatement, trials: Sequence[TrialResult], batch: float) -> str | None:
    """Why the trials do not confirm the load; None: they do."""
    if statement.verdict is Verdict.VERIFIED:
        return None
    reason = f"{statement}{_larger_bursts(statement, batch)}"
    known = (trial.output for trial in trials if plrsearch.why_set_aside(trial) is None)
    late = sum((missing_frames(output) or MissingFrames()).late for output in known)
    if not late or statement.verdict is Verdict.CONTRADICTED:
        return reason
    were_late = counted(late, "more frame was", "more frames were")
    return (
        f"{reason}; {were_late} only late, not lost: a longer wait would show whether the load "
        "passes. Increase the generator's 'settle' in the topology file"
    )


def _larger_bursts(statement: CountedStatement, batch: float) -> str:
    """Words on losses that come in larger bursts than assumed, after a semicolon; empty: they do not."""
    lossy = statement.lossy_trials or 0
    # If every trial loses frames, the load is too high, whatever the bursts are.
    if statement.burst_frames < _MANY_TIMES * batch or lossy >= statement.trials:
        return ""
    return (
        f"; only {lossy:,} of {statement.trials:,} trials lost frames, about {statement.burst_frames:,.0f} at a time "
        f"instead of {batch:.3g}. If this was an outage, repeat the confirmation; otherwise, repeat it with "
        f"batch={statement.burst_frames:.0f}"
    )


@headline
def _found(result: ConfirmationResult) -> Iterator[str]:
    """Whether the load is confirmed."""
    offered = [trial.load_per_interface_fps for trial in result.evidence]
    if result.statement is None or not offered:
        return

    frames = frames_in_words(result.conditions)
    load = load_in_words(max(offered), offered_in(result.trials), frames)
    load += in_trials_of(result.trials)
    share = format_one_in(result.loss_ratio).replace("one in", "one frame in")
    target = f"at most {share} is lost"
    if result.reason is None:
        yield f"Confirmed: at {load}, {target}."
        unseen = format_about(result.statement.unseen_burst_trials or 1.0)
        yield (
            f"The certainty is about trials like these: what happens in fewer than one out of {unseen} of them, "
            "such as another choice of queues, may not have been seen."
        )
    else:
        yield f"Not confirmed: it is not proved that {target} at {load}."


@numbers
def _numbers(result: ConfirmationResult) -> Iterator[str]:
    """The verdict with its certainty."""
    said = "failed" if result.statement is None else str(result.statement)
    batch = lost_at_a_time(result.batch or 1.0)
    yield f"loss ratio {format_target(result.loss_ratio)}, {batch}, with a certainty of 97.5 %: {said}"


class ConfirmationView(View[ConfirmationResult]):
    """How a confirmation is shown."""

    quantity = "confirmation"
    rules = (_found, _numbers, *USUAL)

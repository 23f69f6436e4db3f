"""The timing of trials, with its deviations from RFC 2544, section 23."""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from lossratio.values import Record, Seconds

_RFC2544_WAIT_BEFORE = 2.0
_RFC2544_WAIT_AFTER = 2.0
_RFC2544_RECOVERY = 5.0
_RECOVERY = "wait for the DUT to restabilise"
_END_OF_TRAFFIC = "end of the traffic"

EXPECTED_FRAMES = (
    "per direction max(sent, ceil((duration - tolerance) x load)); frames that the generator could not send are in "
    "the loss ratio, and are told apart from lost ones by the counters"
)
"""The frames that lossratio's own measurers expect: the formula of `lossratio.trials.counters`."""


class Deviation(Record):
    """One deviation from the trial of RFC 2544, section 23."""

    step: str
    """The step of RFC 2544."""
    rfc2544: str
    """The requirement of RFC 2544."""
    instead: str
    """What lossratio does instead."""


class TrialTiming(Record):
    """The steps of a trial around its traffic, and the rules for its counters. Use `trial_timing` to make one."""

    learning: Literal["before every trial", "before the search", "never"]
    """When learning frames or routing updates are sent."""
    learning_s: Seconds = 0.0
    """Seconds for which learning frames (frames of the test traffic) are sent in each direction."""
    learning_fps: float = Field(default=0.0, ge=0.0)
    """Load of learning frames per interface, in frames per second."""
    neighbours: str = ""
    """How DUTs know the MAC addresses of their neighbours; empty: the DUTs have no neighbours."""
    wait_before_s: Seconds
    """Wait after learning frames and routing updates, before the traffic starts."""
    wait_after_s: Seconds
    """Wait after the traffic for frames in flight, which count as received; later frames count as lost."""
    ramp_s: Seconds = 0.0
    """Time before the counted traffic in which the load grows from zero; frames in this time are not counted."""
    recovery_s: Seconds
    """Idle time after the wait, in which the SUT becomes stable for the next trial."""
    effective_duration: str
    """How the effective duration is computed."""
    expected_frames: str
    """The definition of expected frames, which are the denominator of the loss ratio."""
    tolerance_s: Seconds
    """Seconds of traffic that may be missing without a frame counting as unsent."""
    negative_loss: str
    """How a trial is treated if a direction received more frames than it sent."""
    unsent: str
    """How a trial is treated if the generator could not send all frames."""
    deviations: tuple[Deviation, ...]
    """Every deviation from RFC 2544, section 23."""

    @property
    def has_early_verdicts(self) -> bool:
        """Whether trials ended as soon as their verdict was certain."""
        return any(deviation.step == _END_OF_TRAFFIC for deviation in self.deviations)

    def with_ramp(self, ramp: float) -> "TrialTiming":
        """Adds a ramp before the counted part of every trial.

        Args:
            ramp: Seconds; 0: the timing does not change.
        """
        if not ramp:
            return self
        instead = f"a ramp of {ramp:g} s before it, in which the load grows from zero and no frame is counted"
        deviation = Deviation(
            step="start of the traffic",
            rfc2544="each trial begins at its full load",
            instead=instead,
        )
        return self._changed((*self.deviations, deviation), ramp_s=ramp)

    def with_rest(self, rest: float) -> "TrialTiming":
        """Adds a rest before every trial; a longer recovery time of the DUT is kept.

        Args:
            rest: Seconds.
        """
        if rest <= self.recovery_s:
            return self
        others = [deviation for deviation in self.deviations if deviation.step != _RECOVERY]
        return self._changed((*others, *_short_recovery(rest)), recovery_s=rest)

    def with_early_verdicts(self) -> "TrialTiming":
        """Adds the fact that trials end as soon as their verdict is certain, unless the timing already has it."""
        if self.has_early_verdicts:
            return self
        instead = "with early verdicts: a trial ends as soon as it is certain to lose more than every goal allows"
        deviation = Deviation(
            step=_END_OF_TRAFFIC, rfc2544="each trial runs for its whole duration", instead=instead
        )
        return self._changed((*self.deviations, deviation))

    def _changed(self, deviations: tuple[Deviation, ...], **changes: float) -> "TrialTiming":
        return self.model_copy(update={"deviations": deviations, **changes})


def trial_timing(**fields: Any) -> TrialTiming:
    """Makes the trial timing from the fields of `TrialTiming`, with its deviations from RFC 2544, section 23."""
    usual = {"effective_duration": "the intended trial duration", "unsent": "they count as loss"}
    timing = TrialTiming(
        **{**usual, "expected_frames": EXPECTED_FRAMES, "deviations": (), **fields}
    )
    deviations = (
        *_other_learning(timing),
        *_short_wait(timing.wait_after_s),
        *_short_recovery(timing.recovery_s),
    )
    return timing.model_copy(update={"deviations": deviations})


def _other_learning(timing: TrialTiming) -> Iterator[Deviation]:
    if timing.learning == "before every trial" and timing.wait_before_s >= _RFC2544_WAIT_BEFORE:
        return
    instead: str = timing.learning
    if timing.learning != "never":
        if timing.learning_s:
            instead += f", for {timing.learning_s:g} s at {timing.learning_fps:g} fps"
        instead += f", {timing.wait_before_s:g} s before the traffic"
    yield Deviation(
        step="learning frames and routing update",
        rfc2544="before every trial, 2 s before the traffic",
        instead=instead,
    )


def _short_wait(wait: float) -> Iterator[Deviation]:
    if wait < _RFC2544_WAIT_AFTER:
        yield Deviation(step="wait for residual frames", rfc2544="2 s", instead=f"{wait:g} s")


def _short_recovery(recovery: float) -> Iterator[Deviation]:
    if recovery < _RFC2544_RECOVERY:
        yield Deviation(step=_RECOVERY, rfc2544="at least 5 s", instead=f"{recovery:g} s")

"""The steps of a trial before and after its traffic, and their deviations from RFC 2544."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lossratio.records import Record, Seconds

_RFC2544_WAIT_BEFORE = 2.0
_RFC2544_WAIT_AFTER = 2.0
_RFC2544_RECOVERY = 5.0

EXPECTED_FRAMES = (
    "per direction max(sent, ceil((duration - tolerance) x load)); frames that the generator could not send are in the "
    "loss ratio, and are told apart from lost ones by the counters"
)
"""The frames that lossratio's own measurers expect: the formula of `lossratio.trials.counters`."""


class Deviation(Record):
    """One deviation from the trial of RFC 2544, section 23."""

    step: str
    """The step of RFC 2544."""
    rfc2544: str
    """The requirement of RFC 2544."""
    instead: str
    """The action of lossratio instead."""


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
    """Time before the counted traffic in which the load grows from zero; frames of that time are not counted."""
    recovery_s: Seconds
    """Idle time after the wait, in which the SUT becomes stable for the next trial."""
    effective_duration: str
    """How the effective duration is computed."""
    expected_frames: str
    """The definition of expected frames, which are the denominator of the loss ratio."""
    tolerance_s: Seconds
    """Seconds of traffic that may be missing without a frame counting as unsent."""
    negative_loss: str
    """How a trial is treated in which a direction received more frames than it sent."""
    unsent: str
    """How a trial is treated in which the generator could not send all frames."""
    deviations: tuple[Deviation, ...]
    """Every deviation from RFC 2544, section 23."""


def trial_timing(
    *,
    learning: Literal["before every trial", "before the search", "never"],
    wait_before: float,
    wait_after: float,
    recovery: float,
    tolerance: float,
    negative_loss: str,
    learning_time: float = 0.0,
    learning_load: float = 0.0,
    neighbours: str = "",
    unsent: str = "they count as loss",
) -> TrialTiming:
    """Makes the trial timing, with its deviations from RFC 2544, section 23.

    Args:
        learning: When learning frames or routing updates are sent.
        wait_before: Seconds between these frames or updates and the traffic.
        wait_after: Seconds after the traffic for frames in flight.
        recovery: Seconds of idle time after that wait.
        tolerance: Seconds of traffic that may be missing without a frame counting as unsent.
        negative_loss: How a trial is treated in which a direction received more frames than it sent.
        learning_time: Seconds for which learning frames are sent.
        learning_load: Load of learning frames, in frames per second per interface.
        neighbours: How DUTs know the MAC addresses of their neighbours.
        unsent: How a trial is treated in which the generator could not send all frames.
    """
    deviations = []
    if learning != "before every trial" or wait_before < _RFC2544_WAIT_BEFORE:
        sent = f", for {learning_time:g} s at {learning_load:g} fps" if learning_time else ""
        waited = "" if learning == "never" else f"{sent}, {wait_before:g} s before the traffic"
        step = "learning frames and routing update"
        deviations.append(_deviation(step, "before every trial, 2 s before the traffic", f"{learning}{waited}"))
    if wait_after < _RFC2544_WAIT_AFTER:
        deviations.append(_deviation("wait for residual frames", "2 s", f"{wait_after:g} s"))
    if recovery < _RFC2544_RECOVERY:
        deviations.append(_deviation("wait for the DUT to restabilise", "at least 5 s", f"{recovery:g} s"))
    return TrialTiming(
        learning=learning,
        learning_s=learning_time,
        learning_fps=learning_load,
        neighbours=neighbours,
        wait_before_s=wait_before,
        wait_after_s=wait_after,
        recovery_s=recovery,
        effective_duration="the intended trial duration",
        expected_frames=EXPECTED_FRAMES,
        tolerance_s=tolerance,
        negative_loss=negative_loss,
        unsent=unsent,
        deviations=tuple(deviations),
    )


def _deviation(step: str, rfc2544: str, instead: str) -> Deviation:
    return Deviation(step=step, rfc2544=rfc2544, instead=instead)

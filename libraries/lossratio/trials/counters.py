"""Computes a trial's loss ratio from its counters, for every generator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from lossratio.errors import TrafficError
from lossratio.trials.trial import DirectionCounters, TrialInput, TrialOutput

START_TOLERANCE = 10e-6
"""Seconds by which a generator's workers may start late without their frames counting as unsent."""

MOST_EXCESS = 0.05
"""Share of the intended frames by which a generator may exceed them. With more frames the load was another one."""

_FEW_FRAMES = 10

_COUNTED = (
    *("sent", "received", "generator_drops", "late", "examined"),
    *("duplicated", "reordered", "corrupted", "wrong_length", "misdelivered"),
)

_ROUNDING = 1e-15
"""Largest rounding error of a loss ratio that was computed as 1 minus the share of received frames."""

NegativeLoss = Literal["retry", "csit"]
"""The policy for a direction that received more than it sent. ``retry`` refuses the trial, so that it is measured
again. ``csit`` counts the surplus as loss, as FD.io CSIT does, and refuses only a trial with a loss ratio above 1."""


class CountersError(TrafficError):
    """A trial's counters contradict each other, or give no loss ratio. To measure the trial again is no remedy."""


class NegativeLossError(CountersError):
    """More frames were received than sent: foreign or duplicated frames. The trial may be measured again."""


def output_from_counters(
    trial: TrialInput,
    directions: Sequence[DirectionCounters],
    *,
    tolerance: float = START_TOLERANCE,
    negative_loss: NegativeLoss = "retry",
    effective_duration: float | None = None,
    elapsed: float | None = None,
) -> TrialOutput:
    """Computes a trial's output from the counters of its directions.

    Per direction, ``expected = max(sent, ceil((duration - tolerance) * load * share))``, where `share` is the
    direction's share of the load, ``unsent = expected - sent`` and ``lost = sent - received``. Only then the sums are
    taken: ``loss ratio = (|lost| + unsent) / expected``. So unsent frames count against the load, and one direction's
    surplus never hides another's loss.

    A slow generator may transmit for longer than the duration. Then it intended more frames than the load and the
    duration ask for, and all of them are expected, as the frames that it sent late were not sent at the load. Frames
    that the generator received and dropped itself did not come back: they are in ``lost``, and have a counter of their
    own. The same holds for frames that came back damaged. Copies of frames do not make up for lost ones: see
    `lossratio.trials.integrity.with_examination`.

    Args:
        trial: The trial's input.
        directions: The counters of each transmitting direction.
        tolerance: Seconds of traffic that may be missing without counting as unsent.
        negative_loss: The policy for a direction that received more than it sent.
        effective_duration: Seconds that count towards a goal's duration sum; None: the trial's duration.
        elapsed: Seconds that the trial took in all; None: the trial's duration.

    Returns:
        The output. The ``unsent`` of its directions follows the formula above.

    Raises:
        NegativeLossError: If the policy refuses the trial.
        CountersError: If no frames were expected, a count is negative, or the generator sent more than it should.
        ValueError: If the policy is unknown.
    """
    if negative_loss not in get_args(NegativeLoss):
        raise ValueError(f"negative_loss must be one of {', '.join(get_args(NegativeLoss))}, not {negative_loss!r}.")
    if not directions:
        raise CountersError(
            "The trial has counters of no direction, so it has no loss ratio. Transmit on one port or more."
        )
    counted = tuple(_checked(direction, _least_expected(trial, direction, tolerance)) for direction in directions)
    total = _Total.of(counted)
    surplus = any(direction.received > direction.sent for direction in counted)
    if surplus and (negative_loss == "retry" or total.loss_ratio > 1.0):
        raise NegativeLossError(
            f"More frames were received than sent at {trial.load:.10g} frames/s for {trial.duration:.6g} s "
            f"({_in_words(counted)}). Look for foreign or duplicated frames on these links."
        )
    return TrialOutput(
        loss_ratio=total.loss_ratio,
        effective_duration=effective_duration,
        elapsed=elapsed,
        sent_frames=total.sent,
        lost_frames=total.lost,
        unsent_frames=total.unsent,
        directions=counted,
    )


def contradictions(output: TrialOutput) -> Iterator[str]:
    """Checks the numbers of a trial's output against each other.

    Args:
        output: The output, as a file or a user's own measurer gave it.

    Returns:
        A description of each contradiction; none where the sums and the loss ratio follow from the counters.
    """
    given = {
        "sent_frames": output.sent_frames,
        "lost_frames": output.lost_frames,
        "unsent_frames": output.unsent_frames,
    }
    counts = {**given, "repeats": output.repeats}
    counts |= {
        f"{direction.name}.{name}": count for direction in output.directions for name, count in vars(direction).items()
    }
    for name, count in counts.items():
        if isinstance(count, int | float) and count < 0:
            yield f"{name} is negative: {count}"
    if output.directions:
        total = _Total.of(output.directions)
        for name, summed in zip(given, (total.sent, total.lost, total.unsent), strict=True):
            if given[name] not in (None, summed):
                yield f"{name} is {given[name]}, and the directions' counters make {summed}"
    elif output.sent_frames is not None and output.lost_frames is not None:
        total = _Total(output.sent_frames, output.lost_frames, output.unsent_frames or 0)
    else:
        return
    if total.expected > 0 and not math.isclose(output.loss_ratio, total.loss_ratio, rel_tol=1e-9, abs_tol=_ROUNDING):
        yield f"loss_ratio is {output.loss_ratio}, and the frames counted make {total.loss_ratio}"


@dataclass(frozen=True)
class _Total:
    """Frames of all directions of a trial."""

    sent: int
    lost: int
    unsent: int

    @classmethod
    def of(cls, directions: Sequence[DirectionCounters]) -> _Total:
        return cls(
            sent=sum(direction.sent for direction in directions),
            lost=sum(abs(direction.sent - direction.received) for direction in directions),
            unsent=sum(direction.unsent for direction in directions),
        )

    @property
    def expected(self) -> int:
        return self.sent + self.unsent

    @property
    def loss_ratio(self) -> float:
        return (self.lost + self.unsent) / self.expected


def _least_expected(trial: TrialInput, direction: DirectionCounters, tolerance: float) -> int:
    load = trial.load * direction.load_share
    # A generator that takes longer intends more frames. The last of them may be a fraction.
    duration = max(trial.duration, (direction.intended - 1) / load)
    # The product's rounding error must not make ceil() expect one frame more.
    return math.ceil(max(0.0, duration - tolerance) * load * (1.0 - 1e-12))


def _checked(direction: DirectionCounters, least_expected: int) -> DirectionCounters:
    negative = [f"{name} is {getattr(direction, name)}" for name in _COUNTED if (getattr(direction, name) or 0) < 0]
    if negative:
        raise CountersError(
            f"Counts of {direction.name} are negative: {', '.join(negative)}. "
            "The generator's counters cannot be trusted."
        )
    if direction.sent - direction.intended > max(_FEW_FRAMES, MOST_EXCESS * direction.intended):
        raise CountersError(
            f"The generator was to send {direction.intended} frames in direction {direction.name}, and sent "
            f"{direction.sent}: the load was higher than intended. Look for other traffic on this port."
        )
    expected = max(direction.sent, least_expected)
    if expected == 0:
        raise CountersError(
            f"No frames were expected in direction {direction.name}, so it has no loss ratio. "
            f"Make the trial longer or its load higher."
        )
    return replace(direction, unsent=expected - direction.sent)


def _in_words(directions: Sequence[DirectionCounters]) -> str:
    return "; ".join(f"{one.name}: sent {one.sent}, received {one.received}" for one in directions)

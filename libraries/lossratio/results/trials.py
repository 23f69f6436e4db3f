"""Trials in result files: input, output, and the controller's purpose."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from pydantic import Field

from lossratio.trials import (
    DirectionCounters,
    Incident,
    JournalContents,
    JournalEntry,
    MissingFrames,
    QueueCounters,
    TrialInput,
    TrialOutput,
    TrialResult,
    known_missing,
)
from lossratio.values import (
    FRAMES_PER_SECOND,
    FrameCount,
    Ratio,
    Record,
    Seconds,
    Unit,
    counted,
    format_ratio,
    left_out_if_empty,
    range_in_words,
    trials_counted,
)

FEW_FOREIGN = 10
"""Up to this many foreign frames, per second and in a trial, are usual: devices find each other with them (ARP,
LLDP)."""
FOREIGN_RATIO = 1e-3
"""Foreign frames, as a share of the received ones, that also cause no doubt."""
_RULE_WIDTH = 9


class Trial(Record):
    """One trial."""

    number: int = Field(ge=1)
    """The trial's place in the order of measurement."""
    purpose: str | None
    """Why the controller chose the trial; None: no reason was recorded."""
    rule: str | None = None
    """Name of the rule that chose the trial; None: the controller has no rules."""
    is_evidence: bool
    """Whether the trial counts; warm-ups and trials that were set aside do not."""
    set_aside: str | None = None
    """Why the generator is to blame for the loss, so that the trial is no evidence; None: it is not to blame."""
    duration_s: Seconds
    """Trial input: intended duration."""
    load_per_interface_fps: float = Field(gt=0.0)
    """Trial input: intended load of each transmitting interface."""
    rest_s: float = Field(default=0.0, ge=0.0)
    """Trial input: time without traffic before the trial, if the search requested it."""
    loss_ratio: Ratio
    """Trial loss ratio, including unsent frames. If ``decided_after_s`` is given, it is a lower limit."""
    decided_after_s: Seconds | None = None
    """Time of traffic after which an early verdict ended the trial; None: the trial took its whole duration."""
    effective_duration_s: Seconds
    """Effective duration: what the trial adds to a goal's duration sum."""
    elapsed_s: Seconds
    """Time of the whole trial, with preparations and waits."""
    forwarding_rate_per_interface_fps: float = Field(ge=0.0)
    """Trial forwarding rate; if ``decided_after_s`` is given, the rate of the frames sent until then."""
    sent_frames: FrameCount | None
    """Frames sent, over all directions; None: not counted."""
    lost_frames: FrameCount | None
    """Lost frames, summed per direction; None: not counted."""
    unsent_frames: FrameCount | None
    """Frames that the generator could not send, over all directions; None: not counted."""
    late_frames: FrameCount
    """Lost frames that came back after the wait for frames in flight: they count as lost, although the SUT did not lose
    them."""
    forgotten_s: Seconds | None = None
    """Time that the device then took to delete all connections with its own command; None: it did not have to."""
    repeats: int = Field(default=0, ge=0)
    """Earlier attempts at this trial that were thrown away as untrustworthy; ``elapsed_s`` includes their time."""
    repairs: tuple[str, ...] = ()
    """Repaired causes of failure of earlier attempts at this trial; they are no evidence about the SUT."""
    incidents: tuple[Incident, ...] = ()
    """Changes of the testbed around this trial and earlier attempts at it."""
    directions: tuple[DirectionCounters, ...]
    """The counters of each direction."""
    queues: tuple[QueueCounters, ...] = ()
    """The counters of the DUTs' receive queues. Left out: no frame was lost, or the devices do not count the frames
    that each queue drops."""

    _leave_out = left_out_if_empty("queues")

    @property
    def lateness_s(self) -> float:
        """The longest delay of a sender in seconds; 0: no sender reports a delay."""
        return max((direction.lateness_s or 0.0 for direction in self.directions), default=0.0)

    @property
    def missing(self) -> MissingFrames:
        """The trial's frames that did not come back, by cause; none if the trial counted no frames."""
        return known_missing(self)

    @property
    def is_all_lost(self) -> bool:
        """Whether the SUT lost every frame."""
        return bool(self.sent_frames) and self.missing.lost_by_sut == self.sent_frames

    def as_result(self) -> TrialResult:
        """Converts the trial for the search algorithms."""
        output = TrialOutput(**{name: getattr(self, field) for name, field in _OF_OUTPUT.items()})
        return TrialResult(
            TrialInput(self.duration_s, self.load_per_interface_fps, rest=self.rest_s), output
        )


_OF_OUTPUT = {
    name: field
    for name in (each.name for each in fields(TrialOutput))
    for field in (name, f"{name}_s", f"{name}_per_interface_fps")
    if field in Trial.model_fields
}
"""The fields of a trial's output, and the fields of `Trial` that hold them, with units in their names."""


def describe_trials(
    entries: Iterable[JournalEntry],
    *,
    warm_ups: int = 0,
    why_set_aside: Callable[[TrialResult], str | None] = lambda _: None,
) -> tuple[Trial, ...]:
    """Describes trials in their order for a result file; warm-ups and trials that are set aside are no evidence."""
    trials = []
    for number, entry in enumerate(entries, start=1):
        result = entry.result
        set_aside = why_set_aside(result)
        trial = Trial(
            number=number,
            is_evidence=number > warm_ups and set_aside is None,
            set_aside=set_aside,
            purpose=entry.purpose,
            rule=entry.rule,
            duration_s=result.duration,
            load_per_interface_fps=result.load,
            rest_s=result.input.rest,
            **_counted(result),
        )
        trials.append(trial)
    return tuple(trials)


def _counted(result: TrialResult) -> dict[str, Any]:
    """The fields of a trial that its output fills in, or its result with the RFC's defaults."""
    counted = {
        field: getattr(result if hasattr(result, name) else result.output, name)
        for name, field in _OF_OUTPUT.items()
    }
    return counted | {"late_frames": result.output.late_frames or 0}


def missing_in(trials: Iterable[Trial]) -> MissingFrames:
    """The frames that did not come back in the trials that count, by cause."""
    return sum((trial.missing for trial in trials if trial.is_evidence), MissingFrames())


NONE_LOST = "none lost"
"""The words for a load at which no trial lost a frame."""


def share_missing_in_words(share: float, here: Sequence[Trial]) -> str:
    """The share of missing frames at a load, e.g. ``0.46 % lost``.

    If not all of them may be called lost, the words say which. If none are missing in a typical trial, they say in how
    many trials the SUT lost none.

    Args:
        share: The share.
        here: The trials at the load that count.
    """
    if share <= 0.0:
        return f"{NONE_LOST}{in_trials_without_loss(here)}"
    apart = not_lost_in_words(here)
    if apart:
        return f"{_in_two_digits(share)} missing; {apart}"
    return f"{_in_two_digits(share)} lost"


def _in_two_digits(share: float) -> str:
    """A share in per cent with two digits, e.g. ``0.46 %``. Only the whole is ``100 %``."""
    if share < 0.995:
        return f"{100.0 * share:.2g} %"
    return "100 %" if share == 1.0 else "more than 99 %"


def in_trials_without_loss(trials: Iterable[Trial]) -> str:
    """The words after "no loss" if some trials at a load had loss, e.g. `` in 6 of 8 trials``; empty: none had."""
    return in_good_trials([not trial.missing.lost_by_sut for trial in trials if trial.is_evidence])


def in_good_trials(are_good: Sequence[bool]) -> str:
    """How many trials something is true of, e.g. `` in 6 of 8 trials``; empty: of all of them.

    Args:
        are_good: For each trial, whether it is true.
    """
    if all(are_good):
        return ""
    return f" in {sum(are_good)} of {trials_counted(len(are_good))}"


def in_trials_of(trials: Iterable[Trial]) -> str:
    """How long the trials that count were, for the end of a phrase: `` in trials of 1 s``; empty: there are none."""
    times = [trial.duration_s for trial in trials if trial.is_evidence]
    if not times:
        return ""
    trial = "a trial" if len(times) == 1 else "trials"
    return f" in {trial} of {range_in_words(f'{min(times):.4g}', f'{max(times):.4g}')} s"


def not_lost_in_words(trials: Iterable[Trial], *, of_sent: bool = False) -> str:
    """The missing frames that nobody may call lost, e.g. ``of 5 missing frames: 2 frames only late``; empty: none.

    The SUT did not lose frames that were unsent, late, or dropped by the generator. Frames that came back with a fault
    do not count as received, but are not lost either.

    Args:
        trials: The trials; those that are no evidence do not count.
        of_sent: Whether only the frames that were sent can be missing.
    """
    counting = [trial for trial in trials if trial.is_evidence]
    missing = missing_in(counting)
    if of_sent:
        missing = replace(missing, unsent=0, refused=0)
    apart = [part for part in (missing.not_lost, faulty_in_words(counting)) if part]
    if not apart:
        return ""
    return f"of {counted(missing.total, 'missing frame')}: {', '.join(apart)}"


def are_lost_in_words(trials: Iterable[Trial]) -> str:
    """The words after a share of the frames sent that did not come back: ``are lost``, unless this is not true of all.

    Args:
        trials: The trials in which they did not come back.
    """
    apart = not_lost_in_words(trials, of_sent=True)
    return f"are missing ({apart})" if apart else "are lost"


def faulty_in_words(trials: Iterable[Trial]) -> str:
    """The frames that came back with a fault, without copies; empty: there are none.

    Example: ``4 frames came back misdelivered``.
    """
    counts = {"corrupted": 0, "truncated or padded": 0, "misdelivered": 0}
    for way in (way for trial in trials for way in trial.directions):
        counts["corrupted"] += way.corrupted_frames
        counts["truncated or padded"] += way.wrong_length_frames
        counts["misdelivered"] += way.misdelivered_frames

    parts = [
        f"{counted(frames, 'frame')} came back {fault}"
        for fault, frames in counts.items()
        if frames
    ]
    return ", ".join(parts)


def withdrawn_in_words(journal: JournalContents) -> Iterator[str]:
    """How many trials of a journal are kept but not used, for each reason."""
    for reason, count in Counter(trial.reason for trial in journal.withdrawn).items():
        yield f"{trials_counted(count)} kept but not used: {reason}"


def foreign_frames_of(direction: DirectionCounters) -> int:
    """Frames that belong to no trial.

    If the generator counts its streams, these are frames that the port counted but no stream did. Otherwise, they are
    the frames that the generator distinguishes, if there are more than `FEW_FOREIGN` and `FOREIGN_RATIO`.
    """
    if not direction.streams:
        foreign = direction.foreign_frames or 0
        few = max(
            FEW_FOREIGN * max(1.0, direction.elapsed_s or 0.0),
            FOREIGN_RATIO * direction.received_frames,
        )
        return foreign if foreign > few else 0
    arrived = direction.received_frames + direction.faulty
    return max(0, arrived - sum(stream.received_frames for stream in direction.streams))


def format_loss(loss_ratio: float, decided_after: float | None) -> str:
    """A trial's loss ratio, e.g. ``0.3 %``, or ``at least 0.3 % (ended after 1.2 s)`` after an early verdict.

    Args:
        loss_ratio: The trial's loss ratio.
        decided_after: Seconds of traffic until an early verdict; None: there was none.
    """
    loss = format_ratio(loss_ratio)
    if decided_after is None:
        return loss
    return f"at least {loss} (ended after {decided_after:.3g} s)"


def trials_in_words(trials: Iterable[Trial], unit: Unit = FRAMES_PER_SECOND) -> str:
    """Formats a line for each trial: its end in seconds, its load per interface, its rule and its reason.

    Args:
        trials: The trials.
        unit: The unit of their loads.
    """
    lines = ["Why each trial was measured:"]
    passed = 0.0

    for trial in trials:
        passed += trial.elapsed_s
        reason = "  ".join(
            filter(None, (trial.rule and f"{trial.rule:<{_RULE_WIDTH}}", trial.purpose))
        )
        loss = format_loss(trial.loss_ratio, trial.decided_after_s)
        if trial.missing.not_lost:
            loss += f" ({trial.missing.not_lost})"
        lines.append(
            f"{trial.number:>4}  at {passed:>6.1f} s  {unit.format(trial.load_per_interface_fps):>11} "
            f"for {trial.duration_s:.4g} s  loss {loss:<9}  {reason}".rstrip()
        )
    return "\n".join(lines)

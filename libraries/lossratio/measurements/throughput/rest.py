"""What the trial after a rest shows: whether the SUT remembers a loss for longer than the rest between trials."""

from collections.abc import Iterable, Iterator, Sequence

from lossratio.results import Note, NoteKind, Weight, noted
from lossratio.trials import TrialResult, offered_load, sut_loss_ratio
from lossratio.units import format_frame_rate, format_ratio


def remarks_on_rest(
    evidence: Sequence[TrialResult], bounds: Iterable[tuple[float | None, float]]
) -> Iterator[Note]:
    """The remark on the trial after a rest, unless the trial passed: then there is a doubt.

    Args:
        evidence: The trials that count.
        bounds: For each goal, its upper bound in frames per second per interface (None: there is none) and loss ratio.
    """
    upper, allowed = _highest(bounds)
    for trial in _after_rest(evidence, upper):
        lost = sut_loss_ratio(trial)
        asked = f"at {format_frame_rate(trial.load)} per interface after a rest of {trial.input.rest:g} s"
        if lost > allowed:
            yield _how_measured(
                f"a trial of {trial.duration:g} s above the bounds, {asked}, lost {format_ratio(lost)}, as in the "
                "search, so it does not show that the SUT remembers a loss"
            )
        elif not _has_passed(trial, upper, allowed):
            yield _how_measured(
                f"it is not known whether the SUT remembers a loss: in the trial {asked}, the generator sent too little"
            )


def _how_measured(text: str) -> Note:
    """If such a trial matters, there is a doubt; otherwise, it only shows how the search went."""
    return noted(text, NoteKind.MEMORY, Weight.PROVENANCE)


def passed_after_rest(
    evidence: Sequence[TrialResult], bounds: Iterable[tuple[float | None, float]]
) -> tuple[TrialResult, float] | None:
    """The trial that passed above the bounds after a rest, with the highest upper bound; None: there is none."""
    upper, allowed = _highest(bounds)
    for trial in _after_rest(evidence, upper):
        if _has_passed(trial, upper, allowed):
            return trial, upper
    return None


def _highest(bounds: Iterable[tuple[float | None, float]]) -> tuple[float, float]:
    """The highest upper bound, and the loss ratio of its goal."""
    return max(((upper or 0.0, allowed) for upper, allowed in bounds), default=(0.0, 0.0))


def _after_rest(evidence: Sequence[TrialResult], upper: float) -> Iterator[TrialResult]:
    """The trials above an upper bound after a rest."""
    return (trial for trial in evidence if trial.input.rest and trial.load > upper > 0.0)


def _has_passed(trial: TrialResult, upper: float, allowed: float) -> bool:
    """Whether the SUT lost no more than allowed, of more than the upper bound."""
    return sut_loss_ratio(trial) <= allowed and offered_load(trial) > upper

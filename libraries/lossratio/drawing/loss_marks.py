"""How trials look in pictures: by colour for how much they lost, and by shape for whether they lost anything.

The colours are told apart by everybody (those of Okabe and Ito, and a scale of reds that only darkens).
"""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.results import Trial


@dataclass(frozen=True)
class Mark:
    """A kind of trial in a picture.

    Attributes:
        name: Short name, without spaces.
        label: What the legend says.
        shape: Its shape: ``circle``, ``triangle`` (on its tip), ``square`` or ``cross``.
        colour: Its colour.
        is_filled: Whether the shape is filled.
    """

    name: str
    label: str
    shape: str
    colour: str
    is_filled: bool = True


WARM_UP = Mark("warm-up", "warm-up, not counted", "cross", "#777777", is_filled=False)
SET_ASIDE = Mark("set-aside", "set aside, not counted", "cross", "#AA4499", is_filled=False)
LOSSLESS = Mark("lossless", "no loss", "circle", "#0072B2")
UNSENT = Mark("unsent", "only unsent frames", "square", "#444444", is_filled=False)
LOSSY = (
    (0.001, Mark("loss-1", "loss ≤ 0.1 %", "triangle", "#F2A93B")),
    (0.01, Mark("loss-2", "loss ≤ 1 %", "triangle", "#E2711D")),
    (0.1, Mark("loss-3", "loss ≤ 10 %", "triangle", "#B3261E")),
    (1.0, Mark("loss-4", "loss > 10 %", "triangle", "#5C0A14")),
)
"""Trials that lost frames: the largest loss ratio, and their mark."""

MARKS = (LOSSLESS, *(mark for _, mark in LOSSY), UNSENT, WARM_UP, SET_ASIDE)
"""All marks, in the order of the legend."""


def mark_of(trial: Trial) -> Mark:
    """The mark of a trial."""
    if not trial.is_evidence:
        return WARM_UP if trial.set_aside is None else SET_ASIDE
    if trial.loss_ratio == 0.0:
        return LOSSLESS
    if trial.lost_frames == 0 and trial.unsent_frames:
        return UNSENT
    return next(mark for largest, mark in LOSSY if trial.loss_ratio <= largest)

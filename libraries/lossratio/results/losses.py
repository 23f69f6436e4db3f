"""Statements about the places of lost frames: a pattern, its sentence, and the probability that it is chance."""

from typing import Literal, TypeAlias

from pydantic import Field

from lossratio.records import Ratio, Record

LEVEL = 1e-4
"""The probability of chance, over all patterns examined in a result, below which a pattern is reported."""
PatternKind: TypeAlias = Literal[
    "flows",
    "streams",
    "sizes",
    "sizes_of_flows",
    "direction",
    "every_nth",
    "beginning",
    "end",
    "first_frames_of_flows",
    "pauses",
]
"""What lost frames have in common."""


class LossPattern(Record):
    """A pattern in the places of lost frames."""

    kind: PatternKind
    """What the lost frames have in common."""
    direction: str | None
    """The direction; None: all directions."""
    sentence: str
    """The pattern in words."""
    explained_ratio: Ratio
    """The share of the lost frames that it explains, in the trials in which it was seen."""
    chance: Ratio
    """The probability of such a pattern by chance, if losses come in bursts that depend on nothing. It covers all
    patterns examined, so that no further correction is needed."""
    trials: int = Field(ge=1)
    """Number of trials with losses in which it was seen."""


class LossPlaces(Record):
    """Where the lost frames of a measurement are, as far as they were located."""

    located_frames: int = Field(ge=0)
    """Lost frames whose places are known."""
    trials: int = Field(ge=0)
    """Trials with such frames."""
    looked_at: int = Field(ge=0)
    """Number of patterns examined."""
    patterns: tuple[LossPattern, ...] = ()
    """The patterns found, beginning with the pattern that explains the most lost frames."""
    without_pattern: str | None = None
    """The sentence that there is no pattern; None: there is one, or too few frames to say so."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements, with the probability of chance."""
        if self.without_pattern is not None:
            return (self.without_pattern,)
        return tuple(
            f"{pattern.sentence} (chance: {_in_words(pattern.chance)})" for pattern in self.patterns
        )


def _in_words(chance: float) -> str:
    """A probability, with as many digits as matter."""
    if chance < 1e-9:
        return "below 1 in 1,000,000,000"
    return f"1 in {float(f'{1.0 / chance:.1g}'):,.0f}"

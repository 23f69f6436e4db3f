"""Statements about the places of lost frames: what they have in common, how much, and what would have been seen."""

from typing import Literal, TypeAlias

from pydantic import Field

from lossratio.values import Ratio, Record, format_frame_rate, format_ratio, range_in_words

LEVEL = 1e-3
"""The probability of chance, over all questions asked of a result, below which a pattern is reported."""
PatternKind: TypeAlias = Literal[
    "flows",
    "streams",
    "sizes",
    "sizes_of_flows",
    "direction",
    "every_nth",
    "beginning",
    "end",
    "pauses",
]
"""What lost frames have in common; ``sizes_of_flows`` is only in results of earlier versions."""


class LossPattern(Record):
    """A pattern in the places of lost frames."""

    kind: PatternKind
    """What the lost frames have in common."""
    direction: str | None
    """The direction; None: all directions."""
    sentence: str
    """The pattern in words."""
    explained_ratio: Ratio
    """The share of the lost frames that it explains, in the trials that were examined."""
    chance: Ratio
    """An upper limit of the probability of such a pattern by chance, if losses come in bursts that depend on nothing.
    It covers all questions asked, so that no further correction is needed."""
    trials: int = Field(ge=1)
    """Number of trials with losses in which it was seen."""
    loss_ratio: Ratio | None = None
    """The share lost of the frames that it names. None: it names no part of the frames, or the result is of an earlier
    version; the same is true of the next fields."""
    others_loss_ratio: Ratio | None = None
    """The share lost of all other frames."""
    least_difference: float | None = None
    """The lower end of the interval of 95 % for the difference between these shares, as a ratio."""
    most_difference: float | None = None
    """The upper end, as a ratio."""
    least_offered_per_interface_fps: float | None = None
    """The smallest load that was offered in the trials with losses that were examined for it."""
    most_offered_per_interface_fps: float | None = None
    """The largest load, likewise."""

    @property
    def loads_in_words(self) -> str:
        """The loads of its trials, before the chance; empty: they are not known."""
        ends = (self.least_offered_per_interface_fps, self.most_offered_per_interface_fps)
        loads = [format_frame_rate(end) for end in ends if end is not None]
        return f"at {range_in_words(loads[0], loads[-1])}; " if loads else ""


class Examined(Record):
    """A question whose answer is that nothing was found."""

    name: str
    """What losses do not seem to depend on, in a word: ``flow``."""
    difference: Ratio
    """If half of the frames (of the flows, sizes, moments ...) had lost this much more of their frames than the other
    half, it would have been seen."""


class LossPlaces(Record):
    """Where the lost frames of a measurement are, as far as they were located."""

    located_frames: int = Field(ge=0)
    """Lost frames whose places are known, in the trials that were examined."""
    trials: int = Field(ge=0)
    """Trials with such frames: those at the loads that decide."""
    looked_at: int = Field(ge=0)
    """Number of questions asked."""
    patterns: tuple[LossPattern, ...] = ()
    """The patterns found, beginning with the pattern that explains the most lost frames."""
    nothing_in: tuple[Examined, ...] = ()
    """What losses do not seem to depend on. A question that these trials could not have answered is not among them."""
    without_pattern: str | None = None
    """In results of earlier versions: the sentence that there is no pattern."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements, with the probability of chance."""
        if self.patterns:
            return tuple(
                f"{pattern.sentence} ({pattern.loads_in_words}chance: {_in_words(pattern.chance)})"
                for pattern in self.patterns
            )
        if not self.nothing_in:
            return () if self.without_pattern is None else (self.without_pattern,)
        names = ", ".join(one.name for one in self.nothing_in)
        most = max(one.difference for one in self.nothing_in)
        return (
            f"No pattern in {names} among {self.located_frames:,} lost frames; a difference of "
            f"{format_ratio(most)} would have been seen",
        )


def _in_words(chance: float) -> str:
    """A probability, with as many digits as matter."""
    if chance < 1e-9:
        return "below 1 in 1,000,000,000"
    return f"1 in {float(f'{1.0 / chance:.1g}'):,.0f}"

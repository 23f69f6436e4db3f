"""Search goals, which define the throughput that a search finds. They are checked when they are made."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.trials import TrialResult
from lossratio.values import (
    LONGEST_DURATION,
    LONGEST_TRIAL,
    checked,
    format_exact_duration,
    shown_value,
)

DEFAULT_INITIAL_TRIAL_DURATION = 1.0
"""Seconds; the initial trial duration of a goal that does not set it (or the final trial duration, if that is
shorter)."""

SMALLEST_WIDTH = 1e-9
"""A smaller relative width would be lost in the rounding of loads."""


class SearchGoalWarning(UserWarning):
    """A search goal is allowed, but RFC 9971 advises against it."""


@checked(SearchError)
@dataclass(frozen=True)
class SearchGoal:
    """The definition of the throughput that a search finds (RFC 9971, search goal).

    Raises:
        SearchError: If a value is out of range.

    Warns:
        SearchGoalWarning: If the duration sum is below the final trial duration, or the width below the loss ratio.
    """

    loss_ratio: float
    """Goal loss ratio: a trial that loses more is a high-loss trial. At least 0, below 1."""
    exceed_ratio: float
    """Goal exceed ratio: the share of trial seconds that may be high-loss. At least 0, below 1."""
    final_trial_duration: float
    """Seconds; trials of at least this duration are full-length."""
    duration_sum: float
    """Seconds; full-length trials that add up to this always classify a load."""
    width: float
    """How far apart the relevant bounds may be, relative to the upper one. Above 0, below 1."""
    initial_trial_duration: float | None = None
    """Seconds; no trial for this goal is shorter. None: 1 s, or the final trial duration if that is shorter; the
    attribute then has that value."""
    name: str | None = None
    """What reports call the goal. It distinguishes goals that are otherwise equal."""
    stream: str | None = None
    """The stream of the traffic profile, or the direction (``port0>port1``), whose loss counts for the goal; None: the
    loss of all frames."""

    def __post_init__(self) -> None:
        self._check_name()
        for name in ("loss_ratio", "exceed_ratio"):
            self._check(name, 0.0 <= getattr(self, name) < 1.0, "at least 0 and below 1")
        for name, longest in (
            ("final_trial_duration", LONGEST_TRIAL),
            ("duration_sum", LONGEST_DURATION),
        ):
            self._check(
                name,
                0.0 < getattr(self, name) <= longest,
                f"a positive number of seconds, at most {longest:,.0f} ({format_exact_duration(longest)})",
            )
        self._check(
            "width",
            SMALLEST_WIDTH <= self.width < 1.0,
            "above 0 and below 1, as a share of the upper bound",
        )
        if self.initial_trial_duration is None:
            initial = min(DEFAULT_INITIAL_TRIAL_DURATION, self.final_trial_duration)
            object.__setattr__(self, "initial_trial_duration", initial)

        self._check(
            "initial_trial_duration",
            0.0 < self.first_duration <= self.final_trial_duration,
            f"a positive number of seconds, at most the final trial duration ({self.final_trial_duration:g} s)",
        )
        if self.duration_sum < self.final_trial_duration:
            self._warn(
                f"the duration sum ({self.duration_sum:g} s) is below the final trial duration "
                f"({self.final_trial_duration:g} s), so a single trial takes longer than the goal's duration sum."
            )

        if self.width < self.loss_ratio:
            self._warn(
                f"the width ({self.width:g}) is below the loss ratio ({self.loss_ratio:g}), so a goal that allows "
                "more loss may get a smaller conditional throughput."
            )

    @property
    def first_duration(self) -> float:
        """The initial trial duration, in seconds."""
        assert self.initial_trial_duration is not None  # noqa: S101 (filled in when the goal was made)
        return self.initial_trial_duration

    def seen(self, result: TrialResult) -> TrialResult:
        """A trial as it counts for the goal, with the loss of the goal's stream.

        Raises:
            SearchError: If the loss of the stream is not known.
        """
        if self.stream is None:
            return result
        return result.of_stream(self.stream)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        of_stream = "" if self.stream is None else f" of {self.stream}"
        return f"loss{of_stream} {self.loss_ratio * 100:.4g} %"

    def _check_name(self) -> None:
        """Makes sure that the name is one that reports can show."""
        name = self.name
        if name is not None and not (name.strip() and name.isprintable()):
            raise SearchError(
                f"The name of a search goal must be a text such as 'strict', not {shown_value(name)}."
            )

    def _check(self, name: str, good: bool, rule: str) -> None:
        if not good:
            raise SearchError(
                f"Search goal {self}: {name} must be {rule}, not {getattr(self, name)!r}."
            )

    def _warn(self, text: str) -> None:
        # The code that made the goal is above this method, __post_init__, the generated __init__, and its check.
        warnings.warn(f"Search goal {self}: {text}", SearchGoalWarning, stacklevel=5)


NDR = SearchGoal(0.0, 0.5, 1.0, 21.0, 0.005, 1.0, name="NDR")
"""CSIT's non-drop rate."""

PDR = SearchGoal(0.005, 0.5, 1.0, 21.0, 0.005, 1.0, name="PDR")
"""CSIT's partial drop rate."""

RFC2544 = SearchGoal(0.0, 0.0, 60.0, 60.0, 0.005, 1.0, name="RFC2544")
"""Throughput unconditionally compliant with RFC 2544."""

TST009 = SearchGoal(0.0, 0.5, 60.0, 120.0, 0.005, 1.0, name="TST009")
"""ETSI GS NFV-TST 009's binary search with loss verification, max(r) = 2, z = infinity."""


def checked_goals(goals: Iterable[SearchGoal], min_load: float) -> tuple[SearchGoal, ...]:
    """The goals of one search: each once, in the order given.

    Args:
        goals: The goals; equal ones (names included) are one goal.
        min_load: Smallest load of the search, frames per second per interface.

    Raises:
        SearchError: If there are no goals.

    Warns:
        SearchGoalWarning: If final trial durations differ, or the shortest trial at min load sends less than a frame.
    """
    unique = tuple(dict.fromkeys(goals))
    if not unique:
        raise SearchError("A search needs at least one search goal.")

    if len({goal.final_trial_duration for goal in unique}) > 1:
        warnings.warn(
            "The search goals have different final trial durations: long trials for one goal can lower the bounds of "
            "another, so results compare less well (RFC 9971).",
            SearchGoalWarning,
            stacklevel=4,
        )

    shortest = min(goal.first_duration for goal in unique)
    if min_load * shortest < 1.0:
        warnings.warn(
            f"A trial of {shortest:g} s at the minimum load ({min_load:g} frames/s) sends less than one frame. Use a "
            "higher minimum load or longer trials.",
            SearchGoalWarning,
            stacklevel=4,
        )

    return unique

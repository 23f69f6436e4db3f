"""The average and the spread of repeated times, for results, reports and consoles."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from lossratio.results import TestResult, View, value_line
from lossratio.values import Record, Seconds, Unit, format_precise_time

ResultT = TypeVar("ResultT", bound=TestResult)
SECONDS = Unit("s", lower_is_better=True)
"""The unit of times; a shorter time is better."""


def time_in_words(seconds: float, finest: float) -> str:
    """A time, e.g. ``12.345 ms``; or ``below 0.19 ms`` if nothing shorter can be seen.

    Args:
        seconds: The time.
        finest: Seconds below which nothing can be seen.
    """
    if seconds < finest:
        return f"below {format_precise_time(finest)}"
    return format_precise_time(seconds)


def resolution_lines(spacing: float, error: float | None) -> Iterator[str]:
    """The line of the console with the resolution of times that are seen by lost frames; nothing without a trial.

    Args:
        spacing: Seconds between two frames, which is the finest resolution.
        error: Seconds by which the time of a frame may be wrong; None: there was no trial.
    """
    if error is None:
        return
    resolution = f"{format_precise_time(spacing)}, the time between two frames"
    if error:
        resolution += f"; each frame's time is correct to within {format_precise_time(error)}"
    yield value_line("resolution", resolution)


class Spread(Record):
    """The average of all repetitions and their spread; all values are null if a repetition has no time."""

    average_s: Seconds | None
    """The benchmark: mean of the times of all repetitions."""
    least_s: Seconds | None
    """The shortest time."""
    most_s: Seconds | None
    """The longest time."""
    stdev_s: Seconds | None
    """Standard deviation (divided by N - 1; 0 if there is only one repetition)."""

    if TYPE_CHECKING:
        # Each kind declares its repetitions itself: those with a time, and those without one.
        times: tuple[Any, ...]

    @property
    def deviation_s(self) -> float | None:
        """The standard deviation to show; None: there are no values, or a single repetition has none."""
        return None if len(self.times) == 1 else self.stdev_s

    @staticmethod
    def of(times: Sequence[float | None]) -> dict[str, Any]:
        """The fields for the times of all repetitions.

        Args:
            times: Seconds of each repetition; None: it has no time.
        """
        known = [time for time in times if time is not None]
        if len(known) < len(times):
            return dict.fromkeys(Spread.model_fields)
        return {
            "average_s": statistics.fmean(known),
            "least_s": min(known),
            "most_s": max(known),
            "stdev_s": statistics.stdev(known) if len(known) > 1 else 0.0,
        }

    def in_words(self, finest: float = 0.0) -> str:
        """Minimum, maximum and standard deviation; empty: there are no values, or there is only one repetition.

        Args:
            finest: Seconds below which nothing can be seen.
        """
        if self.deviation_s is None:
            return ""
        ends = [
            time_in_words(end, finest) for end in (self.least_s, self.most_s) if end is not None
        ]
        return ", ".join([*ends, format_precise_time(self.deviation_s)])

    def values(self, limit: float) -> dict[str, float | None]:
        """The average as the value of a finding. Without an average, the time limit of a repetition is the lower bound.

        Args:
            limit: Seconds in which each repetition was watched.
        """
        if self.average_s is None:
            return {"lower_bound": limit}
        return {"value": self.average_s, "deviation": self.deviation_s}

    def lines(self, label: str, none: str = "0 ms", finest: float = 0.0) -> Iterator[str]:
        """The lines of the console: the average with its label, and the spread.

        Args:
            label: The name of the average.
            none: The words to use if all times are 0.
            finest: Seconds below which nothing can be seen.
        """
        if self.average_s is not None:
            yield value_line(label, time_in_words(self.average_s, finest) if self.most_s else none)
        spread = self.in_words(finest)
        if spread:
            yield value_line("min, max, stddev", spread)


class TimesView(View[ResultT]):
    """How a result is shown whose numbers are a `Spread`."""

    has_value = True
    measured_in = SECONDS

    def values(self, result: ResultT) -> Mapping[str, Any]:
        """The average; only a lower bound if a repetition has no time."""
        spread: Spread | None = getattr(result, str(result.found))
        if spread is None:
            return {}
        settings: Any = getattr(result, "settings", None)
        return spread.values(settings.limit_s)

"""Two bands: from run to run, a SUT is in one of two states, e.g. because its workers share the traffic differently.

Steps explain such a series badly: each flip would be a step. There are two bands if the newest values, or the values
between two steps, are around two levels that are clearly apart, and flip between them. The border between both levels
leaves the smallest sum of squares within them (Otsu). Each value is then explained by the level of the lower band, or
by that of the upper band, which is the same distance above it everywhere. A real step moves both, and has a price, so
that noise is no step: the cheapest explanation of all values is found as in Viterbi's algorithm.

Two values that are one or two widths of the search's goal apart are not two states: on the goal's grid, noise alone can
produce either value. So bands are farther apart than that. If the width is not known, it is derived from the values.

A series with bands is then judged by its lower band: values of the upper band are divided by the ratio of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from lossratio.history.steps import Values
from lossratio.units import Unit, format_change, results_counted

WINDOW = 80
"""Number of the newest values in which bands are looked for."""
LEAST_VALUES = 10
"""Fewer values show no bands."""
LEAST_SWITCHES = 5
"""Fewer switches from band to band are steps: a change and its repair, twice."""
LEAST_SHARE, LEAST_IN_BAND = 0.2, 3
"""Minimum share of the values in the smaller band, and their minimum number. Fewer values are bad nights."""
LEAST_RATIO = 1.01
"""Minimum ratio of the two bands."""
LEAST_DISTANCE = 4.0
"""Minimum distance between the two bands, in standard deviations of the noise."""
LEAST_WIDTHS = 2.5
"""Minimum distance between the two bands, in widths of the search's goal. On a grid, noise of one width alone makes
values that are two steps apart."""
_WIDEST_GRID = 0.055
"""The widest goal that is derived from values; values that are farther apart are two states."""
ENDED = 15
"""After this many values around one level, a series no longer has bands."""
_UNLIKELY = np.log(30.0)
"""Bands have only ended if so many values without a flip were this unlikely before, in nats."""
_NOISE = 0.003
"""Relative standard deviation of the noise before any value is known. It counts as one value."""
_REAL_STEP = np.log(300.0)
"""Price of a real step, in nats: so rare that there are no more false alarms than without bands."""
_SMALLEST = 1e-3
"""The smallest share of the largest value. Smaller values count as this share, because zero has no logarithm."""


@dataclass(frozen=True)
class Bands:
    """The two bands of a series."""

    low: float
    """Level of the lower band now."""
    high: float
    """Level of the upper band now."""
    in_upper: npt.NDArray[np.bool_]
    """For each value, whether it is in the upper band."""
    looked_at: int
    """How many of the newest values were searched for bands."""
    starts: tuple[int, ...]
    """Indices of the first values of the steps, which are the values between two real changes."""

    @property
    def ratio(self) -> float:
        """Upper band divided by lower band."""
        return self.high / self.low

    @property
    def now(self) -> npt.NDArray[np.bool_]:
        """For each value since the newest real change, to which both levels apply: whether it is in the upper band."""
        return self.in_upper[max(self.starts[-1], len(self.in_upper) - self.looked_at) :]

    @property
    def in_upper_count(self) -> int:
        """Number of values in the upper band since the newest real change."""
        return int(np.count_nonzero(self.now))

    @property
    def in_lower_count(self) -> int:
        """Number of values in the lower band since the newest real change."""
        return len(self.now) - self.in_upper_count

    @property
    def switches(self) -> int:
        """How often the examined values flip from one band to the other."""
        return int(np.count_nonzero(np.diff(self.in_upper[-self.looked_at :])))

    def lowered(self, values: Values) -> Values:
        """The values as they would be in the lower band."""
        return np.where(self.in_upper, values / self.ratio, values)

    def describe(self, unit: Unit) -> str:
        """The bands in a few words."""
        if len(self.now) == self.looked_at:
            since = ""
        else:
            since = " since the newest change of both"

        all_switches = f" in all {self.looked_at} results" if since else ""
        low = unit.format(self.low)
        high = unit.format(self.high)
        step = format_change(self.ratio - 1.0)
        lower, upper = map(results_counted, (self.in_lower_count, self.in_upper_count))
        both = f"{low} in {lower} and {high} ({step}) in {self.in_upper_count}{since}"
        if not self.in_upper_count:
            both = f"{low} in {lower}{since}, and none in the upper band ({step})"
        if not self.in_lower_count:
            both = f"{high} in {upper}{since}, and none in the lower band ({step} from there)"

        return f"two bands: {both}, {self.switches} switches{all_switches}"


def bands_in(
    values: Values, starts: Sequence[int], resolution: float | None = None
) -> Bands | None:
    """The bands of a series of finite values, none of them negative; None: its steps explain it better.

    `starts` has the indices of the first values of its steps. Only the newest `WINDOW` values are examined. Earlier
    values stay as they are, with their steps. The resolution is the width of the search's goal, relative to the upper
    bound; None: it is not known.
    """
    first = max(0, len(values) - WINDOW)
    newest = values[first:]
    if (
        len(newest) < LEAST_VALUES
        or newest.max() < LEAST_RATIO * newest.min()
        or newest.max() <= 0.0
    ):
        return None

    logs = np.log(np.maximum(newest, _SMALLEST * newest.max()))
    width = _grid_in(logs) if resolution is None else -float(np.log1p(-resolution))
    least = max(np.log(LEAST_RATIO), LEAST_WIDTHS * width)
    ends = sorted({0, len(logs), *(start - first for start in starts if start > first)})
    found = _two_levels(logs, ends, least)
    if found is None:
        return None

    low_level, distance, noise = found
    levels = _levels(logs, low_level, distance, noise)
    off = logs - levels
    in_upper = off > 0.5 * distance
    regimes = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist()]
    if not _are_apart(off, in_upper, len(regimes), least):
        return None

    lowered = logs - distance * in_upper
    regimes = _merged(lowered, regimes, width)
    low = float(np.exp(lowered[regimes[-1] :].mean()))
    before = [start for start in starts if start < first]
    within = [first + start for start in regimes]

    return Bands(
        low=low,
        high=low * float(np.exp(distance)),
        in_upper=np.concatenate([np.zeros(first, dtype=bool), in_upper]),
        looked_at=len(logs),
        starts=(*before, *within),
    )


def _two_levels(
    logs: Values, ends: Sequence[int], least: float
) -> tuple[float, float, float] | None:
    """The lower level, its distance to the upper one, and the noise; None: values do not flip between two levels.

    Args:
        logs: The logarithms of the values.
        ends: Where a range of values may begin or end: the largest range that has two levels counts.
        least: The least distance of the levels.
    """
    for begin, end in sorted(combinations(ends, 2), key=_size_and_end, reverse=True):
        if end - begin < LEAST_VALUES - 2 or len(logs) - end >= ENDED:
            continue
        part = logs[begin:end]
        is_high = part > _best_border(part)
        switches = np.flatnonzero(np.diff(is_high))
        in_band = min(np.count_nonzero(is_high), np.count_nonzero(~is_high))
        if (
            len(switches) < LEAST_SWITCHES
            or in_band < max(LEAST_IN_BAND, LEAST_SHARE * len(part))
            or _have_ended(switches, len(part))
        ):
            continue

        low = float(part[~is_high].mean())
        distance = float(part[is_high].mean()) - low
        inside = part - low - distance * is_high
        noise = float(np.sqrt((inside @ inside + _NOISE**2) / (len(part) + 1)))
        if distance >= max(least, LEAST_DISTANCE * noise):
            return low, distance, noise
    return None


def _size_and_end(ends: tuple[int, int]) -> tuple[int, int]:
    """The order of ranges: by their size, and by their end."""
    begin, end = ends
    return end - begin, end


def _are_apart(off: Values, in_upper: npt.NDArray[np.bool_], regimes: int, least: float) -> bool:
    """Whether the bands are as far apart in all values as in those that flip.

    Args:
        off: The distance of each value from the level of the lower band.
        in_upper: For each value, whether it is in the upper band.
        regimes: Number of levels, which were estimated from the values, like the distance of the bands.
        least: The least distance of the bands.
    """
    distance = off[in_upper].mean() - off[~in_upper].mean()
    inside = off - distance * in_upper
    noise = np.sqrt(inside @ inside / max(1, len(off) - regimes - 1))
    return bool(distance >= max(least, LEAST_DISTANCE * noise))


def _have_ended(switches: npt.NDArray[np.int_], count: int) -> bool:
    """Whether some values stay in one band for so long that flips were usual only before or after."""
    longest = int(np.diff([-1, *switches, count - 1]).max())
    stays = np.log1p(-len(switches) / count)
    return longest >= ENDED and -longest * stays > _UNLIKELY


def _levels(logs: Values, low: float, distance: float, noise: float) -> Values:
    """The level of the lower band at each value: the cheapest explanation, where a change of the level has a price."""
    levels = np.unique(np.concatenate([logs, logs - distance]))
    off = logs[:, None] - levels[None, :]
    costs = np.minimum(off**2, (off - distance) ** 2) / (2.0 * noise**2)
    costs += 1e-3 * np.abs(levels - low) / noise
    # Values that may be of either band are of the band whose lower level is nearer.
    totals = np.zeros(len(levels))
    came_from = []
    for cost in costs:
        cheapest = int(np.argmin(totals))
        is_step = totals > totals[cheapest] + _REAL_STEP
        came_from.append(np.where(is_step, cheapest, np.arange(len(levels))))
        totals = np.minimum(totals, totals[cheapest] + _REAL_STEP) + cost

    chosen = int(np.argmin(totals))
    found = np.empty(len(logs))
    for index in range(len(logs) - 1, -1, -1):
        found[index] = levels[chosen]
        chosen = int(came_from[index][chosen])
    return found


def _merged(lowered: Values, regimes: Sequence[int], width: float) -> list[int]:
    """Where regimes begin that are more than one width of the goal apart; smaller changes are not real."""
    kept = [regimes[0]]
    for begin, end in pairwise([*regimes[1:], len(lowered)]):
        if abs(lowered[begin:end].mean() - lowered[kept[-1] : begin].mean()) > width * (1.0 + 1e-6):
            kept.append(begin)
    return kept


def _grid_in(logs: Values) -> float:
    """The step of the grid of the values, as far as they show it; 0: they are on no grid, or on a wider grid."""
    different = np.unique(np.round(logs, 9))
    if len(different) < 2 or len(different) == len(logs):
        return 0.0
    step = float(np.diff(different).min())
    if step <= _WIDEST_GRID:
        return step
    return 0.0


def _best_border(logs: Values) -> float:
    """The border that divides values best into low and high ones: by the smallest sum of squares within both (Otsu)."""
    ordered = np.sort(logs)
    count = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    low = sums[:-1] / count
    high = (sums[-1] - sums[:-1]) / (len(ordered) - count)
    best = int(np.argmax(count * low**2 + (len(ordered) - count) * high**2))
    return float(0.5 * (ordered[best] + ordered[best + 1]))

"""Two bands: from run to run, a SUT is in one of two states, e.g. because its workers share the traffic differently.

Steps explain such a series badly: each flip would be a step. So a border divides the newest values into low and high
ones. They are two bands if both are used, the values often flip between them, and they are far apart, compared with the
noise and with the widths of the search's goal: on the goal's grid, noise alone produces values that are one or two
widths apart. If the width is not known, it is derived from the values. Medians and a quantile describe the bands, so
that a few bad nights or a real step change neither their distance nor the noise.

A series with bands is then judged by its lower band: values of the upper band are divided by the ratio of both. A
regime is a sequence of values around one level, or around two levels at this distance, so a real step moves both bands.
The best division into regimes is found as in Jackson et al., An algorithm for optimal partitioning of data on an
interval (IEEE Signal Processing Letters 12, 2005).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from lossratio.history.steps import Values
from lossratio.units import Unit, format_change, results_counted

WINDOWS = (80, 40, 20, 10)
"""Numbers of the newest values in which bands are looked for. A shorter window has fewer steps."""
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
MISSED = 7.0
"""After this many flips that were expected and did not happen, a series no longer has bands."""
_LEAST_NOISE = 0.0005
"""The smallest noise, as a share of the value: exact values, such as a policer's, have none."""
_REAL_STEP = 10.0
"""Price of a new regime, in nats. It lets noise alone begin one in few of all series."""
_BORDERS = 12
"""Number of the widest gaps between values that are tried as the border between bands."""
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


@dataclass(frozen=True)
class _Split:
    """A division of values into low and high ones; values are logarithms."""

    distance: float
    """Distance between the medians of both."""
    noise: float
    """Standard deviation of the noise around both medians."""
    deviation: float
    """Sum of the distances from the medians."""


def bands_in(
    values: Values, starts: Sequence[int], resolution: float | None = None
) -> Bands | None:
    """The bands of a series of finite values, none of them negative; None: it has no bands.

    `starts` has the indices of the first values of its steps. Only the newest values are examined. Earlier values stay
    as they are, with their steps. The resolution is the width of the search's goal, relative to the upper bound; None:
    it is not known.
    """
    first = max(0, len(values) - max(WINDOWS))
    newest = values[first:]
    if len(newest) < min(WINDOWS) or newest.max() <= 0.0:
        return None

    logs = np.log(np.maximum(newest, _SMALLEST * newest.max()))
    width = _grid_in(logs) if resolution is None else -float(np.log1p(-resolution))
    least = max(np.log(LEAST_RATIO), LEAST_WIDTHS * width)
    splits = (_best_split(logs[-window:], least) for window in WINDOWS)
    split = next((found for found in splits if found is not None), None)
    if split is None:
        return None

    regimes, in_upper = _regimes(logs, split)
    if _have_ended(in_upper):
        return None

    lowered = logs - split.distance * in_upper
    regimes = _merged(lowered, regimes, width)
    low = float(np.exp(lowered[regimes[-1] :].mean()))
    before = [start for start in starts if start < first]
    within = [first + start for start in regimes]

    return Bands(
        low=low,
        high=low * float(np.exp(split.distance)),
        in_upper=np.concatenate([np.zeros(first, dtype=bool), in_upper]),
        looked_at=len(logs),
        starts=(*before, *within),
    )


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


def _borders(logs: Values) -> Values:
    """Borders to try between low and high values: the widest gaps."""
    ordered = np.sort(logs)
    widest = np.argsort(np.diff(ordered))[-_BORDERS:]
    return np.asarray(0.5 * (ordered[widest] + ordered[widest + 1]))


def _best_split(logs: Values, least: float) -> _Split | None:
    """The best division into two bands that are at least this far apart; None: there are no bands."""
    splits = (_split_at(border, logs, least) for border in _borders(logs))
    return min(filter(None, splits), key=attrgetter("deviation"), default=None)


def _split_at(border: float, logs: Values, least: float) -> _Split | None:
    """The division at a border; None: it makes no bands."""
    upper = logs > border
    fewer = min(np.count_nonzero(upper), np.count_nonzero(~upper))
    if fewer < max(LEAST_SHARE * len(logs), LEAST_IN_BAND):
        return None
    if np.count_nonzero(np.diff(upper)) < LEAST_SWITCHES:
        return None

    low = np.median(logs[~upper])
    high = np.median(logs[upper])
    away = np.abs(logs - np.where(upper, high, low))
    # Of normal values, 80 % are within 1.28 standard deviations.
    noise = max(float(np.quantile(away, 0.8)) / 1.28, _LEAST_NOISE)
    if high - low < max(least, LEAST_DISTANCE * noise):
        return None
    return _Split(float(high - low), noise, float(away.sum()))


def _regimes(logs: Values, split: _Split) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """Where the regimes of values in one of two bands begin, and whether each value is in the upper band."""
    size = len(logs)
    begin, end = np.triu_indices(size + 1, 1)
    # Below the lowest border, there is no value: one level explains the segment without bands.
    borders = np.concatenate([[logs.min() - 1.0], _borders(logs)])
    lowered = logs - split.distance * (logs > borders[:, None])
    sums = np.cumsum(np.pad(lowered, ((0, 0), (1, 0))), axis=1)
    squares = np.cumsum(np.pad(lowered**2, ((0, 0), (1, 0))), axis=1)
    total = sums[:, end] - sums[:, begin]
    inside = squares[:, end] - squares[:, begin] - total**2 / (end - begin)
    evidence = np.full((size + 1, size + 1), -np.inf)
    evidence[begin, end] = -0.5 * inside.min(axis=0) / split.noise**2
    chosen = np.zeros((size + 1, size + 1), dtype=int)
    chosen[begin, end] = inside.argmin(axis=0)

    regimes = _best_regimes(evidence)
    in_upper = np.zeros(size, dtype=bool)
    levels: list[float] = []
    for first, last in regimes:
        upper = logs[first:last] > borders[chosen[first, last]]
        level = float((logs[first:last] - split.distance * upper).mean())
        if levels and (upper.all() or not upper.any()):
            # A single level may be either band: it is the band that is closer to an earlier level.
            mean = float(logs[first:last].mean())
            level = min(
                (mean, mean - split.distance),
                key=lambda one: min(abs(one - earlier) for earlier in levels),
            )
            upper = np.full(last - first, level < mean)

        in_upper[first:last] = upper
        levels.append(level)

    return [first for first, _ in regimes], in_upper


def _have_ended(in_upper: npt.NDArray[np.bool_]) -> bool:
    """Whether the newest values stay in one band for much longer than before."""
    switches = np.flatnonzero(np.diff(in_upper)) + 1
    if not len(switches):
        return True
    return bool((len(in_upper) - switches[-1]) * len(switches) / switches[-1] >= MISSED)


def _best_regimes(evidence: Values) -> list[tuple[int, int]]:
    """The most probable division into regimes, from the evidence of each segment in nats, by its begin and end."""
    size = len(evidence) - 1
    best = np.zeros(size + 1)
    begins = np.zeros(size + 1, dtype=int)
    best[0] = _REAL_STEP
    for end in range(1, size + 1):
        totals = best[:end] + evidence[:end, end] - _REAL_STEP
        begins[end] = int(np.argmax(totals))
        best[end] = totals[begins[end]]
    regimes = []
    end = size
    while end > 0:
        regimes.append((int(begins[end]), end))
        end = int(begins[end])
    return regimes[::-1]

"""Two bands: from run to run, a SUT is in one of two states, e.g. because its workers share the traffic differently.

Steps explain such a series badly: each flip would be a step. So a series is described in two ways, and the more
probable description counts. A regime is a sequence of values around one level, or around two levels between which the
values flip. With a flat prior of each level and a scaled inverse chi-squared prior of the noise, levels and noise are
integrated out in closed form (Gelman et al., Bayesian Data Analysis, sections 2.6 and 3.2). The chain of states is also
integrated out: its two probabilities of a flip have uniform priors. The best division into regimes is found as in
Jackson et al., An algorithm for optimal partitioning of data on an interval (IEEE Signal Processing Letters 12, 2005).

Two values that are one or two widths of the search's goal apart are not two states: on the goal's grid, noise alone can
produce either value. So bands are farther apart than that. If the width is not known, it is derived from the values.

A series with bands is then judged by its lower band: values of the upper band are divided by the ratio of both. Regimes
are computed again for these values, so that a real step moves both bands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import scipy

from lossratio.report.history.steps import Values
from lossratio.values import Unit, format_change, results_counted

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
_NEWEST = 20
"""Number of the newest values whose best division is also tried."""
_NOISE, _NOISE_WEIGHT = 0.003, 1.0
"""Prior of the noise: relative standard deviation, and the number of values that it counts as."""
_NEW_REGIME, _REAL_STEP = np.log(30.0), np.log(300.0)
"""Prices of a new regime in nats, before the values are known. During the search for bands, one in thirty values begins
a regime. With known bands, a real step is rarer, so that there are no more false alarms than without bands."""
_TWO_LEVELS = np.log(20.0)
"""Price of two levels in a regime, in nats: one regime in twenty has them."""
_THRESHOLDS = 12
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
    if len(starts) < 2 and not _looks_split(logs, least):
        return None

    found = _newest_bands(logs, least)
    if found is None:
        return None

    regimes, in_upper = _lower_regimes(logs, *found)
    lowered = logs - found[0] * in_upper
    regimes = _merged(lowered, regimes, width)
    low = float(np.exp(lowered[regimes[-1] :].mean()))
    before = [start for start in starts if start < first]
    within = [first + start for start in regimes]

    return Bands(
        low=low,
        high=low * float(np.exp(found[0])),
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


def _looks_split(logs: Values, least: float) -> bool:
    """A quick check: whether the best division of all values into low and high values leaves a wide gap."""
    border = _best_border(logs)
    low = logs[logs <= border]
    high = logs[logs > border]
    noise = np.sqrt((low.var() * len(low) + high.var() * len(high)) / len(logs))
    return bool(high.mean() - low.mean() >= max(0.8 * LEAST_DISTANCE * noise, least))


def _best_border(logs: Values) -> float:
    """The border that divides values best into low and high ones: by the smallest sum of squares within both (Otsu)."""
    ordered = np.sort(logs)
    count = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    low = sums[:-1] / count
    high = (sums[-1] - sums[:-1]) / (len(ordered) - count)
    best = int(np.argmax(count * low**2 + (len(ordered) - count) * high**2))
    return float(0.5 * (ordered[best] + ordered[best + 1]))


def _borders(logs: Values, most: int) -> Values:
    """Borders to try between low and high values: the widest gaps, and the best borders for all and for the newest."""
    ordered = np.sort(logs)
    widest = np.argsort(np.diff(ordered))[-most:]
    best = [_best_border(logs), _best_border(logs[-_NEWEST:])]
    return np.unique([*(0.5 * (ordered[widest] + ordered[widest + 1])), *best])


class _Segments:
    """Sums over the segments of a series, for some thresholds that divide the values into low and high ones.

    Arrays have an axis for the threshold and one for the segment.
    """

    def __init__(self, logs: Values, thresholds: Values, shortest: int = 1) -> None:
        self._size = len(logs)
        self.begin, self.end = np.triu_indices(len(logs) + 1, shortest)
        high = (logs[None, :] > thresholds[:, None]).astype(float)
        self.count = (self.end - self.begin)[None, :].astype(float)
        self.square = self._sum(logs[None, :] ** 2)
        self.total = self._sum(logs[None, :])
        self.high = self._sum(high)
        self.high_total = self._sum(high * logs)
        self.low = self.count - self.high
        before = high[:, :-1]
        now = high[:, 1:]
        # Sums over the pairs of neighbours inside the segments.
        self.rises = self._sum((1.0 - before) * now, last=1)
        self.stays_high = self._sum(before * now, last=1)
        # Except for the last value, high values either stay or fall, and low values either stay or rise.
        self.falls = self._sum(before, last=1) - self.stays_high

        self.stays_low = self.count - 1.0 - self.rises - self.stays_high - self.falls

    def _sum(self, rows: Values, last: int = 0) -> Values:
        """Sums over the segments, each without the given number of last items."""
        sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
        return np.asarray(sums[:, self.end - last] - sums[:, self.begin])

    def matrix(self, values: Values) -> Values:
        """Values of the segments as a matrix by beginning and end, with minus infinity where there is no segment."""
        whole = np.full((self._size + 1, self._size + 1), -np.inf)
        whole[self.begin, self.end] = values
        return whole


def _newest_bands(logs: Values, least: float) -> tuple[float, float, tuple[float, float]] | None:
    """The newest regime with two levels: their distance, the noise, the chances to rise and to fall; or None.

    Levels that are less than `least` apart, as logarithms, count as one.
    """
    spread = max(float(np.ptp(logs)), np.log(LEAST_RATIO))
    whole = _Segments(logs, logs[:1])
    one = whole.matrix(
        _evidence(whole.count, 1, whole.square - _per(whole.total**2, whole.count), spread)[0]
    )
    segments = _Segments(logs, _borders(logs, _THRESHOLDS), LEAST_VALUES - 2)
    low_total = segments.total - segments.high_total
    low_mean = _per(low_total, segments.low)
    high_mean = _per(segments.high_total, segments.high)
    inside = np.maximum(
        segments.square - low_mean * low_total - high_mean * segments.high_total, 0.0
    )
    distance = high_mean - low_mean
    noise = np.sqrt((inside + _NOISE_WEIGHT * _NOISE**2) / (segments.count + _NOISE_WEIGHT))
    switch_often = segments.rises + segments.falls >= LEAST_SWITCHES
    fewer = np.minimum(segments.low, segments.high)
    are_both_used = fewer >= np.maximum(LEAST_SHARE * segments.count, LEAST_IN_BAND)
    are_apart = distance >= np.maximum(least, LEAST_DISTANCE * noise)
    possible = switch_often & are_both_used & are_apart
    if not possible.any():
        return None

    # Formula: the evidence of two levels that a chain with two states chooses from.
    two = (
        _evidence(segments.count, 2, inside, spread)
        - 0.5 * np.log(np.maximum(segments.low * segments.high, 1.0) / segments.count)
        + _chain(segments.rises, segments.stays_low)
        + _chain(segments.falls, segments.stays_high)
        - np.log(2.0)
        - _TWO_LEVELS
    )
    two = np.where(possible, two, -np.inf)
    best = np.argmax(two, axis=0)
    two_best = segments.matrix(two.max(axis=0))
    regimes = _best_regimes(np.maximum(one, two_best), _NEW_REGIME)
    with_bands = [(begin, end) for begin, end in regimes if two_best[begin, end] > one[begin, end]]
    if not with_bands:
        return None

    begin, end = with_bands[-1]
    if any(last - first >= ENDED for first, last in regimes if first >= end):
        return None

    segment = int(np.flatnonzero((segments.begin == begin) & (segments.end == end))[0])
    place = (int(best[segment]), segment)
    rises, falls = float(segments.rises[place]), float(segments.falls[place])
    chances = (
        (rises + 1.0) / (rises + float(segments.stays_low[place]) + 2.0),
        (falls + 1.0) / (falls + float(segments.stays_high[place]) + 2.0),
    )

    return float(distance[place]), float(noise[place]), chances


def _lower_regimes(
    logs: Values, distance: float, noise: float, chances: tuple[float, float]
) -> tuple[list[int], npt.NDArray[np.bool_]]:
    """Where the regimes of values in one of two bands begin, and whether each value is in the upper band."""
    # Below the lowest threshold, there is no value: one level explains the segment without bands.
    thresholds = np.concatenate([[logs.min() - 1.0], _borders(logs, 2 * _THRESHOLDS)])
    segments = _Segments(logs, thresholds)
    # Distance to the level, with high values lowered.
    total = segments.total - distance * segments.high
    square = segments.square - 2.0 * distance * segments.high_total + distance**2 * segments.high
    inside = np.maximum(square - _per(total**2, segments.count), 0.0)
    rise, fall = chances
    # Formula: the likelihood of a chain with two equally likely initial states.
    chain = (
        segments.rises * np.log(rise)
        + segments.stays_low * np.log1p(-rise)
        + segments.falls * np.log(fall)
        + segments.stays_high * np.log1p(-fall)
        - np.log(2.0)
    )
    spread = max(float(np.ptp(logs)), np.log(LEAST_RATIO))
    # Formula: the evidence of normal values around a level with a uniform prior.
    likely = (
        chain
        - 0.5 * inside / noise**2
        - 0.5 * (segments.count - 1.0) * np.log(2.0 * np.pi * noise**2)
        - 0.5 * np.log(segments.count)
        - np.log(2.0 * spread)
    )
    best = segments.matrix(np.argmax(likely, axis=0))
    regimes = _best_regimes(segments.matrix(likely.max(axis=0)), _REAL_STEP)
    in_upper = np.zeros(len(logs), dtype=bool)
    levels: list[float] = []

    for begin, end in regimes:
        upper = logs[begin:end] > thresholds[int(best[begin, end])]
        level = float((logs[begin:end] - distance * upper).mean())
        if levels and (upper.all() or not upper.any()):
            # A single level may be either band: it is the band that is closer to an earlier level.
            mean = float(logs[begin:end].mean())
            level = min(
                (mean, mean - distance),
                key=lambda one: min(abs(one - earlier) for earlier in levels),
            )
            upper = np.full(end - begin, level < mean)

        in_upper[begin:end] = upper
        levels.append(level)

    return [begin for begin, _ in regimes], in_upper


def _best_regimes(evidence: Values, price: float) -> list[tuple[int, int]]:
    """The most probable division into regimes, from the logarithms of the evidence of each segment."""
    size = len(evidence) - 1
    best = np.zeros(size + 1)
    begins = np.zeros(size + 1, dtype=int)
    best[0] = price
    for end in range(1, size + 1):
        totals = best[:end] + evidence[:end, end] - price
        begins[end] = int(np.argmax(totals))
        best[end] = totals[begins[end]]
    regimes = []
    end = size
    while end > 0:
        regimes.append((int(begins[end]), end))
        end = int(begins[end])
    return regimes[::-1]


def _evidence(count: Values, levels: int, inside: Values, spread: float) -> Values:
    """Logarithm of the evidence of normal values around levels, without the levels' shares of the values."""
    free = np.maximum(count - levels, 0.0)
    shape = 0.5 * (_NOISE_WEIGHT + free)
    scale = _NOISE_WEIGHT * _NOISE**2
    # Formula: the marginal likelihood for an inverse gamma prior of the variance.
    return np.asarray(
        scipy.special.gammaln(shape)
        - scipy.special.gammaln(0.5 * _NOISE_WEIGHT)
        + 0.5 * _NOISE_WEIGHT * np.log(scale)
        - shape * np.log(scale + np.maximum(inside, 0.0))
        - 0.5 * free * np.log(np.pi)
        - 0.5 * np.log(np.maximum(count, 1.0))
        - levels * np.log(spread)
    )


def _chain(changes: Values, stays: Values) -> Values:
    """Logarithm of the evidence of a state's changes and stays, for a uniform prior of the probability to change."""
    # Counts are whole numbers, and there are few of them, so a table is much faster than the function.
    logs = scipy.special.gammaln(np.arange(1.0, 2.0 * WINDOW + 3.0))
    changed, stayed = changes.astype(np.intp), stays.astype(np.intp)
    return np.asarray(logs[changed] + logs[stayed] - logs[changed + stayed + 1])


def _per(amount: Values, count: Values) -> Values:
    return np.asarray(amount / np.maximum(count, 1.0))

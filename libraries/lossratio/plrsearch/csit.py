"""FD.io CSIT's own soak test, with exactly its numbers: fitting functions, Monte Carlo, and choice of loads.

CSIT's code differs from the Internet draft: its fitting functions are not those of section 5.3, counts are geometric,
and averages are taken of the load's logarithm. This module computes the same as CSIT's code, so that results can be
compared. CSIT integrates for as long as a trial lasts, but here each integration has the same number of samples. With
this number, CSIT's code has the same random numbers and the same loads.

Formulas, constants and order of operations: FD.io CSIT, `resources/libraries/python/PLRsearch`, early 2026.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from lossratio.errors import SearchError
from lossratio.plrsearch.by_counts import SearchByCounts
from lossratio.plrsearch.counted_load import CountedLoad
from lossratio.plrsearch.counts import why_set_aside
from lossratio.plrsearch.csit_estimate import CsitEstimate
from lossratio.plrsearch.options import CriticalLoadQuestion, StopReason
from lossratio.trials import TrialInput, TrialResult

SAMPLES = 1000
"""Samples of each integration, for each fitting function."""

_FIRST, _LONGER = 5.1, 0.1
"""Seconds of the first trial, and of each further one in addition."""
_WIDENING = 5.0
"""Ratio of the covariance of samples to the covariance of the posterior."""
_SEED = 0
_DOMINANT = 1.0
"""If a sample is this many nats above all samples so far, the logarithm of its weight is halved when it moves the
focus."""

_LIMIT = math.pow(0.5 * math.pi, -0.5)
"""CSIT's value for the integral of erfc from 0, which is 1 / sqrt(pi)."""
_FAR = math.exp(10.0)

_LOG_2, _LOG_3 = math.log(2.0), math.log(3.0)

_LogLossRate = Callable[[float, float, float], float]
"""Logarithm of the mean loss rate at a load, for an mrr and a spread."""


def csit_estimates(
    results: Iterable[TrialResult],
    *,
    target_loss_ratio: float,
    min_load: float,
    max_load: float,
    samples: int = SAMPLES,
) -> Iterator[CsitEstimate]:
    """What CSIT's code computes before each trial, and after the last one.

    Each integration begins where the last one ended, so an estimate depends on the order of the trials.

    Args:
        results: The trials, in the order of their measurement.
        target_loss_ratio: Loss ratio at the critical load, between 0 and 1, exclusive.
        min_load: Smallest possible answer, in frames per second.
        max_load: Largest possible answer, in frames per second.
        samples: Samples of each integration, for each fitting function.

    Raises:
        SearchError: If an argument makes no sense, or a trial has no counts, or CSIT's formulas have no value.
    """
    integration = CsitIntegration(
        CriticalLoadQuestion(target_loss_ratio, min_load, max_load), samples
    )
    yield integration.estimate()
    for result in results:
        integration.add(result)
        yield integration.estimate()


def csit_counts(result: TrialResult) -> tuple[int, int]:
    """Lost and intended frames of a trial as CSIT counts them: frames that were not sent are lost.

    Raises:
        SearchError: If the trial has no counts of frames, or none was sent.
    """
    sent, lost = result.output.sent_frames, result.output.lost_frames
    if not sent or lost is None:
        raise SearchError(
            f"CSIT's estimate needs the counts of sent and lost frames, but the trial at {result.load:.10g} frames/s "
            "does not have them. Use a measurer that reports `sent_frames` and `lost_frames`."
        )
    unsent = result.output.unsent_frames or 0
    intended = sent + unsent
    return min(intended, int(intended * ((lost + unsent) / intended) + 0.9)), intended


@dataclass
class _Scalar:
    """Mean and variance of weighted values; all but the mean as logarithms."""

    log_weight: float = -math.inf
    mean: float = 0.0
    log_variance: float = -math.inf

    def add(self, value: float, log_weight: float) -> None:
        if self.log_weight == -math.inf:
            self.log_weight, self.mean = log_weight, value
            return
        total = _log_sum(self.log_weight, log_weight)
        log_share = log_weight - total
        step = value - self.mean
        if step:
            self.log_variance = _log_sum(self.log_variance, 2.0 * math.log(abs(step)) + log_share)
        self.log_variance += self.log_weight - total
        self.log_weight = total
        self.mean += step * math.exp(log_share)


@dataclass
class _Focus:
    """Mean and covariance of the weighted parameters so far, from which the next samples are drawn.

    The covariance is nearly singular because the posterior is a ridge. So another order of operations draws other
    samples.
    """

    mean: tuple[float, float] = (0.0, 0.0)
    covariance: tuple[float, float, float] = (1.0, 0.0, 1.0)
    log_weight: float = -math.inf

    def drawn(self, random: np.random.RandomState) -> tuple[float, float]:
        """A sample within (-1, 1) in both parameters."""
        xx, xy, yy = (_WIDENING * element for element in self.covariance)
        while True:
            x, y = random.multivariate_normal(self.mean, ((xx, xy), (xy, yy)), 1)[0].tolist()
            if -1.0 < x < 1.0 and -1.0 < y < 1.0:
                return x, y

    def add(self, point: tuple[float, float], log_weight: float) -> float:
        """Adds a sample, and returns its squared distance from the previous mean, in units of the covariance."""
        if -math.inf < self.log_weight < log_weight - _DOMINANT:
            self.log_weight = log_weight = (self.log_weight + log_weight) / 2.0
        x, y = point[0] - self.mean[0], point[1] - self.mean[1]
        xx, xy, yy = self.covariance
        distance = float(np.vdot((x, y), np.linalg.solve(((xx, xy), (xy, yy)), (x, y))))
        if self.log_weight == -math.inf:
            self.log_weight, self.mean = log_weight, point
            return distance

        total = _log_sum(self.log_weight, log_weight)
        rest = math.exp(self.log_weight - total)
        share = math.exp(log_weight - total)
        self.mean = self.mean[0] + x * share, self.mean[1] + y * share
        self.covariance = (
            (xx + x * x * share) * rest,
            (xy + x * y * share) * rest,
            (yy + y * y * share) * rest,
        )
        self.log_weight = total

        return distance


class CsitIntegration:
    """CSIT's Monte Carlo over the trials so far. Its samples begin where the last integration ended.

    Raises:
        SearchError: If there are fewer than 2 samples.
    """

    def __init__(self, question: CriticalLoadQuestion, samples: int = SAMPLES) -> None:
        if samples < 2:
            raise SearchError(f"CSIT's integration needs at least 2 samples, not {samples!r}.")
        self._question, self._samples = question, samples
        self._rows: list[tuple[float, float, int]] = []
        self._focus: dict[_LogLossRate, _Focus] = {_log_stretch: _Focus(), _log_erf: _Focus()}

    def add(self, result: TrialResult) -> None:
        """Adds a trial for which `csit_counts` has counts."""
        lost, _ = csit_counts(result)
        self._rows.append(
            (result.load, math.log((result.output.sent_frames or 0) / result.load), lost)
        )

    def estimate(self) -> CsitEstimate:
        """Integrates both functions.

        Raises:
            SearchError: If CSIT's formulas have no value somewhere.
        """
        try:
            (stretch, stretch_variance), (erf, erf_variance) = map(
                self._integrated, (_log_stretch, _log_erf)
            )
        except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
            raise SearchError(
                f"CSIT's formulas have no value for these {len(self._rows)} trials ({error}), and CSIT's own code ends "
                "with an error, too. Use the search by counts (selection=counts)."
            ) from error

        mean = (stretch + erf) / 2.0
        stdev = math.sqrt(
            (stretch_variance + erf_variance) / 2.0 + (stretch - erf) * (stretch - erf) / 4.0
        )
        low = math.exp(mean - stdev)
        high = math.exp(mean + stdev)
        middle = (low + high) / 2.0

        return CsitEstimate(
            len(self._rows), middle, middle - low, math.exp(stretch), math.exp(erf), self._samples
        )

    def _integrated(self, function: _LogLossRate) -> tuple[float, float]:
        """Mean and variance of the critical load's logarithm.

        The variance is halfway between the variance of all samples and the variance of all samples but the heaviest,
        plus the distance of the two.
        """
        random = np.random.RandomState(_SEED)
        focus = self._focus[function] = replace(self._focus[function], log_weight=-math.inf)
        every = _Scalar()
        others = _Scalar()
        heaviest = -math.inf

        for _ in range(self._samples):
            point = focus.drawn(random)
            mrr = self._question.max_load * (1.0 / (point[0] + 1.0) - 0.5) + 1.0
            spread = math.exp((point[1] + 1.0) / 2.0 * math.log(mrr))
            log_weight = self._log_likelihood(function, mrr, spread)
            value = math.log(_critical_load(function, self._question, mrr, spread))
            importance = log_weight + focus.add(point, log_weight) / 2.0 / _WIDENING

            if importance >= heaviest:
                heaviest = importance
                others = replace(every)
            else:
                others.add(value, importance)

            every.add(value, importance)

        half = (every.mean - others.mean) / 2.0
        return every.mean, (
            math.exp(every.log_variance) + math.exp(others.log_variance)
        ) / 2.0 + half * half

    def _log_likelihood(self, function: _LogLossRate, mrr: float, spread: float) -> float:
        """Geometric counts with the function's means."""
        total = 0.0
        for load, log_exposure, lost in self._rows:
            log_mean = function(load, mrr, spread) + log_exposure
            total += _log_sum(0.0, -log_mean) * -lost - _log_sum(0.0, log_mean)
        return total


def _critical_load(
    function: _LogLossRate, question: CriticalLoadQuestion, mrr: float, spread: float
) -> float:
    """The load with the target loss ratio, by halving the range of loads until it has no middle."""
    low, high = question.min_load, question.max_load
    middle = (high + low) / 2.0
    while low < middle < high:
        ratio = math.exp(function(middle, mrr, spread)) / middle
        if ratio == question.target_loss_ratio:
            break
        low, high = (low, middle) if ratio > question.target_loss_ratio else (middle, high)
        middle = (high + low) / 2.0
    return middle


def _log_sum(first: float, second: float) -> float:
    """Logarithm of exp(first) + exp(second), with CSIT's digits, which are not those of log1p."""
    if second > first:
        first, second = second, first
    return first + math.log(1.0 + math.exp(second - first))


def _log_difference(first: float, second: float) -> float:
    """Logarithm of exp(first) - exp(second)."""
    return first + math.log(-math.expm1(second - first))


def _log_stretch(load: float, mrr: float, spread: float) -> float:
    """Logarithm of CSIT's stretch function, in lost frames per second.

    The function is a (softplus((b - m)/a) - softplus(-m/a)). The draft's function is larger by the factor 1 +
    exp(-m/a).
    """
    x = (load - mrr) / spread
    origin = -mrr / spread
    if x > 0.0:
        return math.log(load - mrr + (_log_sum(0.0, -x) - _log_sum(0.0, origin)) * spread)

    # A series is used here, because the difference has no digits if both terms are small.
    upper = _log_sum(x, 2 * origin - _LOG_2)
    lower = _log_sum(origin, 2 * x - _LOG_2)
    if upper <= lower:
        return _log_difference(x, origin) + math.log(spread)

    two = _log_difference(upper, lower)
    if two == _log_difference(
        _log_sum(upper, 3 * x - _LOG_3), _log_sum(lower, 3 * origin - _LOG_3)
    ):
        return two + math.log(spread)
    return math.log(_log_sum(0.0, x) - _log_sum(0.0, origin)) + math.log(spread)


def _log_erf(load: float, mrr: float, spread: float) -> float:
    """Logarithm of CSIT's erf function, in lost frames per second.

    The draft's function has 1 / sqrt(pi) instead of `_LIMIT`, and the origin instead of the factor z of `at_origin`.
    """
    z = (mrr - load) / spread
    origin = mrr / spread
    at_origin = math.log(_LIMIT - z * float(scipy.special.erfcx(origin))) - origin * origin
    if z > _FAR:
        # This is not a constant of the module, because importing scipy.special takes long, and most runs have no soak
        # test.
        log_at_far = math.log(_LIMIT - _FAR * float(scipy.special.erfcx(_FAR)))
        log_integral = _log_difference(log_at_far + 2 * (math.log(z) - 10) - z * z, at_origin)
    elif z >= -1.0:
        log_integral = _log_difference(
            math.log(_LIMIT - z * float(scipy.special.erfcx(z))) - z * z, at_origin
        )
    else:
        passed = (_LIMIT + z * float(scipy.special.erfcx(-z))) * math.exp(-z * z) - 2 * z
        log_integral = math.log(passed - math.exp(at_origin))

    return log_integral + math.log(spread) - math.log(float(scipy.special.erfc(-origin)))


class CsitSearch:
    """CSIT's choice of loads; a `lossratio.trials.trial.Controller`.

    The load of a trial follows from the estimate before the last trial: CSIT integrates while it measures. The last
    trial begins before the search's time is over, and ends after it. What the counts say is stated as for any other
    trials.

    Attributes:
        estimate: What CSIT's code would report if the search ended now; None before the first trial. This estimate
            ignores the last trial.
    """

    def __init__(
        self,
        target_loss_ratio: float,
        min_load: float,
        max_load: float,
        *,
        timeout: float,
        samples: int = SAMPLES,
    ) -> None:
        """Prepares a search. The arguments are those of `SearchByCounts` and `csit_estimates`."""
        limits = target_loss_ratio, min_load, max_load
        self._question = CriticalLoadQuestion(*limits)
        self._counts = SearchByCounts(*limits, timeout=timeout, duration=_FIRST)
        self._timeout = timeout
        self._integration = CsitIntegration(self._question, samples)
        self._lossy_loads = [max_load]
        self._quiet = self._counted = 0
        self._last: TrialResult | None = None
        self._load = 0.5 * (min_load + max_load)
        self.purpose = "the middle of the loads"
        self.estimate: CsitEstimate | None = None

    @property
    def trials(self) -> int:
        """Number of recorded trials."""
        return self._counts.trials

    @property
    def elapsed(self) -> float:
        """Seconds that they took."""
        return self._counts.elapsed

    @property
    def passed_and_failed(self) -> tuple[float | None, float | None]:
        """See `SearchByCounts.passed_and_failed`."""
        return self._counts.passed_and_failed

    def next_trial(self) -> TrialInput | None:
        """See `Controller.next_trial`."""
        if self.elapsed >= self._timeout:
            return None
        return TrialInput(_FIRST + _LONGER * self._counted, self._load)

    def record(self, result: TrialResult) -> None:
        """See `Controller.record`.

        Raises:
            SearchError: If the trial has no counts of frames, or CSIT's formulas have no value.
        """
        self._counts.record(result)
        if why_set_aside(result) is not None:
            return
        if self._last is not None:
            self._integration.add(self._last)
        self.estimate = self._integration.estimate()
        self._last = result
        self._counted += 1
        self._quiet += 1
        (lost, intended), target = csit_counts(result), self._question.target_loss_ratio
        if lost >= intended * target:
            self._lossy_loads = sorted(self._lossy_loads + [result.load] * (4 * self._quiet))
            self._quiet = 0
        self._choose(result, intended, self.estimate)

    def _choose(self, result: TrialResult, intended: int, estimate: CsitEstimate) -> None:
        """Chooses the next load."""
        if self._counted == 1:
            self._load, self.purpose = self._question.max_load, "the maximum load"
        elif self._counted <= 3:
            lost = (result.output.lost_frames or 0) + (result.output.unsent_frames or 0)
            load = result.load * (1.0 - lost / intended) / (1.0 - self._question.target_loss_ratio)
            self._load = self._question.clamped(load)
            self.purpose = "the forwarding rate of the last trial"
        else:
            both = estimate.stretch_mean_per_interface_fps + estimate.erf_mean_per_interface_fps
            mean = both / 2.0
            self._load = self._question.clamped(self._drawn(mean))
            self.purpose = f"CSIT's estimate, {mean:,.0f} frames/s"

    def result(self) -> CountedLoad:
        """See `Controller.result`."""
        stopped_by = StopReason.TIMEOUT if self.elapsed >= self._timeout else None
        return replace(self._counts.result(), csit=self.estimate, stopped_by=stopped_by)

    def _drawn(self, mean: float) -> float:
        """The estimate, moved towards the smallest lossy load after trials below the target.

        Three such trials are used up.
        """
        lossy = self._lossy_loads[0]
        if self._quiet and len(self._lossy_loads) > 3:
            del self._lossy_loads[:3]
        weight = 2.0 ** (1 - self._quiet)
        if self._quiet and lossy > mean:
            return (lossy + weight * mean) / (1.0 + weight)
        return mean

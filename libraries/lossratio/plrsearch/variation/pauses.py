"""Pauses that overflow a ring: how long they are, how often they come, and what the ring holds.

While a device does not read for a time *x*, its ring fills. At a load *L*, a pause loses L x - r frames if the ring
holds only r, which is fewer than L x. The sizes and the number of the losses at several loads show length, ring and
frequency. The lengths may differ. They have a gamma distribution, whose shape is 1 if they are exponential.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, TrialCounts
from lossratio.units import format_about

_SHAPES = (1.0, 6.0, 36.0, 216.0, 1e8)
"""The shapes of the lengths' distribution that are compared, from exponential to equal lengths."""
_EQUAL = 2.0
"""Shape above which lengths are about equal."""
_QUIET = 5.0
"""Maximum number of lost frames of a trial that shows no pause."""
_LEAST = 3
"""Minimum number of trials with losses by pauses."""
_BELOW = 0.998
"""Loads above this share of the forwarding rate are close to overload."""
_NOT_ABOUT, _FAR_BELOW = 0.97, 0.9
"""Loads below the first share of the forwarding rate are not close to overload. Below the second share, no batch is
lost by overload."""
_MOST = 40
"""Maximum number of pauses of a trial that are distinguished."""
_BEYOND = 8.0
"""Numbers of pauses are distinguished up to this many standard deviations and pauses beyond the expected number."""
_STRAY = 1e-9
"""Probability of a count for another reason."""
_ROUNDING = 0.005
"""Minimum share by which losses of equal pauses differ."""
_UNUSUAL = 2.0
"""Lengths that are neither exponential nor equal must be likelier than these by this many nats, because few devices
have such lengths."""
_PLAUSIBLE = 6.0
"""A plausible shape is less likely than the best shape by at most this many nats."""
_LENGTH, _RING = 0.15, 0.25
"""Length and ring are stated if the standard deviations of their logarithms are at most these values."""
_LARGEST_RING = 32768.0
"""No ring holds more frames. If the losses fit a larger one, they do not come from pauses."""
_ALIKE = 1.2
"""Largest factor between the lengths by plausible shapes."""
_KNOWN = 8.0
"""The load that pauses allow is stated if the factor between the smallest and the largest plausible load is at most
this."""
_SURE = 1.1
"""The same factor for a sure verified load."""
_MOST_STDEV = 5.0
"""Largest standard deviation of the logarithm of the load that is distinguished."""
_STEP = 3e-3
"""Step of derivatives, in nats."""
_WIDTH, _LEAST_WIDTH = 0.2, 0.01
"""The search for the likeliest parameters first looks this far from its beginning, for exponential lengths and for
equal ones."""
_APART, _PAIRS = 0.003, 24
"""Two loads that show where the search begins must differ by at least this share; and the maximum number of pairs of
such loads."""
_FEW_PAUSES = 20
"""Maximum number of pauses in the smallest loss at such a load."""
_ALIKE_LENGTHS = 0.2
"""If the logarithms of lengths differ by less than this, only one of the lengths is tried."""
_OFF, _BEST = 60.0, 16
"""The largest squared distance, in variances, at which a loss counts as a whole number of pauses, and how many lengths
and rings are tried."""
_CLOSE, _ROUNDS = 3e-3, 110
"""Where the search for the likeliest parameters ends, and its largest number of steps."""


@dataclass(frozen=True)
class Allowed:
    """The load at which pauses lose the target ratio, in frames per second, as far as it is known."""

    likeliest: float
    """The load by the likeliest pauses."""
    least: float
    """The smallest load by any plausible pauses, minus twice its standard deviation."""
    most: float
    """The largest load by any plausible pauses, plus twice its standard deviation."""

    @property
    def is_known(self) -> bool:
        """Whether losses show the load well enough for it to be stated."""
        return self.most < _KNOWN * self.least

    @property
    def is_sure(self) -> bool:
        """Whether losses show the load so well that they do not speak against a verified load below it."""
        return self.most < _SURE * self.least


@dataclass(frozen=True)
class Pauses:
    """Pauses of a device, as far as its losses show them."""

    every_s: float
    """Mean seconds between pauses."""
    length_s: float
    """Mean length in seconds."""
    shape: float
    """Shape of the lengths' gamma distribution."""
    ring_frames: float
    """Frames that the ring holds."""
    log_likelihood: float
    """Log likelihood of the counts."""
    covariance: Array = field(default_factory=lambda: np.diag(np.full(3, np.inf)), compare=False)
    """Covariance of the logarithms of the pauses per second, the length and the ring; infinite if the losses do not
    show them."""
    plausible: tuple[Pauses, ...] = ()
    """Pauses of all shapes that explain the counts nearly as well, including these pauses."""

    @classmethod
    def of(cls, counts: TrialCounts, *, has_batches: bool = False) -> Pauses | None:
        """The likeliest pauses; None if the losses are too few, or do not come from pauses.

        If frames are lost in batches, only losses far below overload come from pauses.
        """
        losses = _Losses.of(counts, _FAR_BELOW if has_batches else _BELOW)
        if losses is None:
            return None
        fits = [losses.fitted(shape) for shape in _SHAPES]
        # Pauses do not overlap.
        fits = [(fit, moved) for fit, moved in fits if fit.length_s < fit.every_s]
        if not fits:
            return None

        weights = [fit.log_likelihood - (0.0 if fit.is_usual else _UNUSUAL) for fit, _ in fits]
        best = int(np.argmax(weights))
        plausible = [
            replace(fit, covariance=losses.covariance(fit.shape, moved))
            for (fit, moved), weight in zip(fits, weights, strict=True)
            if weight > weights[best] - _PLAUSIBLE
        ]
        likeliest = next(fit for fit in plausible if fit.shape == fits[best][0].shape)
        return replace(likeliest, plausible=tuple(plausible))

    @cached_property
    def stdevs(self) -> tuple[float, float]:
        """Standard deviations of the logarithms of length and ring; infinite if the losses do not show them."""
        stdevs = np.sqrt(np.diag(self.covariance))
        return float(stdevs[1]), float(stdevs[2])

    @property
    def _parameters(self) -> Array:
        """Logarithms of the pauses per second, the length, and the ring; see `_moments`."""
        return np.log([1.0 / self.every_s, self.length_s, self.ring_frames])

    @property
    def is_sure(self) -> bool:
        """Whether lengths are about equal, and losses show them well enough for them to be stated.

        Lengths that differ a lot cannot be distinguished from other losses that do not come from the load.
        """
        lengths = [fit.length_s for fit in self.plausible]
        is_usual = self.ring_frames < _LARGEST_RING
        is_alike = bool(lengths) and max(lengths) < _ALIKE * min(lengths)
        has_equal = self.shape >= _EQUAL
        return has_equal and is_usual and is_alike and self.stdevs[0] < _LENGTH

    @property
    def is_usual(self) -> bool:
        """Whether lengths are exponential or equal."""
        return self.shape in (_SHAPES[0], _SHAPES[-1])

    def loss_ratio(self, load: float) -> float:
        """Share of the frames that are lost to pauses at a load in frames per second."""
        return float(_moments(np.array([load]), self._parameters, self.shape)[3][0])

    def least_losses(self, loads: Array) -> Array:
        """Pauses per second that lose frames at loads in frames per second, by the plausible pauses that lose least."""
        often = [_moments(loads, fit._parameters, fit.shape)[0] for fit in self.plausible]
        return np.asarray(np.min(often, axis=0))

    def critical_load(self, question: CriticalLoadQuestion) -> float:
        """The load in frames per second at which the target ratio is lost to pauses, within the limits."""
        target = question.target_loss_ratio
        low = question.min_load
        high = question.max_load
        if self.loss_ratio(low) >= target:
            return low
        if self.loss_ratio(high) <= target:
            return high
        return float(scipy.optimize.brentq(lambda load: self.loss_ratio(load) - target, low, high))

    def allowed(self, question: CriticalLoadQuestion) -> Allowed:
        """The load at which the target ratio is lost to pauses, and what is plausible."""
        ranges = [fit._range(question) for fit in self.plausible or (self,)]
        least = min(low for low, _ in ranges)
        most = max(high for _, high in ranges)
        return Allowed(self.critical_load(question), least, most)

    def _range(self, question: CriticalLoadQuestion) -> tuple[float, float]:
        """Twice the standard deviation below and above the load with the target ratio, within the limits."""
        if not np.all(np.isfinite(self.covariance)):
            return question.min_load, question.max_load

        load = self.critical_load(question)
        more = 1.0 + _STEP
        moved = (
            replace(self, every_s=self.every_s / more),
            replace(self, length_s=self.length_s * more),
            replace(self, ring_frames=self.ring_frames * more),
        )
        loads = np.array([pauses.critical_load(question) for pauses in moved])
        slopes = np.log(loads / load) / np.log1p(_STEP)

        variance = float(slopes @ self.covariance @ slopes)
        stdev = min(math.sqrt(max(variance, 0.0)), _MOST_STDEV)
        low = load * math.exp(-2.0 * stdev)
        high = load * math.exp(2.0 * stdev)
        return max(low, question.min_load), min(high, question.max_load)

    @property
    def known_ring_frames(self) -> float | None:
        """Frames that the ring holds; None if the losses do not show it."""
        return self.ring_frames if self.stdevs[1] < _RING else None

    def __str__(self) -> str:
        """The pauses, in one line. It does not say who pauses: the frames may also have come too late."""
        ring = "a ring"
        if self.known_ring_frames is not None:
            ring = f"a ring of about {format_about(self.ring_frames)} frames, if all frames go through one ring"
        return (
            f"Frames are lost in pauses, about {format_about(3600.0 / self.every_s)} times an hour. Pauses are about "
            f"{format_about(1e6 * self.length_s)} us long, and overflow {ring}"
        )


@dataclass(frozen=True)
class _Losses:
    """Trials below the knee, with the frames that one interface lost."""

    load: Array
    """Loads of trials with losses, in frames per second."""
    seconds: Array
    """Their durations."""
    lost: Array
    """Their lost frames."""
    quiet_load: Array
    """Loads of trials without losses; equal trials are grouped."""
    quiet_seconds: Array
    """Their durations."""
    quiet_trials: Array
    """How many trials there are in each group."""

    @classmethod
    def of(cls, counts: TrialCounts, highest: float) -> _Losses | None:
        """The trials that show pauses, and the trials that show none; None if they are too few, or all at one load.

        The highest of their loads is limited to a share of the forwarding rate.
        """
        lost = counts.loss_rate * counts.duration
        is_quiet = lost <= _QUIET
        overloaded = counts.is_overload
        # Many pauses lose as much as overload. Only the load is the same in trials with many pauses and with few.
        overloaded &= counts.load > counts.load[~overloaded].max(initial=0.0)
        most = float(counts.load[is_quiet].max(initial=0.0))
        if overloaded.any():
            rate = float(np.median(counts.forwarding_rate[overloaded]))
            # The load where every trial loses frames is the knee, unless it is far below overload.
            most = min(max(most, _NOT_ABOUT * rate), highest * rate)
        below = (counts.load <= most) & ~overloaded
        seen = below & ~is_quiet
        if np.count_nonzero(seen) < _LEAST or len(np.unique(counts.load[seen])) < 2:
            return None

        equal = np.stack([counts.load, counts.duration])[:, below & is_quiet]
        (loads, seconds), trials = np.unique(equal, axis=1, return_counts=True)
        return cls(
            counts.load[seen],
            counts.duration[seen],
            lost[seen],
            loads,
            seconds,
            trials.astype(float),
        )

    @cached_property
    def where(self) -> float:
        """The load of the middle loss, in frames per second."""
        return float(np.median(self.load))

    @cached_property
    def _loads(self) -> tuple[Array, NDArray[np.intp]]:
        """Each load once; and the index of the load of each trial with losses, and then of each quiet trial."""
        return np.unique(np.concatenate([self.load, self.quiet_load]), return_inverse=True)

    def fitted(self, shape: float) -> tuple[Pauses, Array]:
        """The likeliest pauses of a shape, and where the search for them ended; see `_known`."""
        begun = max(
            (self._begun(length, ring, shape) for length, ring in self._beginnings(shape)),
            key=lambda moved: self._log_likelihood(self._known(moved, shape), shape),
        )

        width = _WIDTH / np.sqrt(shape) + _LEAST_WIDTH
        # The type stubs require a function of any arguments.
        minimize: Callable[..., Any] = scipy.optimize.minimize
        options = {
            "xatol": _CLOSE,
            "fatol": _CLOSE,
            "maxfev": _ROUNDS,
            "initial_simplex": begun + np.vstack([np.zeros(3), width * np.eye(3)]),
        }
        found = minimize(
            lambda moved: -self._log_likelihood(self._known(moved, shape), shape),
            begun,
            method="Nelder-Mead",
            options=options,
        )
        often, length, ring = np.exp(self._known(found.x, shape)).tolist()
        return Pauses(1.0 / often, length, shape, ring, -float(found.fun)), found.x

    def covariance(self, shape: float, moved: Array) -> Array:
        """Covariance of the logarithms of a fit's parameters, where the search for them ended."""
        covariance = _covariance(
            lambda at: self._log_likelihood(self._known(at, shape), shape), moved
        )
        if shape < _EQUAL or not np.all(np.isfinite(covariance)):
            return covariance

        length = np.exp(moved[1]) * self.where
        size = np.exp(moved[2])
        ring = np.exp(self._known(moved, shape)[2])
        # The ring holds the frames of the length, minus the lost frames.
        known = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, length / ring, -size / ring]])
        return np.asarray(known @ covariance @ known.T)

    def _known(self, moved: Array, shape: float) -> Array:
        """For equal lengths, searches for length and size of a loss. The ring that follows from them varies less."""
        if shape < _EQUAL:
            return moved
        frames = np.exp(moved[1]) * self.where - np.exp(moved[2])
        return np.array([moved[0], moved[1], np.log(max(frames, 1e-3))])

    def _begun(self, length: float, ring: float, shape: float) -> Array:
        """Parameters of the search for a length and a ring; see `_known`."""
        where = self.where
        seconds = float(self.seconds.sum() + (self.quiet_seconds * self.quiet_trials).sum())
        if shape < _EQUAL:
            overflowing = float(scipy.special.gammaincc(shape, shape * ring / where / length))
            often = len(self.lost) / seconds / max(overflowing, _STRAY)
            return np.log([often, length, ring])

        one = np.maximum(length * self.load - ring, 1.0)
        pauses = float(np.maximum(np.rint(self.lost / one), 1.0).sum())
        is_quiet = length * self.quiet_load - ring > _QUIET
        quiet = float((self.quiet_seconds * self.quiet_trials)[is_quiet].sum())
        often = pauses / (float(self.seconds.sum()) + quiet)
        return np.log([often, length, max(length * where - ring, 1.0)])

    def _beginnings(self, shape: float) -> list[tuple[float, float]]:
        """Lengths and rings to begin with: for equal lengths, from how the smallest loss grows with the load."""
        size = float(np.median(self.lost / self.load))
        if shape < _EQUAL:
            return [(size, 2.0 * size * self.where)]

        loads = self._lossy_loads
        least = self._least_losses
        rise = np.diff(least[self._pairs], axis=0)[0] / np.diff(loads[self._pairs], axis=0)[0]
        length = max(float(np.median(rise)), 1.1 * size)
        ring = max(float(np.median(length * loads - least)), 0.1 * length * self.where)
        return [(length, ring), *self._likeliest_of_pairs]

    @cached_property
    def _lossy_loads(self) -> Array:
        """Each load with losses once, in order."""
        return np.unique(self.load)

    @cached_property
    def _least_losses(self) -> Array:
        """The smallest loss at each of these loads, which is the loss of one pause, or of a few."""
        return np.array([self.lost[self.load == load].min() for load in self._lossy_loads])

    @property
    def _pairs(self) -> Array:
        """All pairs of these loads, as two rows of indexes: the lower load, and the higher one."""
        return np.array(np.triu_indices(len(self._lossy_loads), 1))

    def _of_pairs(self) -> Array:
        """Two rows, lengths and rings, derived from how the loss of one pause may grow between two distant loads."""
        loads = self._lossy_loads[self._pairs]
        wide = np.flatnonzero(loads[1] > (1.0 + _APART) * loads[0])
        wide = wide[:: 1 + len(wide) // _PAIRS]

        by = np.arange(1.0, _FEW_PAUSES + 1.0)
        pauses = np.array(np.meshgrid(by, by)).reshape(2, 1, -1)
        loads = loads[:, wide, None]
        size = self._least_losses[self._pairs[:, wide]][..., None] / pauses
        length = (size[1] - size[0]) / (loads[1] - loads[0])
        ring = length * loads[0] - size[0]

        is_possible = (length > 0.0) & (ring > 0.0) & (length * self._lossy_loads[0] > ring)
        return np.array([length[is_possible], ring[is_possible]])

    @cached_property
    def _likeliest_of_pairs(self) -> list[tuple[float, float]]:
        """The equal lengths, and rings, that explain all losses best by whole numbers of pauses."""
        found = self._of_pairs()
        length = found[0, :, None]
        ring = found[1, :, None]

        # How far losses are from whole numbers of pauses, and how unusual these numbers are.
        size = np.maximum(length * self.load - ring, 1.0)
        pauses = np.maximum(np.rint(self.lost / size), 1.0)
        variance = pauses * ((_ROUNDING * size) ** 2 + 1.0)
        off = (self.lost - pauses * size) ** 2 / variance
        distance = 0.5 * (np.minimum(off, _OFF) + np.log(variance)) + scipy.special.gammaln(
            pauses + 1.0
        )
        # Quiet trials also say something about such pauses, unless their loads are below all losses.
        quiet = float(self.quiet_trials[self.quiet_load >= self._lossy_loads[0]].sum())
        mean = pauses.sum(axis=1, keepdims=True) / (len(self.lost) + quiet)
        score = (distance + pauses - pauses * np.log(mean)).sum(axis=1)
        # A half or a third of the length explains the losses nearly as well: the best length of each kind is tried.
        order = np.argsort(score)
        alike = np.rint(np.log(length[order, 0]) / _ALIKE_LENGTHS)
        first = np.unique(alike, return_index=True)[1]
        best = order[np.sort(first)[:_BEST]]
        return [(float(length[at, 0]), float(ring[at, 0])) for at in best]

    def _log_likelihood(self, known: Array, shape: float) -> float:
        loads, where = self._loads
        moments = _moments(loads, known, shape)
        number, size, variance, _ = (part[where[: len(self.load)]] for part in moments)
        expected = np.maximum(number * self.seconds, 1e-300)
        # More pauses are less probable than a count with another reason.
        most = expected.max()
        most = min(int(most + _BEYOND * np.sqrt(most) + _BEYOND), _MOST)
        pauses = np.arange(1.0, most + 1.0)
        expected = expected[:, None]
        log_weight = pauses * np.log(expected) - expected - scipy.special.gammaln(pauses + 1.0)
        scale = (variance / size)[:, None]
        shapes = pauses * (size**2 / variance)[:, None]
        lost = self.lost[:, None]
        log_density = (shapes - 1.0) * np.log(lost / scale) - lost / scale
        log_density -= scipy.special.gammaln(shapes) + np.log(scale)
        seen = np.exp(np.minimum(log_weight + log_density, 700.0)).sum(axis=1)

        number, size, variance, _ = (part[where[len(self.load) :]] for part in moments)
        small = scipy.special.gammainc(size**2 / variance, _QUIET * size / variance)
        # No pause loses more than a few frames.
        log_quiet = -number * self.quiet_seconds * (1.0 - small)
        quiet = np.log(np.exp(log_quiet) + _STRAY)
        return float(np.log(seen + _STRAY).sum() + (self.quiet_trials * quiet).sum())


def _covariance(likelihood: Callable[[Array], float], at: Array) -> Array:
    """Covariance of parameters by the curvature at the maximum; infinite if there is no curvature."""
    steps = _STEP * np.eye(len(at))
    curvature = np.empty_like(steps)

    for row, one in enumerate(steps):
        for column, two in enumerate(steps[: row + 1]):
            both = likelihood(at + one + two) + likelihood(at - one - two)
            crossed = likelihood(at + one - two) + likelihood(at - one + two)
            curvature[row, column] = (crossed - both) / (4.0 * _STEP**2)
            curvature[column, row] = curvature[row, column]

    values, vectors = np.linalg.eigh(curvature)
    if values.min() <= 0.0:
        return np.diag(np.full(len(at), np.inf))
    return np.asarray((vectors / values) @ vectors.T)


def _moments(load: Array, known: Array, shape: float) -> tuple[Array, Array, Array, Array]:
    """Pauses per second that overflow the ring, mean and variance of the frames lost by one pause, and the loss ratio.

    The parameters are logarithms: of the pauses per second, the mean length, and the frames of the ring.
    """
    often, length, ring = np.exp(np.minimum(known, 300.0))
    full = ring / load
    x = shape * full / length
    # Each tail is the previous one plus a term (DLMF 8.8.6).
    tails = [scipy.special.gammaincc(shape, x)]
    log_x = np.log(np.maximum(x, 1e-300))
    for more in (shape, shape + 1.0):
        tails.append(tails[-1] + np.exp(more * log_x - x - scipy.special.gammaln(more + 1.0)))
    tails = [np.maximum(tail, 1e-290) for tail in tails]
    first = np.maximum(length * tails[1] - full * tails[0], 1e-300)
    second = length**2 * (shape + 1.0) / shape * tails[2] - 2.0 * full * length * tails[1]
    second = second + full**2 * tails[0]

    size = np.maximum(load * first / tails[0], 1e-3)
    variance = load**2 * second / tails[0] - size**2
    variance = np.maximum(variance, (_ROUNDING * size) ** 2 + 1.0)
    return often * tails[0], size, variance, often * first

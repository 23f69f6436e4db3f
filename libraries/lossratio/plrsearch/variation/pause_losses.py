"""Losses in trials below the knee, and the pauses of a given shape that explain them best.

See `lossratio.plrsearch.variation.pauses` for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, TrialCounts

EQUAL = 2.0
"""Shape above which lengths are about equal."""
_SEVERAL = (2.0, 3.0)
"""Factors of lengths and rings. Half as many pauses that are twice as long lose as much, so these are tried, too."""
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
STEP = 3e-3
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
class Fit:
    """The likeliest pauses of a shape."""

    shape: float
    """Shape of the lengths' gamma distribution."""
    moved: Array
    """Where the search for them ended, see `PauseLosses.covariance`."""
    parameters: Array
    """Logarithms of the pauses per second, of their mean length in seconds, and of the frames that the ring holds."""
    log_likelihood: float
    """Log likelihood of the counts."""


@dataclass(frozen=True)
class PauseLosses:
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
    def of(cls, counts: TrialCounts, *, has_batches: bool) -> PauseLosses | None:
        """The trials that show pauses, and the trials that show none; None if they are too few, or all at one load.

        If frames are lost in batches, only losses far below overload come from pauses.
        """
        highest = _FAR_BELOW if has_batches else _BELOW
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

    def fitted(self, shape: float) -> Fit:
        """The likeliest pauses of a shape."""
        return self._fitted(shape, self._beginnings(shape))

    def longer(self, fit: Fit) -> list[Fit]:
        """The likeliest pauses that are about twice as long, or three times as long, as those of a fit."""
        _, length, ring = np.exp(fit.parameters).tolist()
        return [self._fitted(fit.shape, [(factor * length, factor * ring)]) for factor in _SEVERAL]

    def _fitted(self, shape: float, beginnings: Sequence[tuple[float, float]]) -> Fit:
        """The likeliest pauses of a shape, by a search that begins with the likeliest of some lengths and rings."""
        begun = max(
            (self._begun(length, ring, shape) for length, ring in beginnings),
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
        return Fit(shape, found.x, self._known(found.x, shape), -float(found.fun))

    def covariance(self, fit: Fit) -> Array:
        """Covariance of a fit's parameters, where the search for them ended."""
        shape, moved = fit.shape, fit.moved
        covariance = _covariance(
            lambda at: self._log_likelihood(self._known(at, shape), shape), moved
        )
        if shape < EQUAL or not np.all(np.isfinite(covariance)):
            return covariance

        length = np.exp(moved[1]) * self.where
        size = np.exp(moved[2])
        ring = np.exp(self._known(moved, shape)[2])
        # The ring holds the frames of the length, minus the lost frames.
        known = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, length / ring, -size / ring]])
        return np.asarray(known @ covariance @ known.T)

    def _known(self, moved: Array, shape: float) -> Array:
        """For equal lengths, searches for length and size of a loss. The ring that follows from them varies less."""
        if shape < EQUAL:
            return moved
        frames = np.exp(moved[1]) * self.where - np.exp(moved[2])
        return np.array([moved[0], moved[1], np.log(max(frames, 1e-3))])

    def _begun(self, length: float, ring: float, shape: float) -> Array:
        """Parameters of the search for a length and a ring; see `_known`."""
        where = self.where
        seconds = float(self.seconds.sum() + (self.quiet_seconds * self.quiet_trials).sum())
        if shape < EQUAL:
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
        if shape < EQUAL:
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
        by_load = moments(loads, known, shape)
        number, size, variance, _ = (part[where[: len(self.load)]] for part in by_load)
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

        number, size, variance, _ = (part[where[len(self.load) :]] for part in by_load)
        small = scipy.special.gammainc(size**2 / variance, _QUIET * size / variance)
        # No pause loses more than a few frames.
        log_quiet = -number * self.quiet_seconds * (1.0 - small)
        quiet = np.log(np.exp(log_quiet) + _STRAY)
        return float(np.log(seen + _STRAY).sum() + (self.quiet_trials * quiet).sum())


def _covariance(likelihood: Callable[[Array], float], at: Array) -> Array:
    """Covariance of parameters by the curvature at the maximum; infinite if there is no curvature."""
    steps = STEP * np.eye(len(at))
    curvature = np.empty_like(steps)

    for row, one in enumerate(steps):
        for column, two in enumerate(steps[: row + 1]):
            both = likelihood(at + one + two) + likelihood(at - one - two)
            crossed = likelihood(at + one - two) + likelihood(at - one + two)
            curvature[row, column] = (crossed - both) / (4.0 * STEP**2)
            curvature[column, row] = curvature[row, column]

    values, vectors = np.linalg.eigh(curvature)
    if values.min() <= 0.0:
        return np.diag(np.full(len(at), np.inf))
    return np.asarray((vectors / values) @ vectors.T)


def moments(load: Array, known: Array, shape: float) -> tuple[Array, Array, Array, Array]:
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

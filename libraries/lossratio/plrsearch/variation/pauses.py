"""Pauses that overflow a ring: how long they are, how often they come, and what the ring holds.

While a device does not read for a time *x*, its ring fills; at a load *L*, a pause loses L x - r frames, if the ring
holds fewer than L x, that is r. Sizes and number of the losses at several loads show length, ring and frequency. The
lengths may differ: they have a gamma distribution, whose shape is 1 where they are exponential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, CriticalLoadQuestion, TrialCounts

_SHAPES = (1.0, 8.0, 60.0, 1e5)
"""Shapes of the lengths' distribution that are compared: from exponential to equal lengths."""
_EQUAL = 2.0
"""Shape from which on lengths are about equal."""
_QUIET = 5.0
"""Lost frames of a trial that shows no pause, at most."""
_LEAST = 3
"""Trials with losses by pauses, at least."""
_OVERLOAD = 1e-3
"""Loss ratio of trials in overload."""
_BELOW = 0.998
"""Loads above that share of the forwarding rate are about overload."""
_NOT_ABOUT, _FAR_BELOW = 0.97, 0.9
"""Loads below that share of it are not; and below the other one, no batch is lost by overload."""
_MOST = 40
"""Pauses of a trial that are told apart, at most."""
_BEYOND = 8.0
"""Standard deviations, and pauses, beyond the expected number up to which numbers of pauses are told apart."""
_STRAY = 1e-9
"""Probability of a count for another reason."""
_ROUNDING = 0.005
"""Share by which losses of equal pauses differ, at least."""
_UNUSUAL = 2.0
"""Nats by which other lengths than exponential and equal ones have to be likelier than these: few devices have them."""
_PLAUSIBLE = 6.0
"""Nats by which a shape may be less likely than the best one."""
_LENGTH, _RING = 0.15, 0.25
"""Largest standard deviations of the logarithms of length and ring with which they are said."""
_ALIKE = 1.2
"""Largest factor between the lengths by plausible shapes."""
_STEP = 3e-3
"""Step of second derivatives, in nats."""
_WIDTH, _LEAST_WIDTH = 0.2, 0.01
"""How far from the beginning the search for the likeliest parameters looks first, for exponential lengths and for equal
ones."""
_CLOSE, _ROUNDS = 3e-3, 110
"""Where the search for the likeliest parameters ends, and its steps."""


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
    """Of the counts."""
    stdevs: tuple[float, float] = (np.inf, np.inf)
    """Standard deviations of the logarithms of length and ring; infinite if the losses do not show them."""
    is_sure: bool = False
    """Whether losses show the length well enough to say it."""

    @classmethod
    def of(cls, counts: TrialCounts, *, has_batches: bool = False) -> Pauses | None:
        """The likeliest pauses; None if the losses are too few, or not of pauses.

        Where frames are lost in batches, only losses far below overload are of pauses.
        """
        losses = _Losses.of(counts, _FAR_BELOW if has_batches else _BELOW)
        if losses is None:
            return None
        fits = [losses.fitted(shape) for shape in _SHAPES]

        best, moved = max(
            fits, key=lambda fit: fit[0].log_likelihood - (0.0 if fit[0].is_usual else _UNUSUAL)
        )
        least = best.log_likelihood - _PLAUSIBLE
        plausible = [fit for fit, _ in fits if fit.log_likelihood > least]
        lengths = [fit.length_s for fit in plausible]
        stdevs = losses.stdevs(best, moved)
        is_sure = max(lengths) < _ALIKE * min(lengths) and stdevs[0] < _LENGTH
        return replace(best, stdevs=stdevs, is_sure=is_sure)

    @property
    def is_usual(self) -> bool:
        """Whether lengths are exponential or equal."""
        return self.shape in (_SHAPES[0], _SHAPES[-1])

    def loss_ratio(self, load: float) -> float:
        """Share of the frames that are lost to pauses at a load in frames per second."""
        parameters = np.log([1.0 / self.every_s, self.length_s, self.ring_frames])
        return float(_moments(np.array([load]), parameters, self.shape)[3][0])

    def critical_load(self, question: CriticalLoadQuestion) -> float:
        """The load in frames per second at which the target ratio is lost to pauses, within the limits."""
        target, low, high = question.target_loss_ratio, question.min_load, question.max_load
        if self.loss_ratio(low) >= target:
            return low
        if self.loss_ratio(high) <= target:
            return high
        return float(scipy.optimize.brentq(lambda load: self.loss_ratio(load) - target, low, high))

    def __str__(self) -> str:
        """The pauses, in one line."""
        lengths = "on average, of very different length" if self.shape < 2.0 else "long"
        ring = "a ring"
        if self.stdevs[1] < _RING:
            ring = (
                f"a ring of about {self.ring_frames:,.2g} frames, if all frames go through one ring"
            )
        return (
            f"The device pauses about {3600.0 / self.every_s:,.2g} times an hour. Pauses are about "
            f"{1e6 * self.length_s:,.2g} us {lengths}, and overflow {ring}"
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
    """Loads of trials without losses; equal trials are together."""
    quiet_seconds: Array
    """Their durations."""
    quiet_trials: Array
    """How many they are."""

    @classmethod
    def of(cls, counts: TrialCounts, highest: float) -> _Losses | None:
        """The trials that show pauses, and those that show none; None if they are too few, or all at one load.

        The highest of their loads is a share of the forwarding rate.
        """
        lost = counts.lost * counts.duration / np.maximum(counts.exposure, 1e-300)
        is_quiet = lost <= _QUIET
        overloaded = counts.lost > _OVERLOAD * counts.load * counts.exposure
        passed = counts.load - counts.lost / np.maximum(counts.exposure, 1e-300)
        most = float(counts.load[is_quiet].max(initial=0.0))
        if overloaded.any():
            rate = float(np.median(passed[overloaded]))
            # Where each trial loses frames is the knee, unless it is far below overload.
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
        """Each load once; and which of them each trial with losses has, and then each quiet one."""
        return np.unique(np.concatenate([self.load, self.quiet_load]), return_inverse=True)

    def fitted(self, shape: float) -> tuple[Pauses, Array]:
        """The likeliest pauses of that shape, and where the search for them ended; see `_known`."""
        where = self.where
        length, ring = self._begin(where, shape)
        seconds = self.seconds.sum() + (self.quiet_seconds * self.quiet_trials).sum()
        overflowing = scipy.special.gammaincc(shape, shape * ring / where / length)
        often = len(self.lost) / seconds / max(float(overflowing), _STRAY)
        size = ring if shape < _EQUAL else max(length * where - ring, 1.0)
        begun = np.log([often, length, size])

        width = _WIDTH / np.sqrt(shape) + _LEAST_WIDTH
        # The stubs want a function of any arguments.
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

    def stdevs(self, fit: Pauses, moved: Array) -> tuple[float, float]:
        """Standard deviations of the logarithms of length and ring, where the search for the fit ended."""
        shape = fit.shape
        _, of_length, of_size = _stdevs(
            lambda at: self._log_likelihood(self._known(at, shape), shape), moved
        ).tolist()
        if shape < _EQUAL:
            return of_length, of_size
        frames = np.hypot(of_length * fit.length_s * self.where, of_size * np.exp(moved[2]))
        return of_length, float(frames) / fit.ring_frames

    def _known(self, moved: Array, shape: float) -> Array:
        """Of equal lengths, length and size of a loss are sought: a ring that follows from them varies less."""
        if shape < _EQUAL:
            return moved
        frames = np.exp(moved[1]) * self.where - np.exp(moved[2])
        return np.array([moved[0], moved[1], np.log(max(frames, 1e-3))])

    def _begin(self, where: float, shape: float) -> tuple[float, float]:
        """A length and a ring to begin with: of equal lengths, by how the smallest loss grows with the load."""
        size = float(np.median(self.lost / self.load))
        if shape < _EQUAL:
            return size, 2.0 * size * where

        loads = np.unique(self.load)
        least = np.array([self.lost[self.load == load].min() for load in loads])
        one, other = np.triu_indices(len(loads), 1)
        slopes = (least[other] - least[one]) / (loads[other] - loads[one])
        length = max(float(np.median(slopes)), 1.1 * size)
        return length, max(float(np.median(length * loads - least)), 0.1 * length * where)

    def _log_likelihood(self, known: Array, shape: float) -> float:
        loads, where = self._loads
        moments = _moments(loads, known, shape)
        number, size, variance, _ = (part[where[: len(self.load)]] for part in moments)
        expected = np.maximum(number * self.seconds, 1e-300)
        # More pauses than these are less probable than a count for another reason.
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
        # No pause that loses more than a few frames.
        log_quiet = -number * self.quiet_seconds * (1.0 - small)
        quiet = np.log(np.exp(log_quiet) + _STRAY)
        return float(np.log(seen + _STRAY).sum() + (self.quiet_trials * quiet).sum())


def _stdevs(likelihood: Callable[[Array], float], at: Array) -> Array:
    """Standard deviations of parameters by the curvature at the maximum; infinite where there is none."""
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
        return np.full(len(at), np.inf)
    return np.asarray(np.sqrt((vectors**2 / values).sum(axis=1)))


def _moments(load: Array, known: Array, shape: float) -> tuple[Array, Array, Array, Array]:
    """Pauses per second that overflow the ring, mean and variance of the frames that one loses, and the loss ratio.

    The parameters are logarithms: of the pauses per second, the mean length, and the frames of the ring.
    """
    often, length, ring = np.exp(np.minimum(known, 300.0))
    full = ring / load
    x = shape * full / length
    # Each tail is the one before and a term more (DLMF 8.8.6).
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

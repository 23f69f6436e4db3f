"""The fitting functions of the draft, section 5.3: mean loss as a function of load, in forms that never lose digits.

A fitting function gives the mean loss rate r (lost frames per second) at a load b for two parameters: the mrr m, to
which the forwarding rate tends under overload, and the spread a, the width of the knee. Loads, m and a are in frames
per second. All methods take numpy arrays that broadcast against each other.

Both functions increase with the load and are convex in it, so that the loss ratio r / b increases too. The draft's
formulas overflow or cancel nearly everywhere. These are the same functions, rewritten.
"""

from typing import TypeAlias

import numpy as np
import scipy
from numpy.polynomial.legendre import leggauss

from lossratio.plrsearch.counts import Array

_SQRT_PI = float(np.sqrt(np.pi))
_TINY = 1e-300


class Stretch:
    """The primitive of the logistic function (draft 5.3.1): exponential below the knee."""

    name = "stretch"

    def log_loss_rate(self, load: Array, mrr: Array, spread: Array) -> Array:
        """Natural logarithm of the mean loss rate (frames per second).

        With q = exp(-m/a): r = a (1 + q) softplus(y), y = (b - m)/a + log(1 - exp(-b/a)) - log(1 + q).
        """
        log1p_q = np.log1p(np.exp(-mrr / spread))
        exponent = (load - mrr) / spread + (np.log(-np.expm1(-load / spread)) - log1p_q)
        softplus = np.maximum(exponent, 0.0) + np.log1p(np.exp(-np.abs(exponent)))
        log_softplus = np.log(np.maximum(softplus, _TINY))
        log_softplus = np.where(exponent < -600.0, exponent, log_softplus)
        return np.asarray(np.log(spread) + log1p_q + log_softplus)


class Erf:
    """The double primitive of the Gaussian (draft 5.3.2): falls off below the knee like a Gaussian's tail.

    With z = (m - b)/a, z0 = m/a and G the integral of erfc from z to infinity: r = a (G(z) - G(z0)) / erfc(-z0).
    """

    name = "erf"

    def log_loss_rate(self, load: Array, mrr: Array, spread: Array) -> Array:
        """See `Stretch.log_loss_rate`."""
        origin = mrr / spread
        log_integral = _log_erfc_integral((mrr - load) / spread, origin, load / spread)
        return np.log(spread / _erfc_of_negative(origin)) + log_integral


FittingFunction: TypeAlias = Stretch | Erf
FUNCTIONS: tuple[FittingFunction, ...] = (Stretch(), Erf())


def _erfc_of_negative(x: Array) -> Array:
    """Computes erfc(-x) for positive x: 2 if x is large, as it is unless the spread is near the mrr."""
    if x.min(initial=np.inf) < 6.0:
        return 2.0 - np.exp(-x * x) * scipy.special.erfcx(x)
    return np.full((), 2.0)


def _is_near(origin: Array, z: Array) -> bool:
    """Whether the integral beyond the origin may be 1e-16 of that beyond z: erfc and G fall faster than exp(-z^2)."""
    gap = origin * origin - np.square(np.maximum(z, 0.0))
    return bool(gap.min(initial=np.inf) < 37.0)


def _log_erfc(x: Array) -> Array:
    """Logarithm of erfc."""
    scaled = scipy.special.erfcx(np.abs(x))
    below = x < 0.0
    if not below.any():
        return np.asarray(np.log(scaled) - x * x)
    square = x * x
    return np.log(np.where(below, 2.0 - np.exp(-square) * scaled, scaled)) - np.where(
        below, 0.0, square
    )


def _log_g(z: Array) -> Array:
    """Logarithm of the integral of erfc from z to infinity."""
    size = np.abs(z)
    scaled = scipy.special.erfcx(size)
    head = 1.0 / _SQRT_PI - size * scaled
    far = size >= 40.0

    if far.any():
        q = 0.25 / np.where(far, size * size, 1600.0)
        series = 1.0 - q * (6.0 - q * (60.0 - q * (840.0 - q * 15120.0)))
        head = np.where(far, 2.0 * q * series / _SQRT_PI, head)

    below = z < 0.0
    square = z * z
    if not below.any():
        return np.asarray(np.log(head) - square)
    return np.log(np.where(below, np.exp(-square) * head + 2.0 * size, head)) - np.where(
        below, 0.0, square
    )


_NODES, _WEIGHTS = leggauss(8)


def _log_erfc_integral(z: Array, origin: Array, width: Array) -> Array:
    """Logarithm of the integral of erfc from z to `origin`, which is `width` above z."""
    log_g = _log_g(z)
    if not _is_near(origin, z):
        return log_g

    gap = _log_g(origin) - log_g
    with np.errstate(divide="ignore"):
        log_integral = log_g + np.log(-np.expm1(np.minimum(gap, -0.0)))
    near = gap > -0.2
    if near.any():
        z, width = np.broadcast_arrays(z, width)[0][near], np.broadcast_arrays(width, z)[0][near]
        points = _log_erfc(z[:, None] + 0.5 * width[:, None] * (1.0 + _NODES))
        top = points.max(axis=1)
        mean = 0.5 * (np.exp(points - top[:, None]) @ _WEIGHTS)
        log_integral = np.array(log_integral)
        log_integral[near] = np.log(width) + top + np.log(mean)

    return log_integral

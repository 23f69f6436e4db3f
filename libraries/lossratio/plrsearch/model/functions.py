"""The fitting functions of the draft, section 5.3: mean loss as a function of load, in forms that never lose digits.

A fitting function gives the mean loss rate r (lost frames per second) at a load b for two parameters: the mrr m, to
which the forwarding rate tends under overload, and the spread a, the width of the knee. Loads, m and a are in frames
per second. All methods take numpy arrays that broadcast against each other.

Both functions increase with the load and are convex in it, so that the loss ratio r / b increases too. The draft's
formulas overflow or cancel nearly everywhere. These are the same functions, rewritten.
"""

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import scipy
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SQRT_PI = float(np.sqrt(np.pi))
_TINY = 1e-300


@dataclass(frozen=True)
class LogLoss:
    """The logarithm of a fitting function and its slope at some points."""

    log_rate: Array
    """Natural logarithm of the mean loss rate in frames per second."""
    slope: Array
    """Derivative of `log_rate` with respect to the mrr, per frame per second; never positive."""


class Stretch:
    """The primitive of the logistic function (draft 5.3.1): exponential below the knee.

    With q = exp(-m/a): r = a (1 + q) softplus(y), y = (b - m)/a + log(1 - exp(-b/a)) - log(1 + q).
    """

    name = "stretch"

    def log_loss_rate(self, load: Array, mrr: Array, spread: Array) -> Array:
        """Natural logarithm of the mean loss rate (frames per second)."""
        log1p_q = np.log1p(np.exp(-mrr / spread))
        exponent = self._exponent(load, mrr, spread, log1p_q)
        softplus = _softplus(exponent)
        return np.log(spread) + log1p_q + _log_softplus(exponent, softplus)

    def log_loss(self, load: Array, mrr: Array, spread: Array) -> LogLoss:
        """`log_loss_rate` with its derivative with respect to the mrr."""
        q = np.exp(-mrr / spread)
        log1p_q = np.log1p(q)
        exponent = self._exponent(load, mrr, spread, log1p_q)
        softplus = _softplus(exponent)
        steepness = _softplus_steepness(softplus)
        return LogLoss(
            np.log(spread) + log1p_q + _log_softplus(exponent, softplus),
            -(q + steepness) / ((1.0 + q) * spread),
        )

    def load_slope(self, load: Array, mrr: Array, spread: Array) -> Array:
        """Derivative of the logarithm of the mean loss rate with respect to the load, per frame per second."""
        exponent = self._exponent(load, mrr, spread, np.log1p(np.exp(-mrr / spread)))
        return -_softplus_steepness(_softplus(exponent)) / (spread * np.expm1(-load / spread))

    def explaining_mrr(self, load: Array, log_loss_rate: Array, spread: Array) -> Array:
        """The approximate mrr with the given mean loss rate at this load; exact if m is far above a."""
        log_units = log_loss_rate - np.log(spread)
        units = np.exp(np.minimum(log_units, 700.0))
        with np.errstate(divide="ignore", over="ignore"):
            inverse = np.where(units > 30.0, units, np.log(np.expm1(np.minimum(units, 30.0))))
        return load - spread * np.where(log_units < -30.0, log_units, inverse)

    def curvature(self, load: Array, mrr: Array, spread: Array, loss: LogLoss) -> Array:
        """Second derivative of the logarithm of the mean loss rate (see `log_loss`) with respect to the mrr.

        Never positive; exact if m is far above a.
        """
        steepness = -spread * loss.slope
        return (
            steepness
            * np.minimum(np.exp(-np.exp(loss.log_rate) / spread) - steepness, 0.0)
            / spread**2
        )

    def _exponent(self, load: Array, mrr: Array, spread: Array, log1p_q: Array) -> Array:
        return (load - mrr) / spread + (np.log(-np.expm1(-load / spread)) - log1p_q)


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

    def log_loss(self, load: Array, mrr: Array, spread: Array) -> LogLoss:
        """See `Stretch.log_loss`."""
        origin = mrr / spread
        z = (mrr - load) / spread
        scaled = scipy.special.erfcx(np.abs(z))
        log_integral = _log_erfc_integral(z, origin, load / spread, scaled)
        log_erfc = _log_erfc(z, scaled)
        height = np.exp(log_erfc - log_integral)
        if _is_near(origin, z):
            height = height * -np.expm1(np.minimum(_log_erfc(origin) - log_erfc, 0.0))
        norm = _erfc_of_negative(origin)
        slope = -(height + 2.0 / _SQRT_PI * np.exp(-origin * origin) / norm) / spread
        return LogLoss(np.log(spread / norm) + log_integral, slope)

    def load_slope(self, load: Array, mrr: Array, spread: Array) -> Array:
        """See `Stretch.load_slope`."""
        z = (mrr - load) / spread
        return np.exp(_log_erfc(z) - _log_erfc_integral(z, mrr / spread, load / spread)) / spread

    def explaining_mrr(self, load: Array, log_loss_rate: Array, spread: Array) -> Array:
        """See `Stretch.explaining_mrr`."""
        log_units = log_loss_rate - np.log(0.5 * spread)
        z_of_g, negative_log_g = _table_of_g()
        z = np.interp(-log_units, negative_log_g, z_of_g)
        far = np.exp(np.clip(log_units, -700.0, 700.0))
        return load + spread * np.where(log_units > -negative_log_g[0], -0.5 * far, z)

    def curvature(self, load: Array, mrr: Array, spread: Array, loss: LogLoss) -> Array:
        """See `Stretch.curvature`."""
        z = (mrr - load) / spread
        log_integral = loss.log_rate - np.log(0.5 * spread)
        density = np.exp(np.minimum(-z * z - log_integral, 700.0)) * 2.0 / _SQRT_PI
        return np.minimum(density - (spread * loss.slope) ** 2, 0.0) / spread**2


STRETCH = Stretch()
ERF = Erf()
FittingFunction: TypeAlias = Stretch | Erf
FUNCTIONS: tuple[FittingFunction, ...] = (STRETCH, ERF)


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _log_softplus(x: Array, softplus: Array) -> Array:
    log = np.log(np.maximum(softplus, _TINY))
    if x.min(initial=0.0) < -600.0:
        return np.where(x < -600.0, x, log)
    return log


def _softplus_steepness(softplus: Array) -> Array:
    """Derivative of the logarithm of the softplus function at the point where it has this value."""
    positive = np.maximum(softplus, _TINY)
    return np.asarray(-np.expm1(-positive) / positive)


def _erfc_of_negative(x: Array) -> Array:
    """Computes erfc(-x) for positive x: 2 if x is large, as it is unless the spread is near the mrr."""
    if x.min(initial=np.inf) < 6.0:
        return 2.0 - np.exp(-x * x) * scipy.special.erfcx(x)
    return np.full((), 2.0)


def _is_near(origin: Array, z: Array) -> bool:
    """Whether the integral beyond the origin may be 1e-16 of that beyond z: erfc and G fall faster than exp(-z^2)."""
    gap = origin * origin - np.square(np.maximum(z, 0.0))
    return bool(gap.min(initial=np.inf) < 37.0)


def _log_erfc(x: Array, scaled: Array | None = None) -> Array:
    """Logarithm of erfc; `scaled` is erfcx of the absolute value, if it is already known."""
    scaled = scipy.special.erfcx(np.abs(x)) if scaled is None else scaled
    below = x < 0.0
    if not below.any():
        return np.asarray(np.log(scaled) - x * x)
    square = x * x
    return np.log(np.where(below, 2.0 - np.exp(-square) * scaled, scaled)) - np.where(
        below, 0.0, square
    )


def _log_g(z: Array, scaled: Array | None = None) -> Array:
    """Logarithm of the integral of erfc from z to infinity; `scaled` as in `_log_erfc`."""
    size = np.abs(z)
    scaled = scipy.special.erfcx(size) if scaled is None else scaled
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


def _log_erfc_integral(z: Array, origin: Array, width: Array, scaled: Array | None = None) -> Array:
    """Logarithm of the integral of erfc from z to `origin`, which is `width` above z; `scaled` is erfcx(|z|)."""
    log_g = _log_g(z, scaled)
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


@cache
def _table_of_g() -> tuple[Array, Array]:
    """Values of z, and the negative logarithms of G there; made on first use, because scipy takes long to import."""
    z = np.concatenate([np.linspace(-10.0, 8.0, 721), np.geomspace(8.1, 4e4, 2000)])
    return z, -_log_g(z)

"""A rough posterior of a varying capacity: good enough to see where the exact one is, and quick.

Every count's bump (see `capacity`) is taken for a Gaussian. Then the density in a row is a Gaussian in m, but for
trials without loss, and needs no search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr

from lossratio.plrsearch.likelihood import Bumps, RowDensity, VaryingCapacityLikelihood
from lossratio.plrsearch.model import Array

_ITERATIONS = 6
_NEAR = 0.1
"""Standard deviations of a row by which its maximum may be missed."""
_FAR = 30.0
"""Standard deviations above a step from which on its hazard is nothing."""
_POINTS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class RoughRows:
    """About the rows' maxima; arrays of shape (rows,).

    Attributes:
        mode: Log m of the highest density.
        log_mass: Logarithm of the row's integral over log m.
    """

    mode: Array
    log_mass: Array


def rough_rows(density: RowDensity, likelihood: VaryingCapacityLikelihood) -> RoughRows:
    """The rows' maxima and integrals, if the bumps were Gaussian; at least one trial must have lost frames."""
    size = max(1, _POINTS_AT_ONCE // len(likelihood.groups))
    pieces = [
        _piece(likelihood, density.bumps.chosen(slice(at, at + size)), density.deviation[at : at + size, None])
        for at in range(0, len(density.log_spread), size)
    ]
    mode, height, stiffness = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    mode = np.maximum(np.log(np.maximum(mode, 1.0)), density.log_spread)
    log_width = 0.5 * np.log(2.0 * np.pi / stiffness) - mode
    return RoughRows(mode, height + log_width + density.model.prior.log_density(mode))


def _piece(likelihood: VaryingCapacityLikelihood, bumps: Bumps, deviation: Array) -> tuple[Array, Array, Array]:
    """Place, height and negative second derivative of the maximum in m."""
    lossy = likelihood.groups.lost > 0
    trials, quiet = likelihood.trials[lossy], likelihood.trials[~lossy]
    scale = np.hypot(deviation, bumps.width)
    weight = trials * scale[:, lossy] ** -2
    place = bumps.place[:, lossy]
    total = weight.sum(axis=1)
    mean = np.sum(weight * place, axis=1) / total
    constant = -0.5 * np.sum(weight * (place - mean[:, None]) ** 2, axis=1)
    constant -= np.log(scale[:, lossy] / bumps.width[:, lossy]) @ trials
    step, step_scale = bumps.place[:, ~lossy], scale[:, ~lossy]
    best, stiffness = mean, total
    for _ in range(_ITERATIONS if not lossy.all() else 0):
        distance = np.minimum((best[:, None] - step) / step_scale, _FAR)
        hazard = np.sqrt(2.0 / np.pi) / erfcx(-np.sqrt(0.5) * distance)
        # Between 0 and 1; far away both cancel each other out but for rounding.
        curvature = np.clip(hazard * (hazard + distance), 0.0, 1.0)
        stiffness = total + (curvature / step_scale**2) @ quiet
        move = ((hazard / step_scale) @ quiet - total * (best - mean)) / stiffness
        best = best + move
        if np.all(move * move * stiffness < _NEAR**2):
            break
    tails = log_ndtr((best[:, None] - step) / step_scale) @ quiet
    return best, constant - 0.5 * total * (best - mean) ** 2 + tails, stiffness

"""Where a density is: places, finer and finer around its maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lossratio.plrsearch.model import Array, Indices

_ROUNDS = 60
_FINE = 0.35
"""Share of a row's places that are near its maximum, if they are close enough to each other."""


def zoomed(
    evaluate: Callable[[Array, Indices], Array], low: Array, high: Array, number: int, depth: float
) -> tuple[Array, Array]:
    """Places in each row and the heights there, until enough of them are near the row's maximum.

    Args:
        evaluate: The heights at places in the rows with these indexes.
        low: Where each row begins.
        high: Where it ends.
        number: Number of places in a row.
        depth: Nats below the maximum that are still near.
    """
    places = np.empty((len(low), number))
    heights = np.empty(places.shape)
    rough = np.arange(len(low))
    ends = np.stack([low, high])
    for _ in range(_ROUNDS):
        low, high = ends[:, rough, None]
        places[rough] = low + (high - low) * np.linspace(0.0, 1.0, number)
        heights[rough] = evaluate(places[rough], rough)
        is_near = heights > heights.max(axis=1, keepdims=True) - depth
        is_rough = is_near.sum(axis=1) < _FINE * number
        rough = np.flatnonzero(is_rough & (np.ptp(places, axis=1) > 1e-9))
        if not len(rough):
            break
        ends = np.array([ends_of(*row) for row in zip(places, is_near, strict=True)]).T
    return places, heights


def ends_of(places: Array, inside: NDArray[np.bool_]) -> Array:
    """The places around all places inside."""
    which = np.flatnonzero(inside)
    return places[[max(which[0] - 1, 0), min(which[-1] + 1, len(places) - 1)]]

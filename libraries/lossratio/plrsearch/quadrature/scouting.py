"""Where the posterior of few trials is: its peaks in log a at each log s, and the blocks around them.

A peak may be a thousandth of the posterior's width, but away from it the logarithm of the density falls like a
parabola, so that a coarse look shows where to look closer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.plrsearch.likelihood import Model
from lossratio.plrsearch.model import Array, Indices
from lossratio.plrsearch.quadrature.rows import explaining_starts, find_rows

_PEAKS = 3
"""Most peaks in log a at one log s."""
DEEP = 20.0
"""Nats below the maximum where a row ends."""
DEPTH = 18.0
"""Nats below the maximum where the integral over log a ends; a broad shoulder may be that deep and still matter."""
_JUMP = 3.0
"""Nats by which the density differs between the ends of a first block, about."""
_ZOOMS = 40


@dataclass(frozen=True)
class Slice:
    """The posterior at one log s, about, at some places in log a."""

    log_spread: Array
    """Log a, increasing."""
    log_density: Array
    """Logarithms of the rows' integrals over log m, about."""

    @property
    def ends(self) -> tuple[float, float]:
        """Log a below and above which there is no mass."""
        inside = np.flatnonzero(self.log_density > self.log_density.max() - DEPTH)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, len(self.log_spread) - 1)
        return float(self.log_spread[first]), float(self.log_spread[last])

    @property
    def log_mass(self) -> float:
        """Logarithm of the integral over log a, about."""
        width = np.diff(self.log_spread)
        top = self.log_density.max()
        density = np.exp(self.log_density - top)
        return float(top + np.log(np.sum(0.5 * width * (density[1:] + density[:-1]))))


def scouted_slices(model: Model, log_deviation: Array, log_spread: Array) -> list[Slice]:
    """Looks for the peaks in log a at each log s: a coarse look first, then closer and closer around each maximum."""

    def heights(which: Indices, log_spread: Array) -> Array:
        deviation = np.broadcast_to(np.exp(log_deviation[which])[:, None], log_spread.shape)
        rows = model.rows(log_spread.ravel(), deviation.ravel())
        return find_rows(rows, explaining_starts(rows), DEEP).log_mass.reshape(log_spread.shape)

    every = np.arange(len(log_deviation))
    x = np.tile(log_spread, (len(every), 1))
    y = heights(every, x)
    known = [(np.repeat(every, len(log_spread)), x.ravel(), y.ravel())]
    padded = np.pad(y, ((0, 0), (1, 1)), constant_values=-np.inf)
    summit = (y >= padded[:, :-2]) & (y > padded[:, 2:])
    order = np.argsort(np.argsort(np.where(summit, -y, np.inf), axis=1), axis=1)
    which, middle = np.nonzero(summit & (order < _PEAKS))
    places = np.clip(middle[:, None] + [-1, 0, 1], 0, len(log_spread) - 1)
    x, y = x[which[:, None], places], y[which[:, None], places]
    for _ in range(_ZOOMS):
        wide = (np.ptp(y, axis=1) > _JUMP) & (np.ptp(x, axis=1) > 1e-9)
        which, x, y = which[wide], x[wide], y[wide]
        if not len(which):
            break
        new = _between(x, y)
        new_heights = heights(which, new)
        known.append((np.repeat(which, new.shape[1]), new.ravel(), new_heights.ravel()))
        x, y = np.concatenate([x, new], axis=1), np.concatenate([y, new_heights], axis=1)
        order = np.argsort(x, axis=1)
        x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
        top = np.argmax(y, axis=1)
        places = np.clip(top[:, None] + [-1, 0, 1], 0, x.shape[1] - 1)
        x, y = np.take_along_axis(x, places, axis=1), np.take_along_axis(y, places, axis=1)
    index, log_spread, log_density = (np.concatenate(parts) for parts in zip(*known, strict=True))
    return [_sorted(log_spread[index == number], log_density[index == number]) for number in every]


def _sorted(log_spread: Array, log_density: Array) -> Slice:
    places, first = np.unique(log_spread, return_index=True)
    return Slice(places, log_density[first])


def _between(x: Array, y: Array) -> Array:
    """Places where the maximum may be, between three places: the middles, and the parabola's vertex and around it."""
    left, right = x[:, 1] - x[:, 0], x[:, 2] - x[:, 1]
    rise, fall = y[:, 1] - y[:, 0], y[:, 1] - y[:, 2]
    bend = rise * right + fall * left
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = x[:, 1] + 0.5 * (rise * right**2 - fall * left**2) / bend
    vertex = np.where(np.isfinite(vertex), vertex, x[:, 1])
    reach = 0.03 * (x[:, 2] - x[:, 0])
    new = np.stack([x[:, 0] + 0.5 * left, x[:, 1] + 0.5 * right, vertex - reach, vertex, vertex + reach], axis=1)
    return np.clip(new, x[:, :1], x[:, 2:])


def edges_of(x: Array, y: Array, depth: float) -> Array:
    """Edges of blocks: at the maxima, where the height has changed much, and at both ends, `depth` below the top."""
    top = y.max()
    inside = np.flatnonzero(y > top - depth)
    first, last = inside[0], inside[-1]
    edges = [_end(x, y, first, first - 1, top, depth)]
    height = y[first]
    for place in range(first, last + 1):
        is_summit = 0 < place < len(x) - 1 and y[place] >= y[place - 1] and y[place] > y[place + 1]
        if is_summit or abs(y[place] - height) > _JUMP:
            edges.append(x[place])
            height = y[place]
    edges.append(_end(x, y, last, last + 1, top, depth))
    return np.unique(edges)


def _end(x: Array, y: Array, inside: int, outside: int, top: float, depth: float) -> float:
    """Where the height is `depth` below the top, as if it were a parabola."""
    if not 0 <= outside < len(x):
        return float(x[inside])
    near, far = np.sqrt(top - y[inside]), np.sqrt(top - y[outside])
    return float(x[inside] + (x[outside] - x[inside]) * (np.sqrt(depth) - near) / (far - near))

"""Whether losses depend on the flow, the size or the moment of a frame: tests against chance.

Losses of an overloaded device are not independent events: they come in bursts of any length. So the units of these
tests are never frames, but blocks of a trial, loss events and trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossratio.trials import Losses, read_counts

Numbers = NDArray[np.float64]

OTHER_LOAD = 1.02
"""Two loads are different if their ratio is at least this."""
_TIE = 1e-9
_STRENGTHS = tuple(0.125 * 2.0 ** (step / 2.0) for step in range(13))
"""Where Chernoff's bound is evaluated: each of the bounds holds, and the smallest one counts."""


@dataclass(frozen=True, eq=False)
class LossCounts:
    """Frames of each flow, each place of a pattern of sizes, or each class, in one direction of a trial."""

    by_block: Numbers
    """Lost frames: a row for each block of the trial, with a number for each flow."""
    known: Numbers
    """Frames of each flow in the whole trial for which it is known whether they were lost."""

    @property
    def lost(self) -> Numbers:
        """Lost frames of each flow, in the whole trial."""
        lost: Numbers = self.by_block.sum(axis=0)
        return lost

    @property
    def shares(self) -> Numbers:
        """The share that each flow lost in each block, as if all blocks had the same number of its frames."""
        shares: Numbers = self.by_block * len(self.by_block) / np.maximum(self.known, 1.0)
        return shares

    def by_label(self, labels: NDArray[np.intp]) -> LossCounts:
        """The same for classes of flows.

        Args:
            labels: The class of each flow, a number from 0 on.
        """
        by_block = [np.bincount(labels, weights=row) for row in self.by_block]
        known: Numbers = np.bincount(labels, weights=self.known).astype(float)
        return LossCounts(np.array(by_block), known)


@dataclass(frozen=True, eq=False)
class SeenLosses:
    """The losses of one direction in one trial, as numbers."""

    trial: int
    """Number of the trial."""
    load: float
    """Load of the trial per interface, in frames per second."""
    direction: str
    """Name of the direction."""
    losses: Losses
    """The record."""

    @property
    def of_flows(self) -> LossCounts:
        """Frames of each flow."""
        return self._counts(self.losses.flows_lost, self.losses.flows_known)

    @property
    def of_sizes(self) -> LossCounts:
        """Frames of each place of the pattern of sizes."""
        return self._counts(self.losses.sizes_lost, self.losses.sizes_known)

    def _counts(self, lost: str, known: str) -> LossCounts:
        all_known = np.array(read_counts(known), dtype=float)
        table = np.array(read_counts(lost), dtype=float)
        return LossCounts(table.reshape(self.losses.blocks, len(all_known)), all_known)

    def flow_sizes(self, table: str) -> Numbers:
        """Lost or known frames of each flow and size; empty: they were not counted.

        Args:
            table: The frames to count: ``lost`` or ``known``.
        """
        counts = read_counts(getattr(self.losses, f"flow_sizes_{table}"))
        sizes = len(set(self.losses.sizes_bytes))
        return np.array(counts, dtype=float).reshape(-1, max(1, sizes))

    @property
    def steps(self) -> tuple[Numbers, Numbers]:
        """Lost and known frames by step."""
        lost, known = (
            np.array(read_counts(text), dtype=float)
            for text in (self.losses.steps_lost, self.losses.steps_known)
        )
        return lost, known


def rotation_test(rows: Sequence[Numbers]) -> float:
    """The probability that blocks are as alike as these, if losses do not depend on the flow.

    Flows follow one another in a cycle. A cause that is independent of flows hits each block at a phase of its own: any
    rotation of a block's row is as likely as the row itself. So every second block says which flows lose more, and the
    other blocks are compared with the result in all rotations. Bursts remain whole in all rotations.

    Args:
        rows: The losses in each block, by flow (or by place of a pattern of sizes), in their order.
    """
    used = [row for row in rows if row.any()]
    template = np.sum(used[0::2], axis=0) if used else np.zeros(1)
    others = used[1::2]
    if not others or len(template) < 2 or np.ptp(template) == 0.0:
        return 1.0

    spectrum = np.conj(np.fft.rfft(template - template.mean()))
    logarithms = []
    likenesses = []
    are_best = True
    for row in others:
        alike = np.fft.irfft(np.fft.rfft(row) * spectrum, n=len(row))
        tie = _TIE * max(1.0, float(np.abs(alike).max()))
        at_least = int(np.count_nonzero(alike >= alike[0] - tie))
        are_best = are_best and bool(alike[0] >= alike.max() - tie)
        logarithms.append(math.log(at_least / len(row)))
        likenesses.append(alike)

    # Imported here because the import is slow; importing scipy.stats would take three times as long.
    from scipy.special import chdtrc

    total = math.fsum(logarithms)
    # Formula: the smallest of three probabilities: Fisher's, that every block is at its best, and that all blocks
    # together are as alike.
    fisher = float(chdtrc(2 * len(logarithms), -2.0 * total))
    every = math.exp(total) if are_best else 1.0
    together = _chance_of_sum(np.array(likenesses))
    return min(1.0, 3.0 * min(fisher, every, together))


def _chance_of_sum(likenesses: Numbers) -> float:
    """An upper bound of the probability that the sum over blocks is as alike, if each block has a random rotation.

    If rows are short, single blocks say little, however they are combined.

    Args:
        likenesses: How alike each block is, in each rotation; the first one is the block itself.
    """
    scale = float(np.abs(likenesses).max())
    if scale == 0.0:
        return 1.0

    alike = likenesses / scale
    total = float(alike[:, 0].sum())
    bounds = []
    for strength in _STRENGTHS:
        # Formula: Chernoff's bound, for independent rotations.
        means = np.log(np.mean(np.exp(strength * alike), axis=1))
        bounds.append(float(means.sum()) - strength * total)
    return min(1.0, math.exp(min(bounds)))


def chance_of_naming(flows: int, members: int, names: float) -> float:
    """The probability that one of some names fits a set of flows by chance.

    Args:
        flows: How many flows there are.
        members: How many of them are in the set.
        names: Number of sets with a name.
    """
    # Formula: names over the binomial coefficient.
    logarithm = math.lgamma(flows + 1) - math.lgamma(members + 1) - math.lgamma(flows - members + 1)
    return min(1.0, names * math.exp(-logarithm))


def runs_of(flags: NDArray[Any]) -> list[tuple[int, int]]:
    """The runs of true values: the index of the first value of each, and the index after its last.

    Args:
        flags: The values.
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]

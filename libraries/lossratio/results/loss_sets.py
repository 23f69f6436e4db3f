"""Flows, sizes, or sizes of flows that lose clearly more than all others; and whether a regular loss makes them.

A device that loses every n-th frame hits some flows more often than others, without regard to flows. It hits other
flows at another load, the same number in each block, and the same share at any load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_tests import OTHER_LOAD, LossCounts, Numbers, SeenLosses

_MOST_GAPS = 3
"""Maximum number of different distances between neighbours in the set of a regular loss, such as of every third
frame."""
_MOST_LIKE_ITSELF = 0.5
"""How similar a set and its copy, shifted by some flows, may be without a regular loss: 0 is chance, 1 is the same."""
_SAME = 0.8
"""How much of a set must be the same at two loads."""
_LOADS = 3
"""A set that loses more of its frames at higher loads must be the same at this many loads."""
_RISING = 1.2
"""Minimum factor by which the share lost at the highest load is larger, if it rises with load."""
_LIKE_CHANCE = (0.4, 2.5)
"""Variance of the losses of blocks, as a multiple of the variance by chance; for a counter, it is near 0."""
_LEAST_VARIANCE = 2.0
"""Blocks are merged until their losses would have this variance if each frame were lost by chance."""
_ENOUGH_PARTS = 8
_HIT = 0.6
"""Trials must hit this share of the members that chance would hit."""
_SEEN_TO_LOSE = 8.0
"""Frames that members of a set must lose on average if all others lose none, so that each member loses some."""
_ALIKE = 2.0
"""Largest variance of the losses of members that lose equally, as a multiple of their mean."""
_CLEAR = 5.0
"""Minimum factor by which the share that lossy flows lose exceeds the share that all others lose."""


@dataclass(frozen=True, eq=False)
class LossyPart:
    """A part of the frames that loses clearly more than all others."""

    share: float
    """The share of these frames that is lost."""
    least: float
    """The smallest share that one of its flows (or places of a pattern) loses."""
    others: float
    """The share of all other frames that is lost."""
    explained: float
    """Share of all lost frames that this part explains, beyond what the others lose."""


@dataclass(frozen=True, eq=False)
class LossySet(LossyPart):
    """The flows (or places of a pattern) that lose clearly more than all others."""

    members: NDArray[np.bool_]
    """For each flow, whether it is in the set."""

    @property
    def count(self) -> int:
        """The number of flows in the set."""
        return int(self.members.sum())

    @property
    def may_be_regular(self) -> bool:
        """Whether a loss of every n-th frame, or of the end of each batch, could hit exactly this set.

        A regular loss hits flows again at the same distances: shifted by some flows, the set is nearly the same.
        """
        return len(self._gaps) <= _MOST_GAPS or self._like_itself > _MOST_LIKE_ITSELF

    @property
    def has_few_gaps(self) -> bool:
        """Whether it has so few different distances that it has to be the same at two loads."""
        return len(self._gaps) <= max(_MOST_GAPS, self.count // 4)

    @property
    def every(self) -> int | None:
        """The constant distance between successive members; None: it is not constant."""
        return self._gaps[0] if len(self._gaps) == 1 else None

    @property
    def _gaps(self) -> list[int]:
        """The different distances between neighbours."""
        places = np.flatnonzero(self.members)
        return sorted(
            set(np.diff(np.concatenate((places, places[:1] + len(self.members)))).tolist())
        )

    @property
    def _like_itself(self) -> float:
        """How much the set, shifted by some flows, overlaps with itself: 0 as by chance, 1 completely."""
        flows = len(self.members)
        spectrum = np.fft.rfft(self.members.astype(float))
        common = np.fft.irfft(np.abs(spectrum) ** 2, n=flows)
        by_chance = self.count * (self.count - 1) / (flows - 1)
        return float((common[1:].max() - by_chance) / max(1.0, self.count - by_chance))

    def overlap(self, other: LossySet) -> float:
        """How much of the union of both sets is in each of them, from 0 to 1."""
        both = int((self.members & other.members).sum())
        return both / max(1, int((self.members | other.members).sum()))


def lossy_set(lost: Numbers, known: Numbers) -> LossySet | None:
    """Divides flows where the shares that they lost are farthest apart; None: there is no clear difference.

    If only some flows have lost frames, these flows are the set, however different their shares are.

    Args:
        lost: Lost frames of each flow.
        known: Frames of each flow for which it is known whether they were lost. A flow without such frames is in
            neither part.
    """
    shares = lost / np.maximum(known, 1.0)
    order = np.sort(shares[known > 0])
    if len(order) < 2 or order[0] == order[-1]:
        return None

    split = int(np.argmax(np.diff(order)))
    found = _divided(lost, known, float(order[split + 1]))
    if (
        found.share > _CLEAR * found.others
        and order[split + 1] - order[split] >= (found.share - found.others) / 3.0
    ):
        return found
    if order[0] > 0.0:
        return None

    lossy = _divided(lost, known, float(order[order > 0.0][0]))
    own = lost[lossy.members]
    are_alike = np.var(own) <= _ALIKE * np.mean(own)
    return lossy if are_alike and np.mean(own) >= _SEEN_TO_LOSE else None


def _divided(lost: Numbers, known: Numbers, least: float) -> LossySet:
    """The flows that lose at least this share, and all others."""
    shares = lost / np.maximum(known, 1.0)
    members = (shares >= least) & (known > 0)
    share = _share_of(lost, known, members)
    others = _share_of(lost, known, ~members)
    excess = (share - others) * float(known[members].sum())
    # Record: the two parts.
    return LossySet(
        share=share,
        least=float(shares[members].min()),
        others=others,
        explained=excess / float(lost.sum()),
        members=members,
    )


def in_all(counts: Iterable[LossCounts]) -> tuple[Numbers, Numbers]:
    """Lost and known frames of each flow (or class), in several trials together.

    Args:
        counts: The counts of each trial.
    """
    each = list(counts)
    lost: Numbers = np.sum([one.lost for one in each], axis=0)
    known: Numbers = np.sum([one.known for one in each], axis=0)
    return lost, known


@dataclass(frozen=True, eq=False)
class SetInTrials:
    """A set that the losses of all trials show, together with what single trials and loads show."""

    found: LossySet
    """The set of all trials."""
    seen: Sequence[SeenLosses]
    """The losses of these trials."""
    counts: Callable[[SeenLosses], LossCounts]
    """Returns the frames of each flow (or place of a pattern) in a trial."""

    def holds_at_two_loads(self) -> bool:
        """Whether the set is the same in all trials, and at two loads.

        If no regular loss could hit exactly this set, the set need not be the same at two loads.
        """
        if not self._is_lasting(self.seen):
            return False
        if not self.found.has_few_gaps:
            return True
        if not self.found.may_be_regular and self.found.others == 0.0:
            # Single trials may have hit each flow too rarely to show all of them.
            by_load = sorted(self.seen, key=lambda one: one.load)
            halves = by_load[: len(by_load) // 2], by_load[len(by_load) // 2 :]
            is_far = by_load[-1].load >= OTHER_LOAD * by_load[0].load
            return is_far and all(map(self._is_lasting, halves))
        return len(self._loads()) > 1

    def is_by_chance_or_load(self, share: float) -> bool:
        """Whether it loses frames as no regular loss does: by chance, or more at higher loads.

        A counting device loses the same number in each block, and the same share at any load. An overloaded device does
        not hit the same flows at several loads.

        Args:
            share: The share lost of the affected frames of the set.
        """
        loads = self._loads()
        if len(loads) < 2:
            return False
        if len(loads) >= _LOADS and loads[-1][1] >= _RISING * loads[0][1]:
            return True

        members = self.found.members
        lost = [self.counts(one).by_block[:, members].sum(axis=1) for one in self.seen]
        return _is_by_chance(lost, share)

    def _loads(self) -> list[tuple[float, float]]:
        """Different loads at which the set is found again, in order, and the share that it loses there."""
        loads: list[tuple[float, float]] = []
        for one in sorted(self.seen, key=lambda one: one.load):
            if loads and one.load < OTHER_LOAD * loads[-1][0]:
                continue
            counts = self.counts(one)
            own = lossy_set(counts.lost, counts.known)
            if own is not None and own.overlap(self.found) >= _SAME:
                loads.append((one.load, own.share))
        return loads

    def _is_lasting(self, seen: Sequence[SeenLosses]) -> bool:
        """Whether each trial has hit as much of the set as its losses should, and not just a part of its own."""
        members = self.found.members
        hit = expected = 0.0
        for one in seen:
            lost = self.counts(one).lost[members]
            hit += np.count_nonzero(lost)
            # Formula: for frames that are lost independently.
            expected += self.found.count * (1.0 - math.exp(-float(lost.mean())))
        return hit >= _HIT * expected


def _is_by_chance(lost_in_trials: Sequence[Numbers], share: float) -> bool:
    """Whether blocks of each trial differ as much as if each frame were lost independently, with this probability.

    Args:
        lost_in_trials: Frames that were lost in each block of a trial.
        share: The share that is lost.
    """
    variance = expected = 0.0
    free = 0
    for lost in lost_in_trials:
        # Formula: for single frames.
        own = float(lost.mean()) * (1.0 - share)
        together = int(np.ceil(_LEAST_VARIANCE / own)) if own > 0.0 else len(lost)
        parts = len(lost) // together
        if parts >= 2:
            sums = lost[: parts * together].reshape(parts, together).sum(axis=1)
            variance += (parts - 1) * float(np.var(sums, ddof=1))
            expected += (parts - 1) * own * together
            free += parts - 1
    least, most = _LIKE_CHANCE
    return free >= _ENOUGH_PARTS and least <= variance / expected <= most


def lossy_cells(
    seen: Sequence[SeenLosses], flows: NDArray[np.bool_], sizes: Sequence[int]
) -> LossyPart | None:
    """Frames of these sizes and flows, if clearly more of them are lost than of others of the same flows or sizes.

    Args:
        seen: The losses of trials.
        flows: For each flow, whether it is one of these flows.
        sizes: The sizes.
    """
    lost, known = (
        np.sum([one.flow_sizes(table) for one in seen], axis=0) for table in ("lost", "known")
    )
    all_sizes = sorted(set(seen[0].losses.sizes_bytes))
    inside = np.outer(flows, np.isin(all_sizes, sizes))
    if not inside.any() or inside.shape != lost.shape:
        return None

    beside = np.outer(flows, np.ones(len(all_sizes), dtype=bool)) & ~inside
    below = np.outer(np.ones(len(flows), dtype=bool), np.isin(all_sizes, sizes)) & ~inside
    share = _share_of(lost, known, inside)
    if any(share <= _CLEAR * _share_of(lost, known, part) for part in (beside, below)):
        return None
    others = _share_of(lost, known, ~inside)
    shares = lost[inside] / np.maximum(1, known[inside])
    # Record: the part of the frames.
    return LossyPart(
        share=share,
        least=float(shares[known[inside] > 0].min()),
        others=others,
        explained=float((share - others) * known[inside].sum() / lost.sum()),
    )


def _share_of(lost: Numbers, known: Numbers, part: NDArray[np.bool_]) -> float:
    return float(lost[part].sum() / max(1.0, known[part].sum()))

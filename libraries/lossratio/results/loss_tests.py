"""One table of lost frames and one test for every question: whether loss depends on flow, size, direction or moment.

Losses of an overloaded device come in bursts of any length, so the units are never frames, but parts of trials. A cause
that looks at nothing hits each part at a place of its own: any rotation of a part's row is as likely as the row itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lossratio.results.losses import LEVEL, PatternKind

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

_STRENGTHS = tuple(0.125 * 2.0 ** (step / 2.0) for step in range(15))
"""Where Chernoff's bound is evaluated: each of the bounds holds, and the smallest one counts."""
_FEW_LEVELS = 6
"""Up to so many levels, every set of levels counts as a question. Of more levels, one half of the rows chooses the set,
and the other half proves it."""
_MANY = 20
"""Lost frames of a level that show that it is not one of those that lose none."""
_FEW_TRIALS = 3
"""Fewer trials do not show how much trials differ."""
_TO_BE_SEEN = 1.5
"""A difference is seen nearly always if it is this many times as large as the smallest one that is seen on average."""


@dataclass(frozen=True, eq=False)
class Table:
    """Lost frames by place, in parts of trials: one question."""

    kind: PatternKind
    """What is asked."""
    name: str
    """The same in a word."""
    direction: str | None
    """The direction; None: all directions."""
    lost: Numbers
    """Lost frames: a row for each part of a trial, with a number for each place."""
    known: Numbers
    """Frames whose fate is known, in the same order."""
    trial: NDArray[np.int_]
    """The trial of each row."""
    labels: NDArray[np.int_]
    """The level of each place: its flow, its size, its direction."""
    sets: Flags | None = None
    """Sets of places that alone are examined; None: any set of levels."""

    @property
    def levels(self) -> int:
        """Number of levels."""
        return int(self.labels.max()) + 1

    def by_level(self, counts: Numbers) -> Numbers:
        """Frames of each level, from a number for each place."""
        found: Numbers = np.bincount(self.labels, weights=counts).astype(float)
        return found


@dataclass(frozen=True, eq=False)
class Effect:
    """How much more some levels lose than all others."""

    members: Flags
    """For each level, whether it is one of them."""
    share: float
    """The share of their frames that is lost."""
    least: float
    """The smallest share that one of them loses."""
    others: float
    """The share of all other frames that is lost."""
    explained: float
    """Share of all lost frames that is lost beyond what the others lose."""
    is_clear: bool
    """Whether a gap parts these levels from the others, so that they can be named."""
    interval: tuple[float, float] = (0.0, 1.0)
    """The interval of 95 % for the difference of the shares, by how much trials (or their parts) differ."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the test says of a table."""

    chance: float
    """An upper limit of the probability that losses which depend on nothing look like this."""
    effect: Effect | None
    """The levels that lose most; None: all lose the same."""
    difference: float
    """A difference between two halves of the levels that would have shown; 1 if none would."""


def answer(table: Table, questions: int) -> Answer:
    """Whether loss depends on the levels of a table.

    Args:
        table: The table.
        questions: The number of tables, for which the probability is corrected.
    """
    is_lossy = table.lost.any(axis=1)
    if not is_lossy.any() or table.levels < 2:
        return Answer(1.0, None, 1.0)

    lost, known = table.lost[is_lossy], np.maximum(table.known[is_lossy], 1.0)
    # Formula: a share times its weight deviates nearly as much in each row, so that a heavy loss outvotes nothing.
    weights = known.mean(axis=1) / np.sqrt(lost.sum(axis=1))
    rows = lost / known * weights[:, None]
    effect = _divided(table)
    if table.sets is not None:
        templates, proving, asked = table.sets.astype(float), slice(None), len(table.sets)
    elif table.levels <= _FEW_LEVELS and effect is not None:
        templates = effect.members[table.labels][None, :].astype(float)
        proving, asked = slice(None), 2**table.levels - 2
    else:
        learned = table.by_level(rows[0::2].sum(axis=0)) / table.by_level(np.ones(rows.shape[1]))
        templates, proving, asked = learned[table.labels][None, :], slice(1, None, 2), 1

    chances = [_chance(rows[proving], template) for template in templates]
    best = int(np.argmin(chances))
    asked *= questions
    if table.sets is not None:
        effects = [effect_of(table, members) for members in table.sets]
        proved = [place for place, one in enumerate(chances) if asked * one < LEVEL]
        # Of several parts of the time that lose more for certain, the one in which most losses are.
        best = max(proved or [best], key=lambda place: effects[place].explained)
        # In an overload, a queue that fills and a bucket that empties spare a few frames at the beginning of a trial.
        is_clear = 3.0 * effects[best].others <= effects[best].share
        effect = replace(effects[best], is_clear=is_clear)
    needed = math.log(asked / LEVEL)
    is_learned = proving.step is not None
    # Formula: how much larger a difference has to be whose half of the levels is first learned from as many rows.
    learning = (
        math.sqrt(0.5 + 0.5 * math.sqrt(1.0 + 2.0 * table.levels / needed)) if is_learned else 1.0
    )
    return Answer(
        chance=min(1.0, asked * chances[best]),
        effect=effect and replace(effect, interval=_interval(table, effect.members)),
        difference=min(1.0, learning * _would_show(rows[proving], weights[proving], needed)),
    )


def _chance(rows: Numbers, template: Numbers) -> float:
    """An upper limit of the probability that rows are as like a template, if each has a random rotation."""
    centred = template - template.mean()
    if not len(rows) or not centred.any():
        return 1.0
    spectrum = np.conj(np.fft.rfft(centred))
    alike = np.fft.irfft(np.fft.rfft(rows, axis=1) * spectrum, n=rows.shape[1], axis=1)
    scale = float(np.abs(alike).max())
    if scale == 0.0:
        return 1.0

    alike = alike / scale
    total = float(alike[:, 0].sum())
    # Formula: Chernoff's bound for independent rotations, the best one of several strengths.
    bounds = (
        float(np.log(np.mean(np.exp(strength * alike), axis=1)).sum()) - strength * total
        for strength in _STRENGTHS
    )
    return min(1.0, math.exp(min(bounds)))


def _would_show(rows: Numbers, weights: Numbers, needed: float) -> float:
    """A difference between both halves of the places that would have shown in these rows; 1 if none would.

    Args:
        rows: Shares with their weights.
        weights: The weights.
        needed: The logarithm of the probability that is needed, as a positive number.
    """
    places = rows.shape[1]
    half = np.where(np.arange(places) < places // 2, 1.0, 0.0)
    spectrum = np.conj(np.fft.rfft(half / half.sum() - (1.0 - half) / (1.0 - half).sum()))
    turned = np.fft.irfft(np.fft.rfft(rows, axis=1) * spectrum, n=places, axis=1)
    noise = float(np.mean(turned**2, axis=1).sum()) if len(rows) else 0.0
    # Formula: Chernoff's bound of a normal deviation, to which the difference adds its own when rows are rotated.
    own = 1.0 if places == 2 else 1.0 / 3.0
    gained = weights.sum() ** 2 - 2.0 * needed * own * float((weights**2).sum())
    if gained <= 0.0:
        return 1.0
    return min(1.0, _TO_BE_SEEN * math.sqrt(2.0 * needed * noise / gained))


def _interval(table: Table, members: Flags) -> tuple[float, float]:
    """The interval of 95 % for the difference of the shares, over trials; over their parts, if there are few trials."""
    # Imported here because the import is slow.
    from scipy.special import stdtrit

    inside = members[table.labels]
    trials = np.unique(table.trial)
    parts = [table.trial == trial for trial in trials]
    if len(parts) < _FEW_TRIALS:
        parts = list(np.eye(len(table.lost), dtype=bool))
    differences = []
    for part in parts:
        lost, known = table.lost[part].sum(axis=0), table.known[part].sum(axis=0)
        shares = [lost[side].sum() / max(1.0, known[side].sum()) for side in (inside, ~inside)]
        differences.append(shares[0] - shares[1])

    mean = float(np.mean(differences))
    if len(differences) < 2:
        return -1.0, 1.0
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    wide = float(stdtrit(len(differences) - 1, 0.975)) * error
    return mean - wide, mean + wide


def _divided(table: Table) -> Effect | None:
    """Divides the levels into two groups of shares that are as even as possible inside; None: all are the same."""
    of_levels = table.by_level(table.lost.sum(axis=0))
    frames = table.by_level(table.known.sum(axis=0))
    shares = of_levels / np.maximum(frames, 1.0)
    order = np.argsort(shares)
    order = order[frames[order] > 0.0]
    ranked, counts = shares[order], frames[order]
    if len(ranked) < 2 or ranked[0] == ranked[-1]:
        return None

    below, lost_below = np.cumsum(counts)[:-1], np.cumsum(ranked * counts)[:-1]
    above, lost_above = counts.sum() - below, float((ranked * counts).sum()) - lost_below
    # Formula: the variance between both groups.
    between = below * above * (lost_above / above - lost_below / below) ** 2
    between[np.diff(ranked) <= 0.0] = -1.0
    cut = int(np.argmax(between)) + 1
    if ranked[0] == 0.0 and ranked[cut - 1] > 0.0:
        seldom = of_levels[shares > 0.0]
        # Formula: the deviation of few losses by chance, so that all that lose something may be one group. No chance
        # spares levels if each of the others loses many frames.
        if np.var(seldom) <= 2.0 * np.mean(seldom) or seldom.min() >= _MANY:
            cut = int(np.argmax(ranked > 0.0))
    members = np.zeros(len(shares), dtype=bool)
    members[order[cut:]] = True
    return effect_of(table, members, float(ranked[cut] - ranked[cut - 1]))


def effect_of(table: Table, members: Flags, gap: float = 0.0) -> Effect:
    """The effect of a set of levels, without its interval.

    Args:
        table: The table.
        members: For each level, whether it is one of the set.
        gap: The distance between the shares of the levels next to the border of the set.
    """
    lost, known = table.by_level(table.lost.sum(axis=0)), table.by_level(table.known.sum(axis=0))
    share, others = (
        float(lost[part].sum() / max(1.0, known[part].sum())) for part in (members, ~members)
    )
    own = known[members]
    shares = lost[members] / np.maximum(own, 1.0)
    # Their mean, where no frame of these levels was sent.
    least = float(shares[own > 0.0].min(initial=share))
    explained = (share - others) * float(own.sum()) / max(1.0, float(lost.sum()))
    is_clear = others == 0.0 or gap >= (share - others) / 3.0
    return Effect(members, share, least, others, explained, is_clear)

"""Losses that events make, and no flow or size: pauses, and a loss of every n-th frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lossratio.results.loss_tables import Seen, spread_of_loads
from lossratio.results.loss_words import WHOLE, of_direction, pauses_in_words
from lossratio.results.losses import LossPattern, PatternKind
from lossratio.values import format_ratio

OTHER_LOAD = 1.02
"""Two loads are different if their ratio is at least this."""
_FAR_LOAD = 1.25
LEAST_DISTANCE = 3
"""The smallest n that is examined. A device that loses one in n frames because of its capacity would lose clearly more
at `_FAR_LOAD` times the load.
"""
AT_ONE_LOAD = (
    ": by a counter, or by a constant capacity that is that much smaller than the only load"
)
_ENOUGH_GAPS, FEW_DISTANCES = 100, 10
"""Distances that are enough, and those of a trial that are too few to be called constant."""
_LEAST_PAUSE_S, _LONG_PAUSE_S = 0.015, 0.1
"""Seconds of the shortest pause, and of the shortest one that needs no other like it."""
_MOST_PAUSED = 0.3
"""Maximum share of the time that pauses may take: a device that is away for longer does not pause."""
_ONLY = 0.98
"""One pause is only named if at least this share of the lost frames is of it."""


def every_nth(own: Sequence[Seen], seen: Sequence[Seen], asked: int) -> LossPattern | None:
    """Whether every n-th frame is lost, or the same ones of n: at any load, or at the only load that was offered.

    Args:
        own: The losses of one direction.
        seen: The losses of all directions.
        asked: The number of questions, for which the probability is corrected.
    """
    own = [one for one in own if one.losses.lost_frames > FEW_DISTANCES]
    turns = {(one.losses.every_lost, one.losses.every_frames) for one in own}
    count, distance = turns.pop() if len(turns) == 1 else (1, 0)
    # An overloaded device loses a larger share of the frames at a higher load.
    if distance < LEAST_DISTANCE * count or OTHER_LOAD <= spread_of_loads(own) < _FAR_LOAD:
        return None

    of = of_direction(own, seen)
    if count == 1:
        are = f"One frame in {distance:,}{of} is lost, always the same number of frames apart"
    else:
        are = f"{count:,} of every {distance:,} frames{of} are lost, always at the same places"
    share = min(one.losses.every_ratio for one in own)
    if share < 1.0:
        are += f" ({format_ratio(share)} of the lost frames)"
    if spread_of_loads(own) >= _FAR_LOAD:
        are += ", at any load"
    else:
        are += AT_ONE_LOAD

    gaps = sum(one.losses.lost_frames - count for one in own)
    # Formula: that a frame is lost again at exactly that point, if each frame is lost independently.
    chance = asked * (count / distance) ** (share * min(gaps, _ENOUGH_GAPS))
    return of_event("every_nth", own, are, chance, share)


def of_event(
    kind: PatternKind, own: Sequence[Seen], sentence: str, chance: float, explained: float = 1.0
) -> LossPattern:
    """A pattern that names no part of the frames.

    Args:
        kind: Its kind.
        own: The losses in which it was seen.
        sentence: It in words.
        chance: The probability of it by chance.
        explained: The share of the lost frames that it explains.
    """
    return LossPattern(
        kind=kind,
        direction=own[0].direction,
        sentence=sentence,
        explained_ratio=explained,
        chance=min(1.0, chance),
        trials=len({one.trial for one in own}),
    )


def has_outage(one: Seen) -> bool:
    """Whether a direction loses every frame for a while, however long it takes.

    Args:
        one: The losses of a direction in a trial.
    """
    return bool(_pauses_in(one))


def _pauses_in(one: Seen) -> list[tuple[int, int]]:
    """The first step and the step after the last one of each time in which every frame was lost."""
    lost, known = one.steps()
    is_whole = (known > 0) & (lost >= WHOLE * known)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_whole.astype(np.int8), [0]))))
    return [(start, end) for start, end in edges.reshape(-1, 2).tolist()]


def _alike_by_chance(lengths: Sequence[float], finest: float) -> float:
    """The probability that bursts of losses, which may be of any length, are as much alike.

    Args:
        lengths: Their lengths in seconds.
        finest: Seconds between two frames.
    """
    spread = max(max(lengths) - min(lengths), finest)
    beyond = max(float(np.mean(lengths)) - _LEAST_PAUSE_S, finest)
    # Formula: lengths without memory exceed the shortest one as if they began there.
    return float(-np.expm1(-spread / beyond)) ** (len(lengths) - 1)


def pauses_of(own: Sequence[Seen], seen: Sequence[Seen], asked: int) -> LossPattern | None:
    """Whether a direction loses every frame for a while, again and again, or only then.

    Args:
        own: The losses of one direction.
        seen: The losses of all directions.
        asked: The number of questions, for which the probability is corrected.
    """
    lengths, gaps, explained, chance = [], [], 0.0, 1.0
    for one in own:
        lost, known = one.steps()
        shares = lost / np.maximum(known, 1.0)
        usual = float(np.median(shares))
        if usual >= WHOLE:
            return None
        pauses = [(start, end) for start, end in _pauses_in(one) if start > 0 and end < len(lost)]
        for start, end in pauses:
            around = slice(start - 1, end + 1)
            lengths.append(
                float((shares[around] - usual).sum()) / (1.0 - usual) * one.losses.step_s
            )
            explained += float(lost[around].sum())
            # Formula: that the other steps of the first pause are also lost, if steps are independent.
            chance = min(chance, float(shares.mean()) ** (end - start))
        gaps += (np.diff([start for start, _ in pauses]) * one.losses.step_s).tolist()

    share = min(1.0, explained / sum(one.losses.lost_frames for one in own))
    paused = sum(lengths) / sum(one.losses.duration_s for one in own)
    if not lengths or min(lengths) < _LEAST_PAUSE_S or paused > _MOST_PAUSED:
        return None
    if len(lengths) > 1:
        chance = _alike_by_chance(lengths, 1.0 / max(one.load for one in own))
    elif share < _ONLY or lengths[0] < _LONG_PAUSE_S:
        return None

    words = pauses_in_words(lengths, gaps, own[0].losses.step_s)
    if share >= WHOLE:
        then = "no frame came back during a pause, and all did otherwise"
        sentence = f"All lost frames{of_direction(own, seen)} are from {words}: {then}"
    else:
        part = f"{format_ratio(share)} of the lost frames{of_direction(own, seen)}"
        sentence = f"{part} are from {words}, in which no frame came back"
    return of_event("pauses", own, sentence, asked * chance, share)

"""Where the lost frames of a measurement sit: the questions, their tables, and what is said of the answers.

Only trials at the loads that decide are examined, and trials that lost no more than these. If these lost too few frames
to show flows or sizes, trials that lost more are asked as well, and the sentence names their loads; but never those of
a heavy overload, in which every frame may be lost, whatever else is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lossratio.results.loss_events import (
    AT_ONE_LOAD,
    FEW_DISTANCES,
    LEAST_DISTANCE,
    OTHER_LOAD,
    every_nth,
    has_outage,
    pauses_of,
)
from lossratio.results.loss_tables import Seen, by_direction, seen_in, spread_of_loads, tables_of
from lossratio.results.loss_tests import Answer, Effect, Table, answer
from lossratio.results.loss_words import (
    WHOLE,
    class_in_words,
    directions_in_words,
    flows_in_words,
    moments_in_words,
    shares_in_words,
    sizes_in_words,
    whose,
)
from lossratio.results.losses import LEVEL, Examined, LossPattern, LossPlaces, PatternKind
from lossratio.results.offered import offered_in
from lossratio.results.trials import Trial
from lossratio.trials import most_lost_in_bursts

_LEAST_EXPLAINED = 0.05
"""Patterns that explain a smaller share of the lost frames are not reported."""
_AS_MUCH = 1.5
"""Trials that lose at most this many times what the deciding ones lose are examined with them."""
_MODERATE = 0.5
"""Trials that lose a larger share are a heavy overload."""
_DOUBTFUL = 0.05
"""Of a question whose probability of chance is below this, nobody says that nothing was found."""
_USELESS = 0.25
"""A difference that nobody needs a test to see: a question that shows no smaller one was not answered."""
_ALIKE = 0.4
"""How much values may differ, as a share, that count as the same."""
_OF_LEVELS: tuple[PatternKind, ...] = ("flows", "sizes", "streams")
_OF_EVENTS: tuple[PatternKind, ...] = ("every_nth", "pauses")


def loss_places(trials: Sequence[Trial], deciding: Iterable[float] = ()) -> LossPlaces | None:
    """Where the lost frames of trials are; None: no frame of the trials that are examined was located or counted.

    Trials with late frames, which were not lost, are left out, as are trials in which the generator dropped frames, or
    whose losses its stalls may explain.

    Args:
        trials: The trials of a measurement.
        deciding: The loads that decide its result; empty: the smallest load at which frames were lost.
    """
    lossy = [trial for trial in trials if _is_of_sut(trial)]
    most = _AS_MUCH * _most_lost_at(lossy, set(deciding))
    used = [trial for trial in lossy if trial.loss_ratio <= most]
    more = [trial for trial in lossy if most < trial.loss_ratio <= _MODERATE]
    seen = list(seen_in(used))
    tables = list(tables_of(used, seen))
    if not any(table.lost.any() for table in tables):
        return None

    ways = [group for _, group in by_direction(seen)]
    asked = len(tables) + 2 * len(ways)
    if more:
        asked *= 2
    answers = _answers(tables, asked)
    all_seen = list(seen_in(trial for trial in trials if trial.is_evidence))
    of_events = [pauses_of(own, seen, asked) for own in ways]
    of_events += [every_nth(own, all_seen, asked) for _, own in by_direction(all_seen)]
    found = [*_found(answers, used, seen), *_certain(of_events, used)]
    answered = _nothing_in(answers)

    if more and not any(one.kind in _OF_EVENTS for one in found):
        names = {one.name for one in answered}
        unclear = [table.kind for table in tables if table.name not in names]
        found = [*_of_larger_losses(more, asked, unclear, found), *found]
    patterns = _without_doubles(found)

    # One trial says little: whatever hit it may be regular.
    is_clear = len(used) > 1 and bool(seen) and not patterns and not any(map(has_outage, seen))
    # Record: what is known about the places.
    return LossPlaces(
        located_frames=sum(one.losses.lost_frames for one in seen),
        trials=len(used),
        looked_at=asked,
        patterns=patterns,
        nothing_in=answered if is_clear else (),
    )


def _most_lost_at(lossy: Sequence[Trial], deciding: set[float]) -> float:
    """The largest share lost at the loads that decide, or else at the smallest load with losses."""
    at = [trial for trial in lossy if trial.load_per_interface_fps in deciding]
    if not at:
        least = min((trial.load_per_interface_fps for trial in lossy), default=0.0)
        at = [trial for trial in lossy if trial.load_per_interface_fps == least]
    return max((trial.loss_ratio for trial in at), default=0.0)


def _answers(tables: Iterable[Table], asked: int) -> list[tuple[Table, Answer]]:
    """The answer of each table. Of those that divide the frames as well, the one with the fewest members says most."""
    answers = [(table, answer(table, asked)) for table in tables]
    return sorted(answers, key=_members)


def _found(
    answers: Iterable[tuple[Table, Answer]], trials: Sequence[Trial], seen: Sequence[Seen]
) -> list[LossPattern]:
    """What answers say of trials."""
    return _certain((_said(*one, trials, seen) for one in answers), trials)


def _certain(found: Iterable[LossPattern | None], trials: Sequence[Trial]) -> list[LossPattern]:
    """The patterns that are no chance and explain something, with the loads that were offered."""
    offered = offered_in(trials)
    loads = [one.load * one.sent / one.intended for one in offered if one.intended]
    ends = {
        "least_offered_per_interface_fps": min(loads, default=None),
        "most_offered_per_interface_fps": max(loads, default=None),
    }
    return [
        one.model_copy(update=ends)
        for one in found
        if one is not None and one.chance < LEVEL and one.explained_ratio >= _LEAST_EXPLAINED
    ]


def _of_larger_losses(
    more: Sequence[Trial], asked: int, unclear: Sequence[PatternKind], found: Sequence[LossPattern]
) -> Iterator[LossPattern]:
    """What trials show that lost more than the deciding ones, of questions that too few losses at those leave open.

    Args:
        more: The trials that lost moderately much.
        asked: The number of questions.
        unclear: The questions.
        found: The answers of the trials that decide. Answers that explain more replace them.
    """
    explained = {(one.kind, one.direction): one.explained_ratio for one in found}
    seen = list(seen_in(more))
    tables = [
        table
        for table in tables_of(more, seen)
        if table.kind in _OF_LEVELS and table.kind in unclear
    ]
    for one in _found(_answers(tables, asked), more, seen):
        if one.explained_ratio > explained.get((one.kind, one.direction), 0.0):
            yield one


def _is_of_sut(trial: Trial) -> bool:
    """Whether the SUT lost frames of a trial that counts, and nothing else may have lost them."""
    lost = trial.missing.lost_by_sut
    if not trial.is_evidence or not lost or trial.late_frames or trial.missing.generator_drops:
        return False
    return most_lost_in_bursts(trial.directions, trial.duration_s) < lost / 2.0


def _members(one: tuple[Table, Answer]) -> int:
    """How many levels lose most."""
    return 0 if one[1].effect is None else int(one[1].effect.members.sum())


def _said(
    table: Table, found: Answer, trials: Sequence[Trial], seen: Sequence[Seen]
) -> LossPattern | None:
    """What an answer says; None: nothing."""
    effect = found.effect
    if effect is None or found.chance >= LEVEL or effect.interval[0] <= 0.0 or not effect.is_clear:
        return None

    kind = table.kind
    own = [one for one in seen if table.direction in (None, one.direction)]
    if kind == "direction":
        names = sorted({way.name for trial in trials for way in trial.directions})
        sentence = directions_in_words(effect, names)
    elif kind == "end":
        is_last = bool(effect.members[-1])
        kind = "end" if is_last else "beginning"
        sentence = moments_in_words(effect, own, is_last=is_last)
    else:
        words = f"{whose(effect, own, seen)} {_levels_in_words(table, effect, trials, own)}"
        sentence = f"{words}; {shares_in_words(effect)}"
        if own and not _are_alike(table, effect):
            return None
        if own and _may_be_regular(table, effect, own):
            places = effect.members[table.labels]
            every = len(places) / int(places.sum())
            is_one_load = spread_of_loads(own) < OTHER_LOAD
            # A loss of every n-th frame hits some flows more often than others.
            if effect.least < WHOLE or (is_one_load and every < LEAST_DISTANCE):
                return None
            sentence += (
                f". That is also one frame in {every:.4g}, as {table.name}s follow one another"
            )
            if is_one_load:
                kind, sentence = "every_nth", sentence + AT_ONE_LOAD
    # Record: a pattern of levels.
    return LossPattern(
        kind=kind,
        direction=table.direction,
        sentence=sentence,
        explained_ratio=min(1.0, effect.explained),
        chance=found.chance,
        trials=len(set(table.trial.tolist())),
        loss_ratio=min(1.0, effect.share),
        others_loss_ratio=min(1.0, effect.others),
        least_difference=effect.interval[0],
        most_difference=effect.interval[1],
    )


def _levels_in_words(
    table: Table, effect: Effect, trials: Sequence[Trial], own: Sequence[Seen]
) -> str:
    """The levels that lose most."""
    if not own:
        sent = {
            one.frame_size_bytes
            for trial in trials
            for way in trial.directions
            for one in way.streams
        }
        return sizes_in_words(sorted(sent), effect)

    losses = own[0].losses
    if table.kind == "sizes":
        return sizes_in_words(sorted(set(losses.sizes_bytes)), effect)
    if table.kind == "streams":
        (field,) = (one for one in losses.classes if one.field == table.name)
        return class_in_words(field, effect)
    return flows_in_words(replace(effect, members=effect.members[table.labels]), losses)


def _may_be_regular(table: Table, effect: Effect, own: Sequence[Seen]) -> bool:
    """Whether a loss of every n-th frame, or of the end of each batch, could hit exactly these levels.

    Where sizes alternate, such a loss may hit any set of them without any chance: parts of a trial differ less than if
    each frame were lost by chance, with the probability of these levels.
    """
    known = [one.losses for one in own if one.losses.lost_frames > FEW_DISTANCES]
    if known and all(one.every_frames for one in known):
        # A counter hardly ever loses every frame of several flows, and no other frame.
        return effect.least < WHOLE or all(one.every_lost == 1 for one in known)
    if not own[0].losses.sizes_bytes:
        return False
    lost = table.lost[:, effect.members[table.labels]].sum(axis=1)
    parts = [lost[table.trial == trial] for trial in np.unique(table.trial)]
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    # Formula: the squares by chance.
    by_chance = sum((len(part) - 1) * float(part.mean()) * (1.0 - effect.share) for part in parts)
    return squares < by_chance / 2.0


def _are_alike(table: Table, effect: Effect) -> bool:
    """Whether the same places lose, and lose alike, in each of several trials.

    Otherwise, the place in the order matters, and not the level; or a regular loss hits other places in each trial.
    """
    members = effect.members[table.labels]
    trials = np.unique(table.trial)
    excess = 0.0
    for trial in trials:
        lost, known = (
            part[table.trial == trial][:, members].sum(axis=0) for part in (table.lost, table.known)
        )
        known = np.maximum(known, 1.0)
        share = lost.sum() / known.sum()
        # Formula: the variance of shares, without that of frames that are lost by chance.
        excess += float(np.mean((lost / known - share) ** 2 - share * (1.0 - share) / known))
    alike = (_ALIKE * (effect.share - effect.others)) ** 2
    return len(trials) > 1 and excess / len(trials) <= alike


def _without_doubles(found: Sequence[LossPattern]) -> tuple[LossPattern, ...]:
    """The patterns without those that say less about the same frames, beginning with what explains most."""
    kept: dict[tuple[str, str | None], LossPattern] = {}
    for one in found:
        kept.setdefault((one.kind, one.direction), one)

    for _, name in list(kept):
        said = {kind for kind, direction in kept if direction == name}
        if "every_nth" in said and not said.isdisjoint(_OF_LEVELS):
            del kept["every_nth", name]
    return tuple(sorted(kept.values(), key=_weight, reverse=True))


def _weight(one: LossPattern) -> tuple[float, bool]:
    """What it explains; a direction says less about the cause than other patterns."""
    return round(one.explained_ratio, 2), one.kind != "direction"


def _nothing_in(answers: Sequence[tuple[Table, Answer]]) -> tuple[Examined, ...]:
    """The questions that these trials could have answered, and did not; the least precise table of each counts."""
    by_name: dict[str, list[Answer]] = {}
    for table, one in answers:
        by_name.setdefault(table.name, []).append(one)

    examined = []
    for name, found in by_name.items():
        difference = max(one.difference for one in found)
        if min(one.chance for one in found) >= _DOUBTFUL and difference < _USELESS:
            examined.append(Examined(name=name, difference=difference))
    return tuple(examined)

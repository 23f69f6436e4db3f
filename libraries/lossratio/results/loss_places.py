"""Where the lost frames of a measurement sit: the questions, their tables, and what is said of the answers.

Only trials at the loads that decide are examined, and trials that lost no more than these: in a heavy overload, every
frame may be lost, whatever else is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_tests import Answer, Effect, Numbers, Table, answer, effect_of
from lossratio.results.loss_words import (
    WHOLE,
    class_in_words,
    directions_in_words,
    flows_in_words,
    moments_in_words,
    of_direction,
    pauses_in_words,
    shares_in_words,
    sizes_in_words,
    whose,
)
from lossratio.results.losses import LEVEL, Examined, LossPattern, LossPlaces, PatternKind
from lossratio.results.trials import Trial
from lossratio.trials import FlowClasses, Losses, most_lost_in_bursts, read_counts
from lossratio.units import format_ratio

OTHER_LOAD = 1.02
"""Two loads are different if their ratio is at least this."""
_LEAST_EXPLAINED = 0.05
"""Patterns that explain a smaller share of the lost frames are not reported."""
_AS_MUCH = 1.5
"""Trials that lose at most this many times what the deciding ones lose are examined with them."""
_MOST_PLACES = 256
_QUEUES = 8
"""Flows are compared by this remainder, of their numbers and of their hashes: most devices have 2, 4 or 8 queues."""
_MOMENTS = 64
"""Parts of a trial in time."""
_PARTS = (0.75, 0.5, 0.25, 0.125, 0.0625)
"""The last and the first parts of a trial that are compared with the rest."""
_PARTS_BY_DIRECTION = 8
_DOUBTFUL = 0.05
"""Of a question whose probability of chance is below this, nobody says that nothing was found."""
_USELESS = 0.5
"""A difference that nobody needs a test to see: a question that shows no smaller one was not answered."""
_NEARLY_WHOLE = 0.03
_FAR_LOAD = 1.25
_LEAST_DISTANCE = 3
"""The smallest n that is examined. A device that loses one in n frames because of its capacity would lose clearly more
at `_FAR_LOAD` times the load.
"""
_AT_ONE_LOAD = (
    ": by a counter, or by a constant capacity that is that much smaller than the only load"
)
_ENOUGH_GAPS, _FEW_DISTANCES = 100, 10
"""Distances that are enough, and those of a trial that are too few to be called constant."""
_LEAST_PAUSE_S, _LONG_PAUSE_S = 0.015, 0.1
"""Seconds of the shortest pause, and of the shortest one that needs no other like it."""
_MOST_PAUSED = 0.3
"""Maximum share of the time that pauses may take: a device that is away for longer does not pause."""
_ENOUGH, _ONLY = 4, 0.98
"""So many pauses are enough beside other losses; if nearly all lost frames are of pauses, two are enough."""
_ALIKE = 0.4
"""How much values may differ, as a share, that count as the same."""
_CLEAR = 5.0
"""Minimum factor by which frames of some sizes and flows lose more than others of these flows, or of these sizes."""
_OF_LEVELS = ("flows", "sizes", "sizes_of_flows", "streams")


@dataclass(frozen=True, eq=False)
class Seen:
    """The located losses of one direction in one trial."""

    trial: int
    """Number of the trial."""
    load: float
    """Its load per interface, in frames per second."""
    direction: str
    """Name of the direction."""
    losses: Losses
    """The record."""

    def blocks(self, of: str) -> tuple[Numbers, Numbers]:
        """Lost and known frames by block and flow, or by block and place in the order of sizes.

        Args:
            of: ``flows`` or ``sizes``.
        """
        known = _numbers(getattr(self.losses, f"{of}_known"))
        lost = _numbers(getattr(self.losses, f"{of}_lost")).reshape(self.losses.blocks, len(known))
        return lost, np.tile(known / self.losses.blocks, (self.losses.blocks, 1))

    def steps(self, parts: int | None = None) -> tuple[Numbers, Numbers]:
        """Lost and known frames by time.

        Args:
            parts: The number of parts; None: the steps as they were counted.
        """
        counts = _numbers(self.losses.steps_lost), _numbers(self.losses.steps_known)
        if parts is None:
            return counts
        ends = np.arange(parts) * len(counts[0]) // parts
        lost, known = (np.add.reduceat(count, ends) for count in counts)
        return lost, known


def _numbers(text: str) -> Numbers:
    return np.array(read_counts(text), dtype=float)


def loss_places(trials: Sequence[Trial], deciding: Iterable[float] = ()) -> LossPlaces | None:
    """Where the lost frames of trials are; None: no frame of the trials that are examined was located or counted.

    Trials with late frames, which were not lost, are left out, as are trials in which the generator dropped frames, or
    whose losses its stalls may explain.

    Args:
        trials: The trials of a measurement.
        deciding: The loads that decide its result; empty: the smallest load at which frames were lost.
    """
    used = _examined(trials, set(deciding))
    seen = list(_seen(used))
    tables = list(_tables(used, seen))
    if not any(table.lost.any() for table in tables):
        return None

    ways = [group for _, group in _by_direction(seen)]
    asked = len(tables) + 2 * len(ways)
    answers = [(table, answer(table, asked)) for table in tables]
    # Of those that divide the frames as well, the one with the fewest members says most.
    answers.sort(key=_members)
    of_tables = [_said(*one, used, seen) for one in answers]
    all_seen = list(_seen(trial for trial in trials if trial.is_evidence))
    of_events = [_pauses(own, seen, asked) for own in ways]
    of_events += [_every_nth(own, all_seen, asked) for _, own in _by_direction(all_seen)]
    found = [
        one
        for one in (*of_tables, *of_events)
        if one is not None and one.chance < LEVEL and one.explained_ratio >= _LEAST_EXPLAINED
    ]
    found += [one for own in ways if (one := _sizes_of_flows(own, answers)) is not None]
    patterns = _without_doubles(found)
    # One trial says little: whatever hit it may be regular.
    is_clear = len(used) > 1 and bool(seen) and not patterns and not any(map(has_outage, seen))
    # Record: what is known about the places.
    return LossPlaces(
        located_frames=sum(one.losses.lost_frames for one in seen),
        trials=len(used),
        looked_at=asked,
        patterns=patterns,
        nothing_in=_nothing_in(answers) if is_clear else (),
    )


def _seen(trials: Iterable[Trial]) -> Iterator[Seen]:
    for trial in trials:
        for way in trial.directions:
            if way.losses is not None:
                yield Seen(trial.number, trial.load_per_interface_fps, way.name, way.losses)


def _examined(trials: Sequence[Trial], deciding: set[float]) -> list[Trial]:
    """The trials with losses that decide, and those that lost no larger share."""
    lossy = [trial for trial in trials if _is_of_sut(trial)]
    at = [trial for trial in lossy if trial.load_per_interface_fps in deciding]
    if not at:
        least = min((trial.load_per_interface_fps for trial in lossy), default=0.0)
        at = [trial for trial in lossy if trial.load_per_interface_fps == least]
    most = max((trial.loss_ratio for trial in at), default=0.0)
    return [trial for trial in lossy if trial.loss_ratio <= _AS_MUCH * most]


def _is_of_sut(trial: Trial) -> bool:
    """Whether the SUT lost frames of a trial that counts, and nothing else may have lost them."""
    lost = trial.missing.lost_by_sut
    if not trial.is_evidence or not lost or trial.late_frames or trial.missing.generator_drops:
        return False
    return most_lost_in_bursts(trial.directions, trial.duration_s) < lost / 2.0


def _by_direction(seen: Iterable[Seen]) -> Iterator[tuple[str, list[Seen]]]:
    by_name = attrgetter("direction")
    for name, group in groupby(sorted(seen, key=by_name), by_name):
        yield name, list(group)


def _tables(trials: Sequence[Trial], seen: Sequence[Seen]) -> Iterator[Table]:
    """The questions."""
    if len({way.name for trial in trials for way in trial.directions}) > 1:
        yield _of_directions(trials)
    if not seen:
        yield from _of_counted_sizes(trials)
        return

    for _, own in _by_direction(seen):
        losses = own[0].losses
        streams = streams_of(losses)
        if streams is None and losses.flows_known:
            for labels in _ways_to_share(losses):
                yield _of_blocks(own, "flows", "flow", labels)
        for one in losses.classes if streams is not None else ():
            labels = np.unique(np.array(one.values), return_inverse=True)[1]
            yield _of_blocks(own, "flows", one.field, labels.reshape(-1))
        if losses.sizes_bytes:
            sizes = np.unique(losses.sizes_bytes, return_inverse=True)[1].reshape(-1)
            yield _of_blocks(own, "sizes", "size", sizes)
    yield _of_moments(seen)


def streams_of(losses: Losses) -> FlowClasses | None:
    """The streams of the frames of a round; None: there is one stream."""
    return next((one for one in losses.classes if one.names), None)


def _ways_to_share(losses: Losses) -> Iterator[NDArray[np.int_]]:
    """The level of each flow: by what devices usually share flows among queues, and each flow for itself."""
    flows = np.arange(len(_numbers(losses.flows_known)))
    if len(flows) > 2 * _QUEUES:
        yield flows % _QUEUES
        hashes = np.array(read_counts(losses.flow_hashes), dtype=int)
        if len(np.unique(hashes % _QUEUES)) == _QUEUES:
            yield hashes % _QUEUES
    yield flows


def _of_blocks(own: Sequence[Seen], of: str, name: str, labels: NDArray[np.int_]) -> Table:
    """Flows, fields in which they differ, or sizes: a row for each block of a trial."""
    blocks = [one.blocks(of) for one in own]
    kind: PatternKind = "sizes" if of == "sizes" else "flows" if name == "flow" else "streams"
    lost, known = (np.concatenate([block[part] for block in blocks]) for part in (0, 1))
    trial = np.concatenate([np.full(one.losses.blocks, one.trial) for one in own])
    return Table(kind, name, own[0].direction, lost, known, trial, labels[: lost.shape[1]])


def _of_directions(trials: Sequence[Trial]) -> Table:
    """The directions: a row for each of several parts of a trial, or for each trial if losses are not located."""
    names = sorted({way.name for trial in trials for way in trial.directions})
    lost, known, numbers = [], [], []
    for trial in trials:
        ways = {way.name: way for way in trial.directions}
        is_located = all(way.losses is not None or not way.lost for way in ways.values())
        parts = _PARTS_BY_DIRECTION if is_located else 1
        rows = np.zeros((2, parts, len(names)))
        for place, name in enumerate(names):
            way = ways.get(name)
            if way is None:
                continue
            rows[1, :, place] = way.sent_frames / parts
            if way.losses is None:
                rows[0, :, place] = max(0, way.lost) / parts
            elif parts > 1:
                seen = Seen(trial.number, trial.load_per_interface_fps, name, way.losses)
                of_parts, frames = seen.steps(parts)
                rows[0, :, place] = of_parts / np.maximum(frames, 1.0) * way.sent_frames / parts
        lost.append(rows[0])
        known.append(rows[1])
        numbers += [trial.number] * parts
    tables = np.concatenate(lost), np.concatenate(known)
    levels = np.arange(len(names))
    return Table("direction", "direction", None, tables[0], tables[1], np.array(numbers), levels)


def _of_moments(seen: Sequence[Seen]) -> Table:
    """The time in a trial: a row for each trial, because its directions may lose frames for a common reason."""
    parts = min(_MOMENTS, *(len(one.steps()[0]) for one in seen))
    numbers = np.unique([one.trial for one in seen])
    tables = np.zeros((2, len(numbers), parts))
    for one in seen:
        tables[:, np.searchsorted(numbers, one.trial)] += np.array(one.steps(parts))

    places = np.arange(parts)
    last = [places >= parts - max(1, round(parts * part)) for part in _PARTS]
    sets = np.array([*last, *(one[::-1] for one in last)])
    return Table("end", "moment", None, tables[0], tables[1], numbers, places, sets)


def _of_counted_sizes(trials: Sequence[Trial]) -> Iterator[Table]:
    """Sizes that the generator counts once per trial: a row for each trial, with as many places as frames of a size."""
    sent: Counter[int] = Counter()
    rows = []
    for trial in trials:
        lost: Counter[int] = Counter()
        for stream in (stream for way in trial.directions for stream in way.streams):
            if stream.duplicated_frames:
                # Copies hide lost frames.
                return
            sent[stream.frame_size_bytes] += stream.sent_frames
            lost[stream.frame_size_bytes] += max(0, stream.sent_frames - stream.received_frames)
        rows.append(lost)
    if len(sent) < 2:
        return

    sizes = sorted(sent)
    counts = np.array([sent[size] for size in sizes], dtype=float)
    places = np.maximum(
        1, np.round(counts / max(counts.min(), counts.sum() / _MOST_PLACES))
    ).astype(int)
    labels = np.repeat(np.arange(len(sizes)), places)
    lost_of = np.array([[lost[size] for size in sizes] for lost in rows], dtype=float)
    known = np.tile(counts / len(rows), (len(rows), 1))
    numbers = np.array([trial.number for trial in trials])
    # All lost frames of a size are at one of its places: one burst may have lost them.
    lost_at = np.zeros((len(rows), len(labels)))
    lost_at[:, np.cumsum(places) - places] = lost_of
    yield Table("sizes", "size", None, lost_at, (known / places)[:, labels], numbers, labels)


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
            is_one_load = _spread_of_loads(own) < OTHER_LOAD
            # A loss of every n-th frame hits some flows more often than others.
            if effect.least < WHOLE or (is_one_load and every < _LEAST_DISTANCE):
                return None
            sentence += (
                f". That is also one frame in {every:.4g}, as {table.name}s follow one another"
            )
            if is_one_load:
                kind, sentence = "every_nth", sentence + _AT_ONE_LOAD
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

    Such a loss hits one run of successive places, again and again, and each of them in every k-th turn: 1, or 1/2, or
    1/3 of its frames, without any chance. Where sizes alternate, flows do not follow one another: any set may be hit.
    """
    places = effect.members[table.labels]
    known = [one.losses.every_frames for one in own if one.losses.lost_frames > _FEW_DISTANCES]
    if known and all(known):
        return True
    if own[0].losses.sizes_bytes:
        return _is_without_chance(table.lost[:, places].sum(axis=1), table.trial, effect.share)

    count = len(places)
    period = next(
        length
        for length in range(1, count + 1)
        if count % length == 0 and (np.roll(places, length) == places).all()
    )
    run = places[:period]
    if np.count_nonzero(run & ~np.roll(run, 1)) != 1:
        return False
    if run.sum() == 1:
        # Of a sample, the distances are not known.
        return any(one.losses.run_frames != one.losses.known_frames for one in own)
    turns = 1.0 / effect.share
    if abs(turns - round(turns)) > _NEARLY_WHOLE * turns:
        return False
    trials = np.unique(table.trial)
    lost = np.array([table.lost[table.trial == one][:, places].sum(axis=0) for one in trials])
    return _is_without_chance(lost.reshape(-1), np.repeat(trials, lost.shape[1]), effect.share)


def _is_without_chance(lost: Numbers, trials: NDArray[np.int_], share: float) -> bool:
    """Whether parts of a trial differ less than if each frame were lost by chance, with this probability."""
    parts = [lost[trials == trial] for trial in np.unique(trials)]
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    # Formula: the squares by chance.
    by_chance = sum((len(part) - 1) * float(part.mean()) * (1.0 - share) for part in parts)
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


def _spread_of_loads(seen: Sequence[Seen]) -> float:
    """The largest load as a multiple of the smallest one."""
    return max(one.load for one in seen) / min(one.load for one in seen)


def _every_nth(own: Sequence[Seen], seen: Sequence[Seen], asked: int) -> LossPattern | None:
    """Whether every n-th frame is lost: at any load, or at the only load that was offered."""
    own = [one for one in own if one.losses.lost_frames > _FEW_DISTANCES]
    distances = {one.losses.every_frames for one in own}
    (distance,) = distances if len(distances) == 1 else (0,)
    # An overloaded device loses a larger share of the frames at a higher load.
    if distance < _LEAST_DISTANCE or OTHER_LOAD <= _spread_of_loads(own) < _FAR_LOAD:
        return None
    gaps = sum(one.losses.lost_frames - 1 for one in own)
    are = f"All lost frames{of_direction(own, seen)} are one in {distance:,}, always the same number of frames apart"
    if _spread_of_loads(own) >= _FAR_LOAD:
        are += ", at any load"
    else:
        are += _AT_ONE_LOAD
    # Formula: that a frame is lost again at exactly that point, if each frame is lost independently.
    chance = asked * float(distance) ** -min(gaps, _ENOUGH_GAPS)
    return _of_event("every_nth", own, are, chance)


def _of_event(
    kind: PatternKind, own: Sequence[Seen], sentence: str, chance: float, explained: float = 1.0
) -> LossPattern:
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


def _pauses(own: Sequence[Seen], seen: Sequence[Seen], asked: int) -> LossPattern | None:
    """Whether a direction loses every frame for a while, again and again, or only then."""
    lengths, gaps, explained, chance = [], [], 0.0, 1.0
    for one in own:
        lost, known = one.steps()
        shares = lost / np.maximum(known, 1.0)
        usual = float(np.median(shares))
        pauses = [(start, end) for start, end in _pauses_in(one) if start > 0 and end < len(lost)]
        for start, end in pauses:
            around = slice(start - 1, end + 1)
            lengths.append(
                float((shares[around] - usual).sum()) / (1.0 - usual) * one.losses.step_s
            )
            explained += float(lost[around].sum())
            # Formula: that the other steps are also lost, if steps are independent; of ten pauses at most.
            chance *= float(shares.mean()) ** (end - start) if len(lengths) <= _ENOUGH else 1.0
        gaps += (np.diff([start for start, _ in pauses]) * one.losses.step_s).tolist()

    share = min(1.0, explained / sum(one.losses.lost_frames for one in own))
    paused = sum(lengths) / sum(one.losses.duration_s for one in own)
    if not lengths or min(lengths) < _LEAST_PAUSE_S or paused > _MOST_PAUSED:
        return None
    # A device that lacks capacity, or loses bursts, does so for different times.
    if max(lengths) - min(lengths) > max(_ALIKE * max(lengths), own[0].losses.step_s) / 2.0:
        return None
    enough = 2 if share >= _ONLY else _ENOUGH
    if len(lengths) < enough and (share < _ONLY or lengths[0] < _LONG_PAUSE_S):
        return None

    words = pauses_in_words(lengths, gaps, own[0].losses.step_s)
    if share >= WHOLE:
        then = "no frame came back during a pause, and all did otherwise"
        sentence = f"All lost frames{of_direction(own, seen)} are from {words}: {then}"
    else:
        part = f"{format_ratio(share)} of the lost frames{of_direction(own, seen)}"
        sentence = f"{part} are from {words}, in which no frame came back"
    return _of_event("pauses", own, sentence, asked * chance, share)


def _sizes_of_flows(
    own: Sequence[Seen], answers: Sequence[tuple[Table, Answer]]
) -> LossPattern | None:
    """Whether frames of some sizes are lost only in some flows, if both stand out by themselves."""
    found = {
        table.kind: (table, answer.effect)
        for table, answer in answers
        if table.direction == own[0].direction and answer.chance < LEVEL
    }
    if not {"flows", "sizes"} <= found.keys():
        return None
    (flow_table, flows), (size_table, sizes) = found["flows"], found["sizes"]
    if flows is None or sizes is None or not _are_alike(size_table, sizes):
        return None
    shape = len(flows.members), len(sizes.members)
    counts = [
        np.sum([_numbers(getattr(one.losses, f"flow_sizes_{table}")) for one in own], axis=0)
        for table in ("lost", "known")
    ]
    if counts[0].size != shape[0] * shape[1]:
        return None

    lost, known = (np.reshape(count, (1, -1)) for count in counts)
    inside = np.outer(flows.members, sizes.members)
    cells = Table(
        "sizes_of_flows",
        "size of a flow",
        own[0].direction,
        lost,
        known,
        np.zeros(1, dtype=int),
        np.arange(lost.size),
    )
    effect = effect_of(cells, inside.reshape(-1))
    for part in (flows.members[:, None] & ~inside, sizes.members[None, :] & ~inside):
        beside = part.reshape(-1)
        if effect.share <= _CLEAR * lost[0, beside].sum() / max(1.0, known[0, beside].sum()):
            return None
    losses = own[0].losses
    words = f"{sizes_in_words(sorted(set(losses.sizes_bytes)), sizes)} in {flows_in_words(flows, losses)}"
    if effect.least < WHOLE and _may_be_regular(flow_table, flows, own):
        return None
    sentence = f"{whose(effect, own, own)} {words}; {shares_in_words(effect)}"
    distances = {one.losses.every_frames for one in own}
    if len(distances) == 1 and distances != {0}:
        sentence += f". That is also one frame in {distances.pop():,}, as frames follow one another"
    chances = [answer.chance for table, answer in answers if table in (flow_table, size_table)]
    explained = min(1.0, effect.explained)
    return _of_event("sizes_of_flows", own, sentence, max(chances), explained)


def _without_doubles(found: Sequence[LossPattern]) -> tuple[LossPattern, ...]:
    """The patterns without those that say less about the same frames, beginning with what explains most."""
    kept: dict[tuple[str, str | None], LossPattern] = {}
    for one in found:
        kept.setdefault((one.kind, one.direction), one)

    for _, name in list(kept):
        said = {kind for kind, direction in kept if direction == name}
        less = set() if said.isdisjoint(_OF_LEVELS) else {"every_nth"}
        if "sizes_of_flows" in said:
            less |= {"flows", "sizes"}
        for kind in less & said:
            del kept[kind, name]
    return tuple(sorted(kept.values(), key=_weight, reverse=True))


def _weight(one: LossPattern) -> tuple[float, bool]:
    """What it explains; a direction says less about the cause than other patterns."""
    return round(one.explained_ratio, 2), one.kind != "direction"


def _nothing_in(answers: Sequence[tuple[Table, Answer]]) -> tuple[Examined, ...]:
    """The questions that these trials could have answered, and did not; the least precise table of each counts."""
    by_name: dict[str, list[Answer]] = {}
    for table, found in answers:
        by_name.setdefault(table.name, []).append(found)
    return tuple(
        Examined(name=name, difference=max(one.difference for one in found))
        for name, found in by_name.items()
        if min(one.chance for one in found) >= _DOUBTFUL
        and max(one.difference for one in found) < _USELESS
    )

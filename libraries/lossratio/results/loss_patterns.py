"""Finds what the lost frames of a measurement have in common: flows, sizes, a direction, a moment.

A pattern is said only if chance makes such a one in less than `LEVEL` of measurements, over all patterns looked at. And
only where it cannot be a property of the load: a loss of every second frame hits the same flows again and again, at one
load. Such a pattern must be the same at two loads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from ipaddress import IPv4Address
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_moments import (
    Found,
    OfDirection,
    of_beginning,
    of_end,
    of_every_nth,
    of_pauses,
    streams_of,
)
from lossratio.results.loss_tests import (
    LossySet,
    Numbers,
    SeenLosses,
    chance_of_naming,
    lossy_set,
    rotation_test,
)
from lossratio.results.losses import LEVEL, LossPattern, LossPlaces, PatternKind
from lossratio.results.trials import Trial
from lossratio.trials import FlowClasses, Losses, read_counts
from lossratio.units import format_ratio

_WHOLE = 0.995
"""Share of its frames that a flow has lost that lost them all; some at the edges may not."""
_NONE = 0.005
"""Share of the lost frames that may be others, where "all" or "only" is said."""
_LEAST_EXPLAINED = 0.1
"""Patterns that explain a smaller share of the lost frames are not said."""
_OTHER_LOAD = 1.02
"""From this ratio on, two loads are different ones."""
_SAME_SHARE = 0.01
"""A class with a name of its own is said in place of another one if it divides the losses better by this share."""
_SAME = 0.8
"""How much of the flows must be the same at two loads."""
_LITTLE = 2.0
"""Trials whose loss ratio is so many times the smallest one, at most, are looked at by themselves, too."""
_MOST_QUEUES = 64
_INDEPENDENT = 4
"""Blocks of a trial that are taken for one, as those beside each other are alike."""
_ENOUGH_FRAMES = 1000
_ENOUGH_BLOCKS = 32
_DOUBTFUL = 0.01
"""A chance below which it is not said that there is no pattern."""


def loss_places(trials: Sequence[Trial]) -> LossPlaces | None:
    """Where the lost frames of trials sit; None: none was located.

    Only trials that are evidence count, and none whose frames came back late: these were not lost.

    Args:
        trials: The trials of a measurement.
    """
    used = [trial for trial in trials if trial.is_evidence and not trial.late_frames]
    seen = list(_seen(used))
    if not seen:
        return None

    least = min(trial.loss_ratio for trial in used if trial.loss_ratio > 0.0)
    little = {trial.number for trial in used if trial.loss_ratio <= _LITTLE * least}
    parts = [seen]
    if len(little) < len({one.trial for one in seen}):
        parts.append([one for one in seen if one.trial in little])
    found = [pattern for part in parts for pattern in _patterns(part, used)]
    looked_at = len(found)

    patterns: dict[tuple[str, str | None], LossPattern] = {}
    for one in found:
        chance = min(1.0, one.chance * looked_at)
        if one.sentence is None or chance >= LEVEL or one.explained < _LEAST_EXPLAINED:
            continue
        patterns.setdefault(
            (one.kind, one.direction),
            LossPattern(
                kind=one.kind,
                direction=one.direction,
                sentence=one.sentence,
                explained_ratio=min(1.0, one.explained),
                chance=chance,
                trials=one.trials,
            ),
        )

    located = sum(one.losses.lost_frames for one in seen)
    # A direction says least of the cause.
    said = tuple(
        sorted(
            patterns.values(),
            key=lambda pattern: (-round(pattern.explained_ratio, 2), pattern.kind == "direction"),
        )
    )
    # Record: what is known about the places.
    return LossPlaces(
        located_frames=located,
        trials=len({one.trial for one in seen}),
        looked_at=looked_at,
        patterns=said,
        without_pattern=None if said else _without_pattern(seen, found),
    )


def _seen(trials: Iterable[Trial]) -> Iterator[SeenLosses]:
    for trial in trials:
        for direction in trial.directions:
            if direction.losses is not None:
                yield SeenLosses(
                    trial.number, trial.load_per_interface_fps, direction.name, direction.losses
                )


def _patterns(seen: Sequence[SeenLosses], trials: Sequence[Trial]) -> Iterator[Found]:
    """What was looked at, found or not."""
    yield _of_direction(seen, trials)
    in_order = sorted(seen, key=lambda one: one.direction)
    names = {one.direction for one in seen}
    for direction, group in groupby(in_order, key=lambda one: one.direction):
        own = OfDirection(direction, list(group), f" of {direction}" if len(names) > 1 else "")
        first = own.seen[0].losses
        streams = streams_of(first)
        flows = None
        if streams is not None:
            yield _of_streams(own, first, streams)
        elif first.flows > 1:
            flows = _of_flows(own)
            yield flows
        if first.sizes_bytes:
            yield _of_sizes(own)
        yield of_beginning(own)
        yield of_end(own)
        if flows is None or flows.sentence is None:
            yield of_every_nth(own)
        yield of_pauses(own)


def _of_direction(seen: Sequence[SeenLosses], trials: Sequence[Trial]) -> Found:
    """Whether one direction alone loses frames."""
    numbers = {one.trial for one in seen}
    lost: dict[str, int] = {}
    for trial in trials:
        for way in trial.directions if trial.number in numbers else ():
            lost[way.name] = lost.get(way.name, 0) + max(0, way.lost)

    total = sum(lost.values())
    name, most = max(lost.items(), key=lambda item: item[1])
    if len(lost) < 2 or total - most > _NONE * total:
        return Found("direction", None, 1.0)
    own = [one for one in seen if one.direction == name]
    lossy_blocks = 0
    for one in own:
        lost_by_step, _ = one.steps
        parts = np.array_split(lost_by_step, one.losses.blocks)
        lossy_blocks += sum(1 for part in parts if part.any())
    # Formula: each unit is of either direction, like a coin.
    chance = 2.0 * 0.5 ** (lossy_blocks / _INDEPENDENT)
    others = total - most
    if others:
        sentence = f"All lost frames but {others:,} are of the direction {name}"
    else:
        sentence = f"All lost frames are of the direction {name}; the other one loses none"
    return Found("direction", None, chance, sentence, most / total, len(numbers))


def _of_flows(own: OfDirection) -> Found:
    """Whether some flows lose more than others."""
    seen = own.seen
    rows = [row for one in seen for row in one.flow_blocks]
    chance = rotation_test(rows)
    kind: PatternKind = "flows"
    nothing = Found(kind, own.name, chance)
    known = _mean_known(seen, lambda losses: losses.flows_known)
    found = lossy_set(rows, known)
    if found is None or not _holds_at_two_loads(found, seen, lambda one: one.flow_blocks, known):
        return nothing
    if found.may_be_regular and found.least < _WHOLE:
        # A loss of every n-th frame hits some flows more often than others, at any load.
        return nothing

    first = seen[0].losses
    counted = len(known)
    many = f"{found.count:,} of {counted:,} flows"
    if counted < first.flows:
        many += f" (the first of {first.flows:,})"
    name, chance_of_name = _name_of(found, first)
    if name and chance_of_name < LEVEL:
        many += f": {name}"
    else:
        many += _as_many_as_a_queue(found)
    trials = len({one.trial for one in seen})
    sentence = f"{own.share(found.explained, found.others)} of {many}; {_shares(found)}"
    if found.every is not None:
        sentence += f". That is also one frame in {found.every:,}, as flows follow one another"
    return Found(kind, own.name, chance, sentence, found.explained, trials)


def _of_streams(own: OfDirection, losses: Losses, streams: FlowClasses) -> Found:
    """Whether frames of some streams, or with some value of a field, lose more than others."""
    seen = own.seen
    rows = [row for one in seen for row in one.flow_blocks]
    known = _mean_known(seen, lambda losses: losses.flows_known)
    # Streams take turns in a part of the round: all parts are alike.
    part = np.arange(len(known)) % _turn(streams.values)
    chance = rotation_test([_by_label(row, labels=part, known=known) for row in rows])
    best: LossySet | None = None
    words = ""
    for one in losses.classes:
        distinct, labels = np.unique(np.array(one.values), return_inverse=True)
        of_class = partial(_by_label, labels=labels.reshape(-1), known=known)
        frames = np.bincount(labels.reshape(-1), weights=known).astype(float)
        found = lossy_set([of_class(row) for row in rows], frames)
        if found is None or not _is_alike_at_two_loads(found, seen, of_class):
            continue
        if best is None or _divides_better(found, best):
            best = found
            words = _values_in_words(
                one, [distinct.tolist()[label] for label in np.flatnonzero(found.members)]
            )

    nothing = Found("streams", own.name, chance)
    if best is None:
        return nothing
    trials = len({one.trial for one in seen})
    sentence = f"{own.share(best.explained, best.others)} {words}; {_shares(best)}"
    return Found("streams", own.name, chance, sentence, best.explained, trials)


def _divides_better(found: LossySet, best: LossySet) -> bool:
    """Whether classes divide the losses better than those before, or as well with fewer values."""
    gain = (found.share - found.others) - (best.share - best.others)
    return gain > _SAME_SHARE or (abs(gain) <= _SAME_SHARE and found.count < best.count)


def _turn(streams: Sequence[int]) -> int:
    """After how many frames the order of streams repeats."""
    for length in range(1, len(streams) // 2 + 1):
        if streams[length:] == streams[:-length]:
            return length
    return len(streams)


def _by_label(row: Numbers, *, labels: NDArray[Any], known: Numbers) -> Numbers:
    """What all flows with each label lose together, as a share of their frames."""
    frames = np.bincount(labels, weights=known)
    shares: Numbers = np.bincount(labels, weights=row * known) / np.maximum(frames, 1.0)
    return shares


def _is_alike_at_two_loads(
    found: LossySet, seen: Sequence[SeenLosses], of_class: Callable[[Numbers], Numbers]
) -> bool:
    """Whether the same classes lose more at two loads; at one load, a loss of every n-th frame may hit one of them."""
    loads = []
    for one in sorted(seen, key=lambda one: one.load):
        shares = np.mean([of_class(row) for row in one.flow_blocks], axis=0)
        if shares[found.members].min() > shares[~found.members].max():
            loads.append(one.load)
    return len(loads) > 1 and loads[-1] >= _OTHER_LOAD * loads[0]


def _values_in_words(one: FlowClasses, values: Sequence[int]) -> str:
    if one.names:
        words = " and ".join(one.names[value] for value in values)
        return f"of stream {words}" if len(values) == 1 else f"of the streams {words}"
    return "those with " + " or ".join(_value_in_words(one.field, value) for value in values)


def _of_sizes(own: OfDirection) -> Found:
    """Whether frames of some sizes lose more than others."""
    seen = own.seen
    rows = [row for one in seen for row in one.size_blocks]
    chance = rotation_test(rows)
    kind: PatternKind = "sizes"
    nothing = Found(kind, own.name, chance)
    known = _mean_known(seen, lambda losses: losses.sizes_known)
    found = lossy_set(rows, known)
    if found is None or not _holds_at_two_loads(found, seen, lambda one: one.size_blocks, known):
        return nothing

    sizes = np.array(seen[0].losses.sizes_bytes)
    lossy = sorted(set(sizes[found.members].tolist()))
    if set(lossy) & set(sizes[~found.members].tolist()):
        # It is the place in the order that matters, and not the size.
        return nothing
    words = " and ".join(f"{size:,} B" for size in lossy)
    trials = len({one.trial for one in seen})
    sentence = f"{own.share(found.explained, found.others)} of {words}; {_shares(found)}"
    return Found(kind, own.name, chance, sentence, found.explained, trials)


def _mean_known(seen: Sequence[SeenLosses], table: Callable[[Losses], str]) -> Numbers:
    tables = [read_counts(table(one.losses)) for one in seen]
    known: Numbers = np.mean(np.array(tables, dtype=float), axis=0)
    return known


def _holds_at_two_loads(
    found: LossySet,
    seen: Sequence[SeenLosses],
    blocks: Callable[[SeenLosses], Numbers],
    known: Numbers,
) -> bool:
    """Whether the set is the same at two loads, unless no regular loss could make it."""
    if not found.may_be_regular:
        return True
    loads = []
    for one in sorted(seen, key=lambda one: one.load):
        own = lossy_set(list(blocks(one)), known)
        if own is not None and own.overlap(found) >= _SAME:
            loads.append(one.load)
    return len(loads) > 1 and loads[-1] >= _OTHER_LOAD * loads[0]


def _shares(found: LossySet) -> str:
    """How much a set and all others lose."""
    if found.least >= _WHOLE:
        own = "these lose every frame"
    else:
        own = f"these lose {format_ratio(found.share)} of their frames"
    others = "none" if found.others == 0.0 else format_ratio(found.others)
    return f"{own}, all others {others}"


def _name_of(found: LossySet, losses: Losses) -> tuple[str | None, float]:
    """What the flows of a set have in common, and the probability that some name fits by chance; None: nothing."""
    flows = len(found.members)
    numbers = np.arange(flows)
    candidates: list[tuple[Callable[[int], str], NDArray[Any], int]] = []
    for one in losses.classes:
        distinct, labels = np.unique(np.array(one.values), return_inverse=True)
        of_class = partial(_class_in_words, one.field, distinct.tolist())
        candidates.append((of_class, labels.reshape(-1)[numbers % len(one.values)], len(distinct)))

    hashes = np.array(read_counts(losses.flow_hashes), dtype=int)
    queues = range(2, min(_MOST_QUEUES, flows - 1) + 1)
    for count in queues if len(hashes) else ():
        candidates.append((partial(_queue_in_words, count), hashes % count, count))
    for count in queues:
        candidates.append((partial(_remainder_in_words, count), numbers % count, count))

    fitting = None
    for in_words, labels, _ in candidates:
        own = set(labels[found.members].tolist())
        if fitting is None and len(own) == 1 and own.isdisjoint(labels[~found.members].tolist()):
            fitting = in_words(int(own.pop()))
    names = float(sum(count for _, _, count in candidates))

    return fitting, chance_of_naming(flows, found.count, names)


def _class_in_words(field: str, values: Sequence[int], label: int) -> str:
    return f"those with {_value_in_words(field, values[label])}"


def _value_in_words(field: str, value: int) -> str:
    is_address = field.endswith(("IPv4 source address", "IPv4 destination address"))
    return f"{field} {IPv4Address(value) if is_address else value}"


def _queue_in_words(count: int, label: int) -> str:
    return (
        f"queue {label} of {count}, by the hash of addresses and ports that network cards use (RSS)"
    )


def _remainder_in_words(count: int, label: int) -> str:
    return f"every flow whose number is {label} modulo {count}"


def _as_many_as_a_queue(found: LossySet) -> str:
    """For flows without a common name: how many queues would get as many each, if a hash deals flows out."""
    flows = len(found.members)
    queues = round(flows / found.count)
    deviation = (flows / queues * (1.0 - 1.0 / queues)) ** 0.5
    is_alike = abs(found.count - flows / queues) <= deviation
    if found.may_be_regular or not is_alike or not 2 <= queues <= _MOST_QUEUES:
        return ""
    return f", about as many as one of {queues} queues gets"


def _without_pattern(seen: Sequence[SeenLosses], found: Sequence[Found]) -> str | None:
    """The sentence that there is no pattern, if enough frames were lost to see one."""
    blocks = sum(one.losses.blocks for one in seen)
    lost = sum(one.losses.lost_frames for one in seen)
    if lost < _ENOUGH_FRAMES or blocks < _ENOUGH_BLOCKS:
        return None
    if any(one.chance < _DOUBTFUL for one in found):
        return None
    names = {
        "flows": "flow",
        "sizes": "size",
        "direction": "direction",
        "streams": "stream",
        "every_nth": "distance",
        "beginning": "beginning of the trial",
        "end": "end of the trial",
        "pauses": "pause",
    }
    looked_at = dict.fromkeys(names[one.kind] for one in found if one.kind in names)
    return f"No pattern in {lost:,} lost frames, by {', '.join(looked_at)}"

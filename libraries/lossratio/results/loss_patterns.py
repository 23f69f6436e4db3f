"""Finds what the lost frames of a measurement have in common: flows, sizes, a direction, a moment.

A pattern is stated only if chance would produce a similar pattern in less than `LEVEL` of measurements, over all
patterns examined, and if it cannot be a property of the load. At one load, a loss of every second frame hits the same
flows repeatedly, so such a pattern must be the same at two loads.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from lossratio.results.loss_flows import (
    of_flows_and_sizes,
    of_sizes,
    shares_in_words,
    value_in_words,
)
from lossratio.results.loss_moments import (
    Found,
    OfDirection,
    has_outage,
    of_beginning,
    of_end,
    of_every_nth,
    of_pauses,
    streams_of,
)
from lossratio.results.loss_sets import LossySet, in_all, lossy_set
from lossratio.results.loss_tests import OTHER_LOAD, LossCounts, SeenLosses, rotation_test
from lossratio.results.losses import LEVEL, LossPattern, LossPlaces
from lossratio.results.trials import Trial
from lossratio.trials import FlowClasses, Losses

_NONE = 0.005
"""Share of the lost frames that may be exceptions when "all" or "only" is said."""
_LEAST_EXPLAINED = 0.1
"""Patterns that explain a smaller share of the lost frames are not reported."""
_SAME_SHARE = 0.01
"""A named class is reported instead of another one if it divides the losses better by this share."""
_LITTLE = 2.0
"""Trials whose loss ratio is at most this many times the smallest one are also examined by themselves."""
_INDEPENDENT = 4
"""Number of blocks of a trial that count as one, because adjacent blocks are alike."""
_ENOUGH_FRAMES = 1000
_ENOUGH_BLOCKS = 32
_DOUBTFUL = 0.01
"""If a pattern's chance is below this, the absence of a pattern is not reported."""


def loss_places(trials: Sequence[Trial]) -> LossPlaces | None:
    """Where the lost frames of trials are; None: no frame was located.

    Only trials that are evidence count, except those with late frames, which were not lost.

    Args:
        trials: The trials of a measurement.
    """
    used = [trial for trial in trials if trial.is_evidence and not trial.late_frames]
    seen = list(_seen(used))
    if not seen:
        return None

    located_in = {one.trial for one in seen}
    ratios = {trial.number: trial.loss_ratio for trial in used if trial.number in located_in}
    least = min(ratios.values())
    little = {number for number, ratio in ratios.items() if ratio <= _LITTLE * least}
    parts = [seen]
    if len(little) < len(located_in):
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
    # A direction says less about the cause than other patterns.
    said = tuple(
        sorted(
            patterns.values(),
            key=lambda pattern: (-round(pattern.explained_ratio, 2), pattern.kind == "direction"),
        )
    )
    # Record: what is known about the places.
    return LossPlaces(
        located_frames=located,
        trials=len(located_in),
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
    """All patterns that were examined, found or not."""
    yield _of_direction(seen, trials)
    in_order = sorted(seen, key=lambda one: one.direction)
    names = {one.direction for one in seen}
    for direction, group in groupby(in_order, key=lambda one: one.direction):
        own = OfDirection(direction, list(group), f" of {direction}" if len(names) > 1 else "")
        first = own.seen[0].losses
        streams = streams_of(first)
        if streams is None:
            alike = list(of_flows_and_sizes(own))
        else:
            alike = [_of_streams(own, first, streams), *of_sizes(own)]
        yield from alike
        yield of_beginning(own)
        yield of_end(own)
        if not any(one.sentence and one.kind in ("flows", "sizes_of_flows") for one in alike):
            yield of_every_nth(own)
        yield of_pauses(own)


def _of_direction(seen: Sequence[SeenLosses], trials: Sequence[Trial]) -> Found:
    """Whether only one direction loses frames."""
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
    # Formula: each unit belongs to either direction, like a coin toss.
    chance = 2.0 * 0.5 ** (lossy_blocks / _INDEPENDENT)
    others = total - most
    if others:
        sentence = f"All lost frames but {others:,} are of the direction {name}"
    else:
        sentence = f"All lost frames are of the direction {name}; the other one loses none"
    return Found("direction", None, chance, sentence, most / total, len(numbers))


def _of_streams(own: OfDirection, losses: Losses, streams: FlowClasses) -> Found:
    """Whether frames of some streams, or with some value of a field, lose more than others."""
    seen = own.seen
    counts = [one.of_flows for one in seen]
    # Streams alternate within a part of the round: all parts are alike.
    part = np.arange(len(counts[0].known)) % _turn(streams.values)
    chance = rotation_test([row for one in counts for row in one.by_label(part).shares])
    best: LossySet | None = None
    words = ""
    for one in losses.classes:
        distinct, labels = np.unique(np.array(one.values), return_inverse=True)
        of_classes = [trial.by_label(labels.reshape(-1)) for trial in counts]
        found = lossy_set(*in_all(of_classes))
        if found is None or not _is_alike_at_two_loads(found, seen, of_classes):
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
    sentence = f"{own.share(best.explained, best.others)} {words}; {shares_in_words(best)}"
    return Found("streams", own.name, chance, sentence, best.explained, trials)


def _divides_better(found: LossySet, best: LossySet) -> bool:
    """Whether classes divide the losses better than the previous ones, or as well with fewer values."""
    gain = (found.share - found.others) - (best.share - best.others)
    return gain > _SAME_SHARE or (abs(gain) <= _SAME_SHARE and found.count < best.count)


def _turn(streams: Sequence[int]) -> int:
    """After how many frames the order of streams repeats."""
    for length in range(1, len(streams) // 2 + 1):
        if streams[length:] == streams[:-length]:
            return length
    return len(streams)


def _is_alike_at_two_loads(
    found: LossySet, seen: Sequence[SeenLosses], counts: Sequence[LossCounts]
) -> bool:
    """Whether the same classes lose more at two loads; at one load, a loss of every n-th frame may hit one class."""
    loads = []
    for one, own in zip(seen, counts, strict=True):
        shares = own.lost / np.maximum(own.known, 1.0)
        if shares[found.members].min() > shares[~found.members].max():
            loads.append(one.load)
    return bool(loads) and max(loads) >= OTHER_LOAD * min(loads)


def _values_in_words(one: FlowClasses, values: Sequence[int]) -> str:
    if one.names:
        words = " and ".join(one.names[value] for value in values)
        return f"of stream {words}" if len(values) == 1 else f"of the streams {words}"
    return "those with " + " or ".join(value_in_words(one.field, value) for value in values)


def _without_pattern(seen: Sequence[SeenLosses], found: Sequence[Found]) -> str | None:
    """The sentence that there is no pattern, if enough frames were lost to see a pattern, and there was no outage."""
    blocks = sum(one.losses.blocks for one in seen)
    lost = sum(one.losses.lost_frames for one in seen)
    if lost < _ENOUGH_FRAMES or blocks < _ENOUGH_BLOCKS:
        return None
    if any(one.chance < _DOUBTFUL for one in found) or any(has_outage(one) for one in seen):
        return None
    names = {
        "flows": "flow",
        "sizes": "size",
        "sizes_of_flows": "size of a flow",
        "direction": "direction",
        "streams": "stream",
        "every_nth": "distance",
        "beginning": "beginning of the trial",
        "end": "end of the trial",
        "pauses": "pause",
    }
    looked_at = dict.fromkeys(names[one.kind] for one in found if one.kind in names)
    return f"No pattern in {lost:,} lost frames (examined: {', '.join(looked_at)})"

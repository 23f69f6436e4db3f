"""The tables of lost frames: by flow, size and direction, and by the time in a trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_tests import Numbers, Table
from lossratio.results.losses import PatternKind
from lossratio.results.trials import Trial
from lossratio.trials import FlowClasses, Losses, read_counts

_MOST_PLACES = 256
_QUEUES = 8
"""Flows are compared by this remainder, of their numbers and of their hashes: most devices have 2, 4 or 8 queues."""
_MOMENTS = 64
"""Parts of a trial in time."""
_PARTS = (0.75, 0.5, 0.25, 0.125, 0.0625)
"""The last and the first parts of a trial that are compared with the rest."""
_PARTS_BY_DIRECTION = 8


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
        known = numbers_in(getattr(self.losses, f"{of}_known"))
        lost = numbers_in(getattr(self.losses, f"{of}_lost")).reshape(
            self.losses.blocks, len(known)
        )
        return lost, np.tile(known / self.losses.blocks, (self.losses.blocks, 1))

    def steps(self, parts: int | None = None) -> tuple[Numbers, Numbers]:
        """Lost and known frames by time.

        Args:
            parts: The number of parts; None: the steps as they were counted.
        """
        counts = numbers_in(self.losses.steps_lost), numbers_in(self.losses.steps_known)
        if parts is None:
            return counts
        ends = np.arange(parts) * len(counts[0]) // parts
        lost, known = (np.add.reduceat(count, ends) for count in counts)
        return lost, known


def numbers_in(text: str) -> Numbers:
    """The counts of a table.

    Args:
        text: The table as in the record of losses.
    """
    return np.array(read_counts(text), dtype=float)


def seen_in(trials: Iterable[Trial]) -> Iterator[Seen]:
    """The located losses of each direction in trials.

    Args:
        trials: The trials.
    """
    for trial in trials:
        for way in trial.directions:
            if way.losses is not None:
                yield Seen(trial.number, trial.load_per_interface_fps, way.name, way.losses)


def by_direction(seen: Iterable[Seen]) -> Iterator[tuple[str, list[Seen]]]:
    """The losses of each direction, with its name.

    Args:
        seen: The losses of all directions.
    """
    by_name = attrgetter("direction")
    for name, group in groupby(sorted(seen, key=by_name), by_name):
        yield name, list(group)


def tables_of(trials: Sequence[Trial], seen: Sequence[Seen]) -> Iterator[Table]:
    """The questions, each with its table.

    Args:
        trials: The trials to examine.
        seen: Their located losses.
    """
    if len({way.name for trial in trials for way in trial.directions}) > 1:
        yield _of_directions(trials)
    if not seen:
        yield from _of_counted_sizes(trials)
        return

    for _, own in by_direction(seen):
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
    flows = np.arange(len(numbers_in(losses.flows_known)))
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
    of_trials = []
    numbers: list[int] = []
    for trial in trials:
        is_located = all(way.losses is not None or not way.lost for way in trial.directions)
        parts = _PARTS_BY_DIRECTION if is_located else 1
        rows = np.zeros((2, parts, len(names)))
        for way in trial.directions:
            counts = max(0, way.lost) / parts, way.sent_frames / parts
            rows[:, :, names.index(way.name)] = np.reshape(counts, (2, 1))
        for one in seen_in([trial] if is_located else ()):
            lost_of, known_of = one.steps(parts)
            of_all = rows[1, :, names.index(one.direction)] / np.maximum(known_of, 1.0)
            rows[0, :, names.index(one.direction)] = lost_of * of_all
        of_trials.append(rows)
        numbers += [trial.number] * parts
    lost, known = np.concatenate(of_trials, axis=1)
    levels = np.arange(len(names))
    return Table("direction", "direction", None, lost, known, np.array(numbers), levels)


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


def spread_of_loads(seen: Sequence[Seen]) -> float:
    """The largest load as a multiple of the smallest one."""
    return max(one.load for one in seen) / min(one.load for one in seen)

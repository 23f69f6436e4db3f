"""Flows and sizes whose frames are lost more often than others: separately, or both together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_moments import WHOLE, Found, OfDirection
from lossratio.results.loss_sets import (
    LossyPart,
    LossySet,
    SetInTrials,
    in_all,
    lossy_cells,
    lossy_set,
)
from lossratio.results.loss_tests import chance_of_naming, rotation_test
from lossratio.results.losses import LEVEL
from lossratio.trials import Losses, read_counts
from lossratio.units import format_ratio

_MOST_QUEUES = 64


def of_flows_and_sizes(own: OfDirection) -> Iterator[Found]:
    """Whether some flows, or frames of some sizes, lose more than others; or only these sizes of these flows.

    Args:
        own: The losses of one direction whose frames belong to one stream.
    """
    if own.seen[0].losses.flows == 1:
        yield from of_sizes(own)
        return

    flows = _Flows(own)
    alone = [flows.found(), *of_sizes(own)]
    if not own.seen[0].losses.flow_sizes_lost:
        yield from alone
        return
    together = _of_both(own, flows, _Sizes(own))
    if together.sentence is not None:
        # Flows alone and sizes alone were also examined, but they say less.
        alone = [replace(one, sentence=None) for one in alone]
    yield from (*alone, together)


def of_sizes(own: OfDirection) -> Iterator[Found]:
    """Whether frames of some sizes are lost more often than others; nothing if there is only one size.

    Args:
        own: The losses of one direction.
    """
    if own.seen[0].losses.sizes_bytes:
        yield _Sizes(own).found()


class _Flows:
    """The flows of a direction that lose more than others, if there are some."""

    def __init__(self, own: OfDirection) -> None:
        self._own = own
        counts = [one.of_flows for one in own.seen]
        self.chance = rotation_test([row for one in counts for row in one.shares])
        self._in_trials: SetInTrials | None = None
        found = lossy_set(*in_all(counts))
        if found is not None:
            in_trials = SetInTrials(found, own.seen, lambda one: one.of_flows)
            if in_trials.holds_at_two_loads():
                self._in_trials = in_trials

    @property
    def lossy(self) -> LossySet | None:
        """The flows; None: there are none."""
        return self._in_trials.found if self._in_trials is not None else None

    def found(self) -> Found:
        """The pattern of these flows alone."""
        nothing = Found("flows", self._own.name, self.chance)
        found = self.lossy
        if found is None or (found.least < WHOLE and not self.are_meant(found.share)):
            # A loss of every n-th frame hits some flows more often than others, at any load.
            return nothing

        whose = self._own.share(found.explained, found.others)
        sentence = f"{whose} of {self.in_words(found)}; {shares_in_words(found)}"
        if found.every is not None and found.least >= WHOLE:
            sentence += f". That is also one frame in {found.every:,}, as flows follow one another"
        return _said("flows", self._own, self.chance, sentence, found.explained)

    def are_meant(self, share: float) -> bool:
        """Whether no regular loss, such as of every n-th frame, could hit exactly these flows.

        Args:
            share: The share lost of the affected frames of these flows, which may only be frames of some sizes.
        """
        if self._in_trials is None:
            return False
        is_regular = self._in_trials.found.may_be_regular
        return not is_regular or self._in_trials.is_by_chance_or_load(share)

    def in_words(self, found: LossySet) -> str:
        """The number of these flows, and what they have in common."""
        losses = self._own.seen[0].losses
        counted = len(found.members)
        many = f"{found.count:,} of {counted:,} flows"
        if counted < losses.flows:
            many += f" (the first of {losses.flows:,})"
        name, chance_of_name = _name_of(found, losses)
        if name and chance_of_name < LEVEL:
            return f"{many}: {name}"
        return many + _as_many_as_a_queue(found)


class _Sizes:
    """The sizes of a direction whose frames are lost more often than others, if there are some."""

    def __init__(self, own: OfDirection) -> None:
        self._own = own
        counts = [one.of_sizes for one in own.seen]
        self.chance = rotation_test([row for one in counts for row in one.shares])
        self.lossy = lossy_set(*in_all(counts))
        self.sizes: tuple[int, ...] = ()
        if self.lossy is None:
            return
        in_trials = SetInTrials(self.lossy, own.seen, lambda one: one.of_sizes)
        if in_trials.holds_at_two_loads():
            all_sizes = np.array(own.seen[0].losses.sizes_bytes)
            lossy = set(all_sizes[self.lossy.members].tolist())
            # Otherwise, the place in the order matters, and not the size.
            if lossy.isdisjoint(all_sizes[~self.lossy.members].tolist()):
                self.sizes = tuple(sorted(lossy))

    def found(self) -> Found:
        """The pattern of these sizes alone."""
        if self.lossy is None or not self.sizes:
            return Found("sizes", self._own.name, self.chance)
        found = self.lossy
        sentence = f"{self._own.share(found.explained, found.others)} of {self.in_words}; {shares_in_words(found)}"
        return _said("sizes", self._own, self.chance, sentence, found.explained)

    @property
    def in_words(self) -> str:
        """The sizes."""
        return " and ".join(f"{size:,} B" for size in self.sizes)


def _of_both(own: OfDirection, flows: _Flows, sizes: _Sizes) -> Found:
    """Whether frames of some sizes are lost only in some flows, if both stand out by themselves."""
    # Formula: the part has to stand out in both.
    chance = max(flows.chance, sizes.chance)
    nothing = Found("sizes_of_flows", own.name, chance)
    if flows.lossy is None or not sizes.sizes:
        return nothing
    cells = lossy_cells(own.seen, flows.lossy.members, sizes.sizes)
    if cells is None:
        return nothing
    if cells.share < WHOLE and not any(map(flows.are_meant, (cells.share, flows.lossy.share))):
        return nothing

    words = f"{sizes.in_words} in {flows.in_words(flows.lossy)}"
    sentence = f"{own.share(cells.explained, cells.others)} of {words}; {shares_in_words(cells)}"
    distances = {one.losses.every_frames for one in own.seen}
    if len(distances) == 1 and distances != {0}:
        sentence += f". That is also one frame in {distances.pop():,}, as frames follow one another"
    return _said("sizes_of_flows", own, chance, sentence, cells.explained)


def _said(kind: Any, own: OfDirection, chance: float, sentence: str, explained: float) -> Found:
    trials = len({one.trial for one in own.seen})
    return Found(kind, own.name, chance, sentence, explained, trials)


def shares_in_words(found: LossyPart) -> str:
    """How much a part of the frames loses, and how much all others lose.

    Args:
        found: The part.
    """
    if found.least >= WHOLE:
        own = "these lose every frame"
    else:
        own = f"these lose {format_ratio(found.share)} of their frames"
    others = "none" if found.others == 0.0 else format_ratio(found.others)
    return f"{own}, all others {others}"


def _name_of(found: LossySet, losses: Losses) -> tuple[str | None, float]:
    """The common name of a set's flows (None: no name), and the probability that some name fits by chance."""
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
    return f"those with {value_in_words(field, values[label])}"


def value_in_words(field: str, value: int) -> str:
    """A field with a value.

    Args:
        field: The name of the field.
        value: The value.
    """
    is_address = field.endswith(("IPv4 source address", "IPv4 destination address"))
    return f"{field} {IPv4Address(value) if is_address else value}"


def _queue_in_words(count: int, label: int) -> str:
    return (
        f"queue {label} of {count}, by the hash of addresses and ports that network cards use (RSS)"
    )


def _remainder_in_words(count: int, label: int) -> str:
    return f"every flow whose number is {label} modulo {count}"


def _as_many_as_a_queue(found: LossySet) -> str:
    """For flows without a common name: the number of queues that would each get this many flows from a hash."""
    flows = len(found.members)
    queues = round(flows / found.count)
    deviation = (flows / queues * (1.0 - 1.0 / queues)) ** 0.5
    is_alike = abs(found.count - flows / queues) <= deviation
    if found.may_be_regular or not is_alike or not 2 <= queues <= _MOST_QUEUES:
        return ""
    return f", about as many as one of {queues} queues gets"

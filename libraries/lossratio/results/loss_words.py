"""The words for where losses sit: the names of flows, sizes, directions and moments, and how much they lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import IPv4Address
from statistics import median

import numpy as np
from numpy.typing import NDArray

from lossratio.results.loss_tables import Seen
from lossratio.results.loss_tests import Effect, Flags
from lossratio.results.losses import LEVEL
from lossratio.trials import FlowClasses, Losses, read_counts
from lossratio.values import format_about, format_frame_rate, format_ratio, range_in_words

WHOLE = 0.995
"""Flows that lost more than this share of their frames count as having lost all: some at the edges may not be lost."""
_MOST_QUEUES = 64
_FIRST_ONES = 3
"""Number of flows that are named one by one."""
_NONE = 1e-3
"""A share of the lost frames at which words for all of them still hold."""
_LEAST_LOSSLESS = 1.0 / 16.0
"""The smallest part of a trial without loss, at its beginning or end, that is told as such."""


def of_direction(own: Sequence[Seen], seen: Sequence[Seen]) -> str:
    """The words after "lost frames", if several directions lose frames: `` of port0>port1``.

    Args:
        own: The losses that are meant.
        seen: All losses.
    """
    if len({one.direction for one in own}) < len({one.direction for one in seen}):
        return f" of {own[0].direction}"
    return ""


def whose(effect: Effect, own: Sequence[Seen], seen: Sequence[Seen]) -> str:
    """The beginning of a sentence: the share of the loss that an effect explains.

    Args:
        effect: The effect.
        own: The losses that are meant.
        seen: All losses.
    """
    frames = f"lost frames{of_direction(own, seen)}"
    if any(one.losses.known_frames != one.losses.run_frames for one in own):
        frames += " (of those examined)"
    if not effect.others:
        return f"All {frames} are of"
    return f"{format_ratio(min(effect.explained, 0.999))} of the {frames} are of"


def shares_in_words(effect: Effect) -> str:
    """How much a part of the frames loses, how much all others lose, and the interval of the difference.

    Args:
        effect: The effect.
    """
    if effect.least >= WHOLE:
        own = "these lose every frame"
    else:
        own = f"these lose {format_ratio(effect.share)} of their frames"
    if not effect.others:
        return f"{own}, all others none"
    return f"{own}, all others {format_ratio(effect.others)}{_interval_in_words(effect)}"


def _interval_in_words(effect: Effect) -> str:
    ends = (100.0 * min(1.0, max(0.0, end)) for end in effect.interval)
    return f" (the difference is {range_in_words(*map(format_about, ends))} %)"


def directions_in_words(effect: Effect, names: Sequence[str]) -> str:
    """Which directions lose more.

    Args:
        effect: The effect.
        names: The names of all directions.
    """
    most = [name for name, is_one in zip(names, effect.members.tolist(), strict=True) if is_one]
    least = [name for name in names if name not in most]
    more, less = (" and ".join(part) for part in (most, least))
    if not effect.others:
        share = format_ratio(effect.share)
        return (
            f"All lost frames are of the direction {more}, which loses {share}; {less} loses none"
        )
    return (
        f"{more} loses {format_ratio(effect.share)}, {less} {format_ratio(effect.others)}"
        f"{_interval_in_words(effect)}"
    )


def moments_in_words(effect: Effect, own: Sequence[Seen], *, is_last: bool) -> str:
    """When in a trial frames are lost.

    Args:
        effect: The part of the trial that loses more, and how much.
        own: The losses of the trials.
        is_last: Whether it is the last part; otherwise, it is the first one.
    """
    edge = _at_the_edge(own, "trailing_frames" if is_last else "leading_frames")
    if edge:
        return edge
    # The moment depends on the load, as it does where a queue fills.
    most = max(one.load for one in own)
    at_most = "" if min(one.load for one in own) == most else f" at {format_frame_rate(most)}"
    own = [one for one in own if one.load == most]
    cuts = [_edge_of(one.losses, is_last=is_last) for one in own]
    times = [one.losses.step_s * cut for one, cut in zip(own, cuts, strict=True)]
    # What is said holds for each trial and direction, not only for most of them.
    moments = [_shortened(time) for time in (min(times), max(times))]
    earliest, latest = moments
    moment = latest
    if is_last:
        moment = earliest
    whole = _shortened(median(one.losses.duration_s for one in own))
    lossless = moment if is_last else whole - moment
    if lossless < _LEAST_LOSSLESS * whole:
        part = format_ratio(float(np.mean(effect.members)))
        return (
            f"The {'last' if is_last else 'first'} {part} of each trial loses {format_ratio(effect.share)} of the "
            f"frames, the rest {format_ratio(effect.others)}{_interval_in_words(effect)}"
        )

    share = format_ratio(_share_beside(own, cuts, is_last=is_last))
    between = range_in_words(*(f"{each:g}" for each in moments))
    place = f"after {between} s of {whole:g} s{at_most}"
    if is_last:
        return f"Losses begin {place}: no frame is lost before that, and {share} after it"
    return f"Losses end {place}: {share} of the frames are lost until then, and none after it"


def _shortened(seconds: float) -> float:
    return float(f"{seconds:.2g}")


def _edge_of(losses: Losses, *, is_last: bool) -> int:
    """The step in which losses begin, or after which they end, but for very few."""
    lost = np.cumsum(read_counts(losses.steps_lost))
    if is_last:
        return int(np.searchsorted(lost, _NONE * lost[-1], side="right"))
    return int(np.searchsorted(lost, (1.0 - _NONE) * lost[-1])) + 1


def _share_beside(own: Sequence[Seen], cuts: Sequence[int], *, is_last: bool) -> float:
    """The share of the frames that is lost from a step of each trial on, or before it."""
    sums = np.zeros(2)
    for one, cut in zip(own, cuts, strict=True):
        lossy = slice(cut, None) if is_last else slice(cut)
        sums += [count[lossy].sum() for count in one.steps()]
    return float(sums[0] / max(1.0, sums[1]))


def _at_the_edge(own: Sequence[Seen], field: str) -> str:
    """The words if all lost frames are the first or the last ones of their trials; empty: they are not."""
    counts = [int(getattr(one.losses, field)) for one in own]
    lost = sum(one.losses.lost_frames for one in own)
    if sum(counts) < (1.0 - _NONE) * lost or not all(counts):
        return ""
    if field == "trailing_frames":
        return f"All lost frames are the last {_between(counts)} frames of each trial"

    rounds, rest = divmod(counts[0], own[0].losses.flows)
    seconds = [count / one.load for count, one in zip(counts, own, strict=True)]
    if len(set(counts)) == 1 and not rest and own[0].losses.flows > 1:
        many = "first frame" if rounds == 1 else f"first {rounds:,} frames"
        return f"All lost frames are the {many} of each of the {own[0].losses.flows:,} flows"
    if max(seconds) - min(seconds) < (max(counts) - min(counts)) / max(counts) * max(seconds):
        return f"All lost frames are those of the first {_between([1e3 * one for one in seconds])} ms of each trial"
    return f"All lost frames are the first {_between(counts)} frames of each trial"


def _between(values: Sequence[float]) -> str:
    return range_in_words(*(f"{value:,.4g}" for value in (min(values), max(values))))


def pauses_in_words(lengths: Sequence[float], gaps: Sequence[float], step: float) -> str:
    """Times without any frame.

    Args:
        lengths: Their lengths in seconds.
        gaps: Seconds between the beginnings of successive ones.
        step: How precisely these are known, in seconds.
    """
    every = ""
    if len(gaps) > 2 and max(gaps) - min(gaps) <= max(2.0 * step, 0.03 * max(gaps)):
        every = f", one every {np.mean(gaps):.3g} s"
    pauses = "pause" if len(lengths) == 1 else "pauses"
    shortest, longest = (f"{1e3 * length:.3g}" for length in (min(lengths), max(lengths)))
    return f"{len(lengths)} {pauses} of about {range_in_words(shortest, longest)} ms{every}"


def sizes_in_words(sizes: Sequence[int], effect: Effect) -> str:
    """The sizes that lose more.

    Args:
        sizes: All sizes, in their order.
        effect: The effect.
    """
    own = zip(sizes, effect.members.tolist(), strict=True)
    return " and ".join(f"{size:,} B" for size, is_one in own if is_one)


def class_in_words(one: FlowClasses, effect: Effect) -> str:
    """The streams, or the values of a field, that lose more.

    Args:
        one: The field.
        effect: The effect.
    """
    distinct = sorted(set(one.values))
    if one.names:
        names = [one.names[distinct[place]] for place in np.flatnonzero(effect.members)]
        return f"stream {names[0]}" if len(names) == 1 else f"the streams {' and '.join(names)}"
    return _values_in_words(one.field, distinct, np.flatnonzero(effect.members).tolist())


def value_in_words(field: str, value: int) -> str:
    """A field with a value.

    Args:
        field: The name of the field.
        value: The value.
    """
    is_address = field.endswith(("IPv4 source address", "IPv4 destination address"))
    return f"{field} {IPv4Address(value) if is_address else value}"


def flows_in_words(effect: Effect, losses: Losses) -> str:
    """The flows that lose more: how many, and what they have in common, or else their numbers.

    Args:
        effect: The effect.
        losses: The losses of a trial.
    """
    members = effect.members
    count, counted = int(members.sum()), len(members)
    many = f"{count:,} of {counted:,} flows"
    if counted < losses.flows:
        many += f" (the first of {losses.flows:,})"
    name = _name_of(members, losses)
    if name is not None:
        return f"{many}: {name}"

    numbers = np.flatnonzero(members).tolist()
    if count == 1:
        return f"{many} (number {numbers[0]})"
    if count > _FIRST_ONES and numbers[-1] - numbers[0] == count - 1:
        return f"{many} (numbers {numbers[0]} to {numbers[-1]})"
    first = [str(flow) for flow in numbers[:_FIRST_ONES]]
    if count > _FIRST_ONES:
        first.append("...")
    return f"{many} (numbers {', '.join(first)})"


def _name_of(members: Flags, losses: Losses) -> str | None:
    """What exactly these flows have in common: a field, a queue by their hash, a remainder; None: nothing is known.

    Of few flows, chance gives many sets some name. Then, no name is said.
    """
    flows, count = len(members), int(members.sum())
    names = 0.0
    fitting = None
    for words, labels in _ways_to_divide(flows, losses):
        levels = int(labels.max()) + 1
        own = np.unique(labels[members])
        if len(own) == 1:
            names += levels
        else:
            # Formula: the sets of so many levels.
            names += math.comb(levels, len(own))
        if fitting is None and not np.isin(labels[~members], own).any():
            fitting = words(own.tolist())
    # Formula: the names over the number of sets of as many flows.
    chance = names * math.exp(
        math.lgamma(count + 1) + math.lgamma(flows - count + 1) - math.lgamma(flows + 1)
    )
    return fitting if chance < LEVEL else None


def _ways_to_divide(
    flows: int, losses: Losses
) -> Iterator[tuple[Callable[[Sequence[int]], str], NDArray[np.int_]]]:
    """The labels of flows by which devices may divide them, and the words for some of these labels."""
    numbers = np.arange(flows)
    for one in losses.classes:
        distinct, labels = np.unique(np.array(one.values), return_inverse=True)
        words = partial(_values_in_words, one.field, distinct.tolist())
        yield words, labels.reshape(-1)[numbers % len(one.values)]
    hashes = np.array(read_counts(losses.flow_hashes), dtype=int)
    queues = range(2, min(_MOST_QUEUES, flows - 1) + 1)
    for count in queues if len(hashes) else ():
        yield partial(_queues, count), hashes % count
    for count in queues:
        yield partial(_remainders, count), numbers % count


def _values_in_words(field: str, distinct: Sequence[int], own: Sequence[int]) -> str:
    return "those with " + " or ".join(value_in_words(field, distinct[label]) for label in own)


def _queues(count: int, own: Sequence[int]) -> str:
    shown = " and ".join(map(str, own))
    name = "queue" if len(own) == 1 else "queues"
    return f"{name} {shown} of {count}, by the hash of addresses and ports that network cards use (RSS)"


def _remainders(count: int, own: Sequence[int]) -> str:
    return f"every flow whose number is {' or '.join(map(str, own))} modulo {count}"

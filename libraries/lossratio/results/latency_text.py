"""Latency in words: some lines for each load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lossratio.results.latency import DirectionLatency, LatencyAtLoad
from lossratio.units import format_frame_rate, format_ratio


def latency_lines(latency: Iterable[LatencyAtLoad]) -> Iterator[str]:
    """What was measured: a line for each load, with one for each direction below it."""
    for each in latency:
        loss = "" if each.loss_ratio is None else f", loss {format_ratio(each.loss_ratio)}"
        unsent = f" ({each.unsent_frames:,} frames unsent)" if each.unsent_frames else ""
        yield f"latency at {name_load(each)}{loss}{unsent}"
        if each.error is not None:
            yield f"  failed: {each.error}"
        yield from (f"  {direction.direction}  {_numbers(direction)}" for direction in each.directions)


def name_load(latency: LatencyAtLoad) -> str:
    """Which load it was, e.g. ``90 % of PDR, 135.00 kfps per interface``."""
    load = f"{format_frame_rate(latency.load.per_interface_fps)} per interface"
    if latency.share_ratio is None:
        return load
    if not latency.share_ratio:
        return f"minimum load, {load}"
    return f"{100 * latency.share_ratio:g} % of {latency.goal}, {load}"


def format_microseconds(value: float) -> str:
    """A latency with as many digits as matter, e.g. ``9.3 µs``, ``135 µs`` or ``12.4 ms``."""
    if value >= 10_000:
        return f"{value / 1000:.3g} ms"
    return f"{value:.1f} µs" if value < 100 else f"{value:.0f} µs"


def _numbers(direction: DirectionLatency) -> str:
    if direction.least_us is None or direction.mean_us is None or direction.most_us is None:
        return f"not measured: {direction.error}"
    parts = [
        f"least {format_microseconds(direction.least_us)}",
        f"mean {format_microseconds(direction.mean_us)}",
        f"most {format_microseconds(direction.most_us)}",
    ]
    if direction.jitter_us is not None:
        parts.append(f"jitter {format_microseconds(direction.jitter_us)}")
    parts += [f"{name} %: {format_microseconds(value)}" for name, value in direction.percentiles_us.items()]
    counts = {"out of order": direction.out_of_order_frames, "duplicates": direction.duplicate_frames}
    parts += [f"{count:,} {what}" for what, count in counts.items() if count]
    if direction.resolution_us is not None:
        parts.append(f"resolution {direction.resolution_us:g} µs")
    return ", ".join(parts)

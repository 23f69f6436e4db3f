# SPDX-License-Identifier: Apache-2.0
"""Latencies in the agent's answers, in microseconds."""

from __future__ import annotations

from typing import Any

from ..core.generator import unknown_latency
from ..core.pacing import MICROSECOND_NS
from ..core.protocol import Message
from . import histogram
from .constants import FOREVER


def unknown(name: str, frames: Message, error: str | None = None) -> Message:
    """The latency of a direction's frames, whose numbers are known, before anything else is."""
    ratio = 1 / (1 << histogram.SUB_BITS)
    return {**unknown_latency(name, 1 / MICROSECOND_NS, error), **frames, "interval_ratio": ratio}


def known(name: str, frames: Message, latencies: Any) -> Message:
    """The latency of a direction's frames, or the error that none of them came back intact."""
    if latencies.least == FOREVER:
        return unknown(name, frames, f"None of {frames['sent_frames']} frames came back intact.")
    filled = list(histogram.filled(latencies.histogram, latencies.least, latencies.most))
    return {
        **unknown(name, frames),
        "least_us": latencies.least / MICROSECOND_NS,
        "mean_us": latencies.sum / sum(latencies.histogram) / MICROSECOND_NS,
        "most_us": latencies.most / MICROSECOND_NS,
        "histogram": [[value / MICROSECOND_NS, count] for value, count in filled],
    }


def jitter_us(received: Any) -> float:
    """The mean difference between latencies of frames that followed one another; 0: there was none."""
    return float(received.jitter_sum / max(1, received.jitter_count) / MICROSECOND_NS)


def in_short(received: Any) -> Message:
    """What each trial tells of the latencies of its frames; nothing if none came back intact."""
    latencies = received.latencies
    if latencies.least == FOREVER:
        return {}
    values = list(histogram.filled(latencies.histogram, latencies.least, latencies.most))
    return {
        "latency_median_us": histogram.percentile(values, 50) / MICROSECOND_NS,
        "latency_99_us": histogram.percentile(values, 99) / MICROSECOND_NS,
        "latency_most_us": latencies.most / MICROSECOND_NS,
        "jitter_us": jitter_us(received),
    }

# SPDX-License-Identifier: Apache-2.0
"""Latencies in the agent's answers, in microseconds."""

from __future__ import annotations

from ..core.generator import unknown_latency
from ..core.protocol import Message
from . import histogram
from .receive_program import Latencies, ReceivedFrames

_MICROSECOND = 1000.0


def unknown(name: str, frames: Message, error: str | None = None) -> Message:
    """The latency of a direction's frames, whose numbers are known, before anything else is."""
    ratio = 1 / (1 << histogram.SUB_BITS)
    return {**unknown_latency(name, 1 / _MICROSECOND, error), **frames, "interval_ratio": ratio}


def known(name: str, frames: Message, latencies: Latencies) -> Message:
    """The latency of a direction's frames, or the error that none of them came back intact."""
    if latencies.least is None:
        return unknown(name, frames, f"None of {frames['sent_frames']} frames came back intact.")
    filled = list(histogram.filled(latencies.histogram, latencies.least, latencies.most))
    return {
        **unknown(name, frames),
        "least_us": latencies.least / _MICROSECOND,
        "mean_us": latencies.sum / sum(latencies.histogram) / _MICROSECOND,
        "most_us": latencies.most / _MICROSECOND,
        "histogram": [[value / _MICROSECOND, count] for value, count in filled],
    }


def jitter_us(received: ReceivedFrames) -> float:
    """The mean difference between latencies of frames that followed one another; 0: there was none."""
    return received.jitter_sum / max(1, received.jitter_count) / _MICROSECOND


def in_short(received: ReceivedFrames) -> Message:
    """What each trial tells of the latencies of its frames; nothing if none came back intact."""
    latencies = received.latencies
    if latencies.least is None:
        return {}
    values = list(histogram.filled(latencies.histogram, latencies.least, latencies.most))
    return {
        "latency_median_us": histogram.percentile(values, 50) / _MICROSECOND,
        "latency_99_us": histogram.percentile(values, 99) / _MICROSECOND,
        "latency_most_us": latencies.most / _MICROSECOND,
        "jitter_us": jitter_us(received),
    }

"""From TRex's statistics to the latency of a direction."""

from __future__ import annotations

from typing import Any, Mapping

from .protocol import Message

_MOST_FRAMES_PER_SECOND = 9000.0
_MOST_OF_THE_LOAD = 0.1
_RESOLUTION = 1.0


def latency_rate(load: float) -> float:
    """How many latency frames a direction sends among those of a load, both in frames per second.

    FD.io CSIT sends 9000; at most a tenth of the load is for latency.
    """
    return min(_MOST_FRAMES_PER_SECOND, _MOST_OF_THE_LOAD * load)


def latency_answer(name: str, statistics: Mapping[str, Any], group: int) -> Message:
    """What TRex measured for a direction.

    Args:
        name: The direction.
        statistics: All of TRex's.
        group: Number of its latency frames' counters.
    """
    frames = statistics.get("flow_stats", {}).get(group)
    measured = statistics.get("latency", {}).get(group)
    if frames is None or measured is None:
        return latency_error(name, "TRex has no counters of this direction's latency frames")
    errors, latency = measured["err_cntrs"], measured["latency"]
    duplicates = errors["dup"]
    received = frames["rx_pkts"]["total"] - duplicates
    counted = {
        "sent": frames["tx_pkts"]["total"],
        "received": received,
        "out_of_order": errors["out_of_order"],
        "duplicates": duplicates,
    }
    if received <= 0:
        return {**latency_error(name, "none of its latency frames came back"), **counted}
    hdr = latency.get("hdrh")
    return {
        "name": name,
        **counted,
        "min_us": float(latency["total_min"]),
        "average_us": float(latency["average"]),
        "max_us": float(latency["total_max"]),
        "jitter_us": float(latency["jitter"]),
        "resolution_us": _RESOLUTION,
        "hdr": hdr,
        "histogram": [] if hdr else _histogram(latency["histogram"]),
        "error": None,
    }


def latency_error(name: str, why: str) -> Message:
    """The answer for a direction whose latency is not known."""
    return {
        "name": name,
        **dict.fromkeys(("sent", "received", "out_of_order", "duplicates"), 0),
        **dict.fromkeys(("min_us", "average_us", "max_us", "jitter_us", "hdr")),
        "resolution_us": _RESOLUTION,
        "histogram": [],
        "error": why,
    }


def _histogram(counts: Mapping[Any, int]) -> list[list[float]]:
    return [[float(edge), count] for edge, count in sorted((int(edge), count) for edge, count in counts.items())]

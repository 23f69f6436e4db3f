# SPDX-License-Identifier: Apache-2.0
"""TRex's statistics of single streams: the frames of each, and the latency and order of numbered frames."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..core.configuration import Direction
from ..core.generator import unknown_latency
from ..core.protocol import AgentError, Message

_MOST_FRAMES_PER_SECOND = 9000.0
_MOST_OF_THE_LOAD = 0.1
_MOST_NUMBERED_PER_SECOND = 1000.0
_NUMBERED_OF_THE_LOAD = 0.01
_RESOLUTION = 1.0
_OF_NUMBERS = {
    "duplicated_frames": "dup",
    "out_of_order_frames": "out_of_order",
    "too_high_frames": "seq_too_high",
    "too_low_frames": "seq_too_low",
}
"""Counters of numbered frames, by TRex's names."""


def latency_rate(load: float) -> float:
    """How many of the frames of a load are latency frames, for each direction. Both rates are in frames per second.

    FD.io CSIT sends 9000; at most a tenth of the load is for latency.
    """
    return min(_MOST_FRAMES_PER_SECOND, _MOST_OF_THE_LOAD * load)


def numbered_rate(load: float) -> float:
    """How many of the frames of a trial's load are numbered, for each direction. Both rates are in frames per second.

    They have one size, so many of them would change a mix of sizes.
    """
    return min(_MOST_NUMBERED_PER_SECOND, _NUMBERED_OF_THE_LOAD * load)


def latency_answer(name: str, statistics: Mapping[str, Any], group: int) -> Message:
    """Latency of a direction as TRex measured it, by the number of its latency frames' counters in all statistics."""
    frames = statistics.get("flow_stats", {}).get(group)
    measured = statistics.get("latency", {}).get(group)
    if frames is None or measured is None:
        return latency_error(name, "TRex has no counters of this direction's latency frames")

    errors, latency = measured["err_cntrs"], measured["latency"]
    duplicates = errors["dup"]
    received = frames["rx_pkts"]["total"] - duplicates
    counted = {
        "sent_frames": frames["tx_pkts"]["total"],
        "received_frames": received,
        "out_of_order_frames": errors["out_of_order"],
        "duplicate_frames": duplicates,
    }
    if received <= 0:
        return {**latency_error(name, "none of its latency frames came back"), **counted}

    return {
        **unknown_latency(name, _RESOLUTION),
        **counted,
        "least_us": float(latency["total_min"]),
        "mean_us": float(latency["average"]),
        "most_us": float(latency["total_max"]),
        "jitter_us": float(latency["jitter"]),
        # TRex's other histogram has all latencies below 10 us in one interval, and those from 100 to 200 us in another.
        "hdr": latency.get("hdrh"),
    }


def check_arrivals(
    directions: Sequence[Direction], statistics: Mapping[str, Any], groups: Mapping[str, int], ports: Mapping[str, int]
) -> None:
    """Refuses a direction whose latency frames all came out of another port: ports count all directions' frames.

    `groups` are numbers of counters by direction, and `ports` TRex's numbers of the ports, by name.

    Raises:
        AgentError: If there is such a direction.
    """
    names: dict[int, str] = {}
    for direction in directions:
        ends = zip((direction.transmit, direction.receive), direction.name.split(">"))
        names |= {ports[port]: f"{name} ({port})" for port, name in ends}
    for direction in directions:
        came = statistics.get("flow_stats", {}).get(groups[direction.name], {}).get("rx_pkts", {})
        there = [number for number, count in came.items() if number in names and count]
        if there and ports[direction.receive] not in there:
            out = " and ".join(names[number] for number in there)
            raise AgentError(
                "wrong_port",
                f"Frames of {direction.name} come out of {out} instead of {names[ports[direction.receive]]}: links "
                "are swapped, or ports are in another order. Change the cables, or the ports in the topology file.",
            )


def latency_error(name: str, why: str) -> Message:
    """The answer for a direction whose latency is not known."""
    return unknown_latency(name, _RESOLUTION, why)


def stream_answer(
    counters: Message, streams: Sequence[tuple[int, int]], numbered: tuple[int, int] | None, into: int, statistics: Any
) -> Message:
    """The counters of a direction's ports, with those of its streams.

    Each of the `streams` of the load is a group and a frame size, in bytes with FCS. `numbered` is the stream whose
    frames have numbers; None: no frame has room for one. Its frames come back `into` this port.

    Raises:
        AgentError: If TRex's counters contradict each other.
    """
    answers = [_stream(group, size, into, statistics) for group, size in streams]
    examined = None
    if numbered is not None:
        group, size = numbered
        errors = statistics["latency"].get(group, {}).get("err_cntrs", {})
        counts = {name: int(errors.get(counter, 0)) for name, counter in _OF_NUMBERS.items()}
        answers.append({**_stream(group, size, into, statistics), **counts})

        if answers[-1]["received_frames"]:
            examined = {
                "examined": answers[-1]["received_frames"],
                "duplicated": counts["duplicated_frames"],
                "reordered": counts["out_of_order_frames"],
                "has_foreign": True,
            }

    sent = sum(answer["sent_frames"] for answer in answers)
    if sent != counters["sent_frames"]:
        raise AgentError(
            "counters",
            f"TRex's counters contradict each other: the streams of {counters['name']} sent {sent} frames, "
            f"but its port sent {counters['sent_frames']}. Stop other clients of this port, restart the "
            "server, or measure with 'flow_statistics: false'.",
        )
    return {**counters, "streams": answers, "examination": examined}


def _stream(group: int, size: int, into: int, statistics: Any) -> Message:
    counted = statistics["flow_stats"].get(group)
    if counted is None:
        raise AgentError(
            "counters",
            f"TRex has no counters for the stream of {size}-byte frames. Stop other clients of this port, or "
            "measure with 'flow_statistics: false'.",
        )
    return {
        "frame_size_bytes": size,
        "sent_frames": int(counted["tx_pkts"]["total"]),
        "received_frames": int(counted["rx_pkts"].get(into, 0)),
        **dict.fromkeys(_OF_NUMBERS),
    }

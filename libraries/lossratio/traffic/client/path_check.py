"""Checks, before a search, that frames get through in every direction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from lossratio.errors import LinkError
from lossratio.traffic.agent.core.configuration import Configuration
from lossratio.traffic.client.agent import AgentClient
from lossratio.trials import DirectionCounters, Examination, LatencyCounters, check_integrity, with_examination

CHECK_LOAD = 100.0
"""Frames per second of the check, in each direction."""

CHECK_DURATION = 0.1
"""Seconds of the check."""

LOW_RATE_LOAD = 10_000.0
"""Frames per second of the check by latency frames, in each direction; a tenth of them are such frames."""

LOW_RATE_DURATION = 1.0
"""Seconds of that check."""

_ATTEMPTS = 5


class DeadPathError(LinkError):
    """Nothing gets through, in one direction at least, and no DUT is known to be guilty of that."""


def check_path(agent: AgentClient) -> tuple[DirectionCounters, ...]:
    """Sends a few frames in each direction, and makes sure that some come through.

    It tries again for a while, as links and devices that just came up may lose their first frames. The last check's
    counters are the answer.

    Raises:
        DeadPathError: If nothing gets through in a direction; names it.
        IntegrityError: If frames do get through, and all of them are changed.
    """
    for _ in range(_ATTEMPTS):
        counters = agent.trial(CHECK_LOAD, CHECK_DURATION)
        dead = [direction for direction in counters if not direction.received]
        if not dead:
            return counters
    check_integrity(dead, "in the check of the path")
    sent = ", ".join(f"{direction.name} (sent {direction.sent} frames, received 0)" for direction in dead)
    alive = {direction.name for direction in counters if direction.received}
    if not alive.intersection(_reverse(direction.name) for direction in dead):
        raise DeadPathError(
            f"Node {agent.node_name}: the path is a black hole; nothing comes through in direction {sent}. "
            "Check the links' ends in the topology, and that the DUT is set up to forward."
        )
    raise DeadPathError(
        f"Node {agent.node_name}: the path works one way only; nothing comes through in direction {sent}. "
        "Check the DUT's forwarding (addresses, routes, MAC addresses) in that direction."
    )


def check_at_low_rate(agent: AgentClient, facts: Mapping[str, Any], idle_time: float) -> dict[str, Any]:
    """Checks latency frames, where the generator only counts the frames of trials.

    Args:
        agent: The agent, configured.
        facts: Facts that its generator reports about itself.
        idle_time: Seconds without traffic before the next trial, for the DUT to recover.

    Returns:
        Its ``integrity``, with a ``low_rate_check`` where there was one: the counters of each direction's latency
        frames; a direction that cannot have any is missing.

    Raises:
        TrafficError: If the generator cannot do that, or does not answer as it should.
    """
    integrity = dict(facts["integrity"])
    if not integrity["in_trials"]:
        directions = agent.latency(LOW_RATE_LOAD, LOW_RATE_DURATION).latency
        integrity["low_rate_check"] = [asdict(_counters(direction)) for direction in directions if direction.sent]
        time.sleep(idle_time)
    return integrity


def with_largest_frames(configuration: Configuration) -> Configuration | None:
    """The same traffic with the largest frames only: an MTU on the way may stop these, while smaller ones pass.

    Returns:
        The configuration to check in addition; None if all frames of each direction have the same size.
    """
    if all(len(direction.frames.sizes) == 1 for direction in configuration.directions):
        return None
    directions = (
        replace(direction, frames=replace(direction.frames, sizes=((direction.frames.max_size, 1),)))
        for direction in configuration.directions
    )
    return replace(configuration, directions=tuple(directions))


def _counters(latency: LatencyCounters) -> DirectionCounters:
    arrived = latency.received + latency.duplicates
    counters = DirectionCounters(latency.name, intended=latency.sent, sent=latency.sent, received=arrived)
    examination = Examination(arrived, duplicated=latency.duplicates, reordered=latency.out_of_order)
    return with_examination(counters, examination)


def _reverse(direction: str) -> str:
    """Name of the direction in which the answers go."""
    return ">".join(reversed(direction.split(">")))

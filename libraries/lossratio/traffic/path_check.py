"""Checks, before a search, that frames get through in every direction."""

from __future__ import annotations

from dataclasses import replace

from lossratio.errors import TrafficError
from lossratio.traffic.agent.configuration import Configuration
from lossratio.traffic.agent_client import AgentClient
from lossratio.trial import DirectionCounters

CHECK_LOAD = 100.0
"""Frames per second of the check, in each direction."""

CHECK_DURATION = 0.1
"""Seconds of the check."""

_ATTEMPTS = 5


class DeadPathError(TrafficError):
    """Nothing gets through, in one direction at least."""


def check_path(agent: AgentClient) -> tuple[DirectionCounters, ...]:
    """Sends a few frames in each direction, and makes sure that some come through.

    It tries again for a while, as links and devices that just came up may lose their first frames. The last check's
    counters are the answer.

    Raises:
        DeadPathError: If nothing gets through in a direction; names it.
    """
    for _ in range(_ATTEMPTS):
        counters = agent.trial(CHECK_LOAD, CHECK_DURATION)
        dead = [direction for direction in counters if not direction.received]
        if not dead:
            return counters
    sent = ", ".join(f"{each.name} (sent {each.sent} frames, received 0)" for each in dead)
    alive = {each.name for each in counters if each.received}
    if not alive.intersection(_reverse(each.name) for each in dead):
        raise DeadPathError(
            f"Node {agent.node_name}: the path is a black hole; nothing comes through in direction {sent}. "
            "Check the links' ends in the topology, and that the DUT is set up to forward."
        )
    raise DeadPathError(
        f"Node {agent.node_name}: the path works one way only; nothing comes through in direction {sent}. "
        "Check the DUT's forwarding (addresses, routes, MAC addresses) in that direction."
    )


def with_largest_frames(configuration: Configuration) -> Configuration | None:
    """The same traffic with the largest frames only: an MTU on the way may stop these, and let smaller ones through.

    Returns:
        What to check, too; None if all frames of each direction have the same size.
    """
    if all(len(direction.frames.sizes) == 1 for direction in configuration.directions):
        return None
    directions = (
        replace(direction, frames=replace(direction.frames, sizes=((direction.frames.max_size, 1),)))
        for direction in configuration.directions
    )
    return replace(configuration, directions=tuple(directions))


def _reverse(direction: str) -> str:
    """Name of the direction in which the answers go."""
    return ">".join(reversed(direction.split(">")))

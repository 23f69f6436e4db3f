"""Checks, before anything is measured, that frames get through; where they do not, says at which hop they are lost."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut import Dut, DutCounters, DutOptions
from lossratio.topology import TrafficPath
from lossratio.traffic import AgentClient, check_path
from lossratio.traffic.path_check import CHECK_DURATION, CHECK_LOAD, DeadPathError


def check_hops(agent: AgentClient, path: TrafficPath, duts: Sequence[Dut[DutOptions]]) -> None:
    """Sends a few frames in each direction, and makes sure that some come through.

    Args:
        agent: The agent on the TG, configured.
        path: The way of the traffic.
        duts: The DUTs on it that can be asked, from west to east.

    Raises:
        DeadPathError: If nothing gets through in a direction; names the direction, and the hop where frames are lost.
        DutError: If a DUT cannot be asked any more.
    """
    try:
        check_path(agent)
    except DeadPathError as error:
        if not duts:
            raise
        raise DeadPathError(f"{error} {_locate(agent, path, duts)}") from error


def _locate(agent: AgentClient, path: TrafficPath, duts: Sequence[Dut[DutOptions]]) -> str:
    """Sends once more, and follows the frames by the DUTs' counters; one sentence for each dead direction."""
    before = [dut.read_counters() for dut in duts]
    directions = agent.trial(CHECK_LOAD, CHECK_DURATION)
    counted = [dut.read_counters().since(earlier) for dut, earlier in zip(duts, before, strict=True)]
    hops = list(zip(duts, counted, strict=True))
    eastward = (str(path.west), str(path.east), "west", "east", hops)
    westward = (str(path.east), str(path.west), "east", "west", hops[::-1])
    return " ".join(
        f"{direction.name}: {_follow(*way, sent=direction.sent)}"
        for direction, way in zip(directions, (eastward, westward), strict=False)
        if not direction.received
    )


def _follow(
    start: str, end: str, entry: str, leaving: str, hops: Sequence[tuple[Dut[DutOptions], DutCounters]], *, sent: int
) -> str:
    """Where frames are lost in one direction.

    Args:
        start: The TG's port that sends.
        end: The TG's port that receives.
        entry: Side on which frames enter each DUT.
        leaving: Side on which they leave it.
        hops: The DUTs in the order of this direction, each with what it counted.
        sent: How many frames were sent; a few of others may be counted along with them.
    """
    last = start
    for dut, counted in hops:
        name = dut.hop.node_name
        if 2 * counted.received.get(entry, 0) < sent:
            return f"{last} sends, and nothing arrives at {name}; look at the link between them."
        if 2 * counted.transmitted.get(leaving, 0) < sent:
            places = ", ".join(f"{count} at {place}" for place, count in counted.dropped.items() if count)
            arrived = counted.received[entry]
            return f"{name} receives {arrived} frames and lets none out (dropped: {places or 'nobody says where'})."
        last = name
    return f"{last} sends {sent} frames on, and nothing arrives at {end}; look at the link between them."

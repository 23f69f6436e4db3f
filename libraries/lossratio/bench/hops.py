"""Checks, before anything is measured, that frames get through; where they do not, says at which hop they are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lossratio.bench.live_set_up import LiveLink
from lossratio.dut import Dut, DutCounters, DutOptions
from lossratio.topology import TrafficPath
from lossratio.traffic import AgentClient, check_path
from lossratio.traffic.agent.configuration import Configuration
from lossratio.traffic.path_check import CHECK_DURATION, CHECK_LOAD, DeadPathError
from lossratio.trial import DirectionCounters


def check_hops(agent: AgentClient, links: Sequence[LiveLink]) -> None:
    """Sends a few frames in each direction, and makes sure that some come through.

    Args:
        agent: The agent on the TG, configured.
        links: The parallel ways of the traffic, each with the DUTs on it that can be asked.

    Raises:
        DeadPathError: If nothing gets through in a direction; names the link (if there are several), the direction, and
            the hop where frames are lost.
        DutError: If a DUT cannot be asked any more.
    """
    try:
        check_path(agent)
    except DeadPathError as error:
        if not any(link.duts for link in links):
            raise
        raise DeadPathError(f"{error} {_locate(agent, links)}") from error


def check_large_frames(agent: AgentClient, links: Sequence[LiveLink], largest: Configuration) -> None:
    """As `check_hops`, with the largest frames of a mix only; says so where they do not get through.

    Args:
        agent: The agent on the TG, configured for them.
        links: The parallel ways of the traffic.
        largest: What it was configured for.

    Raises:
        DeadPathError: As `check_hops`, with the size of the frames.
        DutError: If a DUT cannot be asked any more.
    """
    try:
        check_hops(agent, links)
    except DeadPathError as error:
        sizes = " and ".join(sorted({str(direction.frames.max_size) for direction in largest.directions}))
        raise DeadPathError(
            f"{error} These were the largest frames of the mix, of {sizes} bytes; look at the MTUs on the way."
        ) from error


def _locate(agent: AgentClient, links: Sequence[LiveLink]) -> str:
    """Sends once more, and follows the frames by the DUTs' counters; one sentence for each dead direction."""
    before = [[dut.read_counters() for dut in link.duts] for link in links]
    directions = {each.name: each for each in agent.trial(CHECK_LOAD, CHECK_DURATION)}
    sentences: list[str] = []
    for number, (link, earlier) in enumerate(zip(links, before, strict=True), start=1):
        where = f"Parallel link {number} of {len(links)}, " if len(links) > 1 else ""
        hops = [(dut, dut.read_counters().since(then)) for dut, then in zip(link.duts, earlier, strict=True)]
        sentences += (f"{where}{told}" for told in _dead_directions(link.path, hops, directions))
    return " ".join(sentences)


def _dead_directions(
    path: TrafficPath,
    hops: Sequence[tuple[Dut[DutOptions], DutCounters]],
    directions: Mapping[str, DirectionCounters],
) -> Iterator[str]:
    """One sentence for each direction of a path in which nothing arrived."""
    for start, end, entry, leaving, way in (
        (path.west, path.east, "west", "east", hops),
        (path.east, path.west, "east", "west", hops[::-1]),
    ):
        direction = directions.get(f"{start.name}>{end.name}")
        if direction is not None and not direction.received:
            yield f"{direction.name}: {_follow(str(start), str(end), entry, leaving, way, sent=direction.sent)}"


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

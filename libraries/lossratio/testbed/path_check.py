"""Checks before a measurement that frames get through the path, and finds the hop that loses them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from lossratio.agent import Configuration, changed_fields, mac_bytes
from lossratio.dut import Dut, DutCounters, DutOptions
from lossratio.errors import DutError, LinkError, TrafficError
from lossratio.testbed.changes import NOBODY_KNOWN
from lossratio.testbed.fingerprint import NodePrint
from lossratio.testbed.set_up import LiveLink
from lossratio.testbed.watch import Watch
from lossratio.topology import Hop, TrafficPath
from lossratio.traffic import (
    AgentClient,
    DeadPathError,
    MarkedFrame,
    Marker,
    check_path,
    few_frames,
    frames_of_last_check,
    smallest_probe,
    spread_over_flows,
    with_room,
)
from lossratio.trials import (
    LOOK_AT_DUT,
    ChangedField,
    DirectionCounters,
    IntegrityError,
    changes_in_words,
)


class DeadDutError(DutError):
    """A DUT passes nothing in at least one direction."""


class DeadLinkError(DeadPathError, LinkError):
    """A link passes nothing in at least one direction."""


@dataclass
class CheckedTraffic:
    """Traffic that checks a path, as in a trial; if its first flows are lost, a selection from all flows is tried."""

    agent: AgentClient
    configure: Callable[[Configuration], object]
    """Gets the generator ready for traffic."""
    configuration: Configuration
    """The traffic of trials, for which the generator is ready."""
    translates: bool = False
    """Whether there is a NAT on the path, which must see the flows from the first one on."""
    rest: float = 0.0
    """Seconds without traffic that the DUTs need."""
    reset: Callable[[], None] = lambda: None
    """Resets the DUTs to their state before a trial; called before any of these frames are sent."""
    is_spread: bool = False
    """Whether the generator is ready for a selection from all flows, instead of for trials."""

    def spread(self) -> None:
        """Gets the generator ready for a selection from all flows."""
        self.is_spread = True
        self.configure(spread_over_flows(self.configuration))


def check_hops(traffic: CheckedTraffic, links: Sequence[LiveLink], nodes: Watch) -> None:
    """Sends a few frames in each direction, and checks that some of them arrive; see `lossratio.traffic.check_path`.

    Raises:
        DeadDutError: If nothing gets through, and a DUT lost the frames.
        DeadLinkError: If nothing gets through, and links alone lost the frames.
        DeadPathError: If nothing gets through, and it is not known what is to blame.
        IntegrityError: If frames came back, but not as they were sent; the message names the fields that changed.
        LossRatioError: If an interface or a link on the path is down; its class is that of the side to blame.
    """
    agent = traffic.agent
    try:
        check_path(
            agent,
            growth=2.0 if traffic.translates else 1.0,
            spread=None if traffic.translates else traffic.spread,
            rest=traffic.rest,
            reset=traffic.reset,
        )
    except IntegrityError as error:
        if error.is_explained:
            raise
        counted = str(error).removesuffix(LOOK_AT_DUT).strip()
        changed = changes_in_words(look_at_fields(traffic))
        raise IntegrityError(f"{counted} {changed or LOOK_AT_DUT}") from error
    except DeadPathError as error:
        nodes.check_way()
        changed = changes_in_words(look_at_fields(traffic))
        if changed:
            # Frames with other tags are not recognized as frames of the trial.
            raise IntegrityError(
                f"The path check found frames that came back changed. {changed}"
            ) from error

        losses = _locate(traffic, links, nodes)
        size = _size_that_passes(traffic)
        sentences = " ".join(loss.sentence for loss in losses)
        sides = {loss.guilty for loss in losses}
        if sides == {"wire"}:
            raise DeadLinkError(f"The wire is to blame: {sentences} {error}{size}") from error
        if size and "DUT" not in sides:
            # Nobody needs another cause.
            raise DeadPathError(size.strip()) from error

        described = f"{sentences} {error}{size or _hint_at_swapped_links(links)}".strip()
        if "DUT" in sides:
            raise DeadDutError(f"The DUT is to blame: {described}") from error
        raise DeadPathError(f"{NOBODY_KNOWN}: {described}") from error


def _hint_at_swapped_links(links: Sequence[LiveLink]) -> str:
    """The command that finds swapped links; it needs all ports of the tester on one node."""
    if any(len(link.path.tg_names) > 1 for link in links):
        return ""
    return " Swapped links also look like this: 'lossratio check FILE --connect --probe' names their ports."


def _size_that_passes(traffic: CheckedTraffic) -> str:
    """Sends the smallest frames instead, and says so if some arrive in each direction; empty: none arrive."""
    agent = traffic.agent
    directions = traffic.configuration.directions
    smallest = max(smallest_probe(direction) for direction in directions)
    largest = max(direction.frames.max_size for direction in directions)
    if agent.has_connections or largest <= smallest:
        return ""

    small = tuple(direction.of_size(smallest) for direction in directions)
    try:
        traffic.configure(replace(traffic.configuration, directions=small))
        traffic.reset()
        counters = few_frames(agent, _SMALL_LOAD, _SMALL_SECONDS)
    except TrafficError:
        return ""

    if not all(direction.received_frames for direction in counters):
        return ""
    return (
        f" Frames of {smallest} bytes get through, those of {largest} bytes do not: look at the MTUs on the way, or "
        "measure smaller frames."
    )


_SMALL_LOAD, _SMALL_SECONDS = 200.0, 0.5

LOOKED_AT = 8
"""Number of frames of a direction whose headers are examined."""
_LOOK_SECONDS, _MOST_LOOK_SECONDS = 0.3, 2.0


def look_at_fields(checked: CheckedTraffic) -> dict[str, tuple[ChangedField, ...]]:
    """The fields whose values differ in single frames that come back, by direction; none if the examination fails.

    They are compared as in trials: `lossratio.agent.core.comparison`.
    """
    agent = checked.agent
    marker = Marker()
    macs = agent.facts.interfaces
    directions = [
        direction
        for direction in checked.configuration.directions
        if direction.transmit in macs and direction.receive in macs
    ]
    frames: dict[tuple[int, int], MarkedFrame] = {}
    sends: list[tuple[str, bytes]] = []

    for place, direction in enumerate(directions):
        source = direction.source_mac or macs[direction.transmit]
        destination = direction.destination_mac or macs[direction.receive]
        sized = with_room(direction)
        step = max(1, direction.frames.flows // LOOKED_AT)
        for number in range(LOOKED_AT):
            frame = marker.frame(sized, source, destination, place, number, flow=number * step)
            frames[place, number] = frame
            sends.append((direction.transmit, frame.sent))

    if not sends:
        return {}

    ports = dict.fromkeys(
        port for direction in directions for port in (direction.transmit, direction.receive)
    )
    seconds = min(_MOST_LOOK_SECONDS, _LOOK_SECONDS + agent.settle_time)
    checked.reset()
    try:
        answer = agent.probe([*ports], sends, seconds, networks=checked.configuration.networks)
    except TrafficError:
        return {}

    changes: dict[str, dict[str, ChangedField]] = {}
    for arrival in answer.arrivals:
        mark = marker.mark_in(arrival.head)
        if mark is None or mark not in frames or arrival.port != directions[mark[0]].receive:
            continue
        direction = directions[mark[0]]
        mac = mac_bytes(macs[arrival.port])
        fields = changes.setdefault(direction.name, {})
        frame = frames[mark]
        for change in changed_fields(
            direction, frame.wanted, arrival.head, mac=mac, length=arrival.length, sent=frame.sent
        ):
            seen = ChangedField(change.name, change.before, change.after)
            fields.setdefault(change.name, seen)

    return {name: tuple(fields.values()) for name, fields in changes.items() if fields}


@dataclass(frozen=True)
class _Loss:
    """The place where all frames of a direction are lost."""

    guilty: Literal["DUT", "wire"] | None
    """Whether the place is a DUT or between two nodes; None: no counter shows which."""
    sentence: str


@dataclass(frozen=True)
class _BlackBox:
    """A DUT that lossratio did not set up. Its node's kernel counts the frames on its interfaces."""

    hop: Hop
    nodes: Watch

    def read_counters(self) -> DutCounters:
        """The kernel's counters by side, without the interfaces that the kernel does not have."""
        ports = self.nodes.read().nodes.get(self.hop.node_name, NodePrint()).ports
        names = {"west": self.hop.west.interface.name, "east": self.hop.east.interface.name}
        known = {
            side: ports[name] for side, name in names.items() if name is not None and name in ports
        }
        return DutCounters(
            {side: port.received for side, port in known.items() if port.received is not None},
            {
                side: port.transmitted
                for side, port in known.items()
                if port.transmitted is not None
            },
            {},
        )


_Counter: TypeAlias = Dut[DutOptions] | _BlackBox
"""A device on the path that counts frames."""


def _locate(traffic: CheckedTraffic, links: Sequence[LiveLink], nodes: Watch) -> list[_Loss]:
    """Sends frames again, and follows them by the counters of the hops. Returns one loss for each dead direction."""
    ways: list[Sequence[_Counter]] = [
        [dut if dut.has_counters else _BlackBox(dut.hop, nodes) for dut in link.duts]
        or [_BlackBox(hop, nodes) for hop in link.path.hops]
        for link in links
    ]
    # A reset may clear the counters.
    traffic.reset()
    before = [[hop.read_counters() for hop in way] for way in ways]
    sent = frames_of_last_check(traffic.agent)
    directions = {direction.name: direction for direction in sent}
    losses: list[_Loss] = []

    for number, (link, way, earlier) in enumerate(zip(links, ways, before, strict=True), start=1):
        where = f"Parallel link {number} of {len(links)}, " if len(links) > 1 else ""
        counted = [
            (hop, hop.read_counters().since(then)) for hop, then in zip(way, earlier, strict=True)
        ]
        losses += (
            _Loss(loss.guilty, f"{where}{loss.sentence}")
            for loss in _losses(link.path, counted, directions)
        )

    return losses


def _losses(
    path: TrafficPath,
    hops: Sequence[tuple[_Counter, DutCounters]],
    directions: Mapping[str, DirectionCounters],
) -> Iterator[_Loss]:
    """One loss for each direction of a path in which nothing arrived."""
    ways = (
        (path.west, path.east, "west", "east", hops),
        (path.east, path.west, "east", "west", hops[::-1]),
    )
    for (start, end, entry, leaving, way), source, sink in zip(
        ways, path.tg_ports, reversed(path.tg_ports), strict=False
    ):
        direction = directions.get(f"{source.name}>{sink.name}")
        if direction is not None and not direction.received_frames:
            loss = _follow(str(start), str(end), entry, leaving, way, sent=direction.sent_frames)
            yield _Loss(loss.guilty, f"{direction.name}: {loss.sentence}")


def _follow(
    start: str,
    end: str,
    entry: str,
    leaving: str,
    hops: Sequence[tuple[_Counter, DutCounters]],
    *,
    sent: int,
) -> _Loss:
    """Finds the place where frames of one direction are lost, as far as hops count them."""
    last = start
    # Hops beyond the last place that has seen the frames: they did not count them.
    silent: list[str] = []
    for hop, counted in hops:
        name = hop.hop.node_name
        received = counted.received.get(entry)
        transmitted = counted.transmitted.get(leaving)

        if received is None:
            silent.append(name)
        elif 2 * received < sent:
            few = "nothing arrives"
            if received:
                few = f"only {received:,} of {sent:,} frames arrive"
            or_filter = ""
            if isinstance(hop, _BlackBox):
                or_filter = " and at the destination MAC addresses"
            return _lost_before(f"{few} at {name}", last, sent, silent, or_filter)
        else:
            last = name
            silent = []

        few = f"only {transmitted:,}" if transmitted else "none"
        if transmitted is None:
            silent = [*dict.fromkeys([*silent, name])]
        elif 2 * transmitted >= sent:
            last = name
            silent = []
        elif received is None:
            return _lost_before(f"{name} sends {few} of them on", last, sent, silent)
        else:
            dropped = ", ".join(
                f"{count:,} at {at}" for at, count in counted.dropped.items() if count
            )
            where = dropped or "no counter shows where"
            return _Loss(
                "DUT",
                f"{name} receives {received:,} frames and forwards {few} of them (dropped: {where}).",
            )

    return _lost_before(f"nothing arrives at {end}", last, sent, silent)


def _lost_before(
    seen: str, last: str, sent: int, silent: Sequence[str], or_filter: str = ""
) -> _Loss:
    """Frames are lost behind the last place that has seen them: at the link, or in hops that did not count them."""
    if not silent:
        return _Loss("wire", f"{last} sends, but {seen}; look at the link between them{or_filter}.")
    names = " and ".join(silent)
    return _Loss(
        None,
        f"{last} sends {sent:,} frames, and {seen}; no counters of {names} show where they are lost.",
    )

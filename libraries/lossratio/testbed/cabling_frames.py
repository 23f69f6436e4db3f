"""Sends marked frames from ports of the TG, and notes where they come out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lossratio import traffic
from lossratio.agent import (
    FCS_BYTES,
    Configuration,
    Direction,
    FieldChange,
    changed_fields,
    mac_bytes,
)
from lossratio.topology import Port, TrafficPath

WAIT_SECONDS = 0.2
"""Seconds in which the frames come out."""
_FRAME_NUMBERS = 256
"""How many numbers a mark has for the frames of a port."""


@dataclass(frozen=True)
class End:
    """A port of the TG."""

    port: Port
    """The port in the topology."""
    interface: str
    """The generator's name for it."""
    peer: str
    """The other end of its path."""
    path: TrafficPath
    """The path that begins or ends here."""
    neighbour: Port | None
    """The DUT's port at the other end of its link; None: there is no DUT."""
    wrong: Port | None
    """The DUT's port at the other end of the path."""
    mac: str
    """Its MAC address."""
    number: int
    """Its number among all ends, which its frames carry."""

    @property
    def name(self) -> str:
        """The port's name, as people write it."""
        return str(self.port)


@dataclass
class Seen:
    """How often the frames of one port came out, by arrival port and frame number."""

    copies: dict[str, Counter[int]] = field(default_factory=dict)
    """How often each frame came out of each port."""
    changes: dict[str, FieldChange] = field(default_factory=dict)
    """The fields, by name, that had other values in frames that came out of the right port."""

    def numbers(self, name: str, wanted: Sequence[int]) -> int:
        """How many of the wanted frames came out of a port."""
        return sum(1 for number in wanted if self.copies.get(name, Counter())[number])

    def forget(self, number: int) -> None:
        """Forgets the frames that had a number, before another frame gets it."""
        for counts in self.copies.values():
            del counts[number]


@dataclass
class Probe:
    """Sends frames from ports of the TG, and notes where frames come out."""

    agent: traffic.AgentClient
    """The agent on the TG."""
    ends: Sequence[End]
    """The ports from which frames are sent; an end's number is its place."""
    configurations: Mapping[int, Configuration]
    """How frames of each size in bytes are made, the smallest first."""
    through: Mapping[str, Any] | None
    """How the agent sends where a generator has taken the ports; None: through the kernel."""
    others: dict[str, str]
    """Names of further ports where frames may come out, by interface."""
    foreign: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Frames of others, by port and description."""
    problems: list[str] = field(default_factory=list)
    """What is wrong, as sentences."""
    is_storm: bool = False
    """Whether too many frames came back to count them."""
    unsent: set[tuple[str, int]] = field(default_factory=set)
    """Ports and sizes in bytes of frames that could not be sent."""
    _marker: traffic.Marker = field(default_factory=traffic.Marker)
    _next_number: int = 0

    def __post_init__(self) -> None:
        self.by_name = {end.name: end for end in self.ends}
        self.seen = {end.name: Seen() for end in self.ends}
        self.destinations = {end.name: self.by_name[end.peer].mac for end in self.ends}
        self._sent: dict[tuple[int, int], tuple[Direction, traffic.MarkedFrame]] = {}

    def send_from(
        self,
        ends: Sequence[End],
        configuration: Configuration,
        count: int,
        destination: str | None = None,
    ) -> dict[str, list[int]]:
        """Sends frames from some ports, and returns their numbers.

        Args:
            ends: The ports.
            configuration: How their frames are made.
            count: The frames of each port.
            destination: The MAC address that gets the frames, for its counters; None: that of the other end of the
                path.

        Returns:
            The numbers of the frames, by the port's name. Frames that had these numbers before are forgotten.
        """
        sends: list[tuple[str, bytes]] = []
        numbers: dict[str, list[int]] = {end.name: [] for end in ends}
        for _ in range(count):
            self._next_number = (self._next_number + 1) % _FRAME_NUMBERS
            for end in ends:
                self.seen[end.name].forget(self._next_number)
                direction = next(
                    each for each in configuration.directions if each.transmit == end.interface
                )
                mac = destination or self.destinations[end.name]
                frame = self._marker.frame(direction, end.mac, mac, end.number, self._next_number)
                if destination is None:
                    self._sent[end.number, self._next_number] = (direction, frame)
                sends.append((end.interface, frame.sent))
                numbers[end.name].append(self._next_number)

        self.send(sends, WAIT_SECONDS, configuration)
        return numbers

    def send(
        self,
        sends: Sequence[tuple[str, bytes]],
        seconds: float,
        configuration: Configuration | None = None,
    ) -> None:
        """Sends frames as they are, and notes what comes out.

        Args:
            sends: The interface and the bytes of each frame.
            seconds: How long to look for what comes out.
            configuration: Ports answer for its addresses meanwhile; None: they answer for none.
        """
        networks = next(iter(self.configurations.values())).networks
        speakers = () if configuration is None else configuration.speakers
        names = {end.interface: end.name for end in self.ends}
        answer = self.agent.probe(
            [*names],
            sends,
            seconds,
            networks=networks,
            speakers=speakers,
            listen=[*self.others],
            through=self.through,
        )
        self.is_storm = self.is_storm or answer.is_storm

        for arrival in answer.arrivals:
            mark = self._marker.mark_in(arrival.head)
            if mark is not None:
                self._note_own(arrival, mark)
            elif arrival.port in names:
                self._note_other(arrival, names[arrival.port])

        for interface, length, reason in dict.fromkeys(answer.unsent):
            self.unsent.add((names[interface], length + FCS_BYTES))
            self.problems.append(
                f"{names[interface]}: {interface} does not send frames of {length + FCS_BYTES} bytes ({reason}): "
                "its MTU, or the MTU at the other end of its link, is too small for the requested sizes."
            )

        if answer.is_storm:
            self.problems.append(
                "A loop: too many frames come back to count them. Look for a second path between the ports, and "
                "switch off one of its ports."
            )

    def foreign_traffic(self) -> Iterator[str]:
        """The ports at which frames of others arrive; at each port, the most frequent frame is the example."""
        totals: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for (name, what), count in self.foreign.most_common():
            totals[name] += count
            examples.setdefault(name, what)

        for name, count in totals.items():
            yield (
                f"{name}: foreign traffic: {count} frames from other senders, such as {examples[name]}. They use "
                "capacity of the device: find their sender."
            )

    def _note_own(self, arrival: traffic.Arrival, mark: tuple[int, int]) -> None:
        """Notes where a frame of this probe came out, and what was changed in it."""
        end_number, frame_number = mark
        end = self.ends[end_number]
        seen = self.seen[end.name]
        names = {each.interface: each.name for each in self.ends} | self.others
        name = names[arrival.port]
        seen.copies.setdefault(name, Counter())[frame_number] += arrival.count

        if name == end.peer and mark in self._sent:
            mac = mac_bytes(self.by_name[name].mac)
            direction, frame = self._sent[mark]
            for change in changed_fields(
                direction, frame.wanted, arrival.head, mac, arrival.length, frame.sent
            ):
                seen.changes.setdefault(change.name, change)

    def _note_other(self, arrival: traffic.Arrival, name: str) -> None:
        """Notes a frame that somebody else sent, unless devices find each other with such frames."""
        source = arrival.head[6:12].hex(":")
        if arrival.chatter is None and source not in {end.mac for end in self.ends}:
            self.foreign[name, arrival.in_words] += arrival.count

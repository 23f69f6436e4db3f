"""A check of the cabling: it sends frames from each port of the TG, and finds out where they come out."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from lossratio import traffic
from lossratio.agent import FCS_BYTES, Configuration
from lossratio.errors import TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed.cabling_frames import End, Probe
from lossratio.testbed.inspection import read_interfaces, read_ports, with_names
from lossratio.testbed.local import reachable
from lossratio.testbed.next_hops import ask_gateways, gateway_question
from lossratio.testbed.set_up import log_in_on_all, traffic_port
from lossratio.testbed.tester_cards import taken_cards, takes_cards
from lossratio.topology import Port, RealGenerator, Topology, TrafficPath
from lossratio.traffic import PortPair, TrafficDirection
from lossratio.trials import LOOK_AT_DUT, fields_in_words, ways_to_expect
from lossratio.values import as_sentence

LISTEN_SECONDS = 0.5
"""Seconds in which nothing is sent, to look for other frames on the path."""
_FRAMES = 5
_MOST_COPIES = 3
_COUNTERS = (
    'for name; do cat "/sys/class/net/$name/statistics/rx_packets" 2>/dev/null || echo -1; done'
)


@dataclass(frozen=True)
class CablingReport:
    """The findings of a check of the cabling."""

    works: tuple[str, ...]
    """What works, in a line each."""
    notes: tuple[str, ...]
    """Findings that need not be faults."""
    problems: tuple[str, ...]
    """Faults, each with its place and its remedy."""


def describe_cabling(report: CablingReport) -> Iterator[str]:
    """The findings, in a line each."""
    yield from (f"  {line}" for line in report.works)
    yield from (f"  Note: {line}" for line in report.notes)
    yield from (f"  PROBLEM: {line}" for line in report.problems)


def probe_cabling(
    topology: Topology,
    links: int,
    *,
    duts: int | None,
    nic: str | None,
    profile: str,
    frame_sizes: Sequence[int | str],
) -> CablingReport:
    """Sends some frames from each port of the TG, and finds out where they come out. It takes some seconds.

    The paths are chosen as by `Topology.paths`. The frames have the headers of the profile. Sizes are given smallest
    first; a mix of sizes means its largest size.

    Raises:
        LossRatioError: If a node cannot be reached, or the ports cannot be used.
        TopologyError: If the path ends at a reflector, or the generator has taken the ports from
            the kernel.
    """
    with ExitStack() as undo:
        topology = reachable(topology, undo)
        generator = _generator_of_probe(topology)
        tg_name = topology.tg_name
        tester = topology.nodes[tg_name]
        paths = topology.paths(links, duts=duts, nic=nic)
        sessions, _ = log_in_on_all(topology, paths[0], undo, purpose="probing the cabling")
        tg = sessions[tg_name]
        states = read_ports([port for path in paths for port in path.ports], sessions)
        agent = undo.enter_context(traffic.start_agent(generator, tg))
        paths = tuple(with_names(path, states, takes_cards=takes_cards(tester)) for path in paths)
        tg_ports = [port for path in paths for port in (path.west, path.east)]

        node = traffic.GeneratorNode(tg, agent.facts.interfaces, agent.facts.cpus)
        opened = traffic.open_generator(generator, node, tg_ports)
        if takes_cards(tester):
            undo.enter_context(taken_cards(tg, tester, tg_ports))
        undo.callback(opened.close)
        interfaces = {str(port): opened.port_name(port) for port in tg_ports}
        macs = {str(state.port): state.state.mac_address for state in states}
        macs |= {str(port): opened.mac_address(port) for port in tg_ports}

        ends = _ends(paths, interfaces, macs)
        traffics = [
            traffic.load_profile(profile, frame_size=size, bidirectional=True)
            for size in frame_sizes
        ]
        others: dict[str, str] = {}
        if not takes_cards(tester):
            others = _other_ports(topology, tg, {end.interface for end in ends})
        probe = Probe(
            agent,
            ends,
            _make_configurations(topology, ends, traffics),
            opened.single_frames(),
            others,
        )
        return _Cabling(probe, traffics[-1].directions, sessions, macs).report()


def _generator_of_probe(topology: Topology) -> RealGenerator:
    """The generator of the TG.

    Raises:
        TopologyError: If the path ends elsewhere, or the generator cannot send single frames.
    """
    tg_name = topology.tg_name
    if topology.end_name != tg_name:
        raise TopologyError(
            f"The probe of the cabling needs two ports of one TG, but this path ends at {topology.end_name}. Leave out "
            "--probe."
        )

    tester = topology.nodes[tg_name]
    generator = tester.generator
    if not isinstance(generator, RealGenerator) or (
        (takes_cards(tester) or tester.has_tester)
        and not traffic.load_generator(generator.kind).has_single_frames
    ):
        raise TopologyError(
            f"{tg_name}: the probe of the cabling needs ports that belong to the kernel, but this generator's do "
            "not. Probe with 'generator: {kind: afpacket}' on the same ports."
        )
    return generator


def _other_ports(topology: Topology, tg: NodeSession, used: Collection[str]) -> dict[str, str]:
    """By interface, the TG's ports that are on none of the paths, but at which a wrong cable may end."""
    states = read_interfaces(tg, topology.nodes[topology.tg_name].interfaces).items()
    return {
        state.name: f"{topology.tg_name}.{port}"
        for port, state in states
        if state.name and state.name not in used
    }


def _ends(
    paths: Sequence[TrafficPath], interfaces: Mapping[str, str], macs: Mapping[str, str]
) -> list[End]:
    ends: list[End] = []
    for path in paths:
        hops = path.hops
        at_west = (hops[0].west, hops[0].east) if hops else (None, None)
        at_east = (hops[-1].east, hops[-1].west) if hops else (None, None)
        sides = ((path.west, path.east, at_west), (path.east, path.west, at_east))
        for port, peer, (neighbour, wrong) in sides:
            name, mac = interfaces[str(port)], macs[str(port)]
            ends.append(End(port, name, str(peer), path, neighbour, wrong, mac, len(ends)))

    return ends


def _make_configurations(
    topology: Topology, ends: Sequence[End], traffics: Sequence[traffic.TrafficProfile]
) -> dict[int, Configuration]:
    """How frames of each size are made, the smallest first."""
    configurations: dict[int, Configuration] = {}
    for profile in traffics:
        sides = topology.sides([end.path for end in ends[::2]], profile.versions)
        pairs = [
            PortPair(
                traffic_port(west.port, west.interface, None),
                traffic_port(east.port, east.interface, None),
            )
            for west, east in zip(ends[::2], ends[1::2], strict=True)
        ]
        configuration = traffic.make_configuration(profile, pairs, settle_time=0.0, sides=sides)
        room = max(traffic.smallest_probe(direction) for direction in configuration.directions)
        whole = max(*profile.size_weights, room)
        sized = (each.of_size(whole) for each in configuration.directions)
        configurations[whole] = replace(configuration, directions=tuple(sized))

    return dict(sorted(configurations.items()))


class _Cabling:
    """Draws the conclusions."""

    def __init__(
        self,
        probe: Probe,
        directions: Sequence[TrafficDirection],
        sessions: Mapping[str, NodeSession],
        macs: Mapping[str, str],
    ) -> None:
        self._probe = probe
        self._directions = directions
        self._sessions = sessions
        self._macs = macs
        self._counted: dict[str, dict[str, int]] = {}
        self._notes: list[str] = []
        self._problems = probe.problems
        self._largest: dict[str, list[int]] = {end.name: [] for end in probe.ends}

    def report(self) -> CablingReport:
        self._probe.send([], LISTEN_SECONDS)
        self._ask_gateways()
        (smallest, first), *larger = self._probe.configurations.items()
        # First one frame, which teaches addresses to bridges, and shows a loop before more frames circulate in it.
        self._probe.send_from(self._probe.ends, first, 1)

        if not self._probe.is_storm:
            numbers = {end.name: self._count_around(end, first) for end in self._probe.ends}
            for end in self._probe.ends:
                self._judge(end, numbers[end.name], smallest)
            for size, configuration in larger:
                self._try_size(size, configuration)
            self._check_fields()

        problems = (*self._problems, *self._probe.foreign_traffic())
        return CablingReport(tuple(self._working()), tuple(self._notes), problems)

    def _working(self) -> Iterator[str]:
        """The directions in which frames come out, with their sizes."""
        for end in self._probe.ends:
            sizes = sorted(self._largest[end.name])
            if sizes:
                listed = " and ".join(map(str, sizes))
                yield f"{end.name} > {end.peer}: frames of {listed} bytes come out"

    def _ask_gateways(self) -> None:
        probe = self._probe
        questions = [
            gateway_question(end.port, self._directions[end.number % 2], end.interface)
            for end in probe.ends
        ]
        asked = [question for question in questions if question is not None]
        if not asked:
            return

        names = {end.interface: end.name for end in probe.ends}
        for name, macs, problem in ask_gateways(probe.agent, asked, names, probe.through):
            if macs:
                probe.destinations[name] = macs[0]
            if problem:
                self._problems.append(as_sentence(problem))

    def _count_around(self, end: End, configuration: Configuration) -> list[int]:
        """Sends from one port, and reads the counters of the DUT's ports before and after."""
        ports = [
            port
            for port in (end.neighbour, end.wrong)
            if port is not None and port.interface.name is not None
        ]
        session = None if not ports else self._sessions.get(ports[0].node_name)
        before = None if session is None else _received(session, ports)
        numbers = self._probe.send_from([end], configuration, _FRAMES)[end.name]

        if session is not None and before is not None:
            # A card that nothing has set up yet only counts frames to its own address.
            for port in ports:
                mac = self._macs.get(str(port))
                if mac:
                    self._probe.send_from([end], configuration, _FRAMES, mac)
            after = _received(session, ports)
            self._counted[end.name] = {
                name: after[name] - before[name] for name in before if before[name] >= 0
            }
        return numbers

    def _judge(self, end: End, numbers: list[int], size: int) -> None:
        """Finds out where the frames of one port came out."""
        seen = self._probe.seen[end.name]
        names = [*(other.name for other in self._probe.ends), *self._probe.others.values()]
        arrived = {name: seen.numbers(name, numbers) for name in names}
        places = [name for name, count in arrived.items() if count]
        copies = max(
            (counter[number] for counter in seen.copies.values() for number in numbers), default=0
        )
        others = [name for name in places if name not in (end.name, end.peer)]
        if self._link_is_swapped(end):
            return

        if arrived[end.name]:
            self._problems.append(
                f"{end.name}: a loop: its frames come back to the same port. Look for a device that reflects them."
            )
        if copies >= _MOST_COPIES:
            self._problems.append(
                f"{end.name}: a loop: each frame that it sends comes out {copies} times. Look for a second path."
            )

        if arrived[end.peer]:
            if others:
                self._problems.append(
                    f"{end.name}: frames to {end.peer} also come out of {', '.join(others)}: a hub, or a switch "
                    "that does not learn. The ports of different paths must not share a segment."
                )

            if arrived[end.peer] < len(numbers):
                self._problems.append(
                    f"{end.name} > {end.peer}: only {arrived[end.peer]} of {len(numbers)} frames "
                    "come out, although they are sent slowly. Look at the cable, and at errors "
                    "of the ports (ip -s link)."
                )
            else:
                self._largest[end.name].append(size)
        elif others:
            self._problems.append(
                f"{end.name}: swapped links: frames to {end.peer} come out of {', '.join(others)}. Change the cables, "
                "or the links in the topology file."
            )
        elif not arrived[end.name]:
            self._judge_silence(end)

    def _link_is_swapped(self, end: End) -> bool:
        counted = self._counted.get(end.name, {})
        here, there = str(end.neighbour), str(end.wrong)
        if counted.get(here, _FRAMES) >= _FRAMES or counted.get(there, 0) < _FRAMES:
            return False
        self._problems.append(
            f"{end.name}: swapped links: its frames arrive at {there} instead of {here}. Swap the cables, or the "
            "links in the topology file."
        )
        return True

    def _judge_silence(self, end: End) -> None:
        """If nothing came out, finds out where the frames were lost, as far as that is known."""
        back = any(self._probe.seen[end.peer].copies.get(end.name, Counter()).values())
        counted = self._counted.get(end.name, {})
        here = str(end.neighbour)

        if here in counted and counted[here] < _FRAMES:
            self._problems.append(
                f"{end.name} sends, but nothing arrives at {here}. Look at the link between them."
            )
        elif here in counted and not back:
            self._notes.append(
                f"{end.name} > {end.peer}: the frames arrive at {here} but do not come out. If a suite sets up this "
                "DUT, it does not forward yet. Otherwise, the DUT drops the frames."
            )
        elif back:
            self._problems.append(
                f"{end.name} > {end.peer}: a one-way path: nothing comes out, but the other direction works. Look "
                "at filters, routes and addresses of the device for this direction."
            )
        else:
            self._problems.append(
                f"{end.name} > {end.peer}: nothing comes out, in either direction. Look at the cables and at the "
                "destination MAC addresses (gateway), and check whether the device forwards."
            )

    def _try_size(self, size: int, configuration: Configuration) -> None:
        ends = [end for end in self._probe.ends if self._largest[end.name]]
        if not ends:
            return

        numbers = self._probe.send_from(ends, configuration, _FRAMES)
        for end in ends:
            if self._probe.seen[end.name].numbers(end.peer, numbers[end.name]):
                self._largest[end.name].append(size)
                continue
            if (end.name, size) in self._probe.unsent:
                continue

            largest = max(self._largest[end.name])
            self._problems.append(
                f"{end.name} > {end.peer}: frames of {size} bytes do not come out, but frames of {largest} bytes "
                "do: an MTU on the path is too small for the requested sizes. Raise it to at least "
                f"{size - FCS_BYTES - 14}."
            )

    def _check_fields(self) -> None:
        """Checks whether frames came out as a measurement expects, with the tags of the other direction."""
        for end in self._probe.ends:
            changes = [*self._probe.seen[end.name].changes.values()]
            if changes:
                ways = " ".join([*ways_to_expect(changes), LOOK_AT_DUT])
                self._problems.append(
                    f"{end.name} > {end.peer}: frames do not come out as they were sent: "
                    f"{fields_in_words(changes)}. {ways}"
                )


def _received(session: NodeSession, ports: Sequence[Port]) -> dict[str, int]:
    names = [str(port.interface.name) for port in ports]
    counts = session.run("sh", "-c", _COUNTERS, "sh", *names).stdout.split()
    return {str(port): int(count) for port, count in zip(ports, counts, strict=True)}

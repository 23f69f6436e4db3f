"""Next hops of test traffic: their MAC addresses, and the check that routers keep traffic within the testbed."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lossratio.agent import Question
from lossratio.dut import DestinationMacs
from lossratio.errors import NodeError, TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed.changes import NOBODY_KNOWN
from lossratio.testbed.set_up import LiveLink, LiveSetUp
from lossratio.testbed.tester_cards import takes_cards
from lossratio.topology import Node, Port, Side, Topology
from lossratio.traffic import (
    AgentClient,
    DeadPathError,
    TrafficDirection,
    TrafficProfile,
    address_span,
)

_FORWARDING = 'for name; do cat "/proc/sys/net/$name" 2>/dev/null || echo 0; done'


@dataclass(frozen=True)
class NextHops:
    """The MAC addresses of next hops of one measurement."""

    destinations: tuple[DestinationMacs | None, ...]
    """The destinations of frames that leave the TG, for each link; None: not known."""
    answers: Mapping[str, str]
    """The MAC addresses that gateways gave, by port and gateway, for results."""
    sides: tuple[tuple[Side, Side], ...] | None
    """The networks west and east of each path; None: only parts of the benchmarking networks."""


def find_next_hops(
    topology: Topology, set_up: LiveSetUp, profile: TrafficProfile, agent: Callable[[], AgentClient]
) -> NextHops:
    """Checks where DUTs route traffic with the lab's addresses, and asks the gateways for their MAC addresses.

    A gateway is asked if nothing else gives its MAC address. The question has the profile's IP version and tags.
    """
    links = set_up.links
    sides = topology.sides([link.path for link in links], profile.versions)
    is_lab = topology.addresses == "lab"
    if is_lab:
        check_routes(links, sides, profile, set_up.sessions)
    ports = [port for link in links for port in link.path.tg_ports]
    if not any(port.interface.gateway for port in ports):
        return NextHops(tuple(link.destinations for link in links), {}, sides if is_lab else None)

    mac_addresses = {str(port): set_up.generator.mac_address(port) for port in ports}
    asked = _questions(set_up, profile)
    macs: dict[str, str] = {}
    if asked:
        if not set_up.generator.has_single_frames:
            check_can_ask(topology.nodes[topology.tg_name], asked)
        macs = _ask(set_up, asked, agent())

    destinations = tuple(_with_answers(link, macs, mac_addresses) for link in links)
    return NextHops(
        destinations,
        {f"{port} {question.target}": macs[str(port)] for port, question in asked},
        sides,
    )


def _questions(set_up: LiveSetUp, profile: TrafficProfile) -> list[tuple[Port, Question]]:
    """The gateways whose MAC addresses nothing else gives, and the ports that need them."""
    asked: list[tuple[Port, Question]] = []
    for link in set_up.links:
        for port, direction in zip(link.path.tg_ports, profile.directions, strict=False):
            if _is_mac_known(link, port):
                continue
            question = gateway_question(port, direction, set_up.generator.port_name(port))
            if question is not None:
                asked.append((port, question))
    return asked


def _ask(
    set_up: LiveSetUp, asked: Sequence[tuple[Port, Question]], agent: AgentClient
) -> dict[str, str]:
    """The MAC addresses of gateways, by port.

    Raises:
        DeadPathError: If a gateway is silent, or answers from several MAC addresses.
    """
    through = set_up.generator.single_frames()
    names = {
        set_up.generator.port_name(port): str(port)
        for link in set_up.links
        for port in link.path.tg_ports
    }
    macs: dict[str, str] = {}
    questions = [question for _, question in asked]
    for name, answers, problem in ask_gateways(agent, questions, names, through):
        if problem:
            raise DeadPathError(f"{NOBODY_KNOWN}: {problem}")
        macs[name] = answers[0]
    return macs


def ask_gateways(
    agent: AgentClient,
    questions: Sequence[Question],
    ports: Mapping[str, str],
    through: Mapping[str, Any] | None,
) -> Iterator[tuple[str, Sequence[str], str]]:
    """Asks gateways for their MAC addresses.

    Args:
        agent: The agent of the TG.
        questions: The questions.
        ports: The names of the TG's ports, by interface.
        through: See `AgentClient.resolve`.

    Yields:
        The name of the port that asked, the MAC addresses that its gateway gave, and what is wrong with the answer
        (empty: nothing).
    """
    answers = agent.resolve(questions, through=through)
    for question, macs in zip(questions, answers, strict=True):
        name = ports[question.port]
        yield name, macs, problem_with_answer(name, question, macs)


def problem_with_answer(port: str, question: Question, macs: Sequence[str]) -> str:
    """What is wrong with the MAC addresses in the answer of a gateway, and what to do; empty: nothing."""
    how = "ARP"
    if ":" in question.target:
        how = "neighbour discovery"
    vlan = f" in VLAN {int(question.tags[-4:], 16) & 0xFFF}" if question.tags else ""
    gateway = f"the gateway {question.target} of {port}"

    if len(macs) > 1:
        return (
            f"{gateway} answers {how}{vlan} from several MAC addresses: {', '.join(macs)}. Several devices have the "
            "address or answer for it, so it is not known where traffic would go. Make only one of them answer."
        )
    if macs:
        return ""
    return (
        f"{gateway} does not answer {how}{vlan}. Look at the link, at the device's address there, and at 'address' "
        f"and 'gateway' in the topology file ({question.port} asked as {question.source}). Swapped cables look like "
        "this, too."
    )


def check_can_ask(tester: Node, asked: Sequence[tuple[Port, Question]]) -> None:
    """Makes sure that the kernel of the TG has the ports through which gateways are asked.

    Raises:
        TopologyError: If the generator has taken such a port from the kernel.
    """
    for port, question in asked:
        if takes_cards(tester) and (port.interface.name is None or tester.uio_driver is not None):
            raise TopologyError(
                f"{port}: the MAC address of its gateway {question.target} cannot be found out because the "
                "generator has taken the card from the kernel. Set the gateway's MAC address with 'dut=black_box' "
                "and 'west_mac' or 'east_mac', or let lossratio set up the DUT."
            )


def check_routes(
    links: Sequence[LiveLink],
    sides: Sequence[tuple[Side, Side]],
    profile: TrafficProfile,
    sessions: Mapping[str, NodeSession],
) -> None:
    """Checks that DUTs that route in the kernel keep test traffic with the lab's addresses on the path.

    Devices that cannot be reached, or that do not forward in the kernel, are not checked.
    """
    for link, (west, east) in zip(links, sides, strict=True):
        for hop in link.path.hops:
            session = sessions.get(hop.node_name)
            if session is None:
                continue
            ways = ((hop.west, hop.east, west, east), (hop.east, hop.west, east, west))
            for direction, (entry, leaving, source, sink) in zip(
                profile.directions, ways, strict=False
            ):
                _check_route(session, (entry, leaving), direction, source, sink)


def _check_route(
    session: NodeSession,
    ports: tuple[Port, Port],
    direction: TrafficDirection,
    source: Side,
    sink: Side,
) -> None:
    entry, leaving = (port.interface.name for port in ports)
    ip = direction.headers.ip
    version = ip.version
    if entry is None or leaving is None:
        return

    settings = (f"ipv{version}/conf/{entry}/forwarding", f"ipv{version}/conf/all/forwarding")
    if "1" not in session.run("sh", "-c", _FORWARDING, "sh", *settings).stdout.split():
        return

    sender, _ = address_span(ip.source, source, version)
    for target in dict.fromkeys(address_span(ip.destination, sink, version)):
        way = (str(target), "from", str(sender), "iif", entry)
        done = session.run("ip", f"-{version}", "-j", "route", "get", "fibmatch", *way, check=False)
        if done.exit_status != 0:
            raise TopologyError(
                f"{session.name} does not forward traffic from {sender} to {target} that arrives on {entry}: "
                f"{' '.join((done.stderr or done.stdout).split()) or 'it has no route'}. Give it a route to the "
                "network of the TG's other port, or correct 'address' and 'network' in the topology file."
            )

        network, ways = _route(session.name, done.stdout)
        if network == "default":
            raise TopologyError(
                f"{session.name} would send test traffic to {target} along its default route ({', '.join(ways)}), out "
                "of the lab. Nothing was sent. Give it a route to the network of the TG's other port."
            )
        if set(ways) != {leaving}:
            raise TopologyError(
                f"{session.name} would send test traffic to {target} out of {', '.join(ways) or 'nothing'}, by its "
                f"route to {network}, but the path leaves through {leaving}. Nothing was sent. Correct the route, "
                "or the links in the topology file."
            )


def _route(name: str, answer: str) -> tuple[str, list[str]]:
    """The network of a route, and its outgoing interfaces."""
    try:
        (route,) = json.loads(answer)
        ways = [str(hop["dev"]) for hop in route.get("nexthops", [route]) if "dev" in hop]
        return str(route["dst"]), ways
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NodeError(
            f"Node {name}: the answer of 'ip route get' cannot be read: {answer[:200]!r}."
        ) from error


def gateway_question(port: Port, direction: TrafficDirection, name: str) -> Question | None:
    """The question for a port's gateway, in a direction's IP version and with its tags; None: there is none."""
    headers = direction.headers
    version = headers.ip.version
    gateway = next((hop for hop in port.interface.gateway if hop.version == version), None)
    if gateway is None:
        return None
    source = next(own.ip for own in port.interface.address if own.version == version)
    return Question(name, str(source), str(gateway), headers.tags.hex())


def _is_mac_known(link: LiveLink, port: Port) -> bool:
    """Whether the next hop's MAC address follows from a set-up, or from the options of the nearest device alone."""
    if not link.duts:
        return False
    if any(dut.is_managed for dut in link.duts):
        return True
    if port == link.path.west:
        return bool(link.duts[0].destination_macs("", "").from_west)
    return bool(link.duts[-1].destination_macs("", "").from_east)


def _with_answers(
    link: LiveLink, macs: Mapping[str, str], mac_addresses: Mapping[str, str]
) -> DestinationMacs | None:
    west, east = (macs.get(str(port)) for port in (link.path.west, link.path.east))
    if west is None and east is None:
        return link.destinations
    known = link.destinations or DestinationMacs(
        mac_addresses[str(link.path.east)], mac_addresses[str(link.path.west)]
    )
    return DestinationMacs(west or known.from_west, east or known.from_east)

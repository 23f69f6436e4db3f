"""The state of nodes and interfaces as nodes report it, and checks against the topology file.

Before a measurement, the checks cover the presence of interfaces, the speeds of links, and the room for frames. On
demand, they cover everything that nodes lack.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from lossratio.agent import Configuration
from lossratio.dut.linux import core_choices, lifelines_among
from lossratio.errors import DutError, NodeError, TopologyError, TrafficError
from lossratio.files import describe_problem
from lossratio.nodes import (
    INTERFACES_OF_CARD,
    REPORT_SECONDS,
    SPEED_UNIT,
    CommandRunner,
    DutNode,
    NodeSession,
    gather_facts,
    read_hardware,
)
from lossratio.results import NodeFacts
from lossratio.testbed.local import reachable
from lossratio.testbed.tester_cards import card_address, card_problems, takes_cards
from lossratio.topology import Interface, Node, Port, RealGenerator, Topology, TrafficPath
from lossratio.traffic import load_generator
from lossratio.values import format_bit_rate

_INTERFACES = (
    INTERFACES_OF_CARD
    + r"""
for port; do
    case $port in
        *:*:*.*) device=/sys/bus/pci/devices/$port; net=$(interfaces_of_card "$device" | head -n 1); name=${net##*/} ;;
        *) name=$port; device=/sys/class/net/$name ;;
    esac
    if [ -e "$device" ]; then
        net=/sys/class/net/$name
        driver=$(readlink "$net/device/driver" || readlink "$device/driver")
        printf '%s\t%s\t%s' "$port" "$name" "${driver##*/}"
        # Without programs: starting one takes a second on a slow node.
        for file in address operstate speed mtu; do
            value=; read -r value 2>/dev/null <"$net/$file"; printf '\t%s' "$value"
        done
        echo
    fi
done
"""
)


@dataclass(frozen=True)
class InterfaceState:
    """The state of an interface, as its node reports it."""

    name: str
    """Name in Linux; empty if a user-space driver has the interface instead of the kernel."""
    driver: str
    """The driver that the interface is bound to; empty if there is none, as for virtual interfaces."""
    mac_address: str
    """MAC address; empty if the kernel does not have the interface."""
    state: str
    """``up`` or ``down``, in the kernel's words."""
    speed: float | None
    """Speed of the link, bits per second; None: the node does not report it."""
    mtu: int | None = None
    """MTU, bytes; None: the kernel does not have the interface."""


def read_interfaces(
    session: NodeSession, interfaces: Mapping[str, Interface]
) -> dict[str, InterfaceState]:
    """Asks a node about its interfaces, by port name; interfaces that the node does not have are missing."""
    names = {port: known_as(interface) for port, interface in interfaces.items()}
    command = ("sh", "-c", _INTERFACES, "sh", *names.values())
    answer = session.run(*command, timeout=REPORT_SECONDS, check=False).stdout
    rows = [line.split("\t") for line in answer.splitlines()]
    states = {row[0]: row[1:] for row in rows}
    return {port: _state(states[name]) for port, name in names.items() if name in states}


def known_as(interface: Interface) -> str:
    """The interface's name, or its PCI address if the topology file gives no name."""
    return interface.name or interface.pci_address or ""


def _state(fields: Sequence[str]) -> InterfaceState:
    name, driver, mac_address, state, speed, mtu = fields
    # A link that is down has the speed -1.
    if speed.isdecimal() and int(speed) > 0:
        bit_rate = int(speed) * SPEED_UNIT
    else:
        bit_rate = None

    return InterfaceState(
        name, driver, mac_address, state, bit_rate, int(mtu) if mtu.isdecimal() else None
    )


@dataclass(frozen=True)
class PortState:
    """A port of the topology, and the state that its node reports."""

    port: Port
    state: InterfaceState


def read_ports(ports: Sequence[Port], sessions: Mapping[str, NodeSession]) -> tuple[PortState, ...]:
    """Asks nodes about ports; ports that a node does not have are missing in the answer."""
    port_states: list[PortState] = []
    for node, session in sessions.items():
        own = {port.name: port for port in ports if port.node_name == node}
        if own:
            states = read_interfaces(session, {name: port.interface for name, port in own.items()})
        else:
            states = {}

        port_states += [PortState(own[name], state) for name, state in states.items()]
    return tuple(port_states)


def check_presence(
    file: Path, path: TrafficPath, states: Sequence[PortState], nodes: Collection[str]
) -> None:
    """Checks that nodes have the interfaces of the path.

    Args:
        file: The topology file, for errors.
        path: The path whose ports are looked for.
        states: The ports that were found.
        nodes: Names of the nodes that answered; ports of other nodes are not checked.

    Raises:
        TopologyError: If interfaces are missing; the message has the place of each in the file.
    """
    present = {str(state.port) for state in states}
    missing = [port for port in path.ports if port.node_name in nodes and str(port) not in present]
    problems = []
    for port in missing:
        field = "name" if port.interface.name else "pci_address"
        place = ("nodes", port.node_name, "interfaces", port.name, field)
        what = f"node {port.node_name} has no interface {known_as(port.interface)!r}"
        problems.append(describe_problem(file, place, f"{what}; correct it in the topology file"))
    if problems:
        raise TopologyError("\n".join(problems))


def with_names(
    path: TrafficPath, states: Sequence[PortState], *, takes_cards: bool = False
) -> TrafficPath:
    """The path with Linux's names for interfaces for which the topology file only gives PCI addresses.

    Interfaces of DUTs with a ``driver`` get no name: they are cards that the DUT takes from the kernel. The interfaces
    of a TG whose generator takes cards have no name either.
    """
    names = {str(state.port): state.state.name for state in states}

    def named(port: Port) -> Port:
        on_tg = port in path.tg_ports
        if on_tg and takes_cards:
            return replace(port, interface=port.interface.model_copy(update={"name": None}))
        is_card = not on_tg and port.interface.driver is not None
        name = names.get(str(port))
        if port.interface.name is not None or not name or is_card:
            return port
        return replace(port, interface=port.interface.model_copy(update={"name": name}))

    hops = tuple(replace(hop, west=named(hop.west), east=named(hop.east)) for hop in path.hops)
    return replace(path, west=named(path.west), east=named(path.east), hops=hops)


def check_link_speeds(ports: Sequence[PortState]) -> None:
    """Checks that links have the speeds of the topology file, if both the file and the node state one.

    Interfaces without their own driver are virtual, and their speed means nothing. The kernel does not report the speed
    of interfaces that a user-space driver has.

    Raises:
        TopologyError: If a link has another speed.
    """
    for end in ports:
        stated = end.port.interface.speed
        real = end.state.speed
        if end.state.driver and stated is not None and real is not None and real != stated:
            raise TopologyError(
                f"{end.port}: the link of {known_as(end.port.interface)} has {format_bit_rate(real)}, but the "
                f"topology file says {format_bit_rate(stated)}. Look at the cable, the transceivers and "
                "autonegotiation; or correct the 'speed' in the file."
            )


def check_mtus(ports: Sequence[PortState], configuration: Configuration) -> None:
    """Checks that the MTUs of ports have room for the largest frames, as far as the kernel has these ports.

    Raises:
        TrafficError: If an MTU is too small; the message has the command that raises it.
    """
    largest = max(configuration.directions, key=attrgetter("mtu"))
    for end in ports:
        if end.state.mtu is not None and end.state.mtu < largest.mtu:
            raise TrafficError(
                f"Frames of {largest.frames.max_size} bytes do not go through {end.port} ({end.state.name}), whose MTU "
                f"is {end.state.mtu}. Raise it to {largest.mtu} (ip link set dev {end.state.name} mtu {largest.mtu}), "
                "or use smaller frames."
            )


_PROBE = "it's\n'as it was'"
"""Text with the characters that non-POSIX shells treat differently."""
_PACKAGES = {"ip": "iproute2", "nft": "nftables", "ethtool": "ethtool"}


@dataclass(frozen=True)
class NodeReport:
    """The findings of an inspection of a node."""

    name: str
    """The node."""
    facts: NodeFacts | None
    """Facts of the node; None: it could not be reached."""
    interfaces: Mapping[str, InterfaceState]
    """Its existing interfaces, by port name."""
    problems: tuple[str, ...]
    """Reasons why it cannot be used, each with a remedy."""
    choices: tuple[str, ...] = ()
    """What its generator, or a program on a DUT's cards, would choose by itself, and why, or do without."""


def inspect_nodes(
    topology: Topology, links: int = 1, *, duts: int | None = None, nic: str | None = None
) -> tuple[NodeReport, ...]:
    """Logs in on every reachable node, and inspects it; a local testbed that is not up is built for this."""
    with ExitStack() as undo:
        there = reachable(topology, undo)
        paths = there.paths(links, duts=duts, nic=nic)
        return tuple(
            _inspect(name, node, paths) for name, node in there.nodes.items() if node.place
        )


def describe_node(report: NodeReport) -> str:
    """Describes the findings of a node's inspection in a few lines."""
    words: list[str | None] = ["not reached"]
    if (facts := report.facts) is not None:
        cpus = None if facts.cpus is None else f"{facts.cpus} CPUs"
        kernel = None if facts.kernel is None else f"kernel {facts.kernel}"
        words = [
            facts.os,
            kernel,
            facts.architecture,
            facts.cpu_model,
            cpus,
            *facts.tools.model_dump().values(),
        ]

    lines = [f"{report.name}: {', '.join(word for word in words if word is not None)}"]
    lines += [
        f"  {port}: {_interface_in_words(state)}" for port, state in report.interfaces.items()
    ]
    lines += [f"  {choice}" for choice in report.choices]
    lines += [f"  PROBLEM: {problem}" for problem in report.problems]

    return "\n".join(lines)


def _inspect(name: str, node: Node, paths: Sequence[TrafficPath]) -> NodeReport:
    tg_ports = [port for path in paths for port in path.tg_ports]
    choices: tuple[str, ...] = ()
    try:
        with NodeSession.connect(name, node) as session:
            check_shell(session)
            facts = gather_facts(session).facts
            interfaces = {} if node.has_tester else node.interfaces
            states = read_interfaces(session, interfaces) if interfaces else {}
            problems = (
                *_missing_interfaces(interfaces, states),
                *_missing_tools(session, node, facts),
            )
            wired = [
                state.name
                for port, state in states.items()
                if node.interfaces[port].link is not None
            ]
            # A node with missing tools cannot report more.
            with suppress(NodeError, DutError):
                problems += tuple(lifelines_among(DutNode(session), wired))

            if isinstance(node.generator, RealGenerator):
                if takes_cards(node):
                    hardware = read_hardware(session, [card_address(port) for port in tg_ports])
                    problems = (*problems, *card_problems(node, tg_ports, hardware))
                try:
                    generator = load_generator(node.generator.kind)
                    choices = tuple(
                        generator.choices(node.generator, session, tg_ports, facts.cpus or 1)
                    )
                except TopologyError as error:
                    problems = (*problems, str(error))

            hops = [hop for path in paths for hop in path.hops if hop.node_name == name]
            try:
                choices += tuple(
                    choice for hop in hops for choice in core_choices(DutNode(session), hop)
                )
            except DutError as error:
                problems = (*problems, str(error))
    except NodeError as error:
        return NodeReport(name, None, {}, (str(error),))

    return NodeReport(name, facts, states, problems, choices)


def check_shell(session: CommandRunner) -> None:
    """Makes sure that the user's log-in shell passes commands and their output unchanged.

    Raises:
        NodeError: If the shell prints its own text, or does not understand POSIX quotes.
    """
    said = session.run("printf", "%s", _PROBE, check=False)
    # If sudo refuses a command, the first command that needs sudo reports the refusal.
    if said.stdout == _PROBE or said.stderr.startswith("sudo:"):
        return
    if _PROBE in said.stdout:
        raise NodeError(
            f"Node {session.name}: its log-in shell prints {said.stdout.replace(_PROBE, '')[:60]!r} with each "
            "command. Make the user's start-up files, such as .bashrc, print only in interactive shells."
        )
    raise NodeError(
        f"Node {session.name}: its log-in shell does not understand the quotes of a POSIX shell: "
        f"{said.stderr.strip()[:100] or 'it printed something else'!r}. Give the user another shell: chsh -s /bin/sh"
    )


def _missing_interfaces(
    interfaces: Mapping[str, Interface], states: Mapping[str, InterfaceState]
) -> Iterator[str]:
    for port, interface in interfaces.items():
        state = states.get(port)

        if state is None:
            yield f"port {port}: there is no interface {known_as(interface)!r}; correct it in the topology file"
        elif interface.mac_address is not None and state.mac_address not in (
            "",
            interface.mac_address.lower(),
        ):
            yield (
                f"port {port}: {known_as(interface)} has the MAC address {state.mac_address}, not "
                f"{interface.mac_address}; correct it in the topology file"
            )
        elif (
            interface.speed is not None
            and state.speed is not None
            and state.speed < interface.speed
        ):
            yield (
                f"port {port}: the link of {known_as(interface)} has {format_bit_rate(state.speed)}, not "
                f"{format_bit_rate(interface.speed)}"
            )


def _missing_tools(session: NodeSession, node: Node, facts: NodeFacts) -> Iterator[str]:
    if not node.has_tester and session.run("id", "-u").stdout.strip() != "0":
        yield "commands do not run as root; log in as root, or allow 'sudo -n' and set 'sudo: true'"
    if node.type == "DUT":
        for tool, package in _PACKAGES.items():
            if getattr(facts.tools, tool) is None:
                yield f"{tool} is missing (Debian package {package}); kinds of DUT made of the Linux kernel need it"
    if isinstance(node.generator, RealGenerator):
        yield from load_generator(node.generator.kind).needs(node.generator, session)


def _interface_in_words(state: InterfaceState) -> str:
    speed = "speed not known" if state.speed is None else format_bit_rate(state.speed)
    known = (state.name, state.driver, state.mac_address, state.state, speed)
    return ", ".join(fact for fact in known if fact)

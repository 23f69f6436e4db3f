"""What nodes say about their interfaces: whether links have the speed of the topology file, and room for frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossratio.errors import TopologyError, TrafficError
from lossratio.nodes import NodeSession
from lossratio.topology import Interface, Port, TrafficPath
from lossratio.traffic import Configuration
from lossratio.units import format_bit_rate
from lossratio.yaml_file import describe_problem

_SPEED_UNIT = 1e6
"""The kernel tells the speed of a link in Mbit/s."""

_INTERFACES = r"""
for port; do
    case $port in
        *:*:*.*) device=/sys/bus/pci/devices/$port; name=$(ls "$device/net" 2>/dev/null | head -n 1) ;;
        *) name=$port; device=/sys/class/net/$name ;;
    esac
    if [ -e "$device" ]; then
        net=/sys/class/net/$name
        driver=$(basename "$(readlink "$net/device/driver" || readlink "$device/driver")" 2>/dev/null)
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$port" "$name" "$driver" "$(cat "$net/address" 2>/dev/null)" \
            "$(cat "$net/operstate" 2>/dev/null)" "$(cat "$net/speed" 2>/dev/null)" "$(cat "$net/mtu" 2>/dev/null)"
    fi
done
"""


@dataclass(frozen=True)
class InterfaceState:
    """What a node says about one of its interfaces.

    Attributes:
        name: Its name in Linux; empty if the kernel does not have it (a driver for user space has).
        driver: The driver that it is bound to; empty if there is none, as for virtual ones.
        mac_address: Its MAC address; empty if the kernel does not have it.
        state: ``up`` or ``down``, in the kernel's words.
        speed: Speed of its link, bits per second; None: it does not tell.
        mtu: Its MTU, bytes; None: the kernel does not have it.
    """

    name: str
    driver: str
    mac_address: str
    state: str
    speed: float | None
    mtu: int | None = None


def read_interfaces(session: NodeSession, interfaces: Mapping[str, Interface]) -> dict[str, InterfaceState]:
    """Asks a node about its interfaces.

    Args:
        session: A log-in on the node.
        interfaces: The interfaces by port name.

    Returns:
        What it says, by port name; those that it does not have are missing.
    """
    asked = {port: known_as(interface) for port, interface in interfaces.items()}
    answer = session.run("sh", "-c", _INTERFACES, "sh", *asked.values(), check=False).stdout
    found = {row[0]: row[1:] for row in (line.split("\t") for line in answer.splitlines())}
    return {port: _state(*found[name]) for port, name in asked.items() if name in found}


def known_as(interface: Interface) -> str:
    """What the node knows an interface as: its name, or its PCI address."""
    return interface.name or interface.pci_address or ""


def _state(name: str, driver: str, mac_address: str, state: str, speed: str, mtu: str) -> InterfaceState:
    # A link that is down has the speed -1.
    bit_rate = int(speed) * _SPEED_UNIT if speed.isdecimal() and int(speed) > 0 else None
    return InterfaceState(name, driver, mac_address, state, bit_rate, int(mtu) if mtu.isdecimal() else None)


@dataclass(frozen=True)
class PortState:
    """A port of the topology, and what its node says about it."""

    port: Port
    state: InterfaceState


def read_ports(ports: Sequence[Port], sessions: Mapping[str, NodeSession]) -> tuple[PortState, ...]:
    """Asks nodes about ports; those that a node does not have are missing in the answer.

    Args:
        ports: The ports.
        sessions: Log-ins on nodes; only these are asked.
    """
    found: list[PortState] = []
    for node, session in sessions.items():
        asked = {port.name: port for port in ports if port.node_name == node}
        states = read_interfaces(session, {name: port.interface for name, port in asked.items()}) if asked else {}
        found += [PortState(asked[name], state) for name, state in states.items()]
    return tuple(found)


def check_presence(file: Path, path: TrafficPath, found: Sequence[PortState]) -> None:
    """Checks that nodes have the interfaces of the path.

    Args:
        file: The topology file.
        path: The way of the test traffic.
        found: What `read_ports` says about the ports on it.

    Raises:
        TopologyError: If interfaces are missing; each with file, line and field.
    """
    there = {str(each.port) for each in found}
    problems = [
        describe_problem(
            file,
            (
                "nodes",
                port.node_name,
                "interfaces",
                port.name,
                "pci_address" if port.interface.name is None else "name",
            ),
            f"node {port.node_name} has no interface {known_as(port.interface)!r}; correct it in the topology file",
        )
        for port in path.ports
        if str(port) not in there
    ]
    if problems:
        raise TopologyError("\n".join(problems))


def with_names(path: TrafficPath, found: Sequence[PortState]) -> TrafficPath:
    """The path with the names that Linux has for interfaces of which the topology file gives PCI addresses only.

    Those of DUTs with a ``driver`` keep none: they are cards that the DUT takes from the kernel.

    Args:
        path: The way of the test traffic.
        found: What `read_ports` says about the ports on it.
    """
    names = {str(each.port): each.state.name for each in found}

    def named(port: Port) -> Port:
        is_card = port.node_name != path.tg_name and port.interface.driver is not None
        name = names.get(str(port))
        if port.interface.name is not None or not name or is_card:
            return port
        return replace(port, interface=port.interface.model_copy(update={"name": name}))

    hops = tuple(replace(hop, west=named(hop.west), east=named(hop.east)) for hop in path.hops)
    return replace(path, west=named(path.west), east=named(path.east), hops=hops)


def check_link_speeds(ports: Sequence[PortState]) -> None:
    """Checks that links are as fast as the topology file says, where it says so and the node can tell.

    Interfaces without a driver of their own are virtual, and their speed says nothing; the kernel does not tell that of
    interfaces that a driver for user space has.

    Raises:
        TopologyError: If a link has another speed.
    """
    for each in ports:
        stated, real = each.port.interface.speed, each.state.speed
        if each.state.driver and stated is not None and real is not None and real != stated:
            raise TopologyError(
                f"{each.port}: the link of {known_as(each.port.interface)} has {format_bit_rate(real)}, and the "
                f"topology file says {format_bit_rate(stated)}. Look at the cable, the transceivers and "
                "autonegotiation; or correct the 'speed' in the file."
            )


def check_mtus(ports: Sequence[PortState], configuration: Configuration) -> None:
    """Checks that ports have room for the largest frames, as far as the kernel has these ports.

    Raises:
        TrafficError: If one has not.
    """
    largest = max((direction.frames for direction in configuration.directions), key=lambda frames: frames.mtu)
    for each in ports:
        if each.state.mtu is not None and each.state.mtu < largest.mtu:
            raise TrafficError(
                f"Frames of {largest.max_size} bytes do not go through {each.port} ({each.state.name}), whose MTU is "
                f"{each.state.mtu}. Raise it to {largest.mtu} (ip link set dev {each.state.name} mtu {largest.mtu}), "
                "or use smaller frames."
            )

"""What nodes say about their interfaces, and whether links are as fast as the topology file says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lossratio.errors import TopologyError
from lossratio.ssh import NodeSession
from lossratio.topology import Interface, Port
from lossratio.units import format_bit_rate

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
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$port" "$name" "$driver" "$(cat "$net/address" 2>/dev/null)" \
            "$(cat "$net/operstate" 2>/dev/null)" "$(cat "$net/speed" 2>/dev/null)"
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
    """

    name: str
    driver: str
    mac_address: str
    state: str
    speed: float | None


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


def _state(name: str, driver: str, mac_address: str, state: str, speed: str) -> InterfaceState:
    # A link that is down has the speed -1.
    known = speed.isdecimal() and int(speed) > 0
    return InterfaceState(name, driver, mac_address, state, int(speed) * _SPEED_UNIT if known else None)


def check_link_speeds(ports: Sequence[Port], sessions: Mapping[str, NodeSession]) -> None:
    """Checks that links are as fast as the topology file says, where it says so and the node can tell.

    Interfaces without a driver of their own are virtual, and their speed says nothing; the kernel does not tell that of
    interfaces that a driver for user space has.

    Args:
        ports: Interfaces that traffic goes through.
        sessions: Log-ins on their nodes.

    Raises:
        TopologyError: If a link has another speed.
    """
    for node, session in sessions.items():
        stated = {port.name: port for port in ports if port.node_name == node and port.interface.speed is not None}
        if stated:
            states = read_interfaces(session, {name: port.interface for name, port in stated.items()})
            for name, state in states.items():
                check_link_speed(stated[name], state)


def check_link_speed(port: Port, state: InterfaceState) -> None:
    """Checks that one link is as fast as the topology file says.

    Raises:
        TopologyError: If it has another speed.
    """
    stated = port.interface.speed
    if state.driver and stated is not None and state.speed is not None and state.speed != stated:
        raise TopologyError(
            f"{port}: the link of {known_as(port.interface)} has {format_bit_rate(state.speed)}, and the topology file "
            f"says {format_bit_rate(stated)}. Look at the cable, the transceivers and autonegotiation; "
            "or correct the 'speed' in the file."
        )

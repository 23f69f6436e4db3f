"""How the controller deals with the generator of a TG, whichever it is; and the embedded one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lossratio.errors import TopologyError, TrafficError
from lossratio.topology import Port


class GeneratorAccess(Protocol):
    """A generator of a TG. Close it in the end."""

    @property
    def name(self) -> str:
        """What the agent calls it."""

    def ready(self) -> Mapping[str, Any]:
        """Makes sure that it can be used, and returns what the agent must know about it.

        Raises:
            LossRatioError: If it cannot be used.
        """

    def port_name(self, port: Port) -> str:
        """What it calls one of its ports.

        Raises:
            TopologyError: If the topology says too little.
        """

    def mac_address(self, port: Port) -> str:
        """MAC address of one of its ports.

        Raises:
            TopologyError: If it is not known.
        """

    def explain(self, error: TrafficError) -> None:
        """Looks for the cause of an error that came up while it was used.

        Raises:
            TrafficError: The error and its cause, if it knows one.
        """

    def close(self) -> None:
        """Ends what was started for it; doing it again changes nothing."""


class EmbeddedAccess:
    """The generator that is a part of the agent: nothing is to be started for it.

    Args:
        interfaces: MAC addresses of the TG's network interfaces, by name.
        catch_up: Seconds of traffic that it makes up for after a stall; None: its default.
    """

    name = "afpacket"

    def __init__(self, interfaces: Mapping[str, str], catch_up: float | None = None) -> None:
        self._interfaces = interfaces
        self._catch_up = catch_up

    def ready(self) -> Mapping[str, Any]:
        """See `GeneratorAccess.ready`."""
        return {} if self._catch_up is None else {"catch_up": self._catch_up}

    def port_name(self, port: Port) -> str:
        """The name of the Linux interface."""
        return linux_name(port)

    def mac_address(self, port: Port) -> str:
        """As the node tells it."""
        return linux_mac_address(port, self._interfaces)

    def explain(self, error: TrafficError) -> None:
        """The agent has told all about it."""

    def close(self) -> None:
        """It ends with the agent."""


def linux_name(port: Port) -> str:
    """Name of the Linux interface that a port is.

    Raises:
        TopologyError: If the topology does not have it.
    """
    if port.interface.name is None:
        raise TopologyError(f"{port}: the generator needs the 'name' of its Linux interface in the topology file.")
    return port.interface.name


def linux_mac_address(port: Port, interfaces: Mapping[str, str]) -> str:
    """MAC address of the Linux interface that a port is.

    Args:
        port: The port.
        interfaces: MAC addresses of the node's network interfaces, by name.

    Raises:
        TopologyError: If the node has no such interface.
    """
    name = linux_name(port)
    if name not in interfaces:
        raise TopologyError(
            f"{port}: node {port.node_name} has no interface {name!r}; it has {', '.join(sorted(interfaces))}. "
            f"Correct its name in the topology file."
        )
    return interfaces[name]

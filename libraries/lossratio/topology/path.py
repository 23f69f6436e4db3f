"""The way of the test traffic through a testbed."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.topology.nodes import Interface


@dataclass(frozen=True)
class Port:
    """An interface together with the node that it is on."""

    node_name: str
    name: str
    interface: Interface

    def __str__(self) -> str:
        return f"{self.node_name}.{self.name}"


@dataclass(frozen=True)
class Hop:
    """A DUT on the path of the test traffic.

    Attributes:
        node_name: The DUT.
        west: Its port that faces the TG's first port.
        east: Its port that faces the TG's second port.
    """

    node_name: str
    west: Port
    east: Port


@dataclass(frozen=True)
class TrafficPath:
    """The way of the test traffic: from the TG's west port through every DUT to its east port, and back.

    Attributes:
        tg_name: The TG.
        west: The TG's first port.
        east: The TG's second port.
        hops: The DUTs, in order from west to east.
    """

    tg_name: str
    west: Port
    east: Port
    hops: tuple[Hop, ...]

"""The way of the test traffic through a testbed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lossratio.errors import TopologyError
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
        uio_driver: Driver that cards are bound to for a program that takes them from the kernel; None: not said.
    """

    node_name: str
    west: Port
    east: Port
    uio_driver: str | None = None


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

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports on the way, from west to east."""
        return (self.west, *(port for hop in self.hops for port in (hop.west, hop.east)), self.east)


def find_path(
    links: Mapping[str, Sequence[Port]], tg_name: str, dut_names: Sequence[str], nic: str | None
) -> TrafficPath:
    """Finds the way from the TG through the DUTs and back; per hop the first unused common link.

    Args:
        links: The ends of every link.
        tg_name: The TG.
        dut_names: The DUTs, from west to east.
        nic: NIC model that the DUTs' ports must have, in any case; None: any.

    Raises:
        TopologyError: If two neighbours on the way have no unused link in common.
    """
    free = {name: (ends[0], ends[1]) for name, ends in links.items() if len(ends) == 2}
    ends: list[tuple[Port, Port]] = []
    for here, there in itertools.pairwise((tg_name, *dut_names, tg_name)):
        found = _first_link(free, here, there, lambda port: port.node_name == tg_name or _is_of(port, nic))
        if found is None:
            raise TopologyError(_why_not(links, here, there, nic))
        del free[str(found[0].interface.link)]
        ends.append(found)
    hops = tuple(
        Hop(name, arriving[1], leaving[0])
        for name, (arriving, leaving) in zip(dut_names, itertools.pairwise(ends), strict=True)
    )
    return TrafficPath(tg_name, ends[0][0], ends[-1][1], hops)


def _first_link(
    free: Mapping[str, tuple[Port, Port]], here: str, there: str, usable: Callable[[Port], bool]
) -> tuple[Port, Port] | None:
    for first, second in free.values():
        for one, other in ((first, second), (second, first)):
            if (one.node_name, other.node_name) == (here, there) and usable(one) and usable(other):
                return one, other
    return None


def _is_of(port: Port, nic: str | None) -> bool:
    return nic is None or (port.interface.model or "").casefold() == nic.casefold()


def _why_not(links: Mapping[str, Sequence[Port]], here: str, there: str, nic: str | None) -> str:
    text = f"no unused link between {here} and {there}"
    if nic is not None:
        models = {port.interface.model for ends in links.values() for port in ends if port.node_name in (here, there)}
        known = ", ".join(sorted(model for model in models if model)) or "none"
        text += f" on a NIC of model {nic!r} (models on them: {known})"
    return (
        f"{text}. The traffic goes from the TG through every DUT and back, "
        f"so each two neighbours need a link of their own."
    )

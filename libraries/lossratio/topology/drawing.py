"""Draws a topology as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lossratio.topology.model import Topology
from lossratio.topology.path import Port, TrafficPath
from lossratio.units import format_bit_rate, format_frame_rate


def draw_topology(topology: Topology, paths: Sequence[TrafficPath]) -> str:
    """Draws the paths of the test traffic from top to bottom, and lists unused links and interfaces below them."""
    width = max(len(name) for name in topology.nodes)
    lines = []
    for number, path in enumerate(paths, start=1):
        lines += [f"  parallel link {number} of {len(paths)}:"] if len(paths) > 1 else []
        for west, east in zip(path.ports[::2], path.ports[1::2], strict=True):
            lines += [_end(topology, west, width), f"    |  {west.interface.link}", _end(topology, east, width)]
    spare = list(_spare(topology, {str(port) for path in paths for port in path.ports}))
    return "\n".join([*lines, *(["  not on the path:"] if spare else []), *spare])


def _end(topology: Topology, port: Port, width: int) -> str:
    interface = port.interface
    known = (interface.name, interface.pci_address, interface.mac_address, interface.model)
    facts = [fact for fact in known if fact is not None]
    if interface.speed is not None:
        facts.append(format_bit_rate(interface.speed))
    facts += _limits(topology, port)
    return f"  {port.node_name:<{width}}  {port.name}{': ' if facts else ''}{', '.join(facts)}"


def _limits(topology: Topology, port: Port) -> Iterator[str]:
    model = topology.nic_model(port)
    if model is None:
        if port.interface.model is not None:
            yield "limits of this model not known"
        return
    if model.max_frame_rate is not None:
        yield f"at most {format_frame_rate(model.max_frame_rate)}"
    if model.max_bit_rate is not None:
        yield f"at most {format_bit_rate(model.max_bit_rate)}"


def _spare(topology: Topology, on_path: set[str]) -> Iterator[str]:
    for link, ports in topology.links().items():
        if not on_path.intersection(map(str, ports)):
            yield f"    {link}: {' -- '.join(map(str, ports))}"
    for node_name, node in topology.nodes.items():
        for name, interface in node.interfaces.items():
            if interface.link is None:
                yield f"    {node_name}.{name}: wired to nothing"

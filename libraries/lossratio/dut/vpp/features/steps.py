"""Commands to VPP, and what VPP must show, from texts with placeholders (`lossratio.dut.vpp.texts`).

A text has a command on each line. Its further columns are the fields of `Command`, or of `Shown` for something that VPP
must show. The names in placeholders are
``options``, ``ports``, ``west``, ``east``, ``entrances``, ``clear`` (the port that faces the TG) and ``wire`` (the port
that faces the other VPP); for ``below`` and ``routed``, ``options`` and ``port``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lossratio.dut.vpp.features.feature import Command, Ports, Shown, both_sides, entrances
from lossratio.dut.vpp.texts import lines

if TYPE_CHECKING:
    from lossratio.dut.vpp.features.feature import Feature, VppPort


def told(kind: type[Feature], options: Feature, step: str, ports: Ports) -> list[Command]:
    """The commands that a feature's text has for a step, with both ports."""
    return list(commands(getattr(kind.steps, step), options=options, **_places(ports)))


def shown(kind: type[Feature], options: Feature, step: str, ports: Ports) -> list[Shown]:
    """What VPP must show in a step, by a feature's text."""
    return list(shown_by(getattr(kind.steps, step), options=options, **_places(ports)))


def upon(
    kind: type[Feature], options: Feature, step: str, port: VppPort, **values: object
) -> list[Command]:
    """The commands that a feature's text has for a step, with one port."""
    return list(commands(getattr(kind.steps, step), options=options, port=port, **values))


def commands(text: str, **values: object) -> Iterator[Command]:
    """The commands of a text."""
    for columns in lines(text, **values):
        yield _command(*columns)


def _command(text: str, answer: str = "", seconds: str = "30") -> Command:
    return Command(text, answer, float(seconds))


def shown_by(text: str, **values: object) -> Iterator[Shown]:
    """What VPP must show, by a text."""
    for command, pattern, meaning, *seconds in lines(text, **values):
        yield Shown(command, pattern, meaning, *map(float, seconds))


def in_file(kind: type[Feature], options: Feature, ports: Ports) -> str:
    """The lines that a feature's text has for a command that VPP reads from a file."""
    columns = lines(kind.steps.file, options=options, **_places(ports))
    return "".join(f"{line}\n" for (line,) in columns)


def _places(ports: Ports) -> Mapping[str, Any]:
    """The names of ports in texts."""
    west, east = ports
    clear, wire = both_sides(ports)
    return {
        "ports": ports,
        "west": west,
        "east": east,
        "entrances": entrances(ports),
        "clear": clear,
        "wire": wire,
    }

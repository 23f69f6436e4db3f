"""Commands to VPP, and what VPP must show, from texts with placeholders (`lossratio.dut.texts`).

A text has a command on each line. Its further columns are the fields of `Command`, or of `Shown` for something that VPP
must show. The names in placeholders are ``options``, ``ports``, ``west``, ``east``, ``entrances``, ``clear`` (the port
that faces the TG) and ``wire`` (the port that faces the other VPP); for ``below`` and ``routed``, ``options`` and
``port``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lossratio.dut.texts import lines
from lossratio.dut.vpp.features.feature import Command, Ports, Shown, both_sides, entrances

if TYPE_CHECKING:
    from lossratio.dut.vpp.features.feature import Feature, VppPort


# One of the two ends of a memif must be the client, which makes the memory.
_MACROS = r"""
% macro through(name, port, destination, neighbour="")
    set interface state {{ name }} up
    set interface unnumbered {{ name }} use {{ port.interface }}
    ip route add {{ destination }} via {{ neighbour }}{{ name }}
% endmacro
% macro memif(directory, number, mac, is_client=false)
    create memif socket id {{ number }} filename {{ directory }}/memif{{ number - 1 }}.sock
    create interface memif id 0 socket-id {{ number }} hw-addr {{ mac }} \
    {{ "slave" if is_client else "master" }}
    set interface state memif{{ number }}/0 up
% endmacro
"""
"""What several features do: bring a tunnel's interface up, with a route through it; make an interface to a process."""


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
    for columns in _lines(text, **values):
        yield _command(*columns)


def _command(text: str, answer: str = "", seconds: str = "30") -> Command:
    return Command(text, answer, float(seconds))


def shown_by(text: str, **values: object) -> Iterator[Shown]:
    """What VPP must show, by a text."""
    for command, pattern, meaning, *seconds in _lines(text, **values):
        yield Shown(command, pattern, meaning, *map(float, seconds))


def in_file(kind: type[Feature], options: Feature, ports: Ports) -> str:
    """The lines that a feature's text has for a command that VPP reads from a file."""
    columns = _lines(kind.steps.file, options=options, **_places(ports))
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


def _lines(text: str, **values: object) -> Iterator[list[str]]:
    if text:
        yield from lines(_MACROS + text, **values)

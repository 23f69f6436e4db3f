"""Commands to VPP, and what VPP must show, from texts with placeholders (`lossratio.dut.texts`).

A text has a command on each line. Its further columns are the fields of `Command`, or of `Shown` for something that VPP
must show. The names in placeholders are ``options``, ``ports``, ``west``, ``east``, ``entrances``, ``clear`` (the port
that faces the TG) and ``wire`` (the port that faces the other VPP); for ``below`` and ``routed``, ``options`` and
``port``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lossratio.dut.texts import lines
from lossratio.dut.vpp.features.feature import Command, Ports, Shown, both_sides, entrances

if TYPE_CHECKING:
    from lossratio.dut.vpp.features.feature import Feature, Steps, VppPort


# One of the two ends of a memif must be the client, which makes the memory, and therefore has the number of queues.
_MACROS = r"""
% macro through(name, port, destination, neighbour="")
    set interface state {{ name }} up
    set interface unnumbered {{ name }} use {{ port.interface }}
    ip route add {{ destination }} via {{ neighbour }}{{ name }}
% endmacro
% macro memif(directory, number, mac, clients_queues=0)
    create memif socket id {{ number }} filename {{ directory }}/memif{{ number - 1 }}.sock
    create interface memif id 0 socket-id {{ number }} hw-addr {{ mac }} \
    {{ "rx-queues %d tx-queues %d slave" % (clients_queues, clients_queues) if clients_queues else "master" }}
    set interface state memif{{ number }}/0 up
% endmacro
% macro many_routes(side, first, count)
    ip route add count {{ count }} {{ first }}/{{ first.max_prefixlen }} via {{ side.neighbour }} {{ side.interface }} \
    | (\S+ routes/sec\s*)*
% endmacro
"""
"""What several features do: bring a tunnel's interface up, with a route through it; make an interface to a process; add
routes to this many hosts, from the first one on, whose rate VPP answers."""


def told(kind: type[Feature], options: Feature, step: str, ports: Ports) -> Iterator[Command]:
    """The commands that a feature's text has for a step, with both ports."""
    return commands(getattr(kind.steps, step), options=options, **places(ports))


def shown(kind: type[Feature], options: Feature, step: str, ports: Ports) -> Iterator[Shown]:
    """What VPP must show in a step, by a feature's text."""
    return shown_by(getattr(kind.steps, step), options=options, **places(ports))


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


def in_file(steps: Steps, **values: object) -> Iterator[Command]:
    """The command that has VPP read the lines of a text from a file; none if there are no lines."""
    lines_in_file = "".join(f"{line}\n" for line, *_ in _lines(steps.file, **values))
    if lines_in_file:
        yield Command(lines_in_file, steps.answers, is_secret=steps.is_secret)


def written(
    kinds: Iterable[type[Feature]], options: Feature, step: str, **values: object
) -> Iterator[str]:
    """The lines that features' texts have for a step, for other programs than VPP's command line."""
    for kind in kinds:
        for (line,) in _lines(getattr(kind.steps, step), options=options, **values):
            yield line


def places(ports: Ports) -> Mapping[str, Any]:
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

"""Texts with placeholders for commands, configurations and scripts (Jinja).

Placeholders are in ``{{ }}``, and lines that begin with ``%`` are Jinja's statements. If a text is read by lines, a
backslash at its end joins a line with the next one, with a space between them, and `` | `` separates columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

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


def filled(text: str, **values: object) -> str:
    """A text with its placeholders filled in."""
    return _template(text).render(values)


def lines(text: str, **values: object) -> Iterator[list[str]]:
    """The columns of each line of a text with its placeholders filled in."""
    if not text:
        return
    joined = re.sub(r"\s*\\\n\s*", " ", filled(text, **values))
    for line in joined.splitlines():
        if line.strip():
            yield [column.strip() for column in re.split(r" \|(?= |$)", line)]


@cache
def _template(text: str) -> jinja2.Template:
    # Slow to import, and not needed to check options.
    import jinja2

    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 (commands, not HTML)
        undefined=jinja2.StrictUndefined,
        line_statement_prefix="%",
    )
    environment.filters["literally"] = re.escape
    environment.globals["at_least"] = _at_least
    return environment.from_string(_MACROS + text)


def _at_least(count: int) -> str:
    """A regular expression of numbers that are this large, or slightly larger, because VPP has entries of its own."""
    return "(" + "|".join(str(count + more) for more in range(20)) + ")"

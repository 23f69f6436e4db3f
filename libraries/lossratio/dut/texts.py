"""Texts with placeholders for commands, configurations and scripts (Jinja).

Placeholders are in ``{{ }}``, and lines that begin with ``%`` are Jinja's statements. If a text is read by lines, a
backslash at its end joins a line with the next one, with a space between them, and `` | `` separates columns.
Filters are ``literally`` for a regular expression, and ``quoted`` for a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def filled(text: str, **values: object) -> str:
    """A text with its placeholders filled in."""
    return _template(text).render(values)


def lines(text: str, **values: object) -> Iterator[list[str]]:
    """The columns of each line of a text with its placeholders filled in."""
    joined = re.sub(r"\s*\\\n\s*", " ", filled(text, **values))
    for line in joined.splitlines():
        if line.strip():
            yield [column.strip() for column in re.split(r" \|(?= |$)", line)]


def words(text: str, **values: object) -> tuple[str, ...]:
    """The words of a command line, as a shell would split it, with its placeholders filled in."""
    return tuple(shlex.split(filled(text, **values)))


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
    environment.filters["quoted"] = shlex.quote
    return environment.from_string(text)

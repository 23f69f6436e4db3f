"""SVG to be put into HTML pages as it is: into Robot's log.html, and into reports.

There are no style sheets, identifiers, references or scripts in these drawings, so that any number of them can be in
one page and none can change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

INK = "#333333"
FAINT = "#E6E6E6"
LINE_HEIGHT = 14.0
"""Distance of lines of text, in pixels."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def number(value: float) -> str:
    """A coordinate with the digits that one can see."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, *content: str, **attributes: object) -> str:
    """An element.

    Args:
        name: Its name.
        content: Markup inside it; text must have been through `plain`.
        attributes: Its attributes, with ``_`` for ``-``. Floats are rounded; one that is None is left out.
    """
    given = "".join(
        f' {key.replace("_", "-")}="{number(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(content)}</{name}>" if content else f"<{name}{given}/>"


def xml_text(text: str) -> str:
    """Text without characters that XML cannot have; they become the replacement character."""
    return _NOT_IN_XML.sub("\ufffd", text)


def plain(text: str) -> str:
    """Text as markup that shows it."""
    return escape(xml_text(text), quote=False)


def title(text: str) -> str:
    """What is shown when the pointer is on the element around it, and read to those who cannot see it."""
    return element("title", plain(text))


def text_at(x: float, y: float, text: str, **attributes: object) -> str:
    """Text whose baseline begins at a place."""
    return element("text", plain(text), x=x, y=y, **attributes)


def drawing(width: float, height: float, description: str, parts: Iterable[str]) -> str:
    """One ``<svg>`` element, which is as wide as there is room, and at most as wide as it was drawn.

    Args:
        width: Width, in pixels.
        height: Height, in pixels.
        description: What it shows, for those who cannot see it.
        parts: What is in it.
    """
    return element(
        "svg",
        title(description),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width="100%",
        role="img",
        font_size="11",
        fill=INK,
        style=f"max-width:{width:.0f}px;height:auto;background:#fff;font-family:sans-serif",
    )

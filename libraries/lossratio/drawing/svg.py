"""SVG for HTML pages: Robot's log.html, and reports.

These drawings have no style sheets, identifiers, references or scripts. So a page can have any number of them, and none
of them can change the page.
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
    """A coordinate with one decimal; more would not be visible."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, *content: str, **attributes: object) -> str:
    """An element.

    Args:
        name: Its name.
        content: Markup inside the element; convert text with `plain`.
        attributes: Its attributes, with ``_`` for ``-``. Floats are rounded; attributes that are None are left out.
    """
    given = "".join(
        f' {key.replace("_", "-")}="{number(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(content)}</{name}>" if content else f"<{name}{given}/>"


def xml_text(text: str) -> str:
    """Text in which the replacement character stands for characters that XML does not allow."""
    return _NOT_IN_XML.sub("\ufffd", text)


def plain(text: str) -> str:
    """The markup that shows a text."""
    return escape(xml_text(text), quote=False)


def title(text: str) -> str:
    """The title of an element: shown when the pointer is on the element, and read by screen readers."""
    return element("title", plain(text))


def text_at(x: float, y: float, text: str, **attributes: object) -> str:
    """Text whose baseline begins at a position."""
    return element("text", plain(text), x=x, y=y, **attributes)


def drawing(width: float, height: float, description: str, parts: Iterable[str]) -> str:
    """One ``<svg>`` element. It fills the width of the page, but never exceeds the width that it was drawn with.

    Args:
        width: Width, in pixels.
        height: Height, in pixels.
        description: Description of the drawing for screen readers.
        parts: The markup of its parts.
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

"""Figures as SVG to be put into HTML pages as they are: into Robot's log.html, and into reports."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from typing import Any
from xml.dom import minidom

import matplotlib
from matplotlib.figure import Figure

MARKERS = "markers"
"""Group id (`gid`) of the lines whose markers get hints."""

_FONT = "DejaVu Sans"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCES = ("xlink:href", "clip-path", "style")


def embeddable_svg(figure: Figure, description: str, hints: Sequence[str] = ()) -> str:
    """Draws a figure as one ``<svg>`` element, the same text for the same figure.

    Text stays text, in the page's sans-serif font. Identifiers are not those of any other figure, so that many of them
    can be in one page.

    Args:
        figure: The figure.
        description: What it shows, for those who cannot see it.
        hints: What is shown when the pointer is on a marker, for all markers of the lines with the group id `MARKERS`,
            in the order of drawing.
    """
    document = minidom.parseString(_drawn(figure))  # noqa: S318 (matplotlib's own output)
    svg = document.documentElement
    assert svg is not None  # noqa: S101 (a parsed document has an element)
    for metadata in svg.getElementsByTagName("metadata"):
        svg.removeChild(metadata)
    markers = [marker for group in _marker_groups(svg) for marker in _compacted(group)]
    for marker, hint in zip(markers, hints, strict=True) if hints else ():
        marker.appendChild(_title(document, hint))
    _round_paths(svg)
    _make_identifiers_unique(svg)
    _make_at_home(svg)
    svg.insertBefore(_title(document, description), svg.firstChild)
    return "\n".join(line.strip() for line in svg.toxml().splitlines() if line.strip())


def _drawn(figure: Figure) -> str:
    file = io.StringIO()
    rules: Any = {"svg.fonttype": "none", "svg.hashsalt": "lossratio", "font.family": _FONT, "text.parse_math": False}
    with matplotlib.rc_context(rules):
        figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _marker_groups(svg: minidom.Element) -> list[minidom.Element]:
    return [group for group in svg.getElementsByTagName("g") if group.getAttribute("id") == MARKERS]


def _compacted(group: minidom.Element) -> list[minidom.Element]:
    """The markers of a group, which all look the same: that is said once."""
    markers = list(group.getElementsByTagName("use"))
    for marker in markers:
        group.setAttribute("style", marker.getAttribute("style"))
        marker.removeAttribute("style")
        for axis in ("x", "y"):
            marker.setAttribute(axis, _rounded(marker.getAttribute(axis)))
    return markers


def _round_paths(svg: minidom.Element) -> None:
    for path in svg.getElementsByTagName("path"):
        path.setAttribute("d", " ".join(_rounded(part) for part in path.getAttribute("d").split()))


def _rounded(part: str) -> str:
    """A number with the digits that one can see; anything else as it is."""
    try:
        return f"{float(part):.2f}".rstrip("0").rstrip(".")
    except ValueError:
        return part


def _make_at_home(svg: minidom.Element) -> None:
    """Lets the drawing adapt to the page, and keeps it from changing the page: a style sheet in it would."""
    for sheet in svg.getElementsByTagName("style"):
        sheet.parentNode.removeChild(sheet)  # type: ignore[union-attr]
    for text in svg.getElementsByTagName("text"):
        parts = [part.strip() for part in text.getAttribute("style").split(";")]
        text.setAttribute("style", ";".join(part for part in parts if not part.startswith("font-family")))
    width = float(svg.getAttribute("width").removesuffix("pt"))
    svg.removeAttribute("height")
    svg.setAttribute("width", "100%")
    svg.setAttribute("role", "img")
    style = f"max-width:{width:.0f}pt;height:auto;background:#fff;font-family:'{_FONT}',sans-serif"
    svg.setAttribute("style", f"{style};stroke-linejoin:round;stroke-linecap:butt")


def _title(document: minidom.Document, text: str) -> minidom.Element:
    title = document.createElement("title")
    title.appendChild(document.createTextNode(_NOT_IN_XML.sub("\ufffd", text)))
    return title


def _make_identifiers_unique(svg: minidom.Element) -> None:
    """Identifiers that nothing refers to go; the others become numbers, with a digest of the whole drawing before."""
    digest = hashlib.sha256(svg.toxml().encode()).hexdigest()[:8]
    elements = svg.getElementsByTagName("*")
    names: dict[str, str] = {}
    for element in elements:
        for attribute in _REFERENCES:
            value = element.getAttribute(attribute)
            if "#" in value and (old := _referred(value)) is not None:
                new = names.setdefault(old, f"p{digest}-{len(names)}")
                element.setAttribute(attribute, value.replace(f"#{old}", f"#{new}"))
    for element in elements:
        if element.hasAttribute("id"):
            old = element.getAttribute("id")
            element.removeAttribute("id")
            if old in names:
                element.setAttribute("id", names[old])


def _referred(value: str) -> str | None:
    """The identifier that an attribute refers to; None if its ``#`` is that of a colour."""
    if value.startswith("#"):
        return value[1:]
    _, found, rest = value.partition("url(#")
    return rest.partition(")")[0] if found else None

"""Pictures and pages: SVG, plots, marks of loss, HTML."""

from lossratio.drawing.html import html_fragment, html_page
from lossratio.drawing.plot import (
    MARKS,
    Axis,
    Mark,
    Plot,
    by_mark,
    in_unit,
    legend,
    mark_of,
    series_colour,
    trial_hint,
    unit_of,
)
from lossratio.drawing.svg import INK, LINE_HEIGHT, drawing, element, text_at, title, xml_text

__all__ = [
    "INK",
    "LINE_HEIGHT",
    "MARKS",
    "Axis",
    "Mark",
    "Plot",
    "by_mark",
    "drawing",
    "element",
    "html_fragment",
    "html_page",
    "in_unit",
    "legend",
    "mark_of",
    "series_colour",
    "text_at",
    "title",
    "trial_hint",
    "unit_of",
    "xml_text",
]

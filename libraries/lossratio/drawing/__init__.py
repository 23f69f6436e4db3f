"""Pictures and pages: SVG, plots, marks of loss, HTML."""

from lossratio.drawing.html import html_page
from lossratio.drawing.plot import MARKS, Axis, Mark, Plot, in_unit, legend, mark_of, unit_of
from lossratio.drawing.svg import INK, LINE_HEIGHT, drawing, element, text_at, title, xml_text

__all__ = [
    "INK",
    "LINE_HEIGHT",
    "MARKS",
    "Axis",
    "Mark",
    "Plot",
    "drawing",
    "element",
    "html_page",
    "in_unit",
    "legend",
    "mark_of",
    "text_at",
    "title",
    "unit_of",
    "xml_text",
]

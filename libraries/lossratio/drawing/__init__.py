"""Pictures and pages: SVG, plots, marks of loss, HTML."""

from lossratio.drawing.html import PAGES, html_fragment
from lossratio.drawing.overview import (
    NOTHING,
    Column,
    Overview,
    Section,
    number_column,
    test_column,
    verdict,
)
from lossratio.drawing.plot import (
    BOTTOM,
    INK,
    LEFT,
    MARKS,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Curve,
    Drawing,
    Mark,
    Plot,
    by_mark,
    in_unit,
    mark_of,
    rates_axis,
    right_end,
    series_colour,
    title,
    trial_hint,
    values_axis,
    xml_text,
)

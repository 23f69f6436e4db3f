"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .html import PAGES as PAGES, html_fragment as html_fragment
from .overview import (
    NOTHING as NOTHING,
    Column as Column,
    Overview as Overview,
    Section as Section,
    number_column as number_column,
    test_column as test_column,
    verdict as verdict,
)
from .plot import (
    BOTTOM as BOTTOM,
    INK as INK,
    LEFT as LEFT,
    MARKS as MARKS,
    RIGHT as RIGHT,
    TOP as TOP,
    WIDTH as WIDTH,
    Axis as Axis,
    Curve as Curve,
    Drawing as Drawing,
    Mark as Mark,
    Plot as Plot,
    by_mark as by_mark,
    in_unit as in_unit,
    mark_of as mark_of,
    rates_axis as rates_axis,
    right_end as right_end,
    series_colour as series_colour,
    title as title,
    trial_hint as trial_hint,
    values_axis as values_axis,
)

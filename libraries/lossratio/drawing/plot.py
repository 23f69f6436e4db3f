"""SVG for HTML pages (Robot's log.html, and reports), and plots: values on two axes, drawn as lines, bands and marks.

These drawings have no style sheets, identifiers, references or scripts. So a page can have any number of them, and none
of them can change the page.

Marks of trials show by colour how much a trial lost, and by shape whether it lost frames. Everybody can distinguish the
colours: Okabe's and Ito's, and a scale of reds that becomes darker.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from lossratio.results import Trial, format_loss
from lossratio.trials import sut_loss_ratio
from lossratio.values import FRAMES_PER_SECOND, Unit, format_frame_rate, prefix_of, printable

WIDTH = 900.0
"""Width of a picture that fills the page, in pixels."""
RIGHT = WIDTH - 20.0
"""Position of the right end of a plot that is as wide as its picture, in pixels."""
INK = "#333333"
FAINT = "#E6E6E6"
LINE_HEIGHT = 14.0
"""Distance of lines of text, in pixels."""
_MARGIN = WIDTH - RIGHT
_NARROWEST = 280.0
"""Room of an axis that every screen shows, in pixels."""


def number(value: float) -> str:
    """A coordinate with one decimal; more would not be visible."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, *content: str, **attributes: object) -> str:
    """An element with markup inside. In names of attributes, ``_`` stands for ``-``. None leaves an attribute out."""
    given = "".join(
        f' {key.replace("_", "-")}="{number(value) if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if content:
        return f"<{name}{given}>{''.join(content)}</{name}>"
    return f"<{name}{given}/>"


def plain(text: str) -> str:
    """The markup that shows a text."""
    return escape(printable(text), quote=False)


def title(text: str) -> str:
    """The title of an element: shown when the pointer is on the element, and read by screen readers."""
    return element("title", plain(text))


def text_at(x: float, y: float, text: str, **attributes: object) -> str:
    """Text whose baseline begins at a position."""
    return element("text", plain(text), x=x, y=y, **attributes)


def width_of(text: str) -> float:
    """About the width of a text, in pixels."""
    return 6.1 * len(text)


@dataclass(frozen=True)
class Mark:
    """A kind of trial in a picture."""

    name: str
    """Short name, without spaces."""
    label: str
    """Its text in the legend."""
    shape: str
    """``circle``, ``triangle`` (on its tip), ``square`` or ``cross``."""
    colour: str
    """Colour of the shape."""
    is_filled: bool = True
    """Whether the shape is filled."""


WARM_UP = Mark("warm-up", "warm-up, not counted", "cross", "#777777", is_filled=False)
SET_ASIDE = Mark("set-aside", "set aside, not counted", "cross", "#AA4499", is_filled=False)
LOSSLESS = Mark("lossless", "no loss", "circle", "#0072B2")
NOT_LOST = Mark("not-lost", "missing, but not lost", "square", "#444444", is_filled=False)
LOSSY = (
    (0.001, Mark("loss-1", "loss ≤ 0.1 %", "triangle", "#F2A93B")),
    (0.01, Mark("loss-2", "loss ≤ 1 %", "triangle", "#E2711D")),
    (0.1, Mark("loss-3", "loss ≤ 10 %", "triangle", "#B3261E")),
    (1.0, Mark("loss-4", "loss > 10 %", "triangle", "#5C0A14")),
)
"""Marks of trials in which the SUT lost frames, each with the largest share of lost frames that it is used for."""

MARKS = (LOSSLESS, *(mark for _, mark in LOSSY), NOT_LOST, WARM_UP, SET_ASIDE)
"""All marks, in the order of the legend."""
_SERIES_COLOURS = ("#009E73", "#CC79A7", "#56B4E9", "#D9A400", "#777777")


def mark_of(trial: Trial) -> Mark:
    """The mark of a trial, by how much the SUT lost."""
    if not trial.is_evidence:
        if trial.set_aside is None:
            return WARM_UP
        return SET_ASIDE
    if trial.loss_ratio == 0.0:
        return LOSSLESS

    lost = sut_loss_ratio(trial.as_result())
    if lost == 0.0:
        return NOT_LOST
    return next(mark for largest, mark in LOSSY if lost <= largest)


_RADIUS = 3.4
_FRAME = "#999999"


@dataclass(frozen=True)
class Axis:
    """An axis: the positions of values in a drawing."""

    low: float
    """The smallest value."""
    high: float
    """The largest value."""
    start: float
    """Position of the smallest value, pixels."""
    end: float
    """Position of the largest value, pixels."""
    is_logarithmic: bool = False
    """Whether equal distances represent equal ratios."""

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.low <= value <= self.high

    def place(self, value: float) -> float:
        """Position of a value, pixels. A value beyond an end of the axis is placed at that end."""
        value = min(max(value, self.low), self.high)
        if self.is_logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, number_of_ticks: int, *, whole: bool = False) -> list[float]:
        """Round values on the axis."""
        if self.is_logarithmic:
            least, most = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [10.0**power for power in range(least, most + 1)]
            for digits in ((1, 2, 5), (1, 3), (1,)):
                ticks = [
                    digit * power
                    for power in powers
                    for digit in digits
                    if self.holds(digit * power)
                ]
                if len(ticks) <= number_of_ticks:
                    break
            return ticks[:: max(1, math.ceil(len(ticks) / number_of_ticks))]

        # The smallest number of the series 1, 2, 5, 10, 20, 50, ... that is not below this.
        width = (self.high - self.low) / max(1, number_of_ticks)
        power = 10.0 ** math.floor(math.log10(width))
        step = next(
            step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= width * (1 - 1e-9)
        )
        step = max(1.0, step) if whole else step
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)

        return [index * step for index in range(first, last + 1)]


def right_end(left: float, places: int, room: float) -> float:
    """Where an axis ends that takes the width that its data needs.

    Args:
        left: Where it begins, in pixels.
        places: How many values it has.
        room: The width that each of them needs.
    """
    return min(RIGHT, left + max(_NARROWEST, room * places))


class Drawing:
    """A picture, part by part: later parts lie above earlier ones."""

    def __init__(self, right: float = RIGHT) -> None:
        """Begins a picture.

        Args:
            right: Where its axes end, in pixels; a margin follows.
        """
        self.parts: list[str] = []
        self.width = right + _MARGIN

    def add(self, name: str, *content: str, **attributes: object) -> None:
        """Adds an element, see `element`."""
        self.parts.append(element(name, *content, **attributes))

    def text(self, x: float, y: float, text: str, **attributes: object) -> None:
        """Adds text whose baseline begins at a position."""
        self.parts.append(text_at(x, y, text, **attributes))

    def line_key(self, x: float, y: float, name: str, colour: str, dash: str | None) -> None:
        """Adds the key of a line: a piece of the line, and its name."""
        stroke = {"stroke": colour, "stroke_width": 1.6, "stroke_dasharray": dash}
        self.add("path", d=f"M{x:.0f} {y - 4:.0f}h26", fill="none", **stroke)
        self.text(x + 34, y, name)

    def legend(
        self, marks: Iterable[Mark], swatches: Iterable[tuple[str, str, float]], x: float, y: float
    ) -> float:
        """Adds lines that explain marks, and other colours by text, colour and opacity; returns the last line's y.

        Lines end within the picture.
        """
        start = x
        keys: list[Mark | tuple[str, str, float]] = [*marks, *swatches]
        for key in keys:
            label, room = (key.label, 34.0) if isinstance(key, Mark) else (key[0], 37.0)
            width = room + width_of(label)
            if start < x > self.width - _MARGIN / 2 - width:
                x = start
                y += LINE_HEIGHT

            if isinstance(key, Mark):
                self.add("g", mark_at(key, x + 5, y - 4), **mark_style(key))
                self.text(x + 15, y, label)
            else:
                self.add("rect", x=x, y=y - 9, width=13, height=9, fill=key[1], fill_opacity=key[2])
                self.text(x + 18, y, label)

            x += width

        return y

    def svg(self, height: float, description: str) -> str:
        """One ``<svg>`` element. It fills the width of the page, but never exceeds the width that it was drawn with."""
        return element(
            "svg",
            title(description),
            *self.parts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(self.width)} {number(height)}",
            width="100%",
            role="img",
            font_size="11",
            fill=INK,
            style=f"max-width:{self.width:.0f}px;height:auto;background:#fff;font-family:sans-serif",
        )


@dataclass(frozen=True)
class Curve:
    """A line of a plot, which the legend names."""

    name: str
    """Its name."""
    points: Sequence[tuple[float, float]]
    """Its points."""
    colour: int = 0
    """Number of its colour."""
    dash: int = 0
    """Number of its dashes; 0: none."""


LEFT, TOP, BOTTOM = 90.0, 30.0, 280.0
"""The ends of the axes of a usual plot, in pixels."""
_DASHES = (None, "6 3", "2 3", "8 3 2 3")
_LONG = 60
"""Letters for which two columns of names have room."""


class Plot(Drawing):
    """The area between two axes: a drawing of its own, or a part of another drawing."""

    def __init__(self, x: Axis, y: Axis, onto: Drawing | None = None) -> None:
        self.x = x
        self.y = y
        super().__init__(x.end)
        if onto is not None:
            self.parts = onto.parts

    def line(
        self,
        points: Iterable[tuple[float, float]],
        colour: str,
        *,
        width: float = 1.6,
        dash: str | None = None,
    ) -> None:
        """Draws a line through points."""
        places = [f"{number(self.x.place(x))} {number(self.y.place(y))}" for x, y in points]
        self._stroke("M" + "L".join(places), colour, width, dash)

    def steps(self, steps: Iterable[tuple[float, float, float]], colour: str) -> None:
        """Draws horizontal lines; each step is start, end and height."""
        path = "".join(
            f"M{number(self.x.place(start))} {number(self.y.place(y))}H{number(self.x.place(end))}"
            for start, end, y in steps
        )
        if path:
            self._stroke(path, colour, 1.6, None)

    def bands(
        self, bands: Iterable[tuple[float, float, float, float]], colour: str, opacity: float
    ) -> None:
        """Fills rectangles; each band is start, end, lower height and upper height."""
        path = ""
        for start, end, low, high in bands:
            left = number(self.x.place(start))
            right = number(self.x.place(end))
            path += (
                f"M{left} {number(self.y.place(low))}H{right}V{number(self.y.place(high))}H{left}Z"
            )
        if path:
            self.add(
                "path", d=path, fill=colour, fill_opacity=opacity, shape_rendering="crispEdges"
            )

    def marks(self, mark: Mark, points: Iterable[tuple[float, float, str]]) -> None:
        """Draws marks; each point has its two values, and a hint (empty: no hint)."""
        shapes = [mark_at(mark, self.x.place(x), self.y.place(y), hint) for x, y, hint in points]
        if shapes:
            self.add("g", *shapes, **mark_style(mark))

    def frame(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_format: Callable[[float], str],
        y_format: Callable[[float], str],
    ) -> None:
        """Draws the axes with their ticks, and faint grid lines. Call it first: later drawings lie above it."""
        left = self.x.start
        right = self.x.end
        bottom = self.y.start
        top = self.y.end
        grid = "".join(
            f"M{number(left)} {number(self.y.place(tick))}H{number(right)}" for tick in y_ticks
        )
        self._stroke(grid or "M0 0", FAINT, 1.0, None)
        notches = "".join(f"M{number(self.x.place(tick))} {number(bottom)}v4" for tick in x_ticks)
        self._stroke(
            f"M{number(left)} {number(top)}V{number(bottom)}H{number(right)}" + notches,
            _FRAME,
            1.0,
            None,
        )
        labels = [text_at(left - 6, self.y.place(tick) + 4, y_format(tick)) for tick in y_ticks]
        self.add("g", *labels, text_anchor="end")
        labels = []
        for tick in x_ticks:
            # The last one ends within the picture.
            most = self.width - width_of(x_format(tick)) / 2
            labels.append(text_at(min(self.x.place(tick), most), bottom + 17, x_format(tick)))
        self.add("g", *labels, text_anchor="middle")

    def titles(self, x: str, y: str, below: float = 34.0) -> None:
        """Writes the titles of the axes: y at the top left of the drawing, x below its axis."""
        self.text(4.0, 14.0, y)
        self.text((self.x.start + self.x.end) / 2, self.y.start + below, x, text_anchor="middle")

    def finished(
        self,
        titles: tuple[str, str],
        about: str,
        curves: Sequence[Curve] = (),
        marks: Iterable[Mark] = (),
        swatches: Iterable[tuple[str, str, float]] = (),
    ) -> str:
        """Draws curves, writes the titles of the axes and the legend, and returns the picture.

        Args:
            titles: The titles of both axes.
            about: What the picture shows.
            curves: The curves.
            marks: The marks that the legend explains.
            swatches: Other colours by text, colour and opacity.
        """
        self.titles(*titles)
        # Long names have a line of their own.
        columns = 1 if any(len(curve.name) > _LONG for curve in curves) else 2
        width = (self.x.end - self.x.start) / columns
        y = self.y.start + 4.0 * LINE_HEIGHT

        for number, curve in enumerate(curves):
            colour, dash = series_colour(curve.colour), _DASHES[curve.dash % len(_DASHES)]
            self.parts.append(title(curve.name))
            self.line(curve.points, colour, dash=dash)
            row, column = divmod(number, columns)
            self.line_key(
                self.x.start + column * width, y + LINE_HEIGHT * row, curve.name, colour, dash
            )

        end = self.legend(
            marks, swatches, self.x.start, y + LINE_HEIGHT * math.ceil(len(curves) / columns)
        )
        return self.svg(end + LINE_HEIGHT, about)

    def _stroke(self, path: str, colour: str, width: float, dash: str | None) -> None:
        self.add(
            "path", d=path, fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dash
        )


def mark_style(mark: Mark) -> dict[str, object]:
    """The attributes of a group of marks of one kind."""
    if mark.is_filled:
        return {"fill": mark.colour, "stroke": "#fff", "stroke_width": 0.5}
    return {"fill": "none", "stroke": mark.colour, "stroke_width": 1.3}


def mark_at(mark: Mark, x: float, y: float, hint: str = "") -> str:
    """A mark at a position of the drawing."""
    # Plain strings, as a picture has hundreds of marks.
    inside = title(hint) if hint else ""
    r = _RADIUS
    if mark.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}">{inside}</circle>'
    left, top = f"{x - r:.1f}", f"{y - r:.1f}"
    side = 2 * r
    back = f"l-{side} {side}"

    # The way around a mark, from its upper left corner.
    paths = {
        "triangle": f"h{side}l-{r} {side}z",
        "square": f"h{side}v{side}h-{side}z",
        "cross": f"l{side} {side}m0 -{side}{back}",
    }
    path = f"M{left} {top}{paths[mark.shape]}"
    return f'<path d="{path}">{inside}</path>'


def in_unit(scale: float) -> Callable[[float], str]:
    """A function that formats a value in a unit of this scale, without needless zeros."""
    return lambda value: f"{value / scale:,.8g}"


def rates_axis(quantity: str, high: float) -> tuple[str, Callable[[float], str]]:
    """The title of an axis of rates up to `high`, and a function that formats a rate on it."""
    prefix, scale = prefix_of(high)
    return f"{quantity}, {prefix}{FRAMES_PER_SECOND.name}", in_unit(scale)


def values_axis(unit: Unit, quantity: str, high: float) -> tuple[str, Callable[[float], str]]:
    """The title of an axis of values up to `high`, and a function that formats a value; rates are per interface."""
    if unit == FRAMES_PER_SECOND:
        return rates_axis("rate per interface", high)
    return (f"{quantity}, {unit.name}", in_unit(1.0))


def by_mark(trials: Iterable[Trial]) -> dict[Mark, list[Trial]]:
    """The trials by mark, in the order in which marks are drawn."""
    marked_trials: dict[Mark, list[Trial]] = {mark: [] for mark in MARKS}
    for trial in trials:
        marked_trials[mark_of(trial)].append(trial)
    return {mark: marked for mark, marked in marked_trials.items() if marked}


def trial_hint(trial: Trial) -> str:
    """The text that is shown when the pointer is on a trial."""
    not_lost = f", {trial.missing.not_lost}" if trial.missing.not_lost else ""
    rule = f", rule: {trial.rule}" if trial.rule else ""
    return (
        f"trial {trial.number}: {format_frame_rate(trial.load_per_interface_fps)} for {trial.duration_s:g} s, "
        f"loss {format_loss(trial.loss_ratio, trial.decided_after_s)}{not_lost}{rule}"
    )


def series_colour(index: int) -> str:
    """The colour of a goal, a curve or another series, by its position."""
    return _SERIES_COLOURS[index % len(_SERIES_COLOURS)]

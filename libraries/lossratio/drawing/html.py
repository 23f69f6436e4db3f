"""HTML pages from the templates of this package."""

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

PAGES = "lossratio.drawing"
"""The package with the templates of pages, in its folder ``templates``."""


def html_fragment(
    package: str,
    template: str,
    *,
    filters: Mapping[str, Callable[..., str]] = MappingProxyType({}),
    **values: object,
) -> str:
    """Makes a page or a part of it from a template. Values are escaped, unless the template marks them as markup.

    Args:
        package: The package with the template, in its folder ``templates``.
        template: Name of the template's file.
        filters: Functions that the template applies to values, by the names that it uses.
        values: The values that the template shows, by the names that it uses.
    """
    return _template(package, template, tuple(filters.items())).render(values)


def range_bar(value: float, low: float, high: float) -> str:
    """A small picture of a value with both ends of its error bar, each in per cent of the picture's width."""
    value, low, high = (min(max(place, 0.0), 100.0) for place in (value, low, high))
    return (
        f'<span class="bar"><i style="width:{value:.4g}%"></i>'
        f'<b style="left:{low:.4g}%;width:{high - low:.4g}%"></b></span>'
    )


def difference_bar(change: float, interval: tuple[float, float] | None, most: float) -> str:
    """A small picture of a change with its interval. The middle is no change, and the ends are the maximum.

    Args:
        change: The relative change, e.g. -0.02.
        interval: Both ends of the change's interval; None: there is none.
        most: The largest change that fits into the picture.
    """
    place, *ends = (
        50.0 + 50.0 * min(max(end / most, -1.0), 1.0) for end in (change, *(interval or ()))
    )
    if ends:
        band = f'<b style="left:{ends[0]:.4g}%;width:{ends[1] - ends[0]:.4g}%"></b>'
    else:
        band = ""

    return (
        f'<span class="bar middle"><i style="left:{min(place, 50.0):.4g}%;width:{abs(place - 50.0):.4g}%"></i>'
        f"{band}</span>"
    )


def sparkline(values: Sequence[float | None]) -> str:
    """A small picture of the course of some values; None: a missing value."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""

    low, high = min(known), max(known)
    room = high - low or 1.0
    path, is_on = "", False

    for index, value in enumerate(values):
        if value is not None:
            x = 100.0 * index / (len(values) - 1)
            y = 22.0 - 18.0 * (value - low) / room
            path += f"{'L' if is_on else 'M'}{x:.1f} {y:.1f}"
        is_on = value is not None

    return (
        '<svg class="spark" viewBox="0 0 100 26" width="100" height="26" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{path}"/></svg>'
    )


def packed(data: object) -> str:
    """Data as compressed JSON, which the script of a page reads with `page.data`; no text in it can end the script."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)).decode()


@cache
def _template(
    package: str, template: str, filters: tuple[tuple[str, Callable[..., str]], ...]
) -> "jinja2.Template":
    # Imported here, because only pages need it.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(PAGES, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    if package == PAGES:
        return environment.get_template(template)
    return environment.from_string(files(package).joinpath(template).read_text(encoding="utf-8"))

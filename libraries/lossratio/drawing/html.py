"""HTML pages from the templates of this package."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import jinja2

_NO_FILTERS: Mapping[str, Callable[..., str]] = MappingProxyType({})


def html_page(template: str, *, filters: Mapping[str, Callable[..., str]] = _NO_FILTERS, **values: object) -> str:
    """Makes a page. Values are escaped, unless the template marks them as markup.

    Args:
        template: Name of the template's file.
        filters: Functions, by name, with which the template puts values into words.
        **values: The values that the page shows.
    """
    return html_template(template, filters=filters)(**values)


def html_template(template: str, *, filters: Mapping[str, Callable[..., str]] = _NO_FILTERS) -> Callable[..., str]:
    """Reads a template once, for many fragments.

    Args:
        template: Name of the template's file.
        filters: Functions, by name, with which the template puts values into words.

    Returns:
        A function that makes the markup of values, which are its keyword arguments.
    """
    return _environment(filters).get_template(template).render


def html_fragment(
    package: str, template: str, *, filters: Mapping[str, Callable[..., str]] = _NO_FILTERS, **values: object
) -> str:
    """Makes a part of a page from a template of any package, as `html_page` does.

    Args:
        package: The package with the template's file.
        template: Name of the file.
        filters: By name, what the template calls to put values into words.
        **values: What it shows.
    """
    return _fragment(package, template, tuple(filters.items())).render(values)


def range_bar(value: float, low: float, high: float) -> str:
    """A small picture of a value with its error bar, between 0 and 100.

    Args:
        value: The value.
        low: Lower end of the error bar.
        high: Upper end of the error bar.
    """
    value, low, high = (min(max(place, 0.0), 100.0) for place in (value, low, high))
    return (
        f'<span class="bar"><i style="width:{value:.4g}%"></i>'
        f'<b style="left:{low:.4g}%;width:{high - low:.4g}%"></b></span>'
    )


def packed(data: object) -> str:
    """Data as compressed JSON, which the script of a page reads with `page.data`; no text of it can end the script."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)).decode()


@cache
def _fragment(package: str, template: str, filters: tuple[tuple[str, Callable[..., str]], ...]) -> jinja2.Template:
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return _environment(dict(filters)).from_string(text)


def _environment(filters: Mapping[str, Callable[..., str]]) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lossratio.drawing", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment

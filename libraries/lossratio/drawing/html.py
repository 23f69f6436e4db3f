"""HTML pages from the templates of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    text = files(package).joinpath(template).read_text(encoding="utf-8")
    return _environment(filters).from_string(text).render(values)


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

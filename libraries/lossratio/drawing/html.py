"""HTML pages from the templates of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lossratio.drawing", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)
    return environment.get_template(template).render(values)

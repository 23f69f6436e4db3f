"""HTML pages from the templates of this package."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

from lossratio.values import printable

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

    Control characters are escaped everywhere.

    Args:
        package: The package with the template, in its folder ``templates``.
        template: Name of the template's file.
        filters: Functions that the template applies to values, by the names that it uses.
        values: The values that the template shows, by the names that it uses.
    """
    return printable(_template(package, template, tuple(filters.items())).render(values))


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

"""Robot Framework keywords; import them with ``Library    LossRatio``.

The long name ``lossratio.keywords.LossRatio`` means the same library.

Each name is imported on first use: the library needs every kind of measurement, and a package that adds a kind may
import this module.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lossratio.keywords.catalogue import (
        Catalogue as Catalogue,
        SuiteExpander as SuiteExpander,
        twin_tags as twin_tags,
    )
    from lossratio.keywords.course import measured as measured
    from lossratio.keywords.library import LossRatio as LossRatio
    from lossratio.keywords.measurements import measurement_keyword as measurement_keyword
    from lossratio.keywords.planned_traffic import (
        check_planned_streams as check_planned_streams,
        measuring as measuring,
        named_profiles as named_profiles,
    )
    from lossratio.keywords.variables import problem_with_variable as problem_with_variable

_MODULE_OF = MappingProxyType(
    {
        "Catalogue": "catalogue",
        "SuiteExpander": "catalogue",
        "twin_tags": "catalogue",
        "LossRatio": "library",
        "measurement_keyword": "measurements",
        "check_planned_streams": "planned_traffic",
        "measuring": "planned_traffic",
        "named_profiles": "planned_traffic",
        "measured": "course",
        "problem_with_variable": "variables",
    }
)


def __getattr__(name: str) -> object:
    if name == "keywords":
        # Robot Framework asks for this name when a suite imports this module as a library.
        return import_module("lossratio.keywords.wrong_import").WrongImport
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})

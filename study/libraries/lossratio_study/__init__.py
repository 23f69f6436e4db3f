"""Studies: comparisons of search algorithms on simulated SUTs with a known truth, recorded trials and testbeds.

An algorithm of your own is an `Algorithm`; `searched` runs any controller.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lossratio_study.algorithms import Algorithm as Algorithm, Goals as Goals
    from lossratio_study.outcome import Outcome as Outcome, searched as searched
    from lossratio_study.suts import Overhead as Overhead, Subject as Subject

_MODULE_OF = {
    "Algorithm": "algorithms",
    "Goals": "algorithms",
    "Outcome": "outcome",
    "searched": "outcome",
    "Overhead": "suts",
    "Subject": "suts",
}
__all__ = list(_MODULE_OF)


# Modules are imported when a name is used: the help of `lossratio` names this package's command, and must be fast.
def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'lossratio_study' has no attribute {name!r}")
    return getattr(import_module(f"lossratio_study.{_MODULE_OF[name]}"), name)

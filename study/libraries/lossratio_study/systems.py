"""The systems of a study by name: the algorithm, the document that describes it, and its code."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import getfile
from pathlib import Path
from pkgutil import resolve_name

import lossratio
from lossratio.errors import SearchError
from lossratio.files import shown_name
from lossratio.values import shortened, shown_value
from lossratio_study import older
from lossratio_study.algorithms import ALGORITHMS, EARLY, OURS, PEER, SEQUENTIAL, Algorithm
from lossratio_study.csit import AS_CSIT, CSIT
from lossratio_study.nights import HINT_ALGORITHMS
from lossratio_study.oracle import EARLY_ORACLE, ORACLE
from lossratio_study.suts import named

LIBRARY = Path(lossratio.__file__).parent
HERE = Path(__file__).parent

TRIALS = ("trial_input", "trial_output", "trial", "counters")
"""Modules of the library that say what a trial is."""

SIMULATED_SEARCHES = ("checker", "algorithms", "families", "outcome", "search", "suts")
"""Modules of the study that search, and judge what was found."""

EVERYBODYS_CODE = (
    *(LIBRARY / "trials" / f"{name}.py" for name in TRIALS),
    LIBRARY / "simulation",
    *(HERE / f"{name}.py" for name in SIMULATED_SEARCHES),
)
"""Code that the numbers of every algorithm depend on: files and folders."""

OUR_SEARCH = LIBRARY / "mlrsearch"


@dataclass(frozen=True)
class System:
    """An algorithm that has a name here."""

    algorithm: Algorithm
    """How it searches."""
    source: str
    """The document that describes it."""
    code: tuple[Path, ...]
    """Its own code: files and folders."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.algorithm.name


_RFC_9971 = "RFC 9971"
_CSIT = "FD.io CSIT's test methodology, MLRsearch"
_OLDER = (OUR_SEARCH, HERE / "older")

# Table: each system on a line.
SYSTEMS: Mapping[str, System] = named(
    System(ALGORITHMS[OURS], _RFC_9971, (OUR_SEARCH,)),
    System(ALGORITHMS[EARLY], f"{_RFC_9971}, with early verdicts", (OUR_SEARCH,)),
    System(ALGORITHMS[SEQUENTIAL], "lossratio's sequential goals", (OUR_SEARCH,)),
    System(ALGORITHMS[PEER], "draft-ietf-bmwg-mlrsearch-06 (2024), FD.io's library", (HERE / "peer.py",)),
    System(CSIT, f"{_CSIT}, with the overhead of its trials", (OUR_SEARCH, HERE / "csit.py")),
    System(AS_CSIT, f"{_CSIT}, with the overhead of the study", (OUR_SEARCH, HERE / "csit.py")),
    System(older.MLRSEARCH_2021, "draft-ietf-bmwg-mlrsearch-01 (2021)", _OLDER),
    System(older.MLRSEARCH_2019, "draft-vpolak-mkonstan-bmwg-mlrsearch-02 (2019)", _OLDER),
    System(older.RFC_2544, "RFC 2544, section 26.1, binary search", _OLDER),
    System(older.TST009, "ETSI GS NFV-TST 009, binary search with loss verification", _OLDER),
    System(ORACLE, "the least time on average, because it knows the SUT", (OUR_SEARCH, HERE / "oracle.py")),
    System(EARLY_ORACLE, "the same, with early verdicts", (OUR_SEARCH, HERE / "oracle.py")),
)
"""All systems by name."""


def algorithm_named(name: str) -> Algorithm:
    """An algorithm by its name, or an object of any module, ``module:NAME``.

    Raises:
        SearchError: If there is no such algorithm. The message names the algorithms that exist.
    """
    try:
        found = _found(name)
    except Exception as cause:  # the module is somebody else's, and its import may raise anything
        there = ", ".join(map(repr, SYSTEMS))
        said = shortened(" ".join(str(cause).split()))
        raise SearchError(
            f"{shown_value(name)} is not an algorithm ({said}). Give one of {there}, or module:NAME for an object of a "
            "module of yours, which Python must find (PYTHONPATH)."
        ) from cause
    if not isinstance(found, Algorithm):
        raise SearchError(f"{shown_name(name)} is not a lossratio_study.Algorithm but {type(found).__name__}.")
    return found


def _found(name: str) -> object:
    if ":" in name:
        return resolve_name(name)
    if name in HINT_ALGORITHMS:
        return HINT_ALGORITHMS[name]
    return SYSTEMS[name].algorithm


def code_of(name: str) -> tuple[Path, ...]:
    """The code that the numbers of an algorithm depend on, besides the common code: files and folders."""
    if name in SYSTEMS:
        return SYSTEMS[name].code
    if name in HINT_ALGORITHMS:
        return OUR_SEARCH, HERE / "nights.py"
    file = Path(getfile(import_module(name.partition(":")[0])))
    if file.name == "__init__.py":
        return OUR_SEARCH, file.parent
    return OUR_SEARCH, file

"""Kinds of measurement by name: those that come with lossratio, and those of other packages.

Another package adds a kind by an entry point of the group ``lossratio.measurement``; its name is the ``kind`` in result
files, its object a subclass of `Kind`. A kind is loaded when a result of it is read, measured or shown, and no earlier.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from lossratio.errors import ReportError
from lossratio.plugins import PluginGroup
from lossratio.results.model import TestResult
from lossratio.results.view import View
from lossratio.trials import JournalContents, TrialResult

GROUP = "lossratio.measurement"
"""Group of the entry points."""

# Their order is the schema's.
_KINDS = PluginGroup(
    GROUP,
    "kind of measurement",
    ReportError,
    tuple(
        EntryPoint(name, f"lossratio.measurements.{name}:{kind}", GROUP)
        for name, kind in (
            ("throughput", "Throughput"),
            ("mrr", "MaximumReceiveRate"),
            ("soak", "Soak"),
            ("frame_loss", "FrameLossRate"),
            ("latency", "Latency"),
            ("reconfiguration", "Reconfiguration"),
        )
    ),
)

ResultT = TypeVar("ResultT", bound=TestResult)


class Kind(ABC, Generic[ResultT]):
    """A kind of measurement: its results, what follows from their trials, and how they are shown.

    A kind that one controller measures is a `lossratio.measurements.MeasuredKind`.
    """

    name: ClassVar[str]
    """The ``kind`` in result files, and the name of the entry point."""
    algorithm: ClassVar[str | None] = None
    """What journals call the algorithm that chose the trials; None: measurements of this kind have no journal."""
    result: type[ResultT]
    """The class of the results, with the fields ``kind``, whose default is the name, and ``max_load``."""

    def parse(self, text: bytes | str) -> ResultT:
        """Reads the JSON text of a result.

        Raises:
            pydantic.ValidationError: If it is no result of this kind.
        """
        return self.result.model_validate_json(text, strict=True)

    def view(self) -> View[ResultT]:
        """How results are shown. Import the view in this method, as measuring needs none."""
        return View()

    def warm_ups(self, settings: Mapping[str, Any]) -> int:
        """How many of the first trials are a warm-up, which is no evidence.

        Args:
            settings: The ``settings`` of a result or a journal; empty where it has none.
        """
        return 0

    def wrong_evidence(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Trials of a result that count and must not, or the other way round, in words."""
        warm_ups = self.warm_ups(settings_of(result))
        if any(each.is_evidence != (each.number > warm_ups) or each.set_aside is not None for each in result.trials):
            yield f"trials: is_evidence or set_aside is wrong, as the warm-up is {warm_ups} trials long"

    def contradictions(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """What contradicts itself in the fields that only results of this kind have, in words.

        Args:
            result: The result, as it was read from a file.
            trials: Its trials.
        """
        yield from ()

    def follows_from_trials(self, result: ResultT) -> bool:
        """Whether `contradictions` computes every number of the result again, from its trials and goals alone."""
        return False

    def search_of(self, result: ResultT) -> Mapping[str, Any]:
        """What the header of the result's journal must say besides traffic, load, timing and maximum load."""
        return {}

    def known_so_far(self, journal: JournalContents) -> Iterator[str]:
        """What the trials of a test that was cut off say, in words."""
        yield from ()


def settings_of(result: TestResult) -> Mapping[str, Any]:
    """The settings in a result; empty where its kind has none."""
    settings: Mapping[str, Any] = getattr(result, "settings", {})
    return settings


def built_in_kinds() -> tuple[Kind[Any], ...]:
    """The kinds that come with lossratio."""
    return tuple(kind_of(entry.name) for entry in _KINDS.own)


def kind_names() -> tuple[str, ...]:
    """Names of all kinds there are, in alphabetical order."""
    return _KINDS.names()


def kind_of(name: str) -> Kind[Any]:
    """Finds a kind.

    Raises:
        ReportError: If there is no such kind, several packages have it, or its package is broken.
    """
    return _loaded(name)


def view_of(result: TestResult) -> View[Any]:
    """How a result is shown.

    Raises:
        ReportError: If the package of its kind is missing or broken.
    """
    return _view(kind_of(result.kind))


def kind_of_journal(journal: JournalContents) -> Kind[Any] | None:
    """The kind of the measurement that wrote a journal; None: no kind that can be loaded calls itself so."""
    algorithm = journal.search.get("algorithm")
    for name in (*(entry.name for entry in _KINDS.own), *kind_names()):
        try:
            kind = kind_of(name)
        except ReportError:
            continue
        if algorithm is not None and kind.algorithm == algorithm:
            return kind
    return None


def kind_in(text: bytes | str) -> Kind[Any]:
    """The kind that the JSON text of a result names.

    Raises:
        pydantic.ValidationError: If it names none.
        ReportError: If the package of the kind is missing or broken.
    """
    return kind_of(_Tagged.model_validate_json(text, strict=True).kind)


class _Tagged(BaseModel):
    """The field of a result that says of which kind it is."""

    kind: str


@cache
def _loaded(name: str) -> Kind[Any]:
    if name not in _KINDS.names():
        hint = f"Install the package with the entry point {name!r} of the group {GROUP!r}."
        raise ReportError(f"{_KINDS.unknown(name, _KINDS.names())} {hint}")
    loaded, entry = _KINDS.load(name), _KINDS.find(name)
    if not (isinstance(loaded, type) and issubclass(loaded, Kind)):
        raise _KINDS.broken(entry, "is not a subclass of lossratio.results.Kind")
    abstract = sorted(getattr(loaded, "__abstractmethods__", ()))
    missing = [*(field for field in ("name", "result") if not hasattr(loaded, field)), *abstract]
    if missing:
        raise _KINDS.broken(entry, f"cannot be used: it lacks {', '.join(missing)}")
    fields = getattr(loaded.result, "model_fields", {})
    if not issubclass(loaded.result, TestResult) or "max_load" not in fields or "kind" not in fields:
        raise _KINDS.broken(
            entry,
            "cannot be used: its result must be a subclass of lossratio.results.TestResult with the fields kind and "
            "max_load",
        )
    if not entry.name == loaded.name == fields["kind"].default:
        raise _KINDS.broken(entry, f"calls itself {loaded.name!r}, and its results {fields['kind'].default!r}")
    return loaded()


@cache
def _view(kind: Kind[Any]) -> View[Any]:
    try:
        return kind.view()
    except (ImportError, AttributeError) as cause:
        raise ReportError(f"Results of kind {kind.name!r} cannot be shown: {cause}.") from cause

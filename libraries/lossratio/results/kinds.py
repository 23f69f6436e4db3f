"""Kinds of measurement by name: the built-in kinds, and the kinds of other packages. There is no other list of them.

A built-in kind is a module or a folder of `lossratio.measurements` whose result has that name as its ``kind``. Another
package adds a kind with an entry point of the group ``lossratio.measurement``. The entry point's name is the ``kind``
in result files, and its object is a subclass of `Kind`. A kind is loaded only when a result of that kind is read,
measured or shown.
"""

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, Union, get_args

from pydantic import BaseModel, Field, TypeAdapter

from lossratio.errors import ReportError
from lossratio.files import plugin_group
from lossratio.results.model import TestResult
from lossratio.results.view import ResultT, View
from lossratio.trials import JournalContents, TrialResult
from lossratio.values import trials_counted

GROUP = "lossratio.measurement"
"""Group of the entry points."""

_HOME = "lossratio.measurements"
_IS_A_KIND = '    kind: Literal["{name}"]'
"""How the result of a kind states its name, which is the name of its module."""


def _in_the_house() -> Iterator[str]:
    """The names of the modules and folders of measurements that have a kind of the same name. Imports none of them."""
    for path in sorted(Path(__file__).parents[1].joinpath(_HOME.rpartition(".")[2]).iterdir()):
        sources = path.glob("*.py") if path.is_dir() else [path]
        sign = _IS_A_KIND.format(name=path.stem).encode()
        if any(sign in source.read_bytes() for source in sources if source.suffix == ".py"):
            yield path.stem


_KINDS = plugin_group(
    GROUP,
    what="kind of measurement",
    error=ReportError,
    base="lossratio.results.Kind",
    room=_HOME,
    own={name: name for name in _in_the_house()},
)


class Kind(ABC, Generic[ResultT]):
    """A kind of measurement: its results, the numbers that follow from their trials, and their view.

    A kind whose trials one controller chooses is a `lossratio.measurements.MeasuredKind`. If the class of results is in
    brackets after the base, as in ``Kind[MyResult]``, you do not have to state the class or the name again.
    """

    name: ClassVar[str]
    """The ``kind`` in result files, and the name of the entry point. Left out: the default of the results."""
    algorithm: ClassVar[str | None] = None
    """Name of the controller's algorithm in journals; None: measurements of this kind have no journal."""
    keyword: ClassVar[str | None] = None
    """Its keyword in `lossratio.keywords.LossRatio`, e.g. ``Measure MRR``; None: only scripts measure it. Subclasses do
    not inherit `keyword`, `method` and `noun`."""
    method: ClassVar[str | None] = None
    """Its method of an open testbed, e.g. ``mrr``; None: there is none."""
    noun: ClassVar[str]
    """What is measured, in a few words, e.g. ``MRR``. Left out: the name."""
    result: type[ResultT]
    """The class of the results, with the fields ``kind``, whose default is the name, and ``max_load``."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for own in ("keyword", "method"):
            if own not in vars(cls):
                setattr(cls, own, None)
        cls._take("result", TestResult)
        field = getattr(getattr(cls, "result", None), "model_fields", {}).get("kind")
        if field is not None and "result" in vars(cls):
            cls._meet(field.default)
        if "noun" not in vars(cls):
            cls.noun = getattr(cls, "name", "").replace("_", " ")

    @classmethod
    def _meet(cls, name: str) -> None:
        """Takes the name from the class of the results, and becomes the kind that shows them."""
        if "name" not in vars(cls):
            cls.name = name
        if cls.name == name:
            cls.result.shown_by = partial(_view, cls)

    @classmethod
    def _take(cls, name: str, kind: type[object]) -> None:
        """Takes a class from the brackets after the kind's base, if the kind does not state the class itself."""
        parts = (part for base in vars(cls).get("__orig_bases__", ()) for part in get_args(base))
        found = [
            part
            for part in parts
            if isinstance(part, type) and not get_args(part) and issubclass(part, kind)
        ]
        if found and name not in vars(cls):
            setattr(cls, name, found[0])

    @classmethod
    def lacks(cls) -> list[str]:
        """The methods that this kind lacks, although every kind must have them."""
        return sorted(cls.__abstractmethods__)

    def parse(self, text: bytes | str) -> ResultT:
        """Reads the JSON text of a result.

        Raises:
            pydantic.ValidationError: If it is not a result of this kind.
        """
        return self.result.model_validate_json(text, strict=True)

    def view(self) -> View[ResultT]:
        """The view of the results: for the class ``XResult``, ``XView`` in its module, or in ``view`` beside it.

        The module is imported here because measuring does not need it. If there is no such class, the view is a `View`.
        """
        home = self.result.__module__
        name = f"{self.result.__name__.removesuffix('Result')}View"
        room = home.rpartition(".")[0]
        if (
            not hasattr(import_module(home), name)
            and room
            and find_spec(f"{room}.view") is not None
        ):
            home = f"{room}.view"
        made: View[ResultT] = getattr(import_module(home), name, View)()
        return made

    def warm_ups(self, settings: Mapping[str, Any]) -> int:
        """Number of warm-up trials at the beginning (no evidence), from the settings of a result or a journal."""
        return 0

    def why_set_aside(self, trial: TrialResult) -> str | None:
        """Why a trial that is not a warm-up is no evidence about the SUT; None: it is evidence."""
        return None

    def wrong_evidence(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Finds trials of a result that count but must not, or do not count but must. Yields them in words."""
        warm_ups = self.warm_ups(getattr(result, "settings", {}))
        for trial, known in zip(result.trials, trials, strict=True):
            made = self.why_set_aside(known)
            if trial.set_aside != made or trial.is_evidence != (
                made is None and trial.number > warm_ups
            ):
                wrong = (
                    f"is_evidence or set_aside is wrong: the warm-up has {trials_counted(warm_ups)}"
                )
                yield f"trials: {wrong}: those of trial {trial.number}, whose counters make {made!r}"

    def contradictions(self, result: ResultT, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Finds contradictions in the fields that only results of this kind have. Yields them in words."""
        yield from ()

    def known_so_far(self, journal: JournalContents) -> Iterator[str]:
        """The findings so far from the trials of an interrupted test, in words."""
        yield from ()

    def bounds(self, result: ResultT) -> tuple[float, ...] | None:
        """The bounds that a search for a load has found, as a start for another search; frames/s per interface.

        None: the result does not come from such a search.
        """
        return None

    def rates_below(self, result: ResultT) -> Iterator[tuple[str, float]]:
        """The rates that the SUT forwards according to this result, each with its name; frames/s per interface.

        At any higher load, the SUT should forward no less.
        """
        yield from ()


def built_in_kinds() -> tuple[Kind[Any], ...]:
    """The built-in kinds."""
    return tuple(kind_of(entry.name) for entry in _KINDS.own)


def installed_kinds(broken: list[ReportError] | None = None) -> tuple[Kind[Any], ...]:
    """All kinds that can be loaded: the built-in ones, then those of other packages, each by name.

    Args:
        broken: Receives the errors of the other kinds. A kind that nobody uses must not stop a command.
    """
    found = [*built_in_kinds()]
    ours = {kind.name for kind in found}
    for name in kind_names():
        if name in ours:
            continue
        try:
            found.append(kind_of(name))
        except ReportError as problem:
            if broken is not None:
                broken.append(problem)
    return tuple(found)


def built_in_results() -> TypeAdapter[TestResult]:
    """Reads, checks and describes results of the built-in kinds."""
    classes = tuple(kind.result for kind in built_in_kinds())
    any_kind: Any = Annotated[Union[classes], Field(discriminator="kind")]  # noqa: UP007
    return TypeAdapter(any_kind)


def kind_names() -> tuple[str, ...]:
    """Names of all installed kinds, in alphabetical order."""
    return _KINDS.names()


@cache
def kind_of(name: str) -> Kind[Any]:
    """Finds a kind by its name.

    Raises:
        ReportError: If no package or several have such a kind, or its package is broken.
    """
    if name not in _KINDS.names():
        hint = f"Install the package with the entry point {name!r} of the group {GROUP!r}."
        raise ReportError(f"{_KINDS.unknown(name, _KINDS.names())} {hint}")

    loaded, entry = _KINDS.load(name), _KINDS.find(name)
    if isinstance(loaded, ModuleType):
        loaded = _kind_in_module(loaded, name)
    if not (isinstance(loaded, type) and issubclass(loaded, Kind)):
        raise _KINDS.broken(entry, f"is not a subclass of {_KINDS.base}")

    missing = [
        field for field in ("name", "result") if not hasattr(loaded, field)
    ] or loaded.lacks()
    if missing:
        raise _KINDS.broken(entry, f"cannot be used: it lacks {', '.join(missing)}")

    fields = getattr(loaded.result, "model_fields", {})
    if (
        not issubclass(loaded.result, TestResult)
        or "max_load" not in fields
        or "kind" not in fields
    ):
        raise _KINDS.broken(
            entry,
            "cannot be used: its result must be a subclass of lossratio.results.TestResult with the fields kind and "
            "max_load",
        )
    if not entry.name == loaded.name == fields["kind"].default:
        own = fields["kind"].default
        raise _KINDS.broken(
            entry,
            f"must have the same name as its class ({loaded.name!r}) and its results ({own!r})",
        )
    return loaded()


def _kind_in_module(module: ModuleType, name: str) -> object:
    """The class of a built-in kind that a module offers; None: there is no kind with this name."""
    classes = [
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Kind)
    ]
    return next((kind for kind in classes if getattr(kind, "name", None) == name), None)


def kind_of_journal(journal: JournalContents) -> Kind[Any] | None:
    """The kind of the measurement that wrote a journal; None: no kind that can be loaded has that algorithm."""
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
    """Finds the kind that the JSON text of a result names."""
    return kind_of(_Tagged.model_validate_json(text, strict=True).kind)


class _Tagged(BaseModel):
    kind: str


@cache
def _view(kind: type[Kind[Any]]) -> View[Any]:
    """The view of a kind, which is made only once."""
    try:
        return kind().view()
    except (ImportError, AttributeError) as cause:
        raise ReportError(
            f"Results of kind {kind.name!r} cannot be shown: {cause}. Install a version of its package "
            "that fits this version of lossratio."
        ) from cause

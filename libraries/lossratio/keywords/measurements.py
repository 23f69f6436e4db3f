"""The measuring keywords, one for each kind that declares one. Requests give arguments, types and documentation."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo
from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import ProfileError, ReportError, SearchError, UnknownArgumentError
from lossratio.keywords.arguments import FrameRate, FrameSize, Share, seconds
from lossratio.keywords.course import describe_profile, measured
from lossratio.keywords.groups import Keywords
from lossratio.keywords.live_view import Show
from lossratio.keywords.session import Doubts, Session
from lossratio.measurements import (
    AfterThroughput,
    Audience,
    Request,
    RequestedKind,
    TestPlace,
    warm_up_like,
)
from lossratio.results import TestResult, installed_kinds
from lossratio.traffic import load_profile
from lossratio.values import (
    DURATION,
    FRAME_RATE,
    RATIO,
    Quantity,
    did_you_mean,
    docstrings_of_fields,
    quantity_of,
    shown_value,
)

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
RequestT = TypeVar("RequestT", bound=Request)
ResultT = TypeVar("ResultT", bound=TestResult)
LibraryT = TypeVar("LibraryT", bound=type[Keywords])

_TYPES: Mapping[Quantity, type] = MappingProxyType(
    {DURATION: timedelta, FRAME_RATE: FrameRate, RATIO: Share}
)
"""Types of keyword arguments, whose documentation names the units that users may write."""
_WARM_UP = {"warm_up": timedelta, "warm_up_profile": str}
_OTHERS = "The other arguments are described under `Arguments of measurements`."


def asks(request: type[Request], without: str = "") -> Callable[[FunctionT], FunctionT]:
    """Adds the fields of a request to the arguments of a keyword, whose method takes any named argument.

    The keyword's documentation is the method's, or else the request's. A table of the fields that no other request has
    comes before the examples.
    """
    left_out = {"profile", "warm_up", *without.split()}
    fields = {
        name: field for name, field in _fields_for_suites(request).items() if name not in left_out
    }
    types = {name: _robot_type(field.annotation, field.metadata) for name, field in fields.items()}
    types |= {"bidirectional": bool, **({} if "warm_up" in request.unused else _WARM_UP)}
    defaults = {name: field.default for name, field in fields.items()}
    for name, field in fields.items():
        if field.default is not None and quantity_of(field.annotation, field.metadata) is DURATION:
            defaults[name] = timedelta(seconds=field.default)

    def mark(method: FunctionT) -> FunctionT:
        signature = inspect.signature(method)
        own = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name))
            for name in types
        ]
        vars(method)["__signature__"] = signature.replace(parameters=[*own, *more])
        known = {
            name: hint
            for name, hint in vars(method)["robot_types"].items()
            if name not in ("self", "fields")
        }
        vars(method)["robot_types"] = known | types
        text, bar, examples = inspect.cleandoc(method.__doc__ or request.__doc__ or "").partition(
            "\n| "
        )
        about = docstrings_of_fields(request)
        rows = [
            f"| ``{name}`` | {_with_default(about.get(name, ''))} |"
            for name in fields
            if name not in Request.model_fields
        ]
        table = "\n".join(("| =Argument= | =What it is= |", *rows))
        method.__doc__ = f"{text.rstrip()}\n\n{table}\n\n{_OTHERS}\n{bar}{examples}"

        return method

    return mark


def _fields_for_suites(request: type[Request]) -> dict[str, FieldInfo]:
    """The fields of a request that its keyword may take as arguments."""
    return {
        name: field
        for name, field in request.model_fields.items()
        if name not in request.unused and Audience.SCRIPTS not in field.metadata
    }


def _with_default(text: str) -> str:
    """The description of an argument in one line; the meaning of None becomes its default."""
    return re.sub(r"[;.] None: ", ". Default: ", " ".join(text.split()))


def _robot_type(annotation: Any, metadata: Iterable[Any] = ()) -> Any:
    """The keyword argument type, in which users may write the unit, for a type with a unit; without None."""
    if get_origin(annotation) in (Union, UnionType):
        parts = get_args(annotation)
    else:
        parts = (annotation,)

    types = []
    for part in (part for part in parts if part is not type(None)):
        own = getattr(part, "__metadata__", ())
        quantity = quantity_of(None, [*metadata, *own])
        plain = get_args(part)[0] if own else part
        types.append(plain if quantity is None else _TYPES.get(quantity, plain))
    return reduce(or_, types)


def request_of(
    session: Session, request: type[RequestT], frame_size: str, profile: str, fields: dict[str, Any]
) -> RequestT:
    """The request that the arguments of a keyword make.

    Raises:
        ProfileError: If there is no such traffic profile, or the frame size is impossible.
        SearchError: If the request has no argument with one of these names, or needs a throughput that is not known.
        UnknownArgumentError: If the text of the profile names an argument that there is not.
    """
    if profile in ("", str(None)):
        raise ProfileError("The profile is empty. Name one, or leave the argument out.")
    name, is_named, _ = profile.partition("=")
    if is_named and name.isidentifier():
        # If a keyword does not have a named argument, Robot Framework passes it as a positional argument.
        known = {
            **_fields_for_suites(request),
            **({} if "warm_up" in request.unused else _WARM_UP),
            **dict.fromkeys(("bidirectional", "frame_size", "doubts", "resume")),
        }
        if name in known:
            raise SearchError(
                f"{shown_value(profile)} is the value of a variable, and Robot Framework takes such a value as the "
                f"profile, not as a named argument. Write the name outside of the variable ({name}=${{VALUE}}), or "
                f"put names and values into a dictionary (&{{ARGUMENTS}})."
            )
        # Some keywords have further arguments, which are in no request.
        near = did_you_mean(name, known) or f" The arguments include {', '.join(known)}."
        raise UnknownArgumentError(f"There is no argument {shown_value(name)}.{near}")

    traffic = load_profile(
        profile, frame_size=frame_size, bidirectional=fields.pop("bidirectional", None)
    )
    length, warm_up_profile = (fields.pop(name, None) for name in _WARM_UP)
    if (length, warm_up_profile) != (None, None):
        fields["warm_up"] = warm_up_like(traffic, seconds(length), warm_up_profile)
    if issubclass(request, AfterThroughput) and fields.get("throughput") is None:
        fields["throughput"] = session.throughput_of(traffic)

    made = request(profile=traffic, **fields)
    if isinstance(made, AfterThroughput) and made.throughput is None:
        raise SearchError(
            "This measurement needs the throughput of this traffic (RFC 2544, section 26), and the last search of this "
            "suite has not found it. Find it earlier in the same suite, for example with 'Find Conditional Throughput "
            "   RFC2544', or give it, for example throughput=1 Mfps."
        )
    return made


@dataclass(frozen=True)
class _Suite:
    """What a kind may need from the suite; see `lossratio.measurements.Suite`."""

    session: Session
    kind: type[Request]
    frame_size: str
    profile: str

    @property
    def last_result(self) -> TestResult:
        return self.session.last_result

    def request(self, fields: Mapping[str, Any]) -> Any:
        return request_of(self.session, self.kind, self.frame_size, self.profile, dict(fields))

    def run(self, keyword: str, *arguments: object) -> object:
        return run_keyword(keyword, *arguments)

    def show(self, text: str) -> None:
        logger.info(text, also_console=True)


def run_keyword(name: str, *arguments: object) -> object:
    """Runs a keyword of the suite."""
    return BuiltIn().run_keyword(name, *arguments)


_OF_MEASUREMENTS: Mapping[str, Any] = MappingProxyType(
    {"frame_size": FrameSize, "profile": str, "doubts": Doubts, "resume": Path}
)
"""The arguments that all these keywords share, and their types."""


@dataclass(frozen=True)
class _Hook:
    """A method of a kind that declares further arguments of its keyword: `RequestedKind.asked` or `demand`."""

    arguments: tuple[inspect.Parameter, ...]
    """The further arguments."""
    types: Mapping[str, Any]
    """Their types for Robot Framework, by name."""

    @classmethod
    def of(cls, kind: type[RequestedKind[Any, Any]], name: str, given: int) -> "_Hook":
        """Reads a method's arguments after the first `given`, which include ``self``. The base class has no others."""
        method = getattr(kind, name)
        if method is getattr(RequestedKind, name):
            return cls((), {})
        arguments = tuple(inspect.signature(method).parameters.values())[given:]
        hints = get_type_hints(method, include_extras=True)
        types = {
            argument.name: _robot_type(hints.get(argument.name, str)) for argument in arguments
        }
        return cls(arguments, types)

    def of_kind(self, kind: Any) -> list[inspect.Parameter]:
        """The arguments of a kind, such as ``inspect.Parameter.KEYWORD_ONLY``."""
        return [argument for argument in self.arguments if argument.kind is kind]

    def taken_from(self, given: dict[str, Any]) -> dict[str, Any]:
        """Removes this method's arguments from the named arguments of a keyword, and returns them."""
        names = [argument.name for argument in self.of_kind(inspect.Parameter.KEYWORD_ONLY)]
        return {name: given.pop(name) for name in names if name in given}


def measurement_keyword(
    name: str, kind: type[RequestedKind[Any, ResultT]]
) -> Callable[..., ResultT]:
    """A keyword that measures. Its arguments, their types and its documentation come from the kind and its request.

    Args:
        name: Its name, e.g. ``Measure MRR``.
        kind: The kind.
    """
    asking = _Hook.of(kind, "asked", given=3)
    demanding = _Hook.of(kind, "demand", given=2)
    first = asking.of_kind(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    many = asking.of_kind(inspect.Parameter.VAR_POSITIONAL)
    shared = _shared_arguments(kind, are_named=bool(many))
    named = [
        *asking.of_kind(inspect.Parameter.KEYWORD_ONLY),
        *demanding.of_kind(inspect.Parameter.KEYWORD_ONLY),
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature(
        [
            itself,
            *first,
            *many,
            shared["frame_size"],
            shared["profile"],
            *named,
            shared["doubts"],
            shared["resume"],
        ]
    )

    def method(*arguments: Any, **fields: Any) -> ResultT:
        names = {name for name in fields if name in signature.parameters}
        bound = signature.bind(*arguments, **{name: fields.pop(name) for name in names})
        given = bound.arguments
        self: Keywords = given.pop("self")
        common = {name: given.pop(name, shared[name].default) for name in _OF_MEASUREMENTS}

        positional = [given.pop(argument.name, argument.default) for argument in first]
        for argument in many:
            positional += given.pop(argument.name, ())
        measuring = kind()
        suite = _Suite(self.session, kind.request, common["frame_size"], common["profile"])
        request = measuring.asked(suite, fields, *positional, **asking.taken_from(given))

        def perform(testbed: "Testbed", place: TestPlace, show: Show) -> ResultT:
            return measuring.perform(testbed, request, place, show)

        what = f"{kind.title}: {describe_profile(request.profile)}"
        result = measured(self.session, what, perform, common["doubts"], common["resume"])
        measuring.demand(result, **demanding.taken_from(given))
        return result

    vars(method)["__signature__"] = signature
    marked: Any = keyword(name, types={**_OF_MEASUREMENTS, **asking.types, **demanding.types})(
        method
    )
    without = {*kind.without, *asking.types}
    documented: Callable[..., ResultT] = asks(kind.request, without=" ".join(without))(marked)
    return documented


def _shared_arguments(
    kind: type[RequestedKind[Any, Any]], *, are_named: bool
) -> dict[str, inspect.Parameter]:
    """The arguments of all these keywords. After ``*arguments``, frame size and profile must be named."""
    usual_size = kind.usual_frame_size
    size = inspect.Parameter.empty if usual_size is None else FrameSize(usual_size)
    kinds = inspect.Parameter
    place = kinds.KEYWORD_ONLY if are_named else kinds.POSITIONAL_OR_KEYWORD

    return {
        "frame_size": inspect.Parameter("frame_size", place, default=size),
        "profile": inspect.Parameter("profile", place, default=kind.request.usual_profile),
        "doubts": inspect.Parameter("doubts", inspect.Parameter.KEYWORD_ONLY, default=None),
        "resume": inspect.Parameter("resume", inspect.Parameter.KEYWORD_ONLY, default=None),
    }


def with_keywords_of_kinds(library: LibraryT) -> LibraryT:
    """Adds the keyword of each kind that declares one, unless the library already has a longer form of it.

    Faults of kinds in other packages are kept in `Keywords.unusable`. They are no error until such a kind is used.
    """
    broken: list[ReportError] = []
    problems = []
    for kind in installed_kinds(broken):
        if kind.keyword is None or not isinstance(kind, RequestedKind):
            continue

        name = method_of(kind.keyword)
        is_ours = type(kind).__module__.startswith("lossratio.")
        if not hasattr(library, name):
            try:
                setattr(library, name, measurement_keyword(kind.keyword, type(kind)))
            # Annotations of other packages may name anything.
            except Exception as cause:
                if is_ours:
                    raise
                problems.append(
                    f"The keyword of the kind of measurement {kind.name!r} cannot be created: {cause}."
                )
        elif not is_ours:
            problems.append(
                f"The kind of measurement {kind.name!r} calls its keyword {kind.keyword!r}, but another kind "
                "has that name."
            )

    library.unusable = (*map(str, broken), *problems)
    return library


def method_of(keyword: str) -> str:
    """The name of a keyword's method, e.g. ``measure_mrr``."""
    return keyword.lower().replace(" ", "_").replace("-", "_")

"""Types of keyword arguments: what people write, converted to plain numbers and objects before a keyword runs."""

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from robot.api.deco import keyword
from robot.api.types import Secret

from lossratio.dut import types_of_options
from lossratio.errors import SearchError
from lossratio.files import as_path, is_url
from lossratio.measurements.throughput import GoalSet, goal_from, goal_set_from
from lossratio.mlrsearch import SearchGoal, SearchGoalWarning
from lossratio.results import TestResult
from lossratio.traffic import parse_frame_size
from lossratio.values import (
    counts_connections,
    in_python,
    none_of,
    parse_frame_rate,
    parse_number,
    parse_ratio,
    parse_whole_number,
    read_seconds,
    shown_value,
)

if TYPE_CHECKING:
    from lossratio.nodes import Credentials

DEFAULT_PROFILE = "ethip4-udp"
"""The traffic profile of measurements that do not name a profile."""

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
LibraryT = TypeVar("LibraryT", bound=type)
EnumT = TypeVar("EnumT", bound=Enum)

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")


class FrameRate(float):
    """A frame rate, in frames per second per transmitting interface."""

    counts_connections: bool = False
    """Whether the rate was written as connections per second, such as ``10 kcps``."""


class Share(float):
    """A share of a whole, such as a loss ratio."""


class FrameSize(str):
    """A frame size in bytes, or the name of a mix of sizes."""


class FrameSizes(tuple[FrameSize, ...]):
    """Several frame sizes."""


class Shares(tuple[Share, ...]):
    """Several shares."""


class FormatName(str):
    """The name of a format of reports."""


def to_format_name(value: str) -> FormatName:
    """The name of a format of reports, in small or capital letters: ``html``, ``json``, ``csv``, ``markdown`` ..."""
    name = value.strip().lower()
    if name == "markdown":
        name = "md"
    # Imported here, because a run that writes no report needs no formats of reports.
    from lossratio.report import FORMATS

    if name not in FORMATS.names():
        raise ValueError(FORMATS.unknown(name, FORMATS.names()))
    return FormatName(name)


def to_frame_rate(value: str | int | float) -> FrameRate:
    """Frames per second: a number, with a prefix (``k``, ``M``, ``G``) and a unit if you like.

    Examples are ``10 kpps``, ``50 kfps``, ``1.5 Mfps`` and ``64000``. The units ``fps``, ``pps``, ``frames/s`` and
    ``packets/s`` mean the same. A load is what each transmitting interface sends.
    """
    rate = FrameRate(parse_frame_rate(value))
    rate.counts_connections = counts_connections(str(value))
    return rate


def to_duration(value: str | int | float | timedelta) -> timedelta:
    """A time as Robot Framework writes it: ``2 min``, ``500 ms``, ``1 h 30 min``, or a number of seconds."""
    return timedelta(seconds=read_seconds(value))


def to_path(value: str | Path) -> Path:
    """The path of a file or folder; a relative path begins in the working directory."""
    if not str(value).strip():
        raise ValueError("The path is empty. Name a file or a folder, or leave the argument out.")
    if is_url(value):
        raise ValueError(f"{shown_value(str(value))} is a URL. Give a path on this machine.")
    return as_path(ValueError, "A file or a folder", value)


def to_truth_value(value: str | bool | int | None) -> bool | None:
    """Yes or no: ``True``, ``yes``, ``on``, ``1``, and ``False``, ``no``, ``off``, ``0``, in any case."""
    if value is None or isinstance(value, bool):
        return value
    text = str(value).strip().casefold()
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise ValueError(f"{shown_value(value)} is neither yes nor no. Write True or False.")


def to_share(value: str | int | float) -> Share:
    """A share of a whole, from 0 to 1 (``1e-7``, ``0.005``) or in per cent (``0.5 %``)."""
    return Share(parse_ratio(value))


def to_frame_size(value: str | int) -> FrameSize:
    """Bytes of a frame with its frame check sequence (``64B``, ``1518``), or a mix of sizes.

    The mix is ``IMIX_v4_1`` (``IMIX`` for short), or one that the traffic profile's file has under ``mixes``.
    """
    try:
        return FrameSize(parse_frame_size(value))
    except ValueError as error:
        raise ValueError(f"{error} Or name a mix of sizes, e.g. IMIX_v4_1.") from error


def to_test_result(value: object) -> TestResult:
    """A result that a measuring keyword returned, such as ``${ndr}``."""
    if isinstance(value, TestResult):
        return value
    raise ValueError(
        f"{shown_value(value)} is not a result. Give what a keyword returned: ${{ndr}} =    Find NDR And PDR    64B."
    )


def to_search_goal(value: str | Mapping[str, Any]) -> SearchGoal:
    """A search goal of RFC 9971: the name of a preset, or a goal of your own.

    | =Preset=      | =Loss= | =Exceed= | =Trial= | =Sum= | =Width= | =What it is=                                 |
    | ``NDR``       | 0      | 0.5      | 1 s     | 21 s  | 0.5 %   | FD.io CSIT's non-drop rate                   |
    | ``PDR``       | 0.5 %  | 0.5      | 1 s     | 21 s  | 0.5 %   | FD.io CSIT's partial drop rate               |
    | ``RFC2544``   | 0      | 0        | 60 s    | 60 s  | 0.5 %   | complies with RFC 2544 unconditionally       |
    | ``TST009``    | 0      | 0.5      | 60 s    | 120 s | 0.5 %   | loss verification of ETSI GS NFV-TST 009     |
    | ``QUICK_NDR`` | 0      | 0.5      | 0.5 s   | 2 s   | 1 %     | a tenth of NDR's evidence, to try things out |
    | ``QUICK_PDR`` | 0.5 %  | 0.5      | 0.5 s   | 2 s   | 1 %     | a tenth of PDR's evidence, likewise          |

    The columns are the goal loss ratio, the goal exceed ratio, the final trial duration, the duration sum, and the
    width relative to the relevant upper bound.

    A goal of your own is a dictionary with ``loss_ratio``, and if you like ``exceed_ratio``, ``final_trial_duration``,
    ``duration_sum``, ``width``, ``initial_trial_duration`` and ``name``. Missing values are those of NDR and PDR.
    Ratios may be in per cent, and durations may have units:
    | {"name": "strict", "loss_ratio": "0.001 %", "exceed_ratio": 0, "duration_sum": "1 min"}
    """
    with warnings.catch_warnings():
        # The result's remarks hold what RFC 9971 advises against.
        warnings.simplefilter("ignore", SearchGoalWarning)
        return goal_from(value)


def to_frame_sizes(value: str | Sequence[str | int]) -> FrameSizes:
    """Frame sizes with commas between them, ``64B,512B,IMIX``, or a list: ``["64B", 1518]``."""
    sizes = _entries(value)
    if not sizes:
        raise ValueError("The frame size is missing. Write for example 64B,1518B.")
    return FrameSizes(map(CONVERTERS[FrameSize], sizes))


def to_shares(value: str | int | float | Sequence[str | int | float]) -> Shares:
    """Shares with commas between them, ``1, 0.5, 10 %``, or a list: ``[1, 0.5]``."""
    return Shares(map(CONVERTERS[Share], _entries(value)))


def _is_list(text: str) -> bool:
    return text.lstrip().startswith(("[", "("))


def _entries(value: Any) -> Sequence[Any]:
    """The entries of a list, which may be a text: one of Python, or with commas between the entries."""
    if not isinstance(value, str):
        return list(value) if isinstance(value, Sequence) else [value]

    if not _is_list(value):
        return [entry.strip() for entry in value.split(",")] if value.strip() else []
    try:
        entries = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(
            f"{shown_value(value)} is not a list; put each text in it in quotes, as in ['a', 'b']."
        ) from None

    # Parentheses around one entry make no tuple.
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def typed_keyword(name: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """Marks a method as a keyword whose arguments have the types of its annotations, without None.

    For lossratio's own types, Robot Framework shows why a value cannot be converted. If such a type is in a union with
    None, it shows no reason. An argument whose default is None may still be None.
    """

    def mark(method: FunctionT) -> FunctionT:
        hints = get_type_hints(method)
        hints.pop("return")
        types = {}
        for argument, hint in hints.items():
            rest = tuple(option for option in get_args(hint) if option is not type(None))
            if get_origin(hint) in (Union, UnionType) and len(rest) == 1:
                types[argument] = rest[0]
            else:
                types[argument] = hint
        marked: FunctionT = keyword(name, types=types)(method)
        return marked

    return mark


def with_option_values(method: FunctionT) -> FunctionT:
    """Shows the options of all built-in kinds of DUT as arguments of a keyword that takes any named argument.

    Editors then complete the options and show their types. Values are passed on unchanged: the kind reads them, and
    refuses options of other kinds. OPTIONS in the keyword's documentation stands for their names.
    """
    values = types_of_options()
    signature = inspect.signature(method)
    *others, last = signature.parameters.values()
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in values]
    vars(method)["__signature__"] = signature.replace(parameters=[*others, *own, last])
    vars(method)["robot_types"] |= values
    names = [f"``{name}``" for name in values]
    method.__doc__ = (method.__doc__ or "").replace(
        "OPTIONS", f"{', '.join(names[:-1])} and {names[-1]}"
    )
    return method


def seconds(duration: timedelta | None) -> float | None:
    """A duration in seconds."""
    if duration is None:
        return None
    return duration.total_seconds()


def credentials(password: Secret | None, passphrase: Secret | None) -> "Credentials":
    """Secrets for log-ins where keys are not enough."""
    from lossratio.nodes import Credentials

    secrets = {"password": password, "passphrase": passphrase}
    return Credentials(
        **{name: secret.value for name, secret in secrets.items() if secret is not None}
    )


def _explained(
    what: str, convert: Callable[[Any], Any], doc: str | None = None
) -> Callable[[Any], Any]:
    """A converter that takes any value. With types, Robot Framework would refuse others without a reason.

    Args:
        what: A description of the values, with an example.
        convert: The converter. Its annotation has the types that it takes.
        doc: Its documentation for users, if its docstring is not for them.
    """
    (hint,) = (hint for name, hint in get_type_hints(convert).items() if name != "return")
    # Any takes everything, as object does; what takes a float takes an int and NumPy's numbers, too.
    parts = [get_origin(part) or part for part in get_args(hint) or (hint,)]
    taken = tuple({Any: object, float: Real}.get(part, part) for part in parts)

    def explained(value):  # type: ignore[no-untyped-def]
        # In Python, True is 1.
        is_hidden_number = isinstance(value, bool) and bool not in taken
        if is_hidden_number or not isinstance(value, taken):
            raise ValueError(f"{in_python(value)} is not {what}.")
        try:
            return convert(value)
        except SearchError as error:
            raise ValueError(str(error)) from error

    explained.__doc__ = doc or convert.__doc__
    return explained


_ABOUT_GOALS = """Search goals of one search: the name of a set, names of presets, or a file of your own.

| =Value=               | =What it is= |
| ``csit``              | ``NDR`` and ``PDR``, comparable with FD.io CSIT's numbers |
| ``quick``             | ``QUICK_NDR`` and ``QUICK_PDR``, with a tenth of the evidence, for development |
| ``coarse``            | ``COARSE_NDR`` and ``COARSE_PDR``, with bounds 2 % apart, for busy machines |
| ``NDR, TST009``       | presets, see the type ``SearchGoal`` |
| ``goals/strict.yaml`` | all goals of a file: docs/reference/goals.md |
"""
# Table: types of arguments, each with a description of its values, and its converter.
CONVERTERS: Mapping[type, Any] = {
    FormatName: _explained("the name of a format, such as 'html'", to_format_name),
    FrameRate: _explained("a frame rate, such as '10 kfps'", to_frame_rate),
    FrameSize: _explained("a frame size, such as '64B'", to_frame_size),
    FrameSizes: _explained("a list of frame sizes, such as '64B,1518B'", to_frame_sizes),
    GoalSet: _explained("a set of goals, such as 'csit'", goal_set_from, _ABOUT_GOALS),
    SearchGoal: _explained("a goal, such as 'NDR'", to_search_goal),
    Share: _explained("a share, such as '0.5 %'", to_share),
    Shares: _explained("a list of shares, such as '1, 0.5'", to_shares),
    TestResult: to_test_result,
    Path: _explained("the path of a file or a folder", to_path),
    timedelta: _explained("a duration, such as '2 min'", to_duration),
    # Robot Framework takes the first converter whose type is the argument's or a base of it: bool is an int.
    bool: _explained("a truth value, such as True", to_truth_value),
    int: _explained(
        "a whole number, such as 3",
        parse_whole_number,
        "A whole number: ``3``, ``10_000`` or ``1e6``.",
    ),
    float: _explained(
        "a number, such as 0.5", parse_number, "A finite number: ``0.5``, ``20`` or ``1e-3``."
    ),
}
"""The converters of Robot Framework for arguments of our own types, and for simple types."""


def to_member_of(enumeration: type[EnumT]) -> Callable[[Any], EnumT]:
    """A converter to one of an enumeration's members, whose values are the words that users write.

    Robot Framework's own converter shows the members' names in Python instead, and for a number nothing.
    """
    members = {_plain(str(member.value)): member for member in enumeration}
    words = [str(member.value) for member in enumeration]

    def convert(value):  # type: ignore[no-untyped-def]
        member = members.get(_plain(value)) if isinstance(value, str) else None
        if member is None:
            raise ValueError(none_of(words, value))
        return member

    convert.__doc__ = enumeration.__doc__
    return convert


def _plain(word: str) -> str:
    """A word without what Robot Framework ignores in names."""
    return re.sub(r"[\s_-]", "", word).casefold()


def _enumerations(hint: Any) -> Iterator[type[Enum]]:
    """The enumerations that a type mentions."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        yield hint
    for part in get_args(hint):
        yield from _enumerations(part)


class _Default:
    """The default of an argument, in a type that Robot Framework cannot convert to."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return str(self._value)


def with_strict_types(library: LibraryT) -> LibraryT:
    """Gives a library its converters, and makes a wrong value an error, also if the argument has a default.

    Robot Framework converts a value that does not fit the argument's type to the type of the default. It then accepts
    1.5 for a whole number, and any text for a truth value.
    """
    enumerations: dict[type, Any] = {}
    for name in dir(library):
        method = getattr(library, name)
        if not hasattr(method, "robot_name"):
            continue
        for hint in dict(method.robot_types or ()).values():
            enumerations |= {each: to_member_of(each) for each in _enumerations(hint)}

        signature = inspect.signature(method)
        parameters = dict(signature.parameters)
        for argument, parameter in signature.parameters.items():
            if _hides_errors(parameter.default):
                parameters[argument] = parameter.replace(default=_Default(parameter.default))
        vars(method)["__signature__"] = signature.replace(parameters=[*parameters.values()])
    # Some enumerations are also texts or numbers, which other converters take.
    converters = {**enumerations, **CONVERTERS}
    setattr(library, "ROBOT_LIBRARY_CONVERTERS", converters)  # noqa: B010 (mypy knows no such attribute)
    return library


def _hides_errors(default: object) -> bool:
    return default is not inspect.Parameter.empty and not isinstance(
        default, str | NoneType | Enum | _Default
    )

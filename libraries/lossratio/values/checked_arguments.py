"""Checks the arguments of the Python API by their annotations, and says in words what is wrong with a value.

A script may give a function anything. Without a check, the function fails somewhere inside, with an error of Python
that names neither the function nor the argument; or it does not fail, and measures something else.
"""

import inspect
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from functools import cache, cached_property, wraps
from io import IOBase
from itertools import chain
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lossratio.errors import LossRatioError

CheckedT = TypeVar("CheckedT", bound=Callable[..., Any])


class _NotNegative:
    """Marks a number that is 0 or more, and finite."""

    least = 0.0


NotNegative = Annotated[float, _NotNegative()]
"""A finite number, 0 or more."""

# Table: how a script gets an object of a class that it cannot write as a number or a text.
MADE_BY: Mapping[str, str] = {
    "Controller": "MLRsearch([NDR, PDR], min_load=1000.0, max_load=1e6)",
    "Run": "read_run('results')",
    "RunDirectory": "RunDirectory('results')",
    "SearchGoal": "goal_from('NDR')",
    "Step": "Step(duration=1.0, load=1000.0)",
    "StartsSut": "SharpKnee(capacity=50_000.0)",
    "Testbed": "open_testbed('simulated')",
    "TestIdentity": "TestIdentity(name='my test', suite='mine')",
    "TrafficProfile": "load_profile('ethip4-udp', frame_size='64B')",
    "TrialInput": "TrialInput(duration=1.0, load=1000.0)",
    "TrialOutput": "TrialOutput(loss_ratio=0.0)",
    "TrialResult": "TrialResult(trial, output)",
}
_OMITTED = "..."
_OPENS = {"'": "'", '"': '"', "]": "["}
"""What a shortened value begins with, by the character that it ends with."""
_LONGEST_SHOWN = 100


def checked(error: type[LossRatioError]) -> Callable[[CheckedT], CheckedT]:
    """Makes a function or a class refuse arguments that its annotations do not accept.

    Args:
        error: The class of the error. The message names the function or the class, and the argument.
    """

    def mark(target: CheckedT) -> CheckedT:
        if isinstance(target, type):
            target.__init__ = _checking(target.__init__, target.__name__, error)  # type: ignore[misc]
            return target
        function: CheckedT = _checking(target, target.__qualname__, error)
        return function

    return mark


def _checking(function: Callable[..., Any], place: str, error: type[LossRatioError]) -> Any:
    check = _Check(function, place, error)

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if check.reads:
            given = tuple(map(_read, given))
            named = {name: _read(value) for name, value in named.items()}
        check.check(given, named)
        return function(*given, **named)

    return call


def _read(value: Any) -> Any:
    """The same value; what an iterator gives, as a tuple."""
    if isinstance(value, Iterator) and not isinstance(value, IOBase):
        return tuple(value)
    return value


class _Check:
    """Checks the arguments of a function."""

    def __init__(
        self, function: Callable[..., Any], place: str, error: type[LossRatioError]
    ) -> None:
        parameters = inspect.signature(function).parameters.values()
        self._function = function
        self._place = place
        self._error = error
        self._positional = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        self._several = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]

    @cached_property
    def _rules(self) -> Mapping[str, "_Rule"]:
        # Made for the first call, when all names in the annotations are there.
        hints = get_type_hints(self._function, include_extras=True)
        hints.pop("return", None)
        return {name: _rule_of(hint) for name, hint in hints.items()}

    @cached_property
    def reads(self) -> bool:
        """Whether an argument may be an iterator, whose values can be read only once."""
        return any(rule.reads for rule in self._rules.values())

    def check(self, given: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Refuses values that the annotations do not accept.

        Raises:
            LossRatioError: Of the class `error`.
        """
        names = self._positional
        if self._several:
            names = [*names, *self._several * len(given)]
        for name, value in chain(zip(names, given, strict=False), named.items()):
            rule = self._rules.get(name)
            if rule is not None and not rule.accepts(value):
                words = rule.words
                if isinstance(value, int) and abs(value) > sys.float_info.max and rule.accepts(1):
                    words = "a number with fewer digits"
                raise self._error(
                    f"{self._place}: {name} must be {words}, not {in_python(value)}.{rule.way}"
                )


def in_python(value: object) -> str:
    """A value as `shown_value` shows it, in the words of Python."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return "a dictionary"
    return shown_value(value)


@dataclass(frozen=True)
class _Rule:
    """What an annotation accepts."""

    words: str
    """A description of the values, in words that follow ``must be``."""
    several: str
    """A description of several such values, in words that follow ``a list of``."""
    accepts: Callable[[Any], bool]
    """Whether it accepts a value."""
    way: str = ""
    """How to make such a value, after a blank; empty if that is clear."""
    reads: bool = False
    """Whether the values of an iterator are accepted."""


def _one_of(choices: Sequence[object], names: Iterable[str]) -> _Rule:
    """One of several values."""

    def accepts(value: Any) -> bool:
        return any(type(value) is type(choice) and value == choice for choice in choices)

    words = " or ".join(names)
    return _Rule(words, words, accepts)


def _either(rules: Sequence[_Rule]) -> _Rule:
    """What at least one rule accepts."""

    def accepts(value: Any) -> bool:
        return any(rule.accepts(value) for rule in rules)

    words = " or ".join(dict.fromkeys(rule.words for rule in rules))
    several = " or ".join(dict.fromkeys(rule.several for rule in rules))
    way = "".join(dict.fromkeys(rule.way for rule in rules))
    return _Rule(words, several, accepts, way, any(rule.reads for rule in rules))


def _at_least(least: float, rule: _Rule) -> _Rule:
    """A finite number that is not too small."""

    def accepts(value: Any) -> bool:
        return rule.accepts(value) and least <= value < math.inf

    bound = f"of at least {least:g}"
    return _Rule(f"{rule.words} {bound}", f"{rule.several} {bound}", accepts)


def _list_of(each: _Rule, *, needs_order: bool) -> _Rule:
    """A list, a tuple, or, if the order does not matter, anything else with values."""

    def accepts(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
            return False
        if needs_order and not hasattr(value, "__getitem__"):
            return False
        return all(map(each.accepts, value))

    several = each.several
    return _Rule(f"a list of {several}", f"lists of {several}", accepts, each.way, not needs_order)


def _with_methods(protocol: type) -> _Rule:
    """An object with the methods of a protocol."""
    parts = chain.from_iterable(vars(base).items() for base in protocol.__mro__[:-2])
    methods = [name for name, part in parts if name[0] != "_" and callable(part)]

    def accepts(value: Any) -> bool:
        has_all = all(callable(getattr(value, name, None)) for name in methods)
        return has_all and not isinstance(value, type)

    words = f"an object with {' and '.join(f'{name}()' for name in methods)}"
    return _Rule(words, f"{protocol.__name__} objects", accepts, _way_to_make(protocol))


def _instance_of(kind: type) -> _Rule:
    """An object of a class, or one that stands in for one of an abstract class: it has at least one of its methods."""

    def accepts(value: Any) -> bool:
        if isinstance(value, kind):
            return True
        abstract = getattr(kind, "__abstractmethods__", ())
        has_one = any(callable(getattr(value, name, None)) for name in abstract)
        return has_one and not isinstance(value, type)

    words = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    return _Rule(words, f"{kind.__name__} objects", accepts, _way_to_make(kind))


def _way_to_make(kind: type) -> str:
    """How to make an object of a class, after a blank; empty if that is clear."""
    if kind.__name__ not in MADE_BY:
        return ""
    return f" Write for example {MADE_BY[kind.__name__]}."


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number that a float can hold. In Python, True is 1, and nan is a float."""
    if type(value) is float:
        return not math.isnan(value)
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    is_too_large = isinstance(value, int) and abs(value) > sys.float_info.max
    return not is_too_large and not math.isnan(value)


def _simple(words: str, several: str, *types: type) -> _Rule:
    """A value of some types. In Python, True is 1."""

    def accepts(value: object) -> bool:
        return isinstance(value, types) and (bool in types or not isinstance(value, bool))

    return _Rule(words, several, accepts)


_ANYTHING = _simple("anything", "anything", object, bool)
_NOTHING = _simple("None", "None", NoneType)

# Table: the rules of simple annotations.
_SIMPLE: Mapping[Any, _Rule] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    None: _NOTHING,
    NoneType: _NOTHING,
    bool: _simple("True or False", "truth values", bool),
    int: _simple("a whole number", "whole numbers", Integral),
    float: _Rule("a number", "numbers", is_number),
    str: _simple("text", "texts", str),
    Path: _simple("a path", "paths", PathLike),
    Callable: _Rule("a function", "functions", callable),
    Mapping: _simple("a dictionary", "dictionaries", Mapping),
}


@cache
def _rule_of(hint: Any) -> _Rule:
    """The rule of an annotation. One that is not known here accepts everything."""
    origin = get_origin(hint)
    parts = get_args(hint)
    if origin is Annotated:
        # The metadata may have a smallest value, as its attribute `least`.
        leasts = [item.least for item in parts[1:] if hasattr(item, "least")]
        rule = _rule_of(parts[0])
        return _at_least(max(leasts), rule) if leasts else rule
    if origin in (Union, UnionType):
        return _either([_rule_of(part) for part in parts])
    if origin is Literal:
        return _one_of(parts, map(repr, parts))

    kind = origin or hint
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if not isinstance(kind, type):
        return _ANYTHING
    if kind is tuple or (origin is not None and issubclass(kind, Iterable)):
        return _list_of(_rule_of((*parts, Any)[0]), needs_order=issubclass(kind, Sequence))
    if issubclass(kind, Enum):
        return _one_of([*kind], [f"{kind.__name__}.{member.name}" for member in kind])
    if getattr(kind, "_is_protocol", False):
        return _with_methods(kind)
    return _instance_of(kind)


def require_types(
    error: type[LossRatioError], *arguments: tuple[str, object, tuple[type, ...], str]
) -> None:
    """Checks the types of arguments whose annotations do not say all.

    Args:
        error: The class of the error.
        arguments: For each argument: its name, its value, its types, and the name of these types.

    Raises:
        LossRatioError: Of the class `error`, if a value has another type, or is an empty text.
    """
    for name, value, types, what in arguments:
        if not isinstance(value, types) or isinstance(value, bool):
            raise error(f"{name} must be {what}, not {shown_value(value)}.")
        if isinstance(value, str) and not value.strip():
            raise error(f"{name} must be {what}, but is empty.")


def shown_value(value: Any) -> str:
    """A value as messages show it, at most 100 characters: a list or a mapping is not shown whole."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "fields"
    if isinstance(value, list | tuple | set | frozenset):
        return _list_in_words(value)
    if isinstance(value, date):
        return f"the date {value}"
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    if isinstance(value, Path):
        return f"the path {shortened(repr(str(value)), _LONGEST_SHOWN - len('the path '))}"
    if isinstance(value, type):
        return f"the class {value.__name__}"

    shown = repr(value)
    is_plain = isinstance(value, str | bytes | Real)
    if not is_plain and (shown.startswith("<") or len(shown) > _LONGEST_SHOWN):
        name = getattr(value, "__name__", None)
        if callable(value) and name:
            return f"the function {name}"
        return f"an object of the class {type(value).__name__}"
    return shortened(shown)


def _list_in_words(values: Collection[Any]) -> str:
    if not values:
        return "an empty list"
    if any(isinstance(value, Mapping | list | tuple | set) for value in values):
        return "a list"
    return shortened(f"[{', '.join(map(shown_value, values))}]")


def shortened(text: str, longest: int = _LONGEST_SHOWN) -> str:
    """A text whose end is left out if it is too long. A quoted value or a list still ends with its quote or bracket.

    Args:
        text: The text.
        longest: Maximum number of characters.
    """
    if len(text) <= longest:
        return text

    end = text[-1]
    if text.removeprefix("b")[:1] != _OPENS.get(end):
        end = ""
    return f"{text[: longest - len(_OMITTED) - len(end)]}{_OMITTED}{end}"

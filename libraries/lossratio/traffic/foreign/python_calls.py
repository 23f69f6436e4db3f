"""Functions and objects of a declarative Python file, and how a call gives a function its arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lossratio.traffic.foreign.python_values import SPREAD


@dataclass
class Instance:
    """An object of one of the file's classes."""

    made_of: ast.ClassDef
    """The class."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """The values of its attributes, by name."""


@dataclass(frozen=True)
class Function:
    """A function or method of the file."""

    definition: ast.FunctionDef
    """Where it is defined."""
    of: Instance | None = None
    """The object that a method gets as its first argument, or None."""


def method_of(instance: Instance, name: str) -> Function | None:
    """A method of an object, or None if its class defines none of this name."""
    for part in instance.made_of.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            return Function(part, None if _is_static(part) else instance)
    return None


def accepted(function: Function, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some named arguments that a function takes."""
    parameters = function.definition.args
    if parameters.kwarg is not None:
        return dict(given)
    names = [parameter.arg for parameter in (*parameters.args, *parameters.kwonlyargs)]
    return {name: value for name, value in given.items() if name in names}


def bound(
    function: Function,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    evaluate: Callable[[ast.expr], Any],
) -> dict[str, Any]:
    """The arguments of a call, by the names that the function has for them.

    Args:
        function: The function.
        given: The positional arguments, without the object of a method.
        named: The named arguments.
        evaluate: Finds the value of a default.

    Raises:
        ForeignFieldError: If it is not known which named arguments there are.
    """
    if SPREAD in named:
        raise named[SPREAD].error()
    parameters = function.definition.args
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    only_named = [parameter.arg for parameter in parameters.kwonlyargs]
    if function.of is not None:
        given = (function.of, *given)

    scope: dict[str, Any] = {}
    for name, default in zip(names[::-1], parameters.defaults[::-1], strict=False):
        scope[name] = evaluate(default)
    for name, own_default in zip(only_named, parameters.kw_defaults, strict=True):
        if own_default is not None:
            scope[name] = evaluate(own_default)

    scope |= dict(zip(names, given, strict=False))
    others = {}
    for name, value in named.items():
        if name in names or name in only_named:
            scope[name] = value
        else:
            others[name] = value

    if parameters.vararg is not None:
        scope[parameters.vararg.arg] = given[len(names) :]
    if parameters.kwarg is not None:
        scope[parameters.kwarg.arg] = others
    return scope


def _is_static(method: ast.FunctionDef) -> bool:
    """Whether a method does not get its object."""
    return any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
        for decorator in method.decorator_list
    )

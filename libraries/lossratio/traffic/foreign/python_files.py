"""Finds the values that a declarative Python file describes, without running it.

The file is parsed, and its functions are evaluated if they have only the few kinds of statements and expressions that
declarations need. Nothing is imported, no attribute of a Python object is looked up, and only the functions here are
called.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lossratio.traffic.foreign.packets import ForeignFieldError, Layer, Packet
from lossratio.traffic.foreign.python_calls import Function, Instance, accepted, bound, method_of
from lossratio.traffic.foreign.python_syntax import as_read, parsed
from lossratio.traffic.foreign.python_values import (
    BUILT_IN,
    COMPARISONS,
    OPERATORS,
    SIMPLE,
    SPREAD,
    CommandLine,
    Made,
    Recorder,
    Unknown,
    is_huge,
    is_long,
    is_plain,
    unknown_part,
    with_defaults,
)

_MOST_STEPS = 200_000
_DEEPEST = 60


class _ReturnError(Exception):
    """A function has come to its end."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class PythonFile:
    """A declarative Python file.

    Args:
        text: Its contents.
        layers: Names of calls that make a header, e.g. ``Ether``.
        made: Names of calls that are kept as they are.
        recorders: Names of classes whose objects keep the calls of their methods.

    Raises:
        ForeignFieldError: If it is not Python.
    """

    def __init__(
        self,
        text: str,
        *,
        layers: frozenset[str],
        made: Callable[[str], bool],
        recorders: frozenset[str] = frozenset(),
    ) -> None:
        self._layers = layers
        self._is_made = made
        self._recorders = recorders
        self._steps = 0
        self._depth = 0
        self._globals: dict[str, Any] = {}
        for statement in parsed(text).body:
            self._define(statement)

    def call(self, function: str) -> Any:
        """The value of a function of the file without arguments.

        Raises:
            ForeignFieldError: If there is none, or it does more than this can follow.
        """
        found = self._globals.get(function)
        if not isinstance(found, Function):
            problem = "the file has no function of this name, so it describes no streams"
            raise ForeignFieldError(function, problem, 1, "Name the file that has it")
        return self._run(found, (), {})

    def call_method(self, instance: Any, method: str, **given: Any) -> Any:
        """The value of a method of an object.

        Args:
            instance: The object.
            method: The method's name.
            given: Its arguments by name; arguments that it does not take are left out.

        Raises:
            ForeignFieldError: If there is none, or it does more than this can follow.
        """
        found = self._attribute(instance, method, 1)
        if not isinstance(found, Function):
            line = getattr(instance, "line", 1)
            if isinstance(instance, Instance):
                line = instance.made_of.lineno
            problem = "the file's class has no method of this name, so it describes no streams"
            raise ForeignFieldError(method, problem, line, "Name the file that has it")
        return self._run(found, (), accepted(found, given))

    def value_of(self, expression: str) -> Any:
        """The value of an expression.

        Raises:
            ForeignFieldError: If it is not an expression, or more than can be followed here.
        """
        (statement,) = parsed(expression).body or [ast.Pass()]
        if not isinstance(statement, ast.Expr):
            raise ForeignFieldError(expression, "it is not an expression", 1)
        return self._value(statement.value, {})

    def _define(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef):
            self._globals[statement.name] = Function(statement)
        elif isinstance(statement, ast.ClassDef):
            # The file defines a header that TRex's Scapy does not have, but that is already known here.
            if statement.name not in self._layers:
                self._globals[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            self._perform(statement, self._globals)

    def _run(self, function: Function, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        definition = function.definition
        scope = bound(function, given, named, lambda default: self._value(default, self._globals))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ForeignFieldError(definition.name, "it calls itself", definition.lineno)
        try:
            for statement in definition.body:
                self._perform(statement, scope)
        except _ReturnError as end:
            return end.value
        finally:
            self._depth -= 1
        return None

    def _perform(self, statement: ast.stmt, scope: dict[str, Any]) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ForeignFieldError("a loop", "it is too long", statement.lineno)

        if isinstance(statement, ast.Assign):
            value = self._value(statement.value, scope)
            for target in statement.targets:
                self._assign(target, value, scope)
        elif isinstance(statement, ast.AugAssign):
            both = ast.BinOp(as_read(statement.target), statement.op, statement.value)
            value = self._value(ast.copy_location(both, statement), scope)
            self._assign(statement.target, value, scope)
        elif isinstance(statement, ast.Expr):
            self._value(statement.value, scope)
        elif isinstance(statement, ast.Return):
            raise _ReturnError(statement.value and self._value(statement.value, scope))
        elif isinstance(statement, ast.If):
            self._perform_all(self._branch(statement, scope), scope)
        elif isinstance(statement, ast.For):
            for item in self._items(statement.iter, scope):
                self._assign(statement.target, item, scope)
                self._perform_all(statement.body, scope)
        elif not isinstance(statement, (ast.Pass, ast.Import, ast.ImportFrom)):
            what = type(statement).__name__.lower()
            raise ForeignFieldError(f"'{what}'", "declarations do not need it", statement.lineno)

    def _perform_all(self, statements: list[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in statements:
            self._perform(statement, scope)

    def _branch(self, statement: ast.If, scope: dict[str, Any]) -> list[ast.stmt]:
        if self._known(statement.test, scope):
            return statement.body
        return statement.orelse

    def _assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Attribute):
            holder = self._value(target.value, scope)
            if isinstance(holder, Instance):
                holder.attributes[target.attr] = value
            elif not isinstance(holder, Unknown):
                raise ForeignFieldError(f".{target.attr} =", "it cannot be followed", target.lineno)

        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (list, tuple)):
            for one, part in zip(target.elts, value, strict=False):
                self._assign(one, part, scope)
        elif isinstance(target, ast.Subscript):
            container = self._known(target.value, scope)
            key = self._known(target.slice, scope)
            self._tried(target, operator.setitem, container, key, value)
        else:
            raise ForeignFieldError(ast.unparse(target), "it cannot be followed", target.lineno)

    def _known(self, node: ast.expr, scope: Mapping[str, Any]) -> Any:
        value = self._value(node, scope)
        if isinstance(value, Unknown):
            raise value.error()
        return value

    def _items(self, node: ast.expr, scope: Mapping[str, Any]) -> list[Any]:
        items = self._known(node, scope)
        if not isinstance(items, (list, tuple, dict, str)):
            raise ForeignFieldError(ast.unparse(node), "it is not a list", node.lineno)
        return list(items)

    def _value(self, node: ast.expr, scope: Mapping[str, Any]) -> Any:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ForeignFieldError("a loop", "it is too long", node.lineno)
        evaluate = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if evaluate is None:
            return Unknown(ast.unparse(node), node.lineno)
        return evaluate(node, scope)

    def _of_constant(self, node: ast.Constant, scope: Mapping[str, Any]) -> Any:
        return node.value

    def _of_name(self, node: ast.Name, scope: Mapping[str, Any]) -> Any:
        if node.id in scope:
            return scope[node.id]
        return self._globals.get(node.id, Unknown(node.id, node.lineno))

    def _of_attribute(self, node: ast.Attribute, scope: Mapping[str, Any]) -> Any:
        return self._attribute(self._value(node.value, scope), node.attr, node.lineno)

    def _attribute(self, holder: Any, name: str, line: int) -> Any:
        if isinstance(holder, Instance):
            if name in holder.attributes:
                return holder.attributes[name]
            method = method_of(holder, name)
            if method is not None:
                return method
        if isinstance(holder, CommandLine) and name in holder.defaults:
            return holder.defaults[name]
        return Unknown(f".{name}", line)

    def _of_binop(self, node: ast.BinOp, scope: Mapping[str, Any]) -> Any:
        left = self._value(node.left, scope)
        right = self._value(node.right, scope)
        for value in (left, right):
            if not isinstance(value, SIMPLE):
                return unknown_part(value, node)
        calculate = OPERATORS.get(type(node.op))
        if calculate is None or is_long(node.op, left, right):
            return Unknown(ast.unparse(node), node.lineno)
        return self._tried(node, calculate, left, right)

    def _of_unaryop(self, node: ast.UnaryOp, scope: Mapping[str, Any]) -> Any:
        value = self._known(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub):
            return self._tried(node, operator.neg, value)
        return Unknown(ast.unparse(node), node.lineno)

    def _of_boolop(self, node: ast.BoolOp, scope: Mapping[str, Any]) -> Any:
        value: Any = None
        for part in node.values:
            value = self._known(part, scope)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _of_compare(self, node: ast.Compare, scope: Mapping[str, Any]) -> Any:
        left = self._known(node.left, scope)
        for kind, part in zip(node.ops, node.comparators, strict=True):
            right = self._known(part, scope)
            if not self._tried(node, COMPARISONS[type(kind)], left, right):
                return False
            left = right
        return True

    def _of_ifexp(self, node: ast.IfExp, scope: Mapping[str, Any]) -> Any:
        chosen = node.body if self._known(node.test, scope) else node.orelse
        return self._value(chosen, scope)

    def _of_list(self, node: ast.List, scope: Mapping[str, Any]) -> Any:
        return [self._value(part, scope) for part in node.elts]

    def _of_tuple(self, node: ast.Tuple, scope: Mapping[str, Any]) -> Any:
        return tuple(self._value(part, scope) for part in node.elts)

    def _of_dict(self, node: ast.Dict, scope: Mapping[str, Any]) -> Any:
        entries: dict[Any, Any] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self._value(part, scope)
            if key is not None:
                self._tried(node, operator.setitem, entries, self._known(key, scope), value)
            elif isinstance(value, dict):
                entries |= value
            else:
                return unknown_part(value, node)
        return entries

    def _of_listcomp(self, node: ast.ListComp, scope: Mapping[str, Any]) -> Any:
        return list(self._comprehended(node.elt, node.generators, dict(scope)))

    def _comprehended(
        self, element: ast.expr, loops: list[ast.comprehension], scope: dict[str, Any]
    ) -> Iterator[Any]:
        if not loops:
            yield self._value(element, scope)
            return
        for item in self._items(loops[0].iter, scope):
            self._assign(loops[0].target, item, scope)
            if all(self._known(test, scope) for test in loops[0].ifs):
                yield from self._comprehended(element, loops[1:], scope)

    def _of_subscript(self, node: ast.Subscript, scope: Mapping[str, Any]) -> Any:
        holder = self._value(node.value, scope)
        key = self._value(node.slice, scope)
        if isinstance(holder, (list, tuple, dict, str)) and not isinstance(key, Unknown):
            return self._tried(node, operator.getitem, holder, key)
        return Unknown(ast.unparse(node), node.lineno)

    def _of_call(self, node: ast.Call, scope: Mapping[str, Any]) -> Any:
        given = self._positional(node, scope)
        named = self._named(node, scope)
        if isinstance(node.func, ast.Attribute):
            holder = self._value(node.func.value, scope)
            return self._of_method(node, holder, node.func.attr, given, named)

        name = node.func.id if isinstance(node.func, ast.Name) else ""
        found = self._of_name(node.func, scope) if isinstance(node.func, ast.Name) else None
        if isinstance(found, Function):
            return self._run(found, given, named)
        if isinstance(found, ast.ClassDef):
            return self._instance(found, given, named)
        if name in self._layers:
            return self._layer(node, name, given, named)
        if name in self._recorders:
            return Recorder(name, node.lineno)
        if self._is_made(name):
            return Made(name, given, named, node.lineno)
        if name in BUILT_IN and not any(
            isinstance(one, Unknown) for one in (*given, *named.values())
        ):
            return self._tried(node, BUILT_IN[name], *given, **named)
        return Unknown(ast.unparse(node), node.lineno)

    def _positional(self, node: ast.Call, scope: Mapping[str, Any]) -> tuple[Any, ...]:
        """The positional arguments of a call."""
        given: list[Any] = []
        for argument in node.args:
            if not isinstance(argument, ast.Starred):
                given.append(self._value(argument, scope))
                continue
            several = self._value(argument.value, scope)
            if isinstance(several, (list, tuple)):
                given += several
            else:
                given.append(unknown_part(several, argument))
        return tuple(given)

    def _named(self, node: ast.Call, scope: Mapping[str, Any]) -> dict[str, Any]:
        """The named arguments of a call. If some are not even known by name, `SPREAD` stands for them."""
        named: dict[str, Any] = {}
        for part in node.keywords:
            value = self._value(part.value, scope)
            if part.arg is not None:
                named[part.arg] = value
            elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
                named |= value
            else:
                named[SPREAD] = unknown_part(value, part.value)
        return named

    def _of_method(
        self, node: ast.Call, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        if isinstance(holder, Recorder):
            holder.calls.append(Made(name, given, named, node.lineno))
            return None
        if isinstance(holder, list) and name in ("append", "extend"):
            self._tried(node, getattr(holder, name), *given)
            if is_huge(holder):
                raise ForeignFieldError(ast.unparse(node), "it is too long", node.lineno)
            return None
        if isinstance(holder, Made) and name == "get_streams":
            return holder
        if isinstance(holder, str) and name == "format" and is_plain(holder):
            return self._tried(node, holder.format, *given, **named)
        if isinstance(holder, dict) and name in ("get", "items", "keys", "values"):
            found = self._tried(node, getattr(holder, name), *given)
            return found if name == "get" else list(found)

        if name == "ArgumentParser":
            return CommandLine()
        if isinstance(holder, CommandLine):
            return with_defaults(holder, name, given, named)

        found = self._attribute(holder, name, node.lineno)
        if isinstance(found, Function):
            return self._run(found, given, named)
        # Modules of layers, such as scapy.contrib.mpls.MPLS(...).
        if name in self._layers and isinstance(holder, Unknown):
            return self._layer(node, name, given, named)
        return Unknown(ast.unparse(node), node.lineno)

    def _instance(
        self, definition: ast.ClassDef, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Instance:
        made = Instance(definition)
        for statement in definition.body:
            if isinstance(statement, (ast.Assign, ast.AugAssign)):
                self._perform(statement, made.attributes)
        begin = self._attribute(made, "__init__", definition.lineno)
        if isinstance(begin, Function):
            self._run(begin, given, named)
        return made

    def _layer(
        self, node: ast.Call, name: str, given: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Packet:
        if given:
            raise ForeignFieldError(name, "its fields need names", node.lineno)
        for value in named.values():
            if isinstance(value, Unknown):
                raise value.error()
        return Packet((Layer(name, named, node.lineno),))

    def _tried(
        self, node: ast.expr, calculate: Callable[..., Any], /, *given: Any, **named: Any
    ) -> Any:
        try:
            result = calculate(*given, **named)
        except ForeignFieldError:
            raise
        except (TypeError, ValueError, KeyError, IndexError, ArithmeticError) as error:
            raise ForeignFieldError(ast.unparse(node), f"it fails: {error}", node.lineno) from error
        if is_huge(result):
            raise ForeignFieldError(ast.unparse(node), "it is too large", node.lineno)
        return result

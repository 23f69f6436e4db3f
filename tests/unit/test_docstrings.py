"""Holds what docstrings tell a caller: which errors of the library a public function raises.

`python tests/unit/test_docstrings.py ROOM` lists the functions of a room that do not say so.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "libraries" / "lossratio"

WITH_KEYWORDS = ("Keywords", "LossRatio")
"""How classes end whose methods are keywords. libdoc shows their docstrings as they are to people who write suites:
a class of Python means nothing to them, and the message of an error says what to do."""

COMMAND = "command"
"""Decorator of a command. Its docstring is its ``--help``, which click prints as it is."""

SILENT: dict[str, int] = {}
"""Public functions of each room that raise an error of the library and do not say so. A number may only fall."""

SAYS_NOTHING = """
def read():
    '''Reads.'''
    raise NodeError('No.')
"""
SAYS_SO = """
def read():
    '''Reads.

    Raises:
        NodeError: Always.
    '''
    raise NodeError('No.')
"""
SAYS_ONE_OF_TWO = SAYS_SO.replace("raise NodeError", "if read: raise TopologyError('No.')\n    raise NodeError")
IN_THE_SUMMARY = SAYS_NOTHING.replace("Reads.", "Raises: NodeError, always.")
OF_A_MODULE = SAYS_NOTHING.replace("NodeError", "errors.NodeError")
OF_A_CLASS = "class Session:" + SAYS_NOTHING.replace("\n", "\n    ")
OF_A_PRIVATE_CLASS = OF_A_CLASS.replace("Session", "_Session")
PRIVATE = SAYS_NOTHING.replace("read", "_read")
OF_AN_INNER_FUNCTION = "def outer():" + SAYS_NOTHING.replace("\n", "\n    ")
NOT_OF_THE_LIBRARY = SAYS_NOTHING.replace("NodeError", "ValueError")
A_KEYWORD = OF_A_CLASS.replace("Session", "NodeKeywords")
A_COMMAND = SAYS_NOTHING.replace("def", "@command('read')\ndef")


@cache
def sources() -> dict[Path, ast.Module]:
    """Every module of the library, parsed once."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def errors() -> frozenset[str]:
    """The names of all errors that the library defines."""
    classes = [node for tree in sources().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return frozenset(node.name for node in classes if node.name.endswith("Error"))


def last_name(node: ast.expr | None) -> str:
    """The name of what is raised, or of a decorator, without its module and its arguments."""
    if node is None:
        return ""
    if isinstance(node, ast.Call):
        node = node.func
    return ast.unparse(node).rpartition(".")[2]


def public_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Public functions, and public methods of public classes, that have Python's docstrings."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not node.name.endswith(WITH_KEYWORDS):
            yield from public_functions(node.body)
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        decorators = [last_name(decorator) for decorator in node.decorator_list]
        if COMMAND not in decorators:
            yield node


def raised(function: ast.AST) -> set[str]:
    """The errors of the library that a function raises itself; what its inner functions raise is theirs."""
    found = set()
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise):
            found.add(last_name(node.exc))
        found |= raised(node)
    return found & errors()


def said(function: ast.FunctionDef) -> set[str]:
    """The errors that a docstring has in its section `Raises`."""
    lines = (ast.get_docstring(function) or "").splitlines()
    if "Raises:" not in lines:
        return set()
    section = lines[lines.index("Raises:") + 1 :]
    return {line.partition(":")[0].strip() for line in section}


def silent(tree: ast.Module) -> Iterator[tuple[int, str, set[str]]]:
    """Line and name of each public function that raises errors without saying so, and these errors."""
    for function in public_functions(tree.body):
        missing = raised(function) - said(function)
        if missing:
            yield function.lineno, function.name, missing


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def in_all_rooms() -> dict[str, int]:
    """How many functions of each room do not say what they raise."""
    count: Counter[str] = Counter()
    for path, tree in sources().items():
        count[room(path)] += len(list(silent(tree)))
    return {name: number for name, number in count.items() if number}


@pytest.mark.parametrize("source", [SAYS_NOTHING, SAYS_ONE_OF_TWO, IN_THE_SUMMARY, OF_A_MODULE, OF_A_CLASS])
def test_a_function_that_does_not_say_what_it_raises_is_found(source):
    assert len(list(silent(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    "source", [SAYS_SO, PRIVATE, OF_A_PRIVATE_CLASS, OF_AN_INNER_FUNCTION, NOT_OF_THE_LIBRARY, A_KEYWORD, A_COMMAND]
)
def test_a_function_that_says_so_or_owes_nothing_is_not_found(source):
    assert list(silent(ast.parse(source))) == []


def test_public_functions_say_which_errors_they_raise():
    more = {name: number for name, number in in_all_rooms().items() if number > SILENT.get(name, 0)}
    assert more == {}, "say it under Raises; `python tests/unit/test_docstrings.py ROOM` lists the functions"


def test_a_room_that_says_it_all_has_no_number_left():
    assert SILENT.keys() <= in_all_rooms().keys(), "take these rooms out of SILENT, so that they stay at 0"


if __name__ == "__main__":
    for path, tree in sources().items():
        if room(path) == sys.argv[1]:
            for line, name, missing in silent(tree):
                print(f"{path}:{line}: {name} raises {', '.join(sorted(missing))}")

"""Holds what docstrings tell a caller: which errors a public function raises, and the units of its numbers.

`python tests/unit/test_docstrings.py ROOM` lists the functions of a room that do not say so.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, is_typeddict

import pytest
from syntax_trees import READS_ALL_MODULES, parsed

import lossratio
from lossratio.values.records import docstrings_of_fields

pytestmark = [READS_ALL_MODULES, pytest.mark.whole]

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

FLOAT = re.compile(r"\bfloat\b")
"""A type with a number that may have a unit. A type of its own, such as `Duration`, says the unit itself."""
NAMES_ITS_UNIT = re.compile(r"(^|_)(s|us|fps|bps|bytes|frames|seconds|ratio|share)$")
"""A name of a parameter or of a field that says what its number is."""
UNIT = re.compile(r"\b(\w*seconds?|frames?|bits?|bytes?|ratio|share|relative|number|factor|probability)\b", re.I)
"""What a text has that says what a number is."""

ROOMS_WITH_UNITS = (
    "dut",
    "measurements",
    "mlrsearch",
    "nodes",
    "report",
    "report.history",
    "results",
    "runs",
    "runs.builds",
    "testbed",
    "topology",
    "traffic",
    "trials",
)
"""Rooms whose whole face says the units of its numbers. A room that does is added; none is taken away."""


class Unsaid:
    """A class of which nothing says what its numbers are."""

    def __init__(self, wait: float) -> None:
        """Makes one."""

    def send(self, load: float | None, *, rates: Sequence[float]) -> float:
        """Sends.

        Args:
            load: How much.
        """

    @staticmethod
    def forecast(load: float) -> None: ...


class Said:
    """A class that says it.

    Args:
        wait: Seconds.
    """

    def __init__(self, wait: float) -> None: ...

    def send(self, load: float | None, *, share: float) -> float:
        """Sends.

        Args:
            load: How much, in
                frames per second.
        """

    def _send(self, load: float) -> None: ...


class Inherits(Said):
    """A class whose base says it."""

    def send(self, load: float | None, *, share: float) -> float:
        """Sends also."""


@dataclass
class UnsaidField:
    """A record of which nothing says what its number is."""

    load: float
    """The load."""


@dataclass
class SaidField:
    """A record that says it."""

    load: float
    """Frames per second."""
    rest_s: float


@cache
def sources() -> dict[Path, ast.Module]:
    """Every module of the library, parsed once."""
    return {path: parsed(path) for path in sorted(PACKAGE.rglob("*.py"))}


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


def arguments(docstring: str | None) -> dict[str, str]:
    """What a docstring says of each parameter, in its section `Args` or, of a class, `Attributes`."""
    found: dict[str, str] = {}
    is_inside = False
    name = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        if not line.startswith("    "):
            is_inside = line in ("Args:", "Attributes:")
            continue
        if not is_inside:
            continue
        if not line.startswith("     "):
            name, _, line = line.strip().partition(":")
        found[name] = f"{found.get(name, '')} {line.strip()}"
    return found


def without_unit(types: dict[str, str], texts: dict[str, str]) -> Iterator[str]:
    """The names of parameters or fields with a float of which neither name nor text says what it is."""
    for name, annotation in types.items():
        if FLOAT.search(annotation) and not NAMES_ITS_UNIT.search(name) and not UNIT.search(texts.get(name, "")):
            yield name


def parameters(function: FunctionType) -> dict[str, str]:
    """The types of all parameters of a function, by name."""
    types = inspect.get_annotations(function).items()
    return {name: inspect.formatannotation(kind) for name, kind in types if name != "return"}


def fields(cls: type) -> dict[str, str]:
    """The types of the public fields of a class, by name, as its source has them: with the names of types there."""
    body = ast.parse(inspect.getsource(cls)).body[0].body
    found = [node for node in body if isinstance(node, ast.AnnAssign)]
    types = {ast.unparse(node.target): ast.unparse(node.annotation) for node in found}
    return {name: kind for name, kind in types.items() if not name.startswith("_")}


def unsaid(public: Any) -> Iterator[str]:
    """The parameters and fields of a public function or class that do not say their units."""
    if isinstance(public, FunctionType):
        function = inspect.unwrap(public)
        for name in without_unit(parameters(function), arguments(function.__doc__)):
            yield f"{public.__name__}: {name}"
    if not inspect.isclass(public) or is_typeddict(public):
        # The keys of such a dictionary are made from the options of DUTs, which have units of their own.
        return

    for base in public.__mro__:
        if not is_ours(base):
            continue
        for name in without_unit(fields(base), arguments(base.__doc__) | docstrings_of_fields(base)):
            yield f"{base.__name__}.{name}"
        yield from unsaid_by_methods(public, base)


def is_ours(public: Any) -> bool:
    return public.__module__.partition(".")[0] == "lossratio" or public.__module__ == __name__


def unsaid_by_methods(public: type, base: type) -> Iterator[str]:
    """The parameters without units of the public methods of a base, and of its constructor."""
    for name, method in dict(vars(base)).items():
        function = getattr(method, "__func__", method)
        if not isinstance(function, FunctionType) or not is_ours(function):
            continue
        if name.startswith("_") and name != "__init__":
            continue
        if name == "__init__" and is_dataclass(base):
            # Its parameters are the fields.
            continue
        texts = arguments(base.__doc__) if name == "__init__" else {}
        for each in reversed(public.__mro__):
            texts |= arguments(getattr(vars(each).get(name), "__doc__", None))
        for parameter in without_unit(parameters(function), texts):
            yield f"{base.__name__}.{name}: {parameter}"


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


@cache
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


def test_a_number_without_a_unit_is_found():
    assert list(unsaid(Unsaid)) == [
        "Unsaid.__init__: wait",
        "Unsaid.send: load",
        "Unsaid.send: rates",
        "Unsaid.forecast: load",
    ]
    assert list(unsaid(Unsaid.send)) == ["send: load", "send: rates"]
    assert list(unsaid(UnsaidField)) == ["UnsaidField.load"]


@pytest.mark.parametrize("public", [Said, Said.send, Inherits, SaidField])
def test_a_number_with_a_unit_is_not_found(public):
    assert list(unsaid(public)) == []


def test_the_face_of_the_library_says_the_units_of_its_numbers():
    found = {name: list(unsaid(getattr(lossratio, name))) for name in lossratio.__all__}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}, "say it under Args, or below the field"


def test_the_faces_of_rooms_say_the_units_of_their_numbers():
    faces = [import_module(f"lossratio.{name}") for name in ROOMS_WITH_UNITS]
    public = [getattr(face, each) for face in faces for each in dir(face) if not each.startswith("_")]
    ours = [each for each in public if isinstance(each, FunctionType | type) and is_ours(each)]
    assert len(ours) > len(faces)
    assert {text for each in ours for text in unsaid(each)} == set(), "say it under Args, or below the field"


if __name__ == "__main__":
    for path, tree in sources().items():
        if room(path) == sys.argv[1]:
            for line, name, missing in silent(tree):
                print(f"{path}:{line}: {name} raises {', '.join(sorted(missing))}")

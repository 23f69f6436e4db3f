"""Holds what makes a reader go back: caps on dense code, for each 1,000 statements of each package.

Imports, documentation and blank lines are free.
`python tests/unit/test_readability.py ROOM` lists the places in a room, `... study` and `... otg` those in the
other packages.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "libraries" / "lossratio"
OTHERS = {name: ROOT / name / "libraries" / f"lossratio_{name}" for name in ("study", "otg")}
"""The folders of the other packages, by name."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Assert, ast.Raise)

TUPLES = "tuple assignments"
LAMBDAS = "lambdas"
CHOICES = "conditional expressions"
NESTED = "nested comprehensions"
CAPS = {TUPLES: 9.5, LAMBDAS: 6.5, CHOICES: 30.0, NESTED: 1.7}
"""Most places for each 1,000 statements."""

MOST_NODES = 43
"""In a simple statement without a comment above it that begins with one of the `REASONS`."""
MOST_IN_A_ROW = 15
"""Nodes of a row of a table, or of a field of a record."""
TABLE = f"squares = {[(number, number**2) for number in range(20)]}"
UNNAMED = f"squares = [{', '.join(f'(a if b else c[{number}])' for number in range(3))}, *[d for d in {[*range(60)]}]]"
FORMULA = f"total = {' + '.join(f'a[{number}] ** 2' for number in range(20))}"
LONG = 15
"""Lines of a function from which on its steps are set apart by blank lines."""
MOST_UNBROKEN = 0.06
"""Share of the long functions without a blank line."""


class Module:
    """A module of the library, and what is dense in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text().splitlines()
        # Once: most of the time goes into the walk.
        self.nodes = list(ast.walk(ast.parse("\n".join(self.lines))))

    def statements(self) -> int:
        """Number of statements that a reader has to follow."""
        return sum(isinstance(node, ast.stmt) and not is_free(node) for node in self.nodes)

    def places(self) -> Iterator[tuple[str, int]]:
        """What is capped, and the line that has it."""
        for node in self.nodes:
            kind = kind_of(node)
            if kind is not None:
                yield kind, node.lineno

    def long_functions(self) -> Iterator[tuple[int, bool]]:
        """The first line of each long function, and whether a blank line divides it."""
        for node in self.nodes:
            if not isinstance(node, FUNCTIONS):
                continue
            body = [part for part in node.body if not is_free(part)]
            if not body:
                continue
            lines = self.lines[body[0].lineno - 1 : node.end_lineno]
            if len(lines) >= LONG:
                yield node.lineno, not all(line.strip() for line in lines)

    def dense_statements(self) -> Iterator[int]:
        """The line of each simple statement that has too many nodes, and no reason that holds."""
        for node in self.nodes:
            if isinstance(node, SIMPLE) and not is_free(node) and nodes_of(node) > MOST_NODES:
                holds = REASONS.get(self.reason_above(node.lineno))
                if holds is None or not holds(node.value):
                    yield node.lineno

    def reason_above(self, line: int) -> str:
        """First word of the comment, of one line or several, that ends above a line."""
        first = line - 1
        while first > 0 and self.lines[first - 1].strip().startswith("#"):
            first -= 1
        return self.lines[first].strip().removeprefix("# ").partition(":")[0]


def is_read_in_rows(value: ast.expr) -> bool:
    """Whether a table or a record has short rows only: what is long is a table or a record, too."""
    if nodes_of(value) <= MOST_IN_A_ROW:
        return True
    rows = rows_of(value)
    return bool(rows) and all(map(is_read_in_rows, rows))


def rows_of(value: ast.expr) -> list[ast.expr]:
    """The rows of a table, or the fields of a record; none: it is something else."""
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.Call):
        return [*value.args, *(keyword.value for keyword in value.keywords)]
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        return value.elts
    if isinstance(value, (ast.Starred, ast.Yield)):
        return [value.value]
    return []


def is_arithmetic(value: ast.expr) -> bool:
    """Whether a value is a formula: it chooses nothing, repeats nothing and writes no text."""
    return not any(isinstance(node, NOT_ARITHMETIC) for node in ast.walk(value))


NOT_ARITHMETIC = (*COMPREHENSIONS, ast.IfExp, ast.Lambda, ast.JoinedStr)
REASONS = {"Table": is_read_in_rows, "Record": is_read_in_rows, "Formula": is_arithmetic}
"""First word of the comment above a statement that may have more nodes, and the rule that it has to keep."""


def is_free(node: ast.AST) -> bool:
    """Whether a node is an import, or documentation."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, (ast.Import, ast.ImportFrom))


def kind_of(node: ast.AST) -> str | None:
    """What is capped that this node is; None: nothing."""
    if isinstance(node, ast.Assign):
        is_pair = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
        return TUPLES if is_pair else None
    if isinstance(node, ast.Lambda):
        return LAMBDAS
    if isinstance(node, ast.IfExp):
        return CHOICES
    if isinstance(node, COMPREHENSIONS):
        inner = (part for part in ast.walk(node) if part is not node)
        return NESTED if any(isinstance(part, COMPREHENSIONS) for part in inner) else None
    return None


def nodes_of(statement: ast.AST) -> int:
    """Number of nodes of a statement's syntax tree."""
    return sum(not isinstance(node, ast.expr_context) for node in ast.walk(statement))


def modules(folder: Path) -> list[Module]:
    """The modules below a folder of the library."""
    return [Module(path) for path in sorted(folder.rglob("*.py")) if "resources" not in path.parts]


def per_thousand(known: list[Module]) -> dict[str, float]:
    """How often each capped thing stands in 1,000 statements."""
    statements = sum(module.statements() for module in known)
    found = Counter(kind for module in known for kind, _ in module.places())
    return {kind: 1000 * found[kind] / statements for kind in CAPS}


@pytest.fixture(scope="module", params=[PACKAGE, *OTHERS.values()], ids=["library", *OTHERS])
def folder(request) -> Path:
    """A package whose code is capped."""
    return request.param


@pytest.fixture(scope="module")
def code(folder) -> list[Module]:
    """All modules of a package."""
    return modules(folder)


@pytest.fixture(scope="module")
def figures(code) -> dict[str, float]:
    """How often each capped thing stands in 1,000 statements of a package."""
    return per_thousand(code)


def test_dense_code_is_rare(figures):
    assert {kind: figures[kind] for kind, cap in CAPS.items() if figures[kind] > cap} == {}


def test_a_dense_statement_has_a_reason(folder, code):
    places = [f"{module.path.relative_to(folder)}:{line}" for module in code for line in module.dense_statements()]
    assert places == [], "name its steps, or say above it what it is (see REASONS)"


@pytest.mark.parametrize(
    ("comment", "source", "has_reason"),
    [
        ("", TABLE, False),
        ("# These are numbers.", TABLE, False),
        ("# Table: squares.", TABLE, True),
        ("# Table: squares,\n# and more of them.", TABLE, True),
        ("# Record: squares.", TABLE, True),
        ("# Record: the steps are not named.", UNNAMED, False),
        ("# Formula: a sum of squares.", FORMULA, True),
        ("# Formula: this is a table.", UNNAMED, False),
    ],
)
def test_a_reason_has_to_hold(tmp_path, comment, source, has_reason):
    path = tmp_path / "module.py"
    path.write_text(f"{comment}\n{source}\n")
    assert (list(Module(path).dense_statements()) == []) is has_reason


@pytest.mark.whole
def test_the_steps_of_long_functions_are_set_apart(code):
    divided = [is_divided for module in code for _, is_divided in module.long_functions()]
    assert divided.count(False) / len(divided) <= MOST_UNBROKEN


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("a, b = c, d", TUPLES),
        ("a, b = c", None),
        ("f(lambda: 1)", LAMBDAS),
        ("a = b if c else d", CHOICES),
        ("[a for b in c for a in b]", None),
        ("[[a for a in b] for b in c]", NESTED),
    ],
)
def test_what_is_dense(source, kind):
    kinds = {kind_of(node) for node in ast.walk(ast.parse(source))}
    assert kinds - {None} == {kind} - {None}


def show(folder: Path) -> None:
    """Prints the figures of a folder, and the places."""
    known = modules(folder)
    for module in known:
        where = module.path.relative_to(ROOT)
        for kind, line in sorted(module.places(), key=lambda place: place[1]):
            print(f"{where}:{line}: {kind}")
        for line in module.dense_statements():
            print(f"{where}:{line}: a dense statement")
        for line, is_divided in module.long_functions():
            if not is_divided:
                print(f"{where}:{line}: a long function without a blank line")
    print({kind: round(share, 1) for kind, share in per_thousand(known).items()})


if __name__ == "__main__":
    ROOM = "".join(sys.argv[1:2])
    show(OTHERS.get(ROOM, PACKAGE / ROOM))

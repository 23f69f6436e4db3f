"""The mutants of `make mutants`: that each of them can still be made. Whether tests notice them, it says itself."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "chaos"))
from mutations import MUTATIONS, Mutation  # noqa: E402 (found by the line above)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_finds_its_text_exactly_once_and_leaves_a_program(mutation):
    ast.parse(mutation.text_in(ROOT))
    names = [test.partition("::") for test in mutation.tests]
    files = {name: (ROOT / "tests" / "unit" / name).read_text() for name, _, _ in names}
    assert [test for name, _, test in names if f"def {test}" not in files[name]] == []


def test_the_mutations_are_many_and_each_is_another_one():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 12


@pytest.mark.parametrize("old", ["no such text", "import"])
def test_a_text_that_is_missing_or_there_twice_is_an_error_with_its_row(old):
    with pytest.raises(LookupError, match=f"a name: exit_status.py has [0-9]+ times: {old}"):
        Mutation("a name", "exit_status.py", old, "", ()).text_in(ROOT)

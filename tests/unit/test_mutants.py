"""The mutants of `make mutants`: that each of them can still be made. Whether tests notice them, it says itself."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "chaos"))
from mutations import MUTATIONS, Mutation  # noqa: E402 (found by the line above)


def wrong_rows():
    """What is wrong with rows of the tables; a name of a test may stand without its cases."""
    for mutation in MUTATIONS:
        try:
            ast.parse(mutation.text_in(ROOT))
        except (LookupError, SyntaxError) as error:
            yield f"{mutation.name}: {error}"
        for file, _, test in (test.partition("::") for test in mutation.tests):
            path = ROOT / "tests" / "unit" / file
            if not path.exists() or f"def {test}" not in path.read_text():
                yield f"{mutation.name}: there is no test {file} {test}"


@pytest.mark.whole
def test_a_mutation_finds_its_text_exactly_once_and_leaves_a_program():
    assert list(wrong_rows()) == []


def test_the_mutations_are_many_and_each_is_another_one():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 12


@pytest.mark.parametrize("old", ["no such text", "import"])
def test_a_text_that_is_missing_or_there_twice_is_an_error_with_its_row(old):
    with pytest.raises(LookupError, match=f"a name: values/exit_status.py has [0-9]+ times: {old}"):
        Mutation("a name", "values/exit_status.py", old, "", ()).text_in(ROOT)

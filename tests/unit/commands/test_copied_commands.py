"""Commands in messages can be copied into a shell, even if their paths have spaces or quotes."""

import ast
import re
import shlex
from pathlib import Path

import pytest

import lossratio
import lossratio_otg
import lossratio_study
from lossratio.commands.main import FRONT, SUBJECTS
from lossratio.errors import ReportError, SearchError
from lossratio.files.input_file import shell_word
from lossratio.results import RunDirectory
from lossratio.trials import read_journal

SOURCES = [Path(package.__file__).parent for package in (lossratio, lossratio_study, lossratio_otg)]
QUOTED = {"shell_word", "shlex.quote", "shlex.join"}
WORDS = {"self.folder", "tool", "full[meant]", "new"}
"""Values that are no paths: names of folders, tools and commands of lossratio."""


COMMANDS = [*FRONT, *(f"{first} {second}" for first, subject in SUBJECTS.items() for second in subject.commands)]
ENDS_IN_A_COMMAND = re.compile(
    rf"(lossratio ({'|'.join(sorted(COMMANDS, key=len, reverse=True))})|tools/[\w-]+|--resume|ssh -F)( --?[\w-]+)* $"
)


def unquoted_values(source):
    """Values that a message shows as the argument of a command, without quotes for the shell: line and expression."""
    for text in ast.walk(ast.parse(source)):
        if not isinstance(text, ast.JoinedStr):
            continue
        before = ""
        for part in text.values:
            if isinstance(part, ast.Constant):
                before += part.value
                continue
            value = ast.unparse(part.value)
            if ENDS_IN_A_COMMAND.search(before) and value.partition("(")[0] not in QUOTED | WORDS:
                yield part.lineno, value
            before += "{}"


def test_an_unquoted_path_is_found():
    source = (
        'f"Continue with: lossratio run --resume {directory} --force, {why}"\nf"lossratio check {shell_word(file)}"'
    )
    assert list(unquoted_values(source)) == [(1, "directory")]


@pytest.mark.whole
@pytest.mark.parametrize("package", SOURCES, ids=lambda package: package.name)
def test_each_path_in_a_command_is_quoted(package):
    found = [
        f"{path.relative_to(package)}:{line}: {value}"
        for path in sorted(package.rglob("*.py"))
        for line, value in unquoted_values(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_path_is_quoted_only_if_a_shell_needs_it():
    assert shell_word(Path("results/night")) == "results/night"
    assert shell_word(Path("it's mine")) == """'it'"'"'s mine'"""


def copied(message, beginning):
    """The arguments of the command in a message, as a shell splits them."""
    line = message[message.index(beginning) :].partition("\n")[0]
    return shlex.split(line)


def test_a_damaged_journal_in_a_directory_with_a_space(tmp_path):
    path = tmp_path / "my run.jsonl"
    path.write_text('{"format": \n', encoding="utf-8")
    with pytest.raises(SearchError) as refused:
        read_journal(path)
    assert copied(str(refused.value), "lossratio archive repair")[3:] == [str(path)]


def test_a_damaged_result_in_a_directory_with_a_space(tmp_path):
    path = tmp_path / "my run" / "results" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": ', encoding="utf-8")
    with pytest.raises(ReportError) as refused:
        list(RunDirectory(tmp_path / "my run").results())
    assert copied(str(refused.value), "lossratio archive repair")[3:] == [str(path)]

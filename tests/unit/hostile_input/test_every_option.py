"""Laws for every option and every argument of every command, listed by click."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from at_least_one import at_least_one

from lossratio.commands.main import commands

OURS = ("lossratio.", "lossratio_study.", "lossratio_otg.")
LOSSRATIO = (sys.executable, "-m", "lossratio")


def each_command(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        found = group.get_command(context, word)
        if isinstance(found, click.Group):
            yield from each_command(found, *words, word)
        elif found is not None and found.callback.__module__.startswith(OURS):
            yield " ".join([*words, word]), found


PARAMETERS = {
    f"{name} {parameter.opts[-1]}": parameter
    for name, command in each_command(commands)
    for parameter in command.params
    if not getattr(parameter, "is_flag", False)
}


def of_type(*types: type[click.ParamType]) -> dict[str, click.Parameter]:
    """The options and arguments of these types, by their names."""
    found = {name: parameter for name, parameter in PARAMETERS.items() if isinstance(parameter.type, types)}
    assert len(found) > 5
    return found


def refusal(parameter: click.Parameter, text: str) -> str | None:
    """What an option or argument answers to a text; None: it takes the text."""
    context = click.Context(commands)
    several = parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs == -1
    try:
        parameter.type_cast_value(context, [text] if several else text)
    except click.BadParameter as error:
        return error.format_message()
    return None


def test_all_options_are_looked_at():
    assert len(PARAMETERS) > 150


def test_words_that_are_no_text_are_refused():
    # Python shows a byte that is not UTF-8 as half of a surrogate pair. Writing it anywhere fails.
    for name in at_least_one(PARAMETERS.keys() - of_type(click.Choice).keys()):
        assert "bytes that are not UTF-8" in str(refusal(PARAMETERS[name], os.fsdecode(b"a\xff"))), name


def test_what_takes_a_path_refuses_a_url():
    for name, parameter in at_least_one(of_type(click.Path).items()):
        answer = str(refusal(parameter, "https://example.org/lab.yaml"))
        assert "is a URL. Give a path on this machine." in answer, name


def test_no_path_is_repeated_whole():
    for name, parameter in at_least_one(of_type(click.Path).items()):
        answer = refusal(parameter, "x" * 5000)
        assert answer is None or len(answer) < 400, name


def test_what_takes_one_of_several_words_names_them_all():
    for name, parameter in at_least_one(of_type(click.Choice).items()):
        answer = str(refusal(parameter, "x" * 500))
        assert all(word in answer for word in parameter.type.choices), name
        assert len(answer) < 400


@pytest.mark.whole
@pytest.mark.parametrize(
    ("words", "streams", "status"),
    [
        ("list --frob", "2>/dev/full", 2),
        ("list suites", ">/dev/full", 69),
        ("list suites", ">&-", 0),
        ("init lab", "<&- >&-", 2),
        ("init lab", "</dev/null >&- 2>/dev/full", 2),
        ("init lab", "</dev/null >/dev/full 2>/dev/full", 69),
    ],
)
def test_the_exit_status_is_the_same_if_nobody_reads_the_answer(words, streams, status, tmp_path):
    done = subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", *LOSSRATIO, *words.split()],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    if status == 69 and "2>" not in streams:
        assert done.stderr == (
            "Error: The standard output (/dev/full) cannot be written: No space left on device. Free some space there, "
            "or write the output to another place, and repeat the command.\n"
        )

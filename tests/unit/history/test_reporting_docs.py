"""The pages about results are true: their commands and options exist, and their example can be read."""

import re
import shlex
from pathlib import Path

import click
import pytest
from examples import examples_in

from lossratio.commands.night import fetch, send
from lossratio.commands.replay import replay
from lossratio.commands.report import compare, csit, report
from lossratio.commands.trend import ack, trend
from lossratio.history.annotations import load_known_changes
from lossratio.history.entries import Entry
from lossratio.results.doubts import DoubtKind

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("report-a-run", "compare-two-runs", "watch-a-trend", "port-your-csit-suite")
HOW_TO = "\n".join(
    [(DOCS / "nightly.md").read_text(), *((DOCS / "how-to" / f"{page}.md").read_text() for page in PAGES)]
)
COMMANDS = {
    "report": report,
    "compare": compare,
    "csit export": csit,
    "archive replay": replay,
    "archive send": send,
    "archive fetch": fetch,
    "trend": trend,
    "archive ack": ack,
}
SHOWN = re.findall(r"^\$ lossratio (?!builds )(.*)$", HOW_TO, flags=re.MULTILINE)


@pytest.mark.parametrize("line", SHOWN)
def test_the_commands_that_are_shown_can_be_given(line, tmp_path):
    name = _name(line)
    line = line.replace("/var/lib/node_exporter", str(tmp_path))
    context = COMMANDS[name].make_context(name, shlex.split(line.removeprefix(name)))
    assert isinstance(context, click.Context)


def _name(line):
    (name,) = (name for name in COMMANDS if line.startswith(f"{name} "))
    return name


def test_every_command_is_shown():
    assert {_name(line) for line in SHOWN} == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_option_is_named(command):
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in HOW_TO, f"{command.name} {parameter.opts[0]}"


def test_every_column_of_a_history_is_named():
    text = (DOCS / "reference" / "history.md").read_text()
    for column in Entry.__dataclass_fields__:
        assert f"`{column}`" in text


def test_every_doubt_is_explained():
    text = (DOCS / "reading-results.md").read_text()
    for kind in DoubtKind:
        assert f"| {kind.value} |" in text


def test_the_example_of_known_changes_can_be_read(tmp_path):
    _, _, closed = HOW_TO.partition("## Close the alarm")
    example, *_ = examples_in(closed, "yaml")
    (tmp_path / "annotations.yaml").write_text(example)
    (change,) = load_known_changes(tmp_path / "annotations.yaml")
    assert change.test == "*64B*"

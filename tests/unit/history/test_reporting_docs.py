"""The pages about results are true: their commands and options exist, and their example can be read."""

import re
import shlex
from pathlib import Path

import click
from examples import examples_in

from lossratio.commands.night import fetch, send
from lossratio.commands.replay import replay
from lossratio.commands.report import compare, csit, report
from lossratio.commands.trend import ack, trend
from lossratio.report.history.annotations import load_known_changes
from lossratio.report.history.entries import COLUMNS
from lossratio.results.kinds import built_in_kinds
from lossratio.results.note import Weight

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


def test_the_commands_that_are_shown_can_be_given(tmp_path):
    assert SHOWN
    for line in SHOWN:
        name = _name(line)
        words = shlex.split(line.replace("/var/lib/node_exporter", str(tmp_path)).removeprefix(name))
        assert isinstance(COMMANDS[name].make_context(name, words), click.Context), line


def _name(line):
    (name,) = (name for name in COMMANDS if line.startswith(f"{name} "))
    return name


def test_every_command_is_shown():
    assert {_name(line) for line in SHOWN} == set(COMMANDS)


def test_every_option_is_named():
    parameters = [parameter for command in COMMANDS.values() for parameter in command.params]
    names = {parameter.opts[0] for parameter in parameters if isinstance(parameter, click.Option)}
    assert names
    assert {name for name in names if name not in HOW_TO} == set()


def test_every_column_of_a_history_is_named():
    text = (DOCS / "how-to" / "report-a-run.md").read_text()
    assert COLUMNS
    assert {column for column in COLUMNS if f"`{column}`" not in text} == set()


def test_every_doubt_is_explained():
    text = (DOCS / "reading-results.md").read_text()
    rules = (rule for kind in built_in_kinds() for rule in kind.view().rules)
    kinds = {rule.kind.value for rule in rules if rule.weight is Weight.DOUBT}
    assert len(kinds) >= 19
    assert {kind for kind in kinds if f"| {kind} |" not in text} == set()


def test_the_example_of_known_changes_can_be_read(tmp_path):
    _, _, closed = HOW_TO.partition("## Close the alarm")
    example, *_ = examples_in(closed, "yaml")
    (tmp_path / "annotations.yaml").write_text(example)
    (change,) = load_known_changes(tmp_path / "annotations.yaml").changes
    assert change.test == "*64B*"

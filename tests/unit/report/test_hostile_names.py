"""Names that users, devices and files give are only text in every format: nothing evaluates, moves or hides them."""

import csv
import io
import re
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_examples import RESULT, as_json, mrr

from lossratio.commands.parameters import say
from lossratio.report import FORMATS, comparison_cases, comparison_markdown, comparison_page, comparison_table
from lossratio.report.comparison import compare
from lossratio.report.failures import CUT_OFF, FAILED, NOT_HERE, WithoutResult
from lossratio.report.formats import render
from lossratio.report.history import History, TrendRequest, analyse, trend_cases, trend_json, trend_page, trend_text
from lossratio.report.history.entries import entries_of
from lossratio.report.junit import junit_xml
from lossratio.report.markdown import markdown_cell
from lossratio.report.run import Run
from lossratio.values import in_one_line

UNSEEN = "a\x1b[2J\u202eb\x00c\x85d\u2028e\u200bf\u061cg\ufeffh\rj\x9bk"
EVIL = f"|calc {UNSEEN}\nall is well <script>x</script> ![p](http://x) `c` *m* &amp; \"q' ]]>"
NOT_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


def night(number):
    """A run whose test, suite, tags, testbed, nodes, device and failures have a hostile name."""
    name = EVIL
    data = as_json(mrr())
    data["test"] |= {"name": name, "suite": name, "tags": [name]}
    data["conditions"]["testbed"]["name"] = name
    data["conditions"]["nodes"]["DUT1"]["os"] = name
    data["conditions"]["duts"]["DUT1"]["changed"] = {name: name}
    result = RESULT.validate_python(data, strict=False)
    later = {"started": result.started + timedelta(days=number), "ended": result.ended + timedelta(days=number)}
    missing = [
        WithoutResult(f"S.{state}{name}", "S", state, f"{name}\udcff", "2026-08-01T12:00:00+00:00", trials=trials)
        for state, trials in ((CUT_OFF, 2), (FAILED, None), (NOT_HERE, None))
    ]
    return Run(
        Path(name.replace("\0", "").replace("/", "")) / str(number),
        (result.model_copy(update=later),),
        tuple(missing),
        (f"{name}\udcff",),
    )


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The text of each report, of a comparison and of a trend, by its name."""
    runs = [night(number) for number in range(6)]
    texts = {name: render(name, runs[:1]) for name in FORMATS.names()}
    compared = compare(runs[:3], runs[3:])
    history = History(tmp_path_factory.mktemp("history"))
    for run in runs:
        history.add(entries_of(run))
    analysis = analyse(history, TrendRequest())
    return texts | {
        "comparison": comparison_table(compared),
        "comparison.md": comparison_markdown(compared),
        "comparison.html": comparison_page(compared, runs[:3], runs[3:]),
        "comparison.junit": junit_xml({EVIL: comparison_cases(compared)}),
        "trend": trend_text(analysis),
        "trend.html": trend_page(analysis, EVIL),
        "trend.json": trend_json(analysis),
        "trend.junit": junit_xml({EVIL: trend_cases(analysis)}),
    }


@pytest.mark.whole
def test_no_format_has_a_character_that_moves_or_hides_text(reports):
    assert {name: NOT_TEXT.findall(text) for name, text in reports.items() if NOT_TEXT.search(text)} == {}


@pytest.mark.whole
def test_no_name_adds_a_line_to_a_text(reports):
    for name in ("md", "comparison", "comparison.md", "trend"):
        assert not [line for line in reports[name].splitlines() if line.startswith("all is well")]


@pytest.mark.whole
def test_no_name_is_markup(reports):
    for name in ("html", "comparison.html", "trend.html", "md", "comparison.md"):
        assert "<script>x" not in reports[name]
    assert not re.search(r"(?<!\\)\[p\]", reports["md"] + reports["comparison.md"])


@pytest.mark.whole
def test_files_for_programs_can_be_read(reports):
    for name in ("junit", "comparison.junit", "trend.junit"):
        assert ElementTree.fromstring(reports[name]).tag == "testsuites"  # noqa: S314 (our own)
    head, *rows = csv.reader(io.StringIO(reports["csv"]))
    assert {len(row) for row in rows} == {len(head)}
    metrics = [line for line in reports["openmetrics"].splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'\w+\{(\w+="([^"\\]|\\.)*",?)+\} \S+', line) for line in metrics)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(1)", "|calc", "\t=2", " \n|cmd", "\uff1d1+1"])
def test_a_spreadsheet_evaluates_no_name(name):
    run = Run(Path("run"), (), (WithoutResult(f"S.{name}", "S", FAILED, name),))
    (row,) = csv.DictReader(io.StringIO(render("csv", [run])))
    assert row["test"] == row["reason"] == f"'{name}"


def test_a_cell_of_markdown_is_text_in_one_line():
    assert markdown_cell("a|b\n[c](d) `e` *f* <g> & h\\i") == "a\\|b \\[c](d) \\`e\\` \\*f\\* &lt;g> &amp; h\\\\i"


def test_a_command_says_no_control_character(capsys):
    say(UNSEEN)
    said = capsys.readouterr().out
    assert not NOT_TEXT.search(said)
    assert said.startswith("a\\x1b[2J\\u202eb\\x00c")
    assert in_one_line("a\n b\tc\x1b") == "a b c\\x1b"

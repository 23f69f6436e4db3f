"""The page of a comparison: as text, and as headless Chromium shows it."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from browser import browser, faults_for_readers, needs_browser
from click.testing import CliRunner
from report_examples import RESULT, as_json, mrr, throughput

from lossratio.commands.report import compare as compare_command
from lossratio.report.comparison import compare, comparison_table
from lossratio.report.page_of_comparison import comparison_page
from lossratio.report.run import Run
from lossratio.results.note import noted
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

EVIL = "<script>window.injected = true</script><img src=x onerror='window.injected = true'></script>"


def with_mean(per_interface, name):
    """An MRR result with a mean, of a test on a node with a banner that looks like HTML."""
    result = mrr()
    rates = {"mean": result.conditions.rate(per_interface), "stdev": result.conditions.rate(0.0)}
    data = as_json(result.model_copy(update={"mrr": result.mrr.model_copy(update=rates)}))
    data["test"]["name"] = name
    data["conditions"]["nodes"]["DUT1"]["os"] = EVIL
    return RESULT.validate_python(data, strict=False)


def sides():
    """Two sides with a test that got worse, one that got better, one that stayed, and one that failed."""
    limit = throughput(SharpKnee(capacity=1e7), name="64B-2c-limit")
    failed = throughput(error=f"killed {EVIL}", trials=5, name="killed")
    before = [
        Run(
            Path(f"before/{rate}"),
            (with_mean(rate, "64B-mrr"), with_mean(rate, EVIL), limit, throughput(name="killed")),
        )
        for rate in (100.0e3, 100.5e3, 99.7e3)
    ]
    after = [
        Run(Path(f"after/{rate}"), (with_mean(rate, "64B-mrr"), with_mean(105e3 + rate / 50, EVIL), limit, failed))
        for rate in (95.0e3, 95.2e3, 94.9e3)
    ]
    return before, after


@pytest.fixture(scope="module")
def text():
    before, after = sides()
    comparison = compare(before, after)
    return comparison_page(replace(comparison, problems=("<u>before/x.json</u> is damaged.",)), before, after)


@pytest.mark.whole
def test_a_page_never_shows_a_number_that_has_no_verdict():
    before, after = (side[:1] for side in sides())
    page = comparison_page(compare(before, after), before, after)
    assert not re.search(r'class="number quote" data-value="[^"]', page)
    assert "(95 % interval" not in page
    assert set(re.findall(r'class="(\w+)">too few results', page)) == {"undecided"}


def test_a_page_begins_with_the_sentence_of_the_console(text):
    comparison = compare(*sides())
    said = re.search(r'<p class="sentence">(.*?)</p>', text)[1]
    assert unescape(said) == comparison_table(comparison).splitlines()[0]
    assert text.index(said) < text.index('class="about"')


def test_a_page_gives_an_interval_in_per_cent_and_a_missing_one_in_words(text):
    # A page with a table says it there, and not again in the section.
    assert re.search(r'data-value="[.\d]+">[-+.\d]+ to [-+.\d]+</td>', text)
    assert "(95 % interval" not in text
    one_test = [[replace(run, results=run.results[:1]) for run in side] for side in sides()]
    page = comparison_page(compare(*one_test), *one_test)
    assert re.search(r"\(95 % interval [-+.\d]+ to [-+.\d]+ %; p", page)
    before, after = (
        [Run(Path(name), (with_mean(rate, "64B-mrr").model_copy(update={"remarks": (noted(name),)}),)) for name in "12"]
        for rate in (100e3, 90e3)
    )
    page = comparison_page(compare(before, after), before, after)
    assert page.count("(95 % interval none: the values do not vary; p") == 1
    assert "seen %" not in page


def test_names_and_messages_are_no_markup(text):
    assert "<script>window" not in text
    assert "<u>" not in text
    assert "&lt;u&gt;before/x.json&lt;/u&gt; is damaged." in text


@pytest.mark.whole
def test_the_command_writes_the_page(tmp_path):
    for side, capacity in (("before", 3e5), ("after", 2.8e5)):
        for run in range(2):
            RunDirectory(tmp_path / side / str(run)).write(throughput(SharpKnee(capacity=capacity + 600 * run)))
    page = tmp_path / "compare.html"
    answer = CliRunner().invoke(compare_command, [str(tmp_path / "before"), str(tmp_path / "after"), f"--html={page}"])
    assert answer.exit_code == 3, answer.output
    assert ">-6." in page.read_text()


@pytest.mark.whole
@needs_browser
def test_a_browser_shows_what_changed_and_each_value(text, tmp_path):
    file = tmp_path / "compare.html"
    file.write_text(text)
    rows = "[...document.querySelector('table.overview').tBodies[0].rows]"
    names = f"{rows}.map(row => row.cells[2].querySelector('span').textContent.split(':')[0].trim())"
    with browser() as chromium:
        chromium.open(file)
        verdicts = chromium.run(names)
        assert verdicts[:3] == ["regression"] * 3
        assert sorted(set(verdicts)) == ["progression", "regression", "too few results"]
        chromium.run("document.querySelector('[name=only]').click()")
        assert set(chromium.run(names)) == {"progression", "regression"}
        chromium.run("document.querySelectorAll('details.test').forEach(details => { details.open = true; })")
        sections = "[...document.querySelectorAll('details.test')]"
        lengths = f"{sections}.map(details => details.querySelector('div.wide').querySelectorAll('tbody tr').length)"
        values = chromium.run(lengths)
        # Equal results are one: those of the searches are the same in all three runs.
        assert dict(zip(verdicts, values, strict=True)) == {"regression": 2, "progression": 6, "too few results": 2}
        assert faults_for_readers(chromium) == []
        chromium.size(400, 800)
        assert chromium.run("document.documentElement.scrollWidth") <= 400
        assert chromium.run("window.injected ?? null") is None
        assert chromium.faults == []

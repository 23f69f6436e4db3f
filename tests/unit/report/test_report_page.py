import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from latency_examples import REVERSE, at, counters, result as latency_alone
from report_examples import conditions, counted_trial, mrr, throughput, throughput_of, throughput_results

from lossratio.measurements.mrr import NOTHING_LOST
from lossratio.measurements.throughput.limits import MAX_LOAD_OF_GENERATOR
from lossratio.mlrsearch import NDR
from lossratio.report.overview import COLUMNS, NOTHING, bounds_in_words
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results.conditions import FrameSizeShare
from lossratio.results.model import Outcome
from lossratio.results.wording import format_frames_per_second
from lossratio.simulation.constant_capacity import SharpKnee

DRAWING = settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
VOID = {"meta", "br", "hr", "input"}


class Page(HTMLParser):
    """Collects what a page loads, and checks that its elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.loads = []
        self.open = []
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def overview(results):
    return Run(Path("a-run"), tuple(results)).rows


def page_of(*results):
    return report_page([Run(Path("a-run"), results)], "a run")


@pytest.fixture(scope="module")
def results():
    return [
        throughput(),
        throughput(SharpKnee(capacity=1e7), name="generator-limit"),
        mrr(max_rate=380_000.0),
        throughput(error="The agent on TG was killed.", trials=5, name="killed"),
    ]


@pytest.mark.whole
def test_a_page_needs_nothing_but_itself(results):
    page = Page(page_of(*results))
    assert page.open == []
    assert all(load.startswith("#") for load in page.loads)
    assert page_of(*results).count("<script>") == 1
    assert page_of(*results).count("<script") == 1


def test_a_page_states_the_conditions(results):
    text = " ".join(" ".join(Page(page_of(results[0])).text).split())
    lower, upper = (format_frames_per_second(bound.per_interface_fps) for bound in results[0].goals[0].bounds)
    for stated in (
        "before the search, 0 s before the traffic",
        "RFC 2544 asks for: at least 5 s",
        "offered load, upper",
        lower,
        upper,
        "NDR is the non-drop rate: ",
        "PDR is the partial drop rate: ",
        "the intended trial duration",
        "Ethernet II, IPv4, UDP",
        "254 source addresses in turn",
        "aggregate is that times 2 (port0>port1, port1>port0)",
        "400,000 fps per interface, from: generator",
        '"ageing_time": 300',
        "Debian GNU/Linux 12 (bookworm)",
    ):
        assert stated in text, stated


@pytest.mark.whole
@DRAWING
@given(throughput_results())
def test_a_page_never_hides_an_irregular_result(result):
    text = unescape(page_of(result))
    assert result.goals
    for report in result.goals:
        if report.result is None:
            assert "failed: no result" in text
        elif not report.result.regular:
            assert f'<span class="irregular">irregular: {report.result.reason}</span>' in text


def test_names_of_tests_are_no_html():
    page = report_page([Run(Path("<u>"), (throughput(name="<b>&\x00</b>"),), problems=("<u>",))], "<i>")
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<u>" not in page


def test_the_overview_has_a_row_for_each_goal(results):
    rows = overview(results)
    assert [(row.quantity, row.outcome) for row in rows] == [
        ("NDR", Outcome.MEASURED),
        ("PDR", Outcome.MEASURED),
        ("NDR", Outcome.IRREGULAR),
        ("PDR", Outcome.IRREGULAR),
        ("MRR", Outcome.MEASURED),
        ("NDR", Outcome.FAILED),
        ("PDR", Outcome.FAILED),
    ]
    assert {column.text(row) for row in rows for column in COLUMNS if column.head == "result"} == {
        "regular",
        f"irregular: {MAX_LOAD_OF_GENERATOR}",
        "measured",
        "failed: no result: The agent on TG was killed.",
    }


def test_rows_of_the_overview_in_words(results):
    rows = [{column.head: column.text(row) for column in COLUMNS} for row in overview(results)]
    limit, rate, failed = (rows[index] for index in (2, 4, 5))
    assert (limit["lower bound"], limit["number to quote"]) == ("400,000 fps", NOTHING)
    shares = ("aggregate", "aggregate bandwidth", "of theoretical maximum")
    assert [limit[head] for head in shares] == ["800,000 fps (x 2)", "537.60 Mbit/s", "26.88 %"]
    assert (rate["lower bound"], rate["number to quote"]) == (NOTHING, "150,000 fps ± 0.00 fps")
    assert (rate["trials"], rate["time of trials"]) == ("10", "10.0 s")
    assert [failed[head] for head in ("number to quote", *shares[::2], "trials")] == [NOTHING, NOTHING, NOTHING, "5"]


def test_value_and_verdict_are_the_second_and_third_column_and_empty_columns_are_hidden(results):
    (first, *_), (of_two, *_) = shown_rows(Run(Path("run"), (results[2],))), shown_rows(*two_runs())
    assert [*first][:3] == [*of_two][:3] == ["test", "number to quote", "result"]
    assert not {"run", "lower bound", "upper bound", "latency"} & {*first}
    assert {"run", "aggregate", "of theoretical maximum"} <= {*of_two}


def test_frame_sizes_of_a_mix_have_an_average():
    sizes = [
        FrameSizeShare(size_bytes=size, share_ratio=weight / 48) for size, weight in ((64, 28), (570, 16), (1518, 4))
    ]
    mix = {"frame_sizes": tuple(sizes), "average_frame_size_bytes": 353.8333}
    traffic = conditions().traffic
    assert traffic.sizes_in_words == "64 B"
    assert traffic.model_copy(update=mix).sizes_in_words == "64, 570, 1518 B (353.83 B on average)"


def shown_rows(*runs):
    """The overview's rows by test and goal: the texts of their cells, by the heads of the columns."""
    page = report_page(runs, "runs")
    heads = re.findall('<th scope="col">(.*?)</th>', page[: page.index("<tbody>")])
    rows = re.findall("<tr data.*?</tr>", page, flags=re.DOTALL)
    cells = [
        [unescape(re.sub("<.*?>", " ", cell)).strip() for cell in re.findall("<td.*?</td>", row, re.DOTALL)]
        for row in rows
    ]
    return [dict(zip(heads, row, strict=True)) for row in cells]


def test_rows_have_the_latency_of_their_goal_or_their_own():
    search = throughput()
    latency = (
        at(90e3, counters(), counters(REVERSE, ((20.0, 990), (70.0, 10))), share=0.9),
        at(50e3, counters(), share=0.5),
    )
    alone = latency_alone(at(90e3, counters()))
    ndr, pdr, own = shown_rows(Run(Path("run"), (search.model_copy(update={"latency": latency}), alone)))
    assert ndr["latency"] == NOTHING
    assert pdr["latency"] == "20 µs, 99 % 50 µs at 90 % of PDR"
    assert own["latency"].startswith("10 µs, 99 % 50 µs")
    assert own["number to quote"] == NOTHING


def test_a_number_is_shown_with_what_its_reader_needs():
    early = throughput(name="early")
    early = early.model_copy(update={"conditions": early.conditions.with_early_verdicts()})
    whole = mrr(SharpKnee(capacity=1e7))
    rows = shown_rows(Run(Path("run"), (early, whole)))
    assert all("with early verdicts: not comparable with full-length trials" in row["result"] for row in rows[:2])
    assert not any("early" in row["result"] for row in rows[2:])
    assert NOTHING_LOST in rows[2]["result"]


def two_runs():
    return [Run(Path(f"{night}/run"), (mrr(),)) for night in ("monday", "tuesday")]


def test_two_runs_of_one_name_are_distinguished():
    runs = two_runs()
    assert [row["run"] for row in shown_rows(*runs)] == ["monday/run", "tuesday/run"]
    assert "run" not in shown_rows(runs[0])[0]


@pytest.mark.parametrize("results", [1, 2, 3])
def test_a_page_has_a_table_from_three_results_on(results):
    runs = [Run(Path("run"), (throughput(), mrr(), mrr(SharpKnee(capacity=2e5)))[:results])]
    page = report_page(runs, "page")
    assert ('<div hidden>\n<h2 id="overview">' in page) is (results < 3)
    sentences = re.findall(r'<p class="sentence">(.*?)</p>', page)
    assert len(sentences) == len(set(sentences))
    assert (sentences[0] == "None of 3 values of 2 results are irregular, failed or doubtful.") is (results == 2)


def test_the_testbed_and_the_time_of_a_single_result_stand_once():
    page = report_page([Run(Path("run"), (throughput(),))], "page").partition("<details><summary>Conditions")[0]
    assert page.count("testbed simulated") == page.count("2026-08-01") == 1


def test_bounds_at_the_generators_limit_claim_no_bound_that_there_is_not():
    lossy = [counted_trial(9_001.0, lost=180)] * 40
    late = [replace(trial, output=replace(trial.output, late_frames=180)) for trial in lossy]
    (slow,), (held,) = (Run(Path("run"), (throughput_of(trials, (NDR,)),)).rows for trials in (lossy, late))
    (shown,) = (column.text for column in COLUMNS if column.head == "upper bound")
    assert (shown(slow), bounds_in_words(slow)) == ("9,001.00 fps", f"{NOTHING} to 9,001.00 fps")
    assert (shown(held), bounds_in_words(held)) == (NOTHING, NOTHING)


def test_equal_facts_are_on_the_page_once_and_later_tests_link_to_them():
    first = throughput()
    renamed = first.test.model_copy(update={"name": "<b>later"})
    page = report_page([Run(Path("run"), (first, first.model_copy(update={"test": renamed})))], "run")
    assert page.count("<summary>Testbed</summary>") == 1
    assert page.count(f'Testbed: as in the conditions of <a href="#test-1">{first.test.name}</a>') == 1
    assert "<b>later" not in page

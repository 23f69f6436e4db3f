"""The stream that a goal is of has a field of its own in all reports, whatever the goal is called."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_examples import throughput

from lossratio.report import Run, render
from lossratio.report.comparison import compare, comparison_cases, comparison_markdown, comparison_table
from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.entries import entries_of
from lossratio.report.history.page_of_trends import trend_page
from lossratio.report.history.store import History
from lossratio.report.history.trend_formats import trend_cases, trend_json
from lossratio.report.page_of_comparison import comparison_page
from lossratio.trials import StreamFrames


def of_voice(trial):
    """A trial whose frames are all of one stream."""
    ways = [
        replace(way, by_stream=(StreamFrames("voice", way.sent_frames, way.received_frames),))
        for way in trial.directions
    ]
    return trial.model_copy(update={"directions": tuple(ways)})


@pytest.fixture
def nights(tmp_path):
    """Five runs of a search whose first goal is of the stream voice, which has all frames."""
    runs = []
    for night in range(5):
        result = throughput()
        first, second = result.goals
        of_stream = first.model_copy(update={"goal": first.goal.model_copy(update={"stream": "voice"})})
        moved = {name: getattr(result, name).replace(day=1 + night) for name in ("started", "ended")}
        trials = tuple(map(of_voice, result.trials))
        found = result.model_copy(update={"goals": (of_stream, second), "trials": trials, **moved})
        runs.append(Run(tmp_path / f"night-{night}", (found,)))
    return runs


def test_the_reports_of_a_run_have_it(nights):
    rows = csv.DictReader(io.StringIO(render("csv", nights[:1])))
    assert [(row["goal"], row["stream"]) for row in rows] == [("NDR", "voice"), ("PDR", "")]

    assert '<property name="NDR stream" value="voice" />' in render("junit", nights[:1])

    families = {family.name: family for family in text_string_to_metric_families(render("openmetrics", nights[:1]))}
    for name in ("lossratio_measured", "lossratio_result_frames_per_second"):
        labels = [(sample.labels["quantity"], sample.labels["stream"]) for sample in families[name].samples]
        assert set(labels) == {("NDR", "voice"), ("PDR", "")}


@pytest.mark.whole
def test_a_comparison_has_it(nights):
    compared = compare(nights[:2], nights[2:4])
    assert [one.newest.stream for one in compared.quantities] == ["voice", None]
    _, _, head, ndr, pdr, *_ = comparison_table(compared).splitlines()
    column = head.index("stream")
    assert (ndr[column:].split()[0], pdr[column : column + len("stream")].strip()) == ("voice", "")
    assert "| voice |" in comparison_markdown(compared)
    assert [case.properties for case in comparison_cases(compared)] == [(("stream", "voice"),), ()]
    assert ">voice</td>" in comparison_page(compared, nights[:2], nights[2:4])


def test_a_comparison_without_streams_has_no_such_column():
    runs = [Run(name, (throughput(),)) for name in ("a", "b")]
    compared = compare(runs[:1], runs[1:])
    assert "stream" not in comparison_table(compared)
    assert "stream" not in comparison_markdown(compared)


@pytest.mark.whole
def test_trends_have_it(nights, tmp_path):
    history = History(tmp_path / "history")
    history.add([entry for run in nights for entry in entries_of(run)])
    found = analyse(history, TrendRequest())
    assert [trend["stream"] for trend in json.loads(trend_json(found))["trends"]] == ["voice", None]
    assert [case.properties for case in trend_cases(found)] == [(("stream", "voice"),), ()]
    assert ">voice</td>" in trend_page(found, "a title")

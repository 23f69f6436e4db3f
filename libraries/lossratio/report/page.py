"""The report of a run: one HTML page with everything in it, which needs no network and no scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from lossratio.drawing import html_page
from lossratio.measurements.frame_loss import draw_frame_loss
from lossratio.measurements.latency import draw_latency
from lossratio.measurements.soak import draw_soak
from lossratio.measurements.throughput import (
    ComplianceStatement,
    FrameSizeSeries,
    by_tests,
    compliance_of,
    draw_frame_sizes,
    draw_loss,
    draw_search,
    draw_spectra,
    frame_size_series,
)
from lossratio.report.doubts import Doubt
from lossratio.report.overview import describe_frame_size, overview
from lossratio.report.run import Run
from lossratio.results import (
    FrameLossResult,
    LatencyResult,
    Result,
    SoakResult,
    ThroughputResult,
    bounds_history,
    format_frames_per_second,
    format_microseconds,
    message,
    name_load,
)

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""


@dataclass(frozen=True)
class Pictures:
    """The pictures of a test, as markup; empty where there is nothing to draw.

    Attributes:
        search: The search.
        loss: Loss over load.
        spectra: Performance spectra at the relevant bounds.
        latency: Latency over percentile.
        frame_loss: Frame loss rate over load.
        soak: Fitted curves and posterior of a soak test.
    """

    search: str = ""
    loss: str = ""
    spectra: str = ""
    latency: str = ""
    frame_loss: str = ""
    soak: str = ""


@dataclass(frozen=True)
class TestSection:
    """What the page says about one test.

    Attributes:
        result: The result.
        pictures: Its pictures.
        doubts: Doubts about it.
        compliance: A statement about RFC 2544 for each goal.
    """

    __test__ = False

    result: Result
    pictures: Pictures
    doubts: tuple[Doubt, ...]
    compliance: tuple[ComplianceStatement, ...]


@dataclass(frozen=True)
class FrameSizes:
    """Throughput over frame size of the same tests: RFC 2544, section 26.1.

    Attributes:
        picture: The graph.
        series: The table's rows, goal by goal.
    """

    picture: str
    series: tuple[FrameSizeSeries, ...]


def report_page(runs: Sequence[Run], title: str) -> str:
    """The page of one run, or of several.

    Args:
        runs: The runs, in the order in which they are shown.
        title: What the page is headed with.
    """
    results = [result for run in runs for result in run.results]
    return html_page(
        "page.html.jinja",
        filters={
            "as_json": _as_json,
            "fps": format_frames_per_second,
            "microseconds": format_microseconds,
            "name_load": name_load,
        },
        title=title,
        runs=runs,
        rows=overview(results),
        frame_sizes=_frame_sizes(runs),
        sections=[
            _section(result, doubts) for run in runs for result, doubts in zip(run.results, run.doubts, strict=True)
        ],
        message=message,
        frame_size=describe_frame_size,
    )


def _section(result: Result, doubts: tuple[Doubt, ...]) -> TestSection:
    if isinstance(result, SoakResult):
        return TestSection(result, Pictures(soak=draw_soak(result)), doubts, ())
    if isinstance(result, FrameLossResult):
        picture = "" if result.frame_loss is None else draw_frame_loss(result.frame_loss, result.test.name)
        return TestSection(result, Pictures(frame_loss=picture), doubts, ())
    if isinstance(result, LatencyResult):
        return TestSection(result, Pictures(latency=draw_latency(result.latency, result.test.name)), doubts, ())
    if not isinstance(result, ThroughputResult):
        return TestSection(result, Pictures(), doubts, ())
    history = bounds_history(result)
    pictures = Pictures(
        draw_search(result, history),
        draw_loss(result, history),
        draw_spectra(result),
        draw_latency(result.latency, result.test.name),
    )
    return TestSection(result, pictures, doubts, tuple(compliance_of(result)))


def _frame_sizes(runs: Sequence[Run]) -> list[FrameSizes]:
    """The graphs and tables of each run by itself: those of several runs would only hide each other."""
    groups = [group for run in runs for group in by_tests(frame_size_series(run.results))]
    return [FrameSizes(draw_frame_sizes(group), tuple(group)) for group in groups]


def _as_json(value: object) -> str:
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, indent=1, ensure_ascii=False)

"""The page of a run: one HTML file with all results, which needs no network and no scripts."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from lossratio.drawing import html_page
from lossratio.report.run import Run
from lossratio.report.tables import describe_frame_size, overview
from lossratio.results import Doubt, Picture, TestResult, message, view_of

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""


@dataclass(frozen=True)
class TestSection:
    """The section of the page about one test.

    Attributes:
        result: The result of the test.
        pictures: The pictures of the result, without empty ones.
        doubts: Doubts about the result.
        conditions: Conditions that only results of this kind have, as HTML.
    """

    __test__ = False

    result: TestResult
    pictures: tuple[Picture, ...]
    doubts: tuple[Doubt, ...]
    conditions: str


def report_page(runs: Sequence[Run], title: str) -> str:
    """Makes the page of one run or several runs.

    Args:
        runs: The runs, in the order of the page.
        title: Heading of the page.
    """
    results = [result for run in runs for result in run.results]
    return html_page(
        "page.html.jinja",
        filters={
            "as_json": _as_json,
            "text": _as_text,
        },
        title=title,
        runs=runs,
        rows=overview(results),
        overviews=[overview for run in runs for overview in _overviews(run.results)],
        sections=[
            _section(result, doubts) for run in runs for result, doubts in zip(run.results, run.doubts, strict=True)
        ],
        message=message,
        frame_size=describe_frame_size,
    )


def _section(result: TestResult, doubts: tuple[Doubt, ...]) -> TestSection:
    view = view_of(result)
    pictures = tuple(picture for picture in view.pictures(result) if picture.svg or picture.table)
    return TestSection(result, pictures, doubts, view.conditions(result))


def _overviews(results: Sequence[TestResult]) -> Iterator[str]:
    """The sections about all results of one run. Results of several runs would hide each other in them."""
    by_kind: dict[str, list[TestResult]] = {}
    for result in results:
        by_kind.setdefault(result.kind, []).append(result)
    for of_kind in by_kind.values():
        yield from view_of(of_kind[0]).overviews(of_kind)


def _as_text(text: str) -> str:
    """Escapes plain text for HTML. Quotes stay as they are, as the text is never in an attribute."""
    return html.escape(text, quote=False)


def _as_json(value: object) -> str:
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, indent=1, ensure_ascii=False)

"""The report of a run: one HTML page with everything in it, which needs no network and no scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jinja2
from pydantic import BaseModel

from lossratio.errors import ReportError
from lossratio.report.model import Result, ThroughputResult
from lossratio.report.overview import describe_frame_size, overview
from lossratio.report.run_directory import RunDirectory, write_whole
from lossratio.report.search_picture import search_picture
from lossratio.report.text import message

PAGE_NAME = "lossratio.html"
"""Name of the page in the directory of a run; ``report.html`` there is Robot Framework's own."""


def report_page(results: Sequence[Result], title: str) -> str:
    """The page of some results.

    Args:
        results: The results, in the order in which they are shown.
        title: What the page is headed with.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lossratio.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["as_json"] = _as_json
    pictures = [search_picture(result) if isinstance(result, ThroughputResult) else "" for result in results]
    return environment.get_template("page.html.jinja").render(
        title=title,
        rows=overview(results),
        tests=list(zip(results, pictures, strict=True)),
        message=message,
        frame_size=describe_frame_size,
    )


def write_page(directory: RunDirectory) -> None:
    """Writes the page of a run, with all its results, into its directory.

    Raises:
        ReportError: If the run has no results, one of them cannot be read, or the page cannot be written.
    """
    results = directory.results()
    if not results:
        raise ReportError(f"There are no results in {directory.path}, so there is nothing to report.")
    path = directory.path / PAGE_NAME
    try:
        write_whole(path, report_page(results, directory.path.resolve().name).encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"Cannot write the report {path}: {error.strerror}.") from error


def _as_json(value: object) -> str:
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(data, indent=1, ensure_ascii=False)

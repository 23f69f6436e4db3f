"""The formats of reports, and the names of their files."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from lossratio.errors import StorageError
from lossratio.report.junit import junit_report
from lossratio.report.page import PAGE_NAME, report_page
from lossratio.report.run import Run
from lossratio.report.tables import csv_report, json_report, markdown_report
from lossratio.results import write_whole


class ReportFormat(str, Enum):
    """The formats of reports."""

    HTML = "html"
    """One page with all results, for a browser."""
    JSON = "json"
    """All results, for programs."""
    CSV = "csv"
    """A row for each goal of each test, for spreadsheets."""
    MARKDOWN = "md"
    """The overview, for chats and merge requests."""
    JUNIT = "junit"
    """Test cases with their states, for CI systems."""


FILE_NAMES = {
    ReportFormat.HTML: PAGE_NAME,
    ReportFormat.JSON: "lossratio.json",
    ReportFormat.CSV: "lossratio.csv",
    ReportFormat.MARKDOWN: "lossratio.md",
    ReportFormat.JUNIT: "lossratio.junit.xml",
}
"""File names of the reports in the directory of a run."""


def render(report_format: ReportFormat, runs: Sequence[Run]) -> str:
    """Makes a report of the runs, as text."""
    if report_format is ReportFormat.HTML:
        return report_page(runs, ", ".join(run.path.resolve().name for run in runs))
    writers = {
        ReportFormat.JSON: json_report,
        ReportFormat.CSV: csv_report,
        ReportFormat.MARKDOWN: markdown_report,
        ReportFormat.JUNIT: junit_report,
    }
    return writers[report_format](runs)


def write_report(path: Path, text: str) -> None:
    """Writes a report, as a whole or not at all.

    Raises:
        StorageError: If the report cannot be written, e.g. because the disk is full.
    """
    try:
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StorageError(
            f"Cannot write the report {path}: {error.strerror}. Make room, and write it with: lossratio report"
        ) from error

"""Writes the reports of a run once, at its end: for a listener of Robot Framework, or for keywords that measure.

Use it as ``robot --listener lossratio.report.listener.RunReport ...``; formats follow after colons:
``--listener lossratio.report.listener.RunReport:html:junit``. Without formats, the listener writes only the page. A
suite with lossratio's keywords writes the page even without the listener.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robot.api import logger
from robot.api.deco import library
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import ReportError, StorageError
from lossratio.report.formats import FILE_NAMES, ReportFormat, render, write_report
from lossratio.report.run import read_run

PAGE_VARIABLE = "LOSSRATIO_PAGE"
"""Robot Framework's variable that is set when a listener or program has taken on writing the page of the run."""


def write_reports(directory: Path, formats: Iterable[ReportFormat]) -> tuple[Path, ...]:
    """Writes reports of a run into its directory. A run without measurements gets no reports.

    Args:
        directory: The run's directory.
        formats: The formats to write.

    Returns:
        The paths of the files.

    Raises:
        ReportError: If nothing in the directory can be read.
        StorageError: If a report cannot be written.
    """
    if not any((directory / name).is_dir() for name in ("results", "trials")):
        return ()
    run = read_run(directory)
    reports = {directory / FILE_NAMES[report_format]: report_format for report_format in formats}
    for path, report_format in reports.items():
        write_report(path, render(report_format, [run]))
    return tuple(reports)


@library(scope="GLOBAL", auto_keywords=False)
class RunReport:
    """Writes reports of a run into its output directory when the run ends, even after an interrupt.

    If a report cannot be written, the log has an error, and no test fails.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, *formats: str) -> None:
        """Takes the formats to write; without formats, only the page.

        Raises:
            ValueError: If a format does not exist.
        """
        # Robot Framework closes the listener of a global library at the end of the outermost suite.
        self.ROBOT_LIBRARY_LISTENER = self
        self._formats = [ReportFormat(name) for name in formats] or [ReportFormat.HTML]
        self._directory: Path | None = None

    @classmethod
    def require_page(cls) -> None:
        """Ensures that the page is written when the run ends. Keywords that measure call this method."""
        robot = BuiltIn()
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") is None:
            name = f"{cls.__module__}.{cls.__qualname__}"
            robot.import_library(name)
            report: Any = robot.get_library_instance(name)
            report.begin()

    def start_suite(self, data: Any, result: Any) -> None:
        """Begins with the first suite. Robot Framework calls this method."""
        if self._directory is None:
            self.begin()

    def begin(self) -> None:
        """Stores the run's output directory. Only the first instance that begins writes the page."""
        robot = BuiltIn()
        self._directory = Path(robot.get_variable_value("${OUTPUT DIR}"))
        if ReportFormat.HTML not in self._formats:
            return
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") is None:
            robot.set_global_variable(f"${{{PAGE_VARIABLE}}}", True)
        else:
            self._formats.remove(ReportFormat.HTML)

    def close(self) -> None:
        """Writes the reports. Robot Framework calls this method."""
        if self._directory is None:
            return
        try:
            for path in write_reports(self._directory, self._formats):
                logger.console(f"lossratio: {path}")
        except (ReportError, StorageError) as error:
            logger.error(f"The run has no report. {type(error).__name__}: {error}")

"""Reports of a run, written once, when it ends: as a listener of Robot Framework, or as soon as a keyword measures.

Use it as ``robot --listener lossratio.report.listener.RunReport ...``; formats come after colons:
``--listener lossratio.report.listener.RunReport:html:junit``. Without any, it is the page alone. Suites with the
keywords of lossratio have the page without that.
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
"""Robot Framework's variable that is set when somebody already sees to it that the page of the run is written."""


def write_reports(directory: Path, formats: Iterable[ReportFormat]) -> tuple[Path, ...]:
    """Writes reports of a run into its directory. A run in which nothing was measured has none.

    Args:
        directory: The run's directory.
        formats: What to write.

    Returns:
        The files.

    Raises:
        ReportError: If nothing there can be read.
        StorageError: If the disk does not take a report.
    """
    if not any((directory / name).is_dir() for name in ("results", "trials")):
        return ()
    run = read_run(directory)
    reports = {directory / FILE_NAMES[each]: each for each in formats}
    for path, report_format in reports.items():
        write_report(path, render(report_format, [run]))
    return tuple(reports)


@library(scope="GLOBAL", auto_keywords=False)
class RunReport:
    """Writes reports of a run into its output directory when the run ends, also if it was interrupted.

    Whatever goes wrong is an error in the log, and no test fails of it.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, *formats: str) -> None:
        """Takes the formats to write; none: the page.

        Raises:
            ValueError: If there is no such format.
        """
        # Robot Framework closes the listener of a global library when the outermost suite has ended.
        self.ROBOT_LIBRARY_LISTENER = self
        self._formats = [ReportFormat(name) for name in formats] or [ReportFormat.HTML]
        self._directory: Path | None = None

    @classmethod
    def require_page(cls) -> None:
        """Has the page written when the run ends, unless somebody else writes it; keywords that measure call it."""
        robot = BuiltIn()
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") is None:
            name = f"{cls.__module__}.{cls.__qualname__}"
            robot.import_library(name)
            report: Any = robot.get_library_instance(name)
            report.begin()

    def start_suite(self, data: Any, result: Any) -> None:
        """Begins with the first suite; Robot Framework calls it."""
        if self._directory is None:
            self.begin()

    def begin(self) -> None:
        """Remembers where the run's files go; the page belongs to the first that begins."""
        robot = BuiltIn()
        self._directory = Path(robot.get_variable_value("${OUTPUT DIR}"))
        if ReportFormat.HTML not in self._formats:
            return
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") is None:
            robot.set_global_variable(f"${{{PAGE_VARIABLE}}}", True)
        else:
            self._formats.remove(ReportFormat.HTML)

    def close(self) -> None:
        """Writes the reports; Robot Framework calls it."""
        if self._directory is None:
            return
        try:
            for path in write_reports(self._directory, self._formats):
                logger.console(f"lossratio: {path}")
        except (ReportError, StorageError) as error:
            logger.error(f"The run has no report. {type(error).__name__}: {error}")

"""A listener for Robot Framework that reports a run at its end, without any keyword in the suites.

Use it as ``robot --listener lossratio.report.listener.RunReport ...``; formats come after colons:
``--listener lossratio.report.listener.RunReport:html:junit``. Without any, it is the page alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import ReportError, StorageError
from lossratio.report.formats import FILE_NAMES, ReportFormat, render, write_report
from lossratio.report.run import read_run


class RunReport:
    """Writes reports of a run into its output directory when the run ends, also if it was interrupted."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, *formats: str) -> None:
        """Takes the formats to write; none: the page.

        Raises:
            ValueError: If there is no such format.
        """
        self._formats = [ReportFormat(name) for name in formats] or [ReportFormat.HTML]
        self._directory: Path | None = None

    def start_suite(self, data: Any, result: Any) -> None:
        """Remembers where the run's files go; Robot Framework calls it."""
        if self._directory is None:
            self._directory = Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))

    def close(self) -> None:
        """Writes the reports; Robot Framework calls it. A run in which nothing was measured has none."""
        if self._directory is None or not any((self._directory / name).is_dir() for name in ("results", "trials")):
            return
        try:
            run = read_run(self._directory)
            for each in self._formats:
                path = self._directory / FILE_NAMES[each]
                write_report(path, render(each, [run]))
                logger.console(f"lossratio: {path}")
        except (ReportError, StorageError) as error:
            logger.error(f"The run has no report. {type(error).__name__}: {error}")

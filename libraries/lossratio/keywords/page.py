"""The page about a run, written at the end of every suite without anybody having to ask for it."""

from __future__ import annotations

from typing import Any

from robot.api import logger

from lossratio.errors import ReportError, StorageError
from lossratio.keywords.session import Session


class SuitePage:
    """Writes ``lossratio.html`` into the output directory when a suite ends; a listener that Robot Framework calls.

    It is written anew after each suite, so that a run that is cut off later has one. A suite that measured nothing
    writes none. Whatever goes wrong is an error in the log, and no test fails of it.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, session: Session) -> None:
        self._session = session

    def end_suite(self, data: Any, result: Any) -> None:
        """Writes the page, if there is anything to write about."""
        directory = self._session.directory
        if directory is None or not directory.has_files:
            return
        # Imported here because it takes a while, and only who measured something needs it.
        from lossratio.report.formats import FILE_NAMES, ReportFormat, render, write_report
        from lossratio.report.run import read_run

        path = directory.path / FILE_NAMES[ReportFormat.HTML]
        try:
            write_report(path, render(ReportFormat.HTML, [read_run(directory.path)]))
        except (ReportError, StorageError) as error:
            # 'lossratio run' knows by the error's name that a disk is full.
            logger.error(f"The run has no page. {type(error).__name__}: {error}")
        else:
            logger.console(f"Results: {path}")

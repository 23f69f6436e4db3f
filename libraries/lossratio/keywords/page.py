"""The keyword that reports a run before its end."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword

from lossratio.errors import ReportError
from lossratio.keywords.session import Keywords
from lossratio.report import ReportFormat, write_reports


class ReportKeywords(Keywords):
    """Reports on demand."""

    @keyword
    def write_report(self, *formats: ReportFormat) -> None:
        """Writes reports of what the run has measured so far into its output directory.

        ``formats`` are ``html`` (the page ``lossratio.html``; the default), ``json``, ``csv``, ``markdown`` and
        ``junit``. The page is written at the end of the run in any case.

        | `Write Report`    html    junit
        """
        directory = self.session.directory
        paths = () if directory is None else write_reports(directory.path, formats or (ReportFormat.HTML,))
        if not paths:
            raise ReportError("Nothing has been measured yet in this suite. Call e.g. 'Find NDR And PDR' first.")
        for path in paths:
            logger.console(f"lossratio: {path}")

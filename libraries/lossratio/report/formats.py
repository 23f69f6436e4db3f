"""The formats of reports, by name.

Another package adds a format with an entry point of the group ``lossratio.report_format``. The name of the entry point
is the format's name, and its object is a `lossratio.report.ReportFormat`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lossratio.errors import ReportError
from lossratio.files import plugin_group
from lossratio.report.run import Run

PAGE = "html"
"""The format of the page, which is written by default."""
FORMATS = plugin_group(
    "lossratio.report_format",
    what="format of reports",
    error=ReportError,
    base="lossratio.report.ReportFormat",
    room="lossratio.report",
    own={
        PAGE: "page:HTML",
        "json": "data:JSON",
        "csv": "data:CSV",
        "md": "markdown:MARKDOWN",
        "junit": "junit:JUNIT",
        "openmetrics": "metrics:OPENMETRICS",
    },
)
"""All formats."""


@dataclass(frozen=True)
class ReportFormat:
    """A format of reports."""

    file_name: str
    """Name of its report in the directory of a run."""
    write: Callable[[Sequence[Run]], str]
    """Makes a report of runs, as text."""


def report_format(name: str) -> ReportFormat:
    """The format with a name.

    Raises:
        ReportError: If no format or several have this name, or its package is broken.
    """
    return FORMATS.load_object(name, ReportFormat)


def render(name: str, runs: Sequence[Run]) -> str:
    """Makes a report of runs in the named format, as text.

    Raises:
        ReportError: If there is no such format.
    """
    return report_format(name).write(runs)

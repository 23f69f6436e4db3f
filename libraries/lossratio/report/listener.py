"""The listener that writes the reports of a run once, at its end.

Use it as ``robot --listener lossratio.report.listener.RunReport ...``; formats follow after colons:
``--listener lossratio.report.listener.RunReport:html:junit``. Without formats, the listener writes only the page. A
suite with lossratio's keywords writes the page even without the listener.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lossratio.errors import ReportError, StorageError, storing
from lossratio.files import as_path, kind_of_contents, shell_word
from lossratio.report.failures import (
    Misfits,
    begin_failures,
    facts_of,
    forget_failure,
    note_failure,
    note_skip,
    reason_of_skip,
)
from lossratio.report.formats import PAGE, render, report_format
from lossratio.report.run import is_run, read_run
from lossratio.results import identity_of, write_whole
from lossratio.values import shown_value

PAGE_VARIABLE = "LOSSRATIO_PAGE"
"""Robot Framework's variable that is set when a listener or program will write the page of the run."""
_LIBRARY = "library"


_MADE_AGAIN = tuple(f"of the format lossratio-{name}/" for name in ("report", "trend", "alerts"))
"""Kinds of files that a command makes again, and that a new report may replace."""
_ROBOTS_OUTPUT = b"<robot "
"""The element that an output.xml of Robot Framework begins with."""
_LOOKED_AT = 4096


def _beginning(path: Path) -> bytes:
    """The beginning of a file; empty if it is no regular file, or cannot be read."""
    if not os.path.isfile(path):
        return b""
    with suppress(OSError), path.open("rb") as file:
        return file.read(_LOOKED_AT)
    return b""


def write_report(path: Path, text: str, again: str = "repeat the command") -> None:
    """Writes a report, as a whole or not at all.

    Args:
        path: The file.
        text: The report.
        again: What to do after an error of the disk is mended.

    Raises:
        ReportError: If it would replace a file that somebody wrote or measured.
        StorageError: If it cannot be written, e.g. because the disk is full.
    """
    beginning = _beginning(path)
    kind = kind_of_contents(beginning)
    if _ROBOTS_OUTPUT in beginning:
        kind = "the output of Robot Framework"
    is_unique = kind.startswith(("of the format ", "the output of Robot", "a suite of Robot"))
    if is_unique and not kind.startswith(_MADE_AGAIN):
        raise ReportError(f"{path} is {kind}, and a report would replace it. Name another file.")
    with storing(f"write the report {path}", f"Free some space, and {again}."):
        write_whole(path, text.encode("utf-8", "replace"))


def write_reports(directory: str | Path, formats: Iterable[str]) -> tuple[Path, ...]:
    """Writes reports of a run into its directory. A run without tests that measure gets no reports.

    Raises:
        ReportError: If nothing in the directory can be read, or there is no such format.
        StorageError: If a report cannot be written.
    """
    if isinstance(formats, str) or not isinstance(formats, Iterable):
        raise ReportError(
            f"The formats of reports must be a list, such as ['html'], not {shown_value(formats)}."
        )
    directory = as_path(ReportError, "The directory of a run", directory)
    if not is_run(directory):
        return ()
    run = read_run(directory)
    reports = {directory / report_format(name).file_name: name for name in formats}
    for path, name in reports.items():
        write_report(
            path, render(name, [run]), f"write it with: lossratio report {shell_word(directory)}"
        )
    return tuple(reports)


class RunReport:
    """Writes reports of a run into its output directory when the run ends, even after an interrupt.

    If a report cannot be written, the log has an error, and no test fails.
    """

    ROBOT_LISTENER_API_VERSION = 3
    ROBOT_LIBRARY_SCOPE = "GLOBAL"
    ROBOT_AUTO_KEYWORDS = False

    def __init__(self, *formats: str) -> None:
        """Takes the formats to write; without formats, only the page.

        Raises:
            ReportError: If there is no such format.
        """
        # Robot Framework closes the listener of a global library at the end of the outermost suite.
        self.ROBOT_LIBRARY_LISTENER = self
        self._formats = list(formats) or [PAGE]
        for name in self._formats:
            report_format(name)
        self._directory: Path | None = None
        self._notes_failures = False
        self._misfits = Misfits()

    @classmethod
    def require_page(cls) -> None:
        """Ensures that the page is written when the run ends. Keywords that measure call this method."""
        robot = _robot()
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") in (None, _LIBRARY):
            name = f"{cls.__module__}.{cls.__qualname__}"
            # In each suite, because Robot Framework only notifies a library of the tests of suites that import it.
            robot.import_library(name)
            report: Any = robot.get_library_instance(name)
            report.begin(_LIBRARY)

    def start_suite(self, data: Any, result: Any) -> None:
        """Begins with the first suite. Robot Framework calls this method."""
        self.begin()

    def end_body_item(self, data: Any, result: Any) -> None:
        """Notes which keywords skip a test that needs a larger testbed. Robot Framework calls this method."""
        self._misfits.look_at(result)

    def end_test(self, data: Any, result: Any) -> None:
        """Notes what became of a test: if it failed or was skipped, it may have measured nothing.

        A run that skips every test fails with its last one, as its exit status would be 0. Robot Framework calls this
        method.
        """
        if not self._notes_failures or self._directory is None:
            return

        if _is_last_of_only_skipped(data, result):
            result.status = "FAIL"
            result.message = (
                "Every test of this run was skipped, so that nothing was measured. This one: "
                f"{reason_of_skip(result)}"
            )
        try:
            if result.status == "SKIP":
                note_skip(self._directory, result, is_misfit=self._misfits.has(result))
            elif result.status == "FAIL":
                name = identity_of(result)
                note_failure(self._directory, name, result.message, **facts_of(result))
            else:
                forget_failure(self._directory, identity_of(result))
        except OSError as error:
            what = {"SKIP": "was skipped", "FAIL": "failed"}.get(result.status, "passed")
            _logger().error(f"Cannot record that {result.full_name} {what}: {error.strerror}.")

    def begin(self, name: str = "listener") -> None:
        """Stores the run's output directory. Only the first instance writes the page, and notes failures."""
        if self._directory is not None:
            return
        robot = _robot()
        self._directory = Path(robot.get_variable_value("${OUTPUT DIR}"))
        if PAGE not in self._formats:
            return
        if robot.get_variable_value(f"${{{PAGE_VARIABLE}}}") is None:
            robot.set_global_variable(f"${{{PAGE_VARIABLE}}}", name)
            self._notes_failures = True
            begin_failures(self._directory)
        else:
            self._formats.remove(PAGE)

    def close(self) -> None:
        """Writes the reports. Robot Framework calls this method."""
        if self._directory is None:
            return
        try:
            for path in write_reports(self._directory, self._formats):
                _logger().console(f"Report: {path}")
        except (ReportError, StorageError) as error:
            _logger().error(f"The run has no report. {type(error).__name__}: {error}")


def _is_last_of_only_skipped(data: Any, result: Any) -> bool:
    """Whether this is the last test of a run, and the run has skipped all its tests."""
    suite, results = data.parent, result.parent
    while suite.parent is not None:
        suite, results = suite.parent, results.parent
    *_, last = suite.all_tests
    return last is data and all(test.skipped for test in results.all_tests)


def _robot() -> Any:
    """Robot Framework's keywords; commands that only write a page need not wait for its import."""
    from robot.libraries.BuiltIn import BuiltIn

    return BuiltIn()


def _logger() -> Any:
    """Robot Framework's log, imported only when it is needed."""
    from robot.api import logger

    return logger

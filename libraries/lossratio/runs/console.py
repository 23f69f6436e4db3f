"""The console of `lossratio run`, which shows results instead of Robot Framework's suites, keywords and files."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from robot.api import logger

from lossratio.measurements import without_line
from lossratio.results import identity_of

OWN_CONSOLE = "LOSSRATIO_CONSOLE"
"""Robot Framework's variable that has the keywords show what they measured."""
_VERBOSE = "LOSSRATIO_VERBOSE:yes"
_CONSOLES = ("console", "dotted", "quiet")
"""Options of Robot Framework that choose its console."""


def wants_own_console(options: Mapping[str, Any]) -> bool:
    """Whether a run shows results: unless its options name a console of Robot Framework's, or ask for everything."""
    chosen = any(options.get(name) for name in _CONSOLES)
    return not chosen and _VERBOSE not in (options.get("variable") or ())


class Console:
    """Shows which tests passed or failed, beside what the keywords show; a listener of Robot Framework."""

    ROBOT_LISTENER_API_VERSION = 3
    # Robot Framework calls this listener after the keywords', which show the results.
    ROBOT_LISTENER_PRIORITY = -1

    def __init__(self) -> None:
        self._tests = 0
        self._running: str | None = None

    def start_suite(self, data: Any, result: Any) -> None:
        """Counts the tests of the run."""
        self._tests = self._tests or data.test_count

    def start_test(self, data: Any, result: Any) -> None:
        """Notes the running test."""
        self._running = identity_of(data)

    def end_test(self, data: Any, result: Any) -> None:
        """Shows how a test ended, after its results; the only test of a run needs no word if it passed."""
        self._running = None
        if result.status == "FAIL":
            _show(f"FAILED: {result.name}\n{result.message}")
        elif result.status == "PASS" and self._tests > 1:
            _show(f"Passed: {result.name}")

    def message(self, message: Any) -> None:
        """Shows errors and warnings, except warnings about a result of the running test: its text has them."""
        is_of_result = self._running is not None and message.message.startswith(self._running)
        if message.level == "ERROR" or (message.level == "WARN" and not is_of_result):
            kind = "Error" if message.level == "ERROR" else "Warning"
            _show(f"{kind}: {message.message}", stream="stderr")


def _show(text: str, stream: Literal["stdout", "stderr"] = "stdout") -> None:
    with suppress(OSError), without_line():
        logger.console(text, stream=stream)

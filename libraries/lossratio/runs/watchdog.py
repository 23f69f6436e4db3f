"""The watchdog: limits of the time of tests, suites and runs."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from robot.utils import secs_to_timestr, timestr_to_secs

GRACE = 120.0
"""Seconds that tear-downs have when a run is stopped, before it is stopped by force."""


@dataclass(frozen=True)
class Limits:
    """Limits of time, in seconds; None: there is no limit."""

    test: float | None = None
    """For each test, without its tear-down."""
    suite: float | None = None
    """For each suite with tests. The rest of its tests fail."""
    run: float | None = None
    """For the run. It is stopped in order, as by Ctrl-C, and a minute or two later by force."""


NO_LIMITS = Limits()
"""No part of a run has a limit."""


class Watchdog:
    """Holds a run to its limits; a listener of Robot Framework.

    Robot Framework's own timeouts stop tests, also within a keyword. A set-up that hangs ends with the run, by a
    signal to this process.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._suite_ends: list[float | None] = []
        self._is_over = threading.Event()

    def start_suite(self, data: Any, result: Any) -> None:
        """Begins to measure the time of a suite."""
        if not self._suite_ends and self._limits.run is not None:
            threading.Thread(target=self._guard, args=(self._limits.run,), daemon=True).start()
        limit = self._limits.suite if data.tests else None
        self._suite_ends.append(None if limit is None else time.monotonic() + limit)
        self._shorten(data.tests, self._limits.test)
        self._shorten(data.tests, limit)

    def start_test(self, data: Any, result: Any) -> None:
        """Makes a test fail if its suite has no time left."""
        if self._suite_left() <= 0:
            data.setup = None
            data.body.clear()
            data.body.create_keyword("Fail", args=[f"The suite was not finished within {self._limits.suite:g} s."])

    def end_test(self, data: Any, result: Any) -> None:
        """Limits the tests that follow to the time that is left of their suite."""
        if self._suite_ends[-1] is not None:
            self._shorten(data.parent.tests, max(1.0, self._suite_left()))

    def end_suite(self, data: Any, result: Any) -> None:
        """Stops measuring the time of a suite."""
        self._suite_ends.pop()
        if not self._suite_ends:
            self._is_over.set()

    def _suite_left(self) -> float:
        end = self._suite_ends[-1]
        return math.inf if end is None else end - time.monotonic()

    def _shorten(self, tests: Iterable[Any], seconds: float | None) -> None:
        """Gives tests a timeout, unless they have shorter ones."""
        if seconds is None:
            return
        for test in tests:
            # The value of a variable is not known yet; the author of the test has set a limit with it.
            with suppress(ValueError):
                own = float(timestr_to_secs(test.timeout)) if test.timeout else math.inf
                test.timeout = secs_to_timestr(min(seconds, own))

    def _guard(self, seconds: float) -> None:
        for number, wait in ((signal.SIGINT, seconds), (signal.SIGINT, GRACE), (signal.SIGKILL, GRACE)):
            if self._is_over.wait(wait):
                return
            print(f"lossratio run: the run was not finished within {seconds:g} s.", file=sys.__stderr__)
            os.kill(os.getpid(), number)

"""Watchdogs: no test, no suite and no run goes on for longer than it may."""

from __future__ import annotations

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
    """For how long something may go on, in seconds; None: for ever.

    Attributes:
        test: Each test, its tear-down not counted.
        suite: Each suite that has tests. What is left of it fails.
        run: All of it. It is stopped in order then, as by Ctrl-C; a minute or two later by force.
    """

    test: float | None = None
    suite: float | None = None
    run: float | None = None


NO_LIMITS = Limits()
"""Whatever takes long may do so."""


class Watchdog:
    """Holds a run to its limits; a listener of Robot Framework.

    Tests are stopped by Robot Framework's own timeouts, which end a keyword in its midst. A set-up that hangs is
    ended with the run, by a signal to this process.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._suite_ends: list[float | None] = []
        self._is_over = threading.Event()

    def start_suite(self, data: Any, result: Any) -> None:
        """Begins to count."""
        if not self._suite_ends and self._limits.run is not None:
            threading.Thread(target=self._guard, args=(self._limits.run,), daemon=True).start()
        limit = self._limits.suite if data.tests else None
        self._suite_ends.append(None if limit is None else time.monotonic() + limit)
        self._shorten(data.tests, self._limits.test)
        self._shorten(data.tests, limit)

    def start_test(self, data: Any, result: Any) -> None:
        """Lets a test fail whose suite has no time left."""
        if self._suite_left() <= 0:
            data.setup = None
            data.body.clear()
            data.body.create_keyword("Fail", args=[f"The suite was not finished within {self._limits.suite:g} s."])

    def end_test(self, data: Any, result: Any) -> None:
        """Lets the tests that follow have no more than what is left of their suite."""
        if self._suite_ends[-1] is not None:
            self._shorten(data.parent.tests, max(1.0, self._suite_left()))

    def end_suite(self, data: Any, result: Any) -> None:
        """Ends the counting."""
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
            # Where it is a variable, nobody knows its value yet, and the test's author has thought of it.
            with suppress(ValueError):
                own = float(timestr_to_secs(test.timeout)) if test.timeout else math.inf
                test.timeout = secs_to_timestr(min(seconds, own))

    def _guard(self, seconds: float) -> None:
        for number, wait in ((signal.SIGINT, seconds), (signal.SIGINT, GRACE), (signal.SIGKILL, GRACE)):
            if self._is_over.wait(wait):
                return
            print(f"lossratio run: the run was not finished within {seconds:g} s.", file=sys.__stderr__)
            os.kill(os.getpid(), number)

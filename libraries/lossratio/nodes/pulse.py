"""Calls a function again and again in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from lossratio.errors import NodeError


class Pulse:
    """Calls a function at an interval from a thread of its own, until it is stopped.

    Args:
        seconds: The interval.
        beat: The function. Its `NodeError` is ignored: the thread that needs the node gets the error itself.
    """

    def __init__(self, seconds: float, beat: Callable[[], object]) -> None:
        self._seconds = seconds
        self._beat = beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pulse:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the thread; the first call comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; no call begins afterwards."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            # The thread that waits for the node's answer gets the error itself.
            with suppress(NodeError):
                self._beat()

"""Signs of life at a regular interval, for programs on nodes that end without them."""

import threading
from collections.abc import Callable
from contextlib import suppress

from lossratio.errors import LossRatioError


class Pulse:
    """Calls a function at this interval (seconds) from its own thread, until it is stopped.

    A `LossRatioError` of the function is ignored, and the function is called again after the next interval: a refusal
    may be temporary, and the thread that needs the node gets the error itself.
    """

    def __init__(self, seconds: float, beat: Callable[[], object]) -> None:
        self._seconds = seconds
        self._beat = beat
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Pulse":
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
            with suppress(LossRatioError):
                self._beat()

"""The console while a measurement runs: on a terminal one line that moves, elsewhere a line for each stage."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TextIO

from lossratio.measurements.measure import InWords
from lossratio.measurements.progress import Progress, status_line

_TICK = 0.5
"""Seconds between two updates of the line while a trial runs. An update costs hardly any CPU time."""
_CLEAR = "\r\x1b[K"
"""Moves to the beginning of the line, and erases it."""
_LONGEST_SILENCE = 60.0
"""Seconds after which a line is shown even if the stage is the same: CI systems end programs that are silent."""

_moving: "list[OneLine]" = []
"""The line that moves now, if there is one."""

Watch = Callable[[Callable[[int, int], None] | None], None]
"""Has a function called with the frames that the running trial has sent and received; None ends that."""


@contextmanager
def live_on(
    stream: TextIO | None,
    say: Callable[[str], None],
    watch: Watch = lambda see: None,
    *,
    verbose: bool = False,
) -> Iterator[Callable[[InWords], None]]:
    """Shows the progress of a measurement until the block ends. The value is called after each trial.

    Args:
        stream: Where a terminal may be; None: there is none.
        say: Shows a line where there is no terminal.
        watch: Watches the frames of the running trial.
        verbose: Whether there is also a line for each trial, with the rule that chose it.
    """
    if stream is None or not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield Stages(say, verbose=verbose).show
        return
    with OneLine(stream, partial(_columns_of, stream), verbose=verbose).moving() as terminal:
        watch(terminal.see)
        try:
            yield terminal.show
        finally:
            watch(None)


@contextmanager
def without_line() -> Iterator[None]:
    """Removes the line that moves, if there is one, until the block ends: what the block writes stands above it."""
    if not _moving:
        yield
        return
    with _moving[-1].removed():
        yield


def _columns_of(stream: TextIO) -> int:
    """Columns of the terminal that a stream is on, which standard output may be redirected from."""
    columns = 0
    with suppress(OSError):
        columns = os.get_terminal_size(stream.fileno()).columns
    return shutil.get_terminal_size((columns or 80, 24)).columns


def _line_of(progress: InWords, *, verbose: bool) -> str:
    if isinstance(progress, Progress):
        return progress.line(verbose=verbose)
    return progress.line()


class Stages:
    """A line for each stage of a measurement, and at least one in a minute."""

    def __init__(
        self,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        verbose: bool = False,
    ) -> None:
        """Begins.

        Args:
            say: Shows a line.
            clock: Gives seconds.
            verbose: Whether there is a line for each trial, with the rule that chose it.
        """
        self._say = say
        self._clock = clock
        self._verbose = verbose
        self._stage: object = None
        self._said = 0.0

    def show(self, progress: InWords) -> None:
        """Shows a trial that has ended, if a stage began or ended with it. Progress without stages is always shown."""
        stage, now = getattr(progress, "stage", progress), self._clock()
        is_due = now - self._said >= _LONGEST_SILENCE
        if self._verbose or is_due or stage != self._stage:
            self._stage, self._said = stage, now
            self._say(_line_of(progress, verbose=self._verbose))


class OneLine:
    """The line that moves at the bottom of a terminal."""

    def __init__(
        self,
        stream: TextIO,
        columns: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        *,
        verbose: bool = False,
    ) -> None:
        """Begins, without a line.

        Args:
            stream: The terminal.
            columns: Gives the columns of the terminal.
            clock: Gives seconds.
            verbose: Whether a line for each trial, with the rule that chose it, stays above the one that moves.
        """
        self._stream = stream
        self._verbose = verbose
        self._columns = columns
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: InWords | None = None
        self._began = 0.0
        self._so_far: tuple[int, int] | None = None

    def see(self, sent: int, received: int) -> None:
        """Notes how many frames the running trial has sent and received."""
        with self._lock:
            self._so_far = (sent, received)

    def show(self, progress: InWords) -> None:
        """Begins with the next trial after a trial has ended."""
        width = self._columns() - 1
        line = f"{_line_of(progress, verbose=True)[:width]}\n" if self._verbose else ""
        with self._lock:
            self._progress, self._began, self._so_far = progress, self._clock(), None
            self._write(line + self._status(width))

    def tick(self) -> None:
        """Redraws the line."""
        with self._lock:
            if self._progress is not None:
                self._write(self._status(self._columns() - 1))

    def close(self) -> None:
        """Removes the line."""
        with self._lock:
            self._progress = None
            self._write("")

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Removes the line until the block ends, and then draws it again."""
        with self._lock:
            self._write("")
            try:
                yield
            finally:
                self._write(self._status(self._columns() - 1))

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(_CLEAR + text)
            self._stream.flush()

    def _status(self, width: int) -> str:
        if self._progress is None:
            return ""
        if not isinstance(self._progress, Progress):
            return self._progress.line()[:width]
        return status_line(self._progress, self._clock() - self._began, width, self._so_far)

    @contextmanager
    def moving(self) -> "Iterator[OneLine]":
        """Updates the line until the block ends, and then removes it."""
        ended = threading.Event()

        def move() -> None:
            while not ended.wait(_TICK):
                self.tick()

        thread = threading.Thread(target=move, name="live view", daemon=True)
        thread.start()
        _moving.append(self)
        try:
            yield self
        finally:
            _moving.remove(self)
            ended.set()
            thread.join()
            self.close()

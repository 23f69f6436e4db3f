"""Delays Ctrl-C and SIGTERM until the end of work that must not stay half-done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def put_off_interruption() -> Iterator[None]:
    """Delays the first Ctrl-C or SIGTERM in the block until the block has ended. The second one acts at once.

    A user who presses Ctrl-C twice does not want to wait for the measurement, but wants the machines restored. A user
    who presses it once more has seen that the machines do not answer. Signals reach only the main thread: in another
    thread, the block needs no protection.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if waiting:
            waiting.clear()
            restore()
            signal.raise_signal(number)
        else:
            waiting.append(number)

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    # A handler that Python does not know cannot be restored.
    handlers = {number: handler for number in _NUMBERS if (handler := signal.getsignal(number)) is not None}
    for number in handlers:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()
        if waiting:
            signal.raise_signal(waiting.pop())


@contextmanager
def ignored_interruption() -> Iterator[None]:
    """Ignores Ctrl-C and SIGTERM in the block, which must be too short for a user to notice."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number in _NUMBERS if (handler := signal.getsignal(number)) is not None}
    for number in handlers:
        signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

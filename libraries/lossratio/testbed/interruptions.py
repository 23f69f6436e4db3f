"""Keeps signals from leaving half-done what has to be done to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def put_off_interruption() -> Iterator[None]:
    """Puts off the first Ctrl-C, or SIGTERM, that comes in the block until its end. The second one is heard at once.

    Whoever presses Ctrl-C twice does not want to wait for the measurement, and still wants the machines back as they
    were; whoever presses it once more has seen that they do not answer. Signals reach the main thread only: in
    another one, nothing needs to be put off.
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

    # A handler that Python does not know cannot be put back.
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
    """Does not hear Ctrl-C, or SIGTERM, in the block: it takes no time that anybody would notice."""
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

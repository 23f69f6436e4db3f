"""A time limit for operations that may wait without one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def within(seconds: float, abort: Callable[[], object]) -> Iterator[threading.Event]:
    """Calls ``abort`` from another thread if the block takes longer than ``seconds``, and sets the event it yields.

    paramiko has waits without a limit; only closing the connection or channel ends them.
    """
    expired = threading.Event()

    def give_up() -> None:
        expired.set()
        # The block may just have ended by itself.
        with suppress(OSError):
            abort()

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()

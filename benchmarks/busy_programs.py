"""Programs that compute, beside what a benchmark measures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_programs(count: int, *, in_sessions: bool = False) -> Iterator[None]:
    """Starts programs that compute, and ends them.

    Args:
        count: How many.
        in_sessions: Whether each has a session of its own, as other users' programs have.
    """
    command = (sys.executable, "-c", "while True: pass")
    programs = [subprocess.Popen(command, start_new_session=in_sessions) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()

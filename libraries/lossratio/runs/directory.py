"""The directory of a run: makes it, and keeps other runs out of it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from lossratio.errors import JobError, storing
from lossratio.runs.record import MAKE_ROOM

RESULTS = Path("results")
"""The folder of runs without a directory of their own."""
_LOCK_FILE = ".running"
"""In the run's directory while the run's process lives. Hidden files are not sent to an archive."""


def new_directory(name: str) -> Path:
    """Makes a directory in ``results`` that no other run has, with a number after its name if the name is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    while True:
        directory = RESULTS / next(names)
        with storing(f"make {directory}", MAKE_ROOM), suppress(FileExistsError):
            directory.mkdir(parents=True)
            return directory


@contextmanager
def kept_for_this_run(directory: Path) -> Iterator[None]:
    """Makes a directory if necessary, and keeps other runs out of it during the block.

    A lock on a file shows that this process lives. The kernel drops the lock when this process dies. Forked processes
    do not have the lock.
    """
    file = directory / _LOCK_FILE
    with storing(f"write to {directory}", MAKE_ROOM):
        directory.mkdir(parents=True, exist_ok=True)
        fd = _locked(file)

    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(fd)
        # A run that could not write anything leaves nothing behind.
        with suppress(OSError):
            directory.rmdir()


def _locked(file: Path) -> int:
    """The descriptor of a new file that this process has locked, in place of the file that a killed run left behind.

    Raises:
        JobError: If another run has the lock.
    """
    try:
        with suppress(FileNotFoundError), open(file, "r+b") as of_killed_run:
            fcntl.lockf(of_killed_run, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(of_killed_run.fileno()).st_nlink:
                raise BlockingIOError("another run was faster")
            file.unlink()
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileExistsError) as error:
        way_out = "Wait until it ends, or choose another directory: --output DIR"
        raise JobError(f"Another run is writing to {file.parent}. {way_out}") from error
    return fd

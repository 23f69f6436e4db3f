"""The token of a run's lease, in the run's directory while the run's process lives.

If the process was killed, a resumed run takes the lease over at once, and need not wait until the lease ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lossratio.errors import StorageError

# Hidden files are not sent to an archive: a token is a secret.
_FILE = ".lease.json"


@contextmanager
def kept(directory: Path, token: str | None) -> Iterator[None]:
    """Keeps the token during the block; a lock on its file shows that this process lives.

    The kernel drops the lock when this process dies. Processes that it has forked do not have the lock.

    Args:
        directory: The run's directory, which exists.
        token: The token; None: there is no lease, or another run has it.

    Raises:
        StorageError: If the token cannot be written.
    """
    if token is None:
        yield
        return
    file = directory / _FILE
    try:
        file.unlink(missing_ok=True)
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, json.dumps({"token": token, "boot": _boot()}).encode())
    except OSError as error:
        raise StorageError(f"Cannot write to {directory}: {error.strerror}.") from error
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(fd)


def left_behind(directory: Path) -> str | None:
    """The token of a run's lease if the run's process, on this machine, has ended; None: there is no such token."""
    with suppress(OSError, ValueError, KeyError, TypeError), open(directory / _FILE, "r+b") as file:
        status = os.fstat(file.fileno())
        # No other user can have written the file, or read the token.
        if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            # Fails while the run's process lives.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = json.load(file)
            # A lock of another machine may be invisible here.
            return str(kept["token"]) if kept["boot"] == _boot() else None
    return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

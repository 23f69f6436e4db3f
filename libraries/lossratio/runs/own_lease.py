"""The token of a run's lease, kept in the run's directory while the run lives.

When its process was killed, the same run can take the lease over at once, and need not wait for its end.
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
    """Keeps the token as long as the block lasts, and shows by a lock that this process lives.

    The kernel drops the lock when this process dies, and a process that this one has forked does not have it.

    Args:
        directory: The run's directory, which is there.
        token: The token; None: there is no lease, or it is not this run's own.

    Raises:
        StorageError: If it cannot be written.
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
    """Token of the lease of a run whose process is known to be gone, as it was on this machine; None: there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError), open(directory / _FILE, "r+b") as file:
        status = os.fstat(file.fileno())
        # Nobody else can have written it, or read the token.
        if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            # Fails while the run's process lives.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            kept = json.load(file)
            # Locks of another machine need not be seen here.
            return str(kept["token"]) if kept["boot"] == _boot() else None
    return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

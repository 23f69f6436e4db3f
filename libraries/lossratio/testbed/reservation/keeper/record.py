# SPDX-License-Identifier: Apache-2.0
"""The file of a reservation: who has the testbed, and the locks of the processes that have it or wait for it.

The file is one record of a fixed size. Each keeper locks the byte of its ticket, far beyond the record, for as long as
it lives: the kernel drops the lock when it dies. Keepers of one lease share its byte.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator

RECORD_BYTES = 4096
MUTEX = 1 << 20
FIRST_TICKET = MUTEX + 1
VERSION = 4
"""Version of a lease in a record."""
_FIELDS = {
    **dict.fromkeys(("token", "owner", "purpose", "started"), str),
    **dict.fromkeys(("process", "ticket", "version"), int),
    "expires": float,
}
Lease = Dict[str, Any]


class RecordError(Exception):
    """The file does not hold a record of a reservation, or one of a newer version."""


class ReservationFile:
    """The file of a reservation, made if it is missing; all users that can log in may use it."""

    def __init__(self, path: str) -> None:
        self.path = path
        # All users that log in may reserve.
        os.makedirs(os.path.dirname(path), 0o1777, exist_ok=True)
        self._fd = self._open()
        """This process must not open and close another descriptor of the file, because that drops the locks."""

    @contextmanager
    def mutex(self, *, repair: bool = False) -> Iterator[dict[str, Any]]:
        """Locks the record, yields it for changes, and writes it back at the end; `repair` replaces a damaged one."""
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, MUTEX)
        while not self._is_in_place():
            # Somebody has removed the file, and other processes now open a new file. Closing drops the locks.
            os.close(self._fd)
            self._fd = self._open()
            fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, MUTEX)

        try:
            before = os.pread(self._fd, RECORD_BYTES, 0)
            record = parsed(before, repair=repair)
            yield record
            after = json.dumps(record).encode().ljust(RECORD_BYTES)
            if after != before:
                os.pwrite(self._fd, after, 0)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, MUTEX)

    def lock(self, ticket: int) -> None:
        """Locks the byte of a ticket until this process ends, together with others that have the same ticket."""
        fcntl.lockf(self._fd, fcntl.LOCK_SH, 1, FIRST_TICKET + ticket)

    def holder(self, lease: Lease | None) -> dict[str, Any] | None:
        """The lease as others see it; None: no other process holds it, and it was not left for a time to come."""
        if lease is None or (left_of(lease) <= 0.0 and self.is_only(lease)):
            return None
        return described(lease)

    def is_only(self, lease: Lease) -> bool:
        """Whether no other process holds a lease. If this process holds it, it does not do so any more."""
        # Of keepers that end together, as those of a killed run do, the last one has to be the only one.
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, FIRST_TICKET + lease["ticket"])
        return self.is_free(lease["ticket"], lease["ticket"] + 1)

    def mark(self) -> str:
        """The file and the file system that it is on, for the environment of processes.

        Testbeds in namespaces of one machine may see each other's processes, and have the same paths.
        """
        return f"{self.path}@{os.fstat(self._fd).st_dev}"

    def is_free(self, first: int, end: int) -> bool:
        """Whether no other process has a ticket from the first to the one before the end."""
        if first >= end:
            return True
        place = (end - first, FIRST_TICKET + first)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, *place)
        except (BlockingIOError, PermissionError):
            return False
        fcntl.lockf(self._fd, fcntl.LOCK_UN, *place)
        return True

    def _is_in_place(self) -> bool:
        """Whether other processes that open the path get this file."""
        with suppress(OSError):
            return os.path.samestat(os.lstat(self.path), os.fstat(self._fd))
        return False

    def _open(self) -> int:
        # In a directory of all users, the kernel refuses to create a file that another user has already made.
        while True:
            with suppress(FileNotFoundError):
                return os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with suppress(FileExistsError):
                return os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o666)


def parsed(data: bytes, *, repair: bool = False) -> dict[str, Any]:
    """Reads a record; without data, or to repair a damaged one, makes a new one.

    Raises:
        RecordError: If the data are not a record, or one of a newer version, which must stay.
    """
    if not data:
        return {"lease": None, "granted": 0}
    with suppress(ValueError, RecursionError, LookupError, TypeError, AttributeError, ArithmeticError):
        record = json.loads(data)
        lease = record["lease"]
        if lease is None or _is_sound(lease):
            return {"lease": lease, "granted": int(record.get("granted", 0))}
    if repair:
        return {"lease": None, "granted": time.time_ns()}
    raise RecordError(
        "the record is damaged (it does not say who has the testbed), so it is not known who has the testbed. Make "
        "sure that nobody is measuring there, and repair it: lossratio lab release --force"
    )


def _is_sound(lease: Lease) -> bool:
    if lease["version"] > VERSION:
        raise RecordError("a newer version of lossratio has written it: use that version")
    are_types_right = all(type(lease[name]) is kind for name, kind in _FIELDS.items())
    # The ticket is the offset of a lock, which has 63 bits.
    return are_types_right and max(abs(lease["ticket"]), abs(lease["expires"])) < 1 << 62


def described(lease: Lease | None) -> dict[str, Any] | None:
    """A lease as other users see it, with the seconds left; 0: it is there only while somebody holds it."""
    if lease is None:
        return None
    fields = {key: lease[key] for key in ("owner", "process", "purpose", "started")}
    return {**fields, "left": left_of(lease)}


def left_of(lease: Lease) -> float:
    """The seconds for which a lease that was left stays; 0: they are over, or the node has booted since then."""
    if lease.get("boot") != boot():
        return 0.0
    return max(0.0, float(lease["expires"]) - clock())


def clock() -> float:
    """Seconds since this machine booted, also while it slept. Nobody can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """The name of this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()

# SPDX-License-Identifier: Apache-2.0
"""The file of a reservation: one record of a fixed size, and locks on it.

Locks on bytes far beyond the record are the record's mutex, and the queue: the kernel drops them when a process dies.
Times are seconds since the boot of this node, so setting the clock does no harm; a lease from before the boot is void.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator

RECORD_BYTES = 4096
"""Size of the record. It never changes, so that renewing a lease works on a full disk."""
MUTEX = 1 << 20
VERSION = 2
"""Version of a lease in a record. Leases of version 1 have neither a version nor a checksum."""
SETTLE_SECONDS = 0.5
"""Seconds in which nobody takes a lease in a new record while the guard of another lease is alive, because the file of
that lease was removed. The guard notices the removal long before these seconds have passed, and ends with all traffic
of its lease."""
_TEXTS = ("token", "owner", "purpose", "started", "boot")
_NUMBERS = ("process", "since", "expires")
_LARGEST = 1e15
_LAST_TICKET = 1 << 60
Lease = Dict[str, Any]
Record = Dict[str, Any]


class DamagedRecordError(Exception):
    """The file does not hold a record of a reservation."""

    def __init__(self, why: str, *, may_repair: bool = True) -> None:
        super().__init__(why)
        self.why = why
        self.may_repair = may_repair
        """Whether a new record may replace it; a record of a newer version must stay."""


class ReservationFile:
    """The file of a reservation, made if it is missing; all users that can log in may use it."""

    tickets = MUTEX + 1
    """The byte of the first ticket."""

    def __init__(self, directory: str, name: str) -> None:
        self.path = os.path.join(directory, name)
        if not os.path.isdir(directory):
            with suppress(FileExistsError):
                os.makedirs(directory)
                os.chmod(directory, 0o1777)  # noqa: S103 (all users that log in may reserve)
        self.fd = self._open()
        """Its descriptor. This process must not open and close another descriptor of the file, because that drops the
        locks."""

    @contextmanager
    def mutex(self, *, repair: bool = False) -> Iterator[Record]:
        """Locks the record, yields it for changes, and writes it back at the end."""
        while True:
            fcntl.lockf(self.fd, fcntl.LOCK_EX, 1, MUTEX)
            if self.is_in_place():
                break
            # Somebody has removed the file, and other processes now open a new file. Closing drops the locks.
            os.close(self.fd)
            self.fd = self._open()

        try:
            before = os.pread(self.fd, RECORD_BYTES, 0)
            try:
                record = parsed(before)
            except DamagedRecordError as error:
                if not (repair and error.may_repair):
                    raise
                record = {**_new_record(), "repaired": error.why}

            yield record
            after = _written(record)
            if after != before:
                os.pwrite(self.fd, after, 0)
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, MUTEX)

    def glance(self) -> Record:
        """Reads the record without the mutex."""
        tries = 3
        while True:
            try:
                return parsed(os.pread(self.fd, RECORD_BYTES, 0))
            except DamagedRecordError:
                # Another process may be writing.
                tries -= 1
                if not tries:
                    raise
                time.sleep(0.002)

    def is_in_place(self) -> bool:
        """Whether other processes that open the path get this file."""
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self.fd))

    def _open(self) -> int:
        while True:
            with suppress(FileNotFoundError):
                fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    return fd
                os.close(fd)
                raise OSError(0, "it is not a regular file: remove it")
            with suppress(FileExistsError):
                fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(fd, 0o666)
                return fd


def parsed(data: bytes) -> Record:
    """Reads a record of this version or of an earlier one; without data, makes a new one.

    Raises:
        DamagedRecordError: If the data are not a record.
    """
    if not data:
        return _new_record()
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedRecordError("it is not JSON") from None
    if not isinstance(record, dict) or "lease" not in record:
        raise DamagedRecordError("it does not say who has the testbed")
    _check(record["lease"])
    ticket = record.get("ticket")
    if type(ticket) is not int or not 0 <= ticket < _LAST_TICKET:
        record["ticket"] = _new_ticket()
    return record


def is_valid(lease: Lease | None) -> bool:
    """Whether a lease is valid: of this boot, and not expired."""
    return lease is not None and lease["boot"] == boot() and lease["expires"] > uptime()


def described(lease: Lease | None) -> dict[str, Any] | None:
    """A lease as other users see it: its owner, the seconds that it has been held, and the seconds left."""
    if lease is None:
        return None
    fields = {key: lease[key] for key in ("owner", "process", "purpose", "started")}
    same_boot = lease["boot"] == boot()
    held = uptime() - lease["since"] if same_boot else None
    return {**fields, "held": held, "left": max(0.0, lease["expires"] - uptime()) if same_boot else 0.0}


def is_settled(record: Record) -> bool:
    """Whether a record is old enough for a lease."""
    until = record.get("settled", 0.0)
    # A value of more than a few tenths of a second is ignored: it may be from before the boot.
    return not (isinstance(until, float) and uptime() < until <= uptime() + SETTLE_SECONDS)


def uptime() -> float:
    """Seconds since the boot, including the time in which the node slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """Identifier of this boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _new_record() -> Record:
    return {"ticket": _new_ticket(), "lease": None, "settled": uptime() + SETTLE_SECONDS}


def _new_ticket() -> int:
    # All earlier tickets are lower.
    return int(uptime() * 1e6)


def _check(lease: object) -> None:
    if lease is None:
        return
    if not isinstance(lease, dict):
        raise DamagedRecordError("its lease is not valid")

    version = lease.get("version")
    if type(version) is int and version > VERSION:
        raise DamagedRecordError("a newer version of lossratio has written it: use that one", may_repair=False)

    for name in _TEXTS:
        if not isinstance(lease.get(name), str):
            raise DamagedRecordError(f"its lease has no {name!r}")

    for name in _NUMBERS:
        value = lease.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < _LARGEST:
            raise DamagedRecordError(f"its lease has no {name!r}")

    if lease.get("checksum") != _checksum(lease):
        raise DamagedRecordError("its checksum is wrong")


def _checksum(lease: Lease) -> str:
    covered = {name: value for name, value in lease.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def _written(record: Record) -> bytes:
    lease = record["lease"]
    if lease is not None:
        record.pop("repaired", None)
        lease = {**lease, "version": VERSION}
        lease = {**lease, "checksum": _checksum(lease)}
    return json.dumps({**record, "lease": lease}).encode().ljust(RECORD_BYTES)

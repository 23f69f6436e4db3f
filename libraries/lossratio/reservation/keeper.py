"""Keeps a reservation on the TG node. Runs there by itself, with nothing but Python 3.8 or later on Linux.

Standard input and output carry JSON lines. The first one in is a request: ``status``, ``clear``, or ``take``, which
queues up: what comes back is ``waiting`` (for every ``wait`` that comes in meanwhile), then ``granted`` or
``unavailable``. From then on the lease is renewed by every ``renew``, and given back by ``release``.

There is one file for a reservation. Its first block is a record: the lease, and the number of the next ticket. Locks on
bytes far beyond it, which the kernel drops when a process dies, are a mutex on the record and the queue: whoever
waits locks the byte of his ticket, and waits for all bytes below it. Times are seconds since the boot of this node, so
no clock that people set matters; a lease from before the boot is void.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

RECORD_BYTES = 4096
"""Size of the record. It never changes, so that renewing needs no space on a disk that is full."""
MUTEX = 1 << 20
TICKETS = MUTEX + 1
POLL_SECONDS = 0.25
MARGIN_SECONDS = 0.5
MARK = "LOSSRATIO_LEASE"
"""Environment variable of everything that was started under a lease, with its token."""


class ReservationFile:
    """The file of a reservation, made if it is not there; anybody who can log in may use it."""

    def __init__(self, directory: str, name: str) -> None:
        self._path = os.path.join(directory, name)
        if not os.path.isdir(directory):
            with suppress(FileExistsError):
                os.makedirs(directory)
                os.chmod(directory, 0o1777)  # noqa: S103 (whoever may log in may reserve)
        self.fd = self._open()

    @contextmanager
    def mutex(self) -> Iterator[dict[str, Any]]:
        """Gives the record to change, which is written back at the end, while nobody else has it."""
        while True:
            fcntl.lockf(self.fd, fcntl.LOCK_EX, 1, MUTEX)
            if os.fstat(self.fd).st_nlink:
                break
            # Somebody has tidied up; what others open now is another file. Closing drops the locks.
            os.close(self.fd)
            self.fd = self._open()
        try:
            record = self._read()
            before = json.dumps(record)
            yield record
            if json.dumps(record) != before:
                os.pwrite(self.fd, json.dumps(record).encode().ljust(RECORD_BYTES), 0)
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, MUTEX)

    def _open(self) -> int:
        while True:
            with suppress(FileNotFoundError):
                return os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            with suppress(FileExistsError):
                fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(fd, 0o666)
                return fd

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(os.pread(self.fd, RECORD_BYTES, 0))
        except ValueError:
            # New, or damaged; no ticket from before is as high as this.
            record = {"ticket": int(uptime() * 1e6), "lease": None}
        return record if isinstance(record, dict) else {"ticket": 0, "lease": None}


class Keeper:
    """Takes a lease for a controller, and keeps it as long as that asks for it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request
        self._seconds = float(request["seconds"])
        self._file = ReservationFile(request["directory"], request["name"])
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._token: str | None = None

    def serve(self) -> None:
        """Queues up, and keeps the lease if there is one to have."""
        threading.Thread(target=self._listen, daemon=True).start()
        granted = self._adopt() or self._wait_for_turn()
        if granted is None:
            with self._file.mutex() as record:
                say("unavailable", holder=described(record["lease"]))
            return
        self._token = granted["lease"]["token"]
        say("granted", **granted)
        while self._answer(self._lines.get()):
            pass

    def _listen(self) -> None:
        """Takes in lines. A controller that is gone or silent needs neither ticket nor lease any more."""
        buffer = b""
        while select.select([0], [], [], self._seconds + MARGIN_SECONDS)[0]:
            chunk = os.read(0, 4096)
            if not chunk:
                os._exit(0)
            *lines, buffer = (buffer + chunk).split(b"\n")
            for message in map(json.loads, lines):
                if message["op"] != "wait":
                    self._lines.put(message)
                elif self._token is None:
                    say("waiting")
        if self._token is not None:
            with self._file.mutex() as record:
                lease = record["lease"]
            # The controller may have logged in again, and keep it by another way.
            if not (is_valid(lease) and lease["token"] == self._token):
                end_processes_of(self._token)
        os._exit(0)

    def _answer(self, request: dict[str, Any]) -> bool:
        """Answers the holder; returns whether it still is one."""
        with self._file.mutex() as record:
            lease = record["lease"]
            is_ours = lease is not None and lease["token"] == self._token
            if is_ours and request["op"] == "release":
                record["lease"] = None
            elif is_ours:
                record["lease"] = self._extended(lease)
        event = "lost" if not is_ours else "released" if request["op"] == "release" else "renewed"
        say(event, holder=described(lease))
        return event == "renewed"

    def _adopt(self) -> dict[str, Any] | None:
        """Goes on with a lease that the controller has already, if it is still there."""
        with self._file.mutex() as record:
            lease = record["lease"]
            if lease is None or lease["token"] != self._request.get("token"):
                return None
            record["lease"] = self._extended(lease)
            return {"lease": record["lease"], "adopted": True, "taken_over": None}

    def _wait_for_turn(self) -> dict[str, Any] | None:
        """Waits for all who came before, then for the lease."""
        deadline = time.monotonic() + self._request["wait"]
        with self._file.mutex() as record:
            ticket = record["ticket"]
            record["ticket"] = ticket + 1
            fcntl.lockf(self._file.fd, fcntl.LOCK_EX, 1, TICKETS + ticket)
        try:
            if self._is_first(ticket, deadline):
                while True:
                    granted = self._take()
                    if granted is not None or time.monotonic() >= deadline:
                        return granted
                    time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
            return None
        finally:
            fcntl.lockf(self._file.fd, fcntl.LOCK_UN, 1, TICKETS + ticket)

    def _is_first(self, ticket: int, deadline: float) -> bool:
        """Waits until nobody has an earlier ticket; returns whether that was in time."""
        if ticket == 0:
            return True
        fd, earlier = self._file.fd, (ticket, TICKETS)
        signal.signal(signal.SIGALRM, _stop_waiting)
        try:
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, *earlier)
                return True
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, deadline - time.monotonic()))
            fcntl.lockf(fd, fcntl.LOCK_SH, *earlier)
            return True
        except TimeoutError:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            fcntl.lockf(fd, fcntl.LOCK_UN, *earlier)

    def _take(self) -> dict[str, Any] | None:
        with self._file.mutex() as record:
            before = record["lease"]
            if is_valid(before):
                return None
            record["lease"] = self._extended({**self._request["lease"], "since": uptime()})
            taken = record["lease"]
        if before is not None:
            end_processes_of(before["token"])
        return {"lease": taken, "adopted": False, "taken_over": described(before)}

    def _extended(self, lease: dict[str, Any]) -> dict[str, Any]:
        same_boot = lease.get("boot") == boot()
        earlier = lease.get("expires", 0.0) if same_boot else 0.0
        since = lease["since"] if same_boot or "boot" not in lease else uptime()
        return {**lease, "boot": boot(), "since": since, "expires": max(earlier, uptime() + self._seconds)}


def is_valid(lease: dict[str, Any] | None) -> bool:
    """Whether a lease is one: of this boot, and not expired."""
    return lease is not None and lease["boot"] == boot() and lease["expires"] > uptime()


def described(lease: dict[str, Any] | None) -> dict[str, Any] | None:
    """A lease as others are told of it: whose it is, and for how many seconds it has been and is yet."""
    if lease is None:
        return None
    told = {key: lease[key] for key in ("owner", "process", "purpose", "started")}
    same_boot = lease["boot"] == boot()
    held = uptime() - lease["since"] if same_boot else None
    return {**told, "held": held, "left": max(0.0, lease["expires"] - uptime()) if same_boot else 0.0}


def status(request: dict[str, Any]) -> None:
    """Tells who has the lease."""
    with ReservationFile(request["directory"], request["name"]).mutex() as record:
        lease = record["lease"]
        say("status", holder=described(lease) if is_valid(lease) else None)


def clear(request: dict[str, Any]) -> None:
    """Takes the lease away from its holder: from the one who asks, or by force from anybody."""
    with ReservationFile(request["directory"], request["name"]).mutex() as record:
        lease = record["lease"]
        may = lease is None or request["force"] or lease["owner"] == request["owner"]
        if may:
            record["lease"] = None
    if lease is not None and may:
        end_processes_of(lease["token"])
    say("cleared" if may else "refused", holder=described(lease) if is_valid(lease) else None)


def end_processes_of(token: str) -> None:
    """Kills what was started under a lease: nobody may generate traffic on a testbed that has become another's."""
    mark = f"{MARK}={token}".encode()
    for pid in _pids():
        with suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                is_marked = mark in file.read().split(b"\0")
            if is_marked:
                os.kill(pid, signal.SIGKILL)


def uptime() -> float:
    """Seconds since the boot, also those in which the node slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """What tells this boot from all others."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def say(event: str, **fields: Any) -> None:
    """Writes a line."""
    os.write(1, json.dumps({"event": event, **fields}).encode() + b"\n")


def _first_line() -> bytes:
    """Reads a line, and nothing of what comes after it."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1) or sys.exit("There was no request.")
    return line


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _stop_waiting(number: int, frame: object) -> None:
    raise TimeoutError


def main() -> None:
    """Answers one request from standard input."""
    os.umask(0)
    request = json.loads(_first_line())
    try:
        if request["op"] == "take":
            Keeper(request).serve()
        else:
            {"status": status, "clear": clear}[request["op"]](request)
    except OSError as error:
        say("error", message=f"{request['directory']}/{request['name']}: {error.strerror}")


if __name__ == "__main__":
    main()

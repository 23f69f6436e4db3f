# SPDX-License-Identifier: Apache-2.0
"""Takes and keeps a lease for a controller, reports the holder of a lease, or ends a lease.

Standard input and output carry JSON lines. The first input line is a request: ``status``, ``clear`` or ``take``. After
``take``, the keeper queues up. It answers each ``wait`` with ``waiting``, and finally answers the request with
``granted`` or ``unavailable``. From then on, each ``renew`` renews the lease, and ``release`` gives it back. If the
lease is lost, the keeper sends ``ended`` without a request; all processes of the lease have ended by then.

Each waiting keeper locks the byte of its ticket, and waits for the locks of all bytes below.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import queue
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Dict

from .fence import Watch, end_all, end_lease, give_up, has_guard, is_guarded, prefix, start_guard, why_lost
from .record import DamagedRecordError, Lease, Record, ReservationFile, boot, described, is_settled, is_valid, uptime

POLL_SECONDS = 0.25
SETTLE_POLL_SECONDS = 0.05
MARGIN_SECONDS = 0.5
LONGEST_TEXT = 200
"""Largest number of characters of an owner or a purpose in a record."""
Message = Dict[str, Any]


class Keeper:
    """Takes a lease for a controller, and keeps it as long as the controller renews it."""

    def __init__(self, request: Message) -> None:
        self._request = request
        self._seconds = float(request["seconds"])
        self._file = ReservationFile(request["directory"], request["name"])
        self._messages: queue.Queue[Message] = queue.Queue()
        self._lease: Lease | None = None

    def serve(self) -> None:
        """Queues up, and keeps the lease if it is granted."""
        threading.Thread(target=self._listen, daemon=True).start()
        granted = self._go_on() or self._wait_for_turn()
        if granted is None:
            with self._file.mutex() as record:
                say("unavailable", holder=described(record["lease"]))
            return
        self._lease = granted["lease"]
        threading.Thread(target=self._watch, daemon=True).start()
        say("granted", **granted, prefix=prefix(self._file, self._lease))
        while self._answer(self._messages.get()):
            pass

    def _listen(self) -> None:
        """Reads lines. A controller that is gone or silent no longer needs a ticket or a lease."""
        buffer = b""
        while select.select([0], [], [], self._seconds + MARGIN_SECONDS)[0]:
            chunk = os.read(0, 4096)
            if not chunk:
                break
            *lines, buffer = (buffer + chunk).split(b"\n")
            for message in map(json.loads, lines):
                if message["op"] != "wait":
                    self._messages.put(message)
                elif self._lease is None:
                    say("waiting")
        # The controller may have logged in again, and keep its lease over another connection: the guard does the rest.
        os._exit(0)

    def _watch(self) -> None:
        """Checks the lease each time that its file is touched."""
        watch = Watch(self._file.path)
        while True:
            self._messages.put({"op": "look"})
            watch.wait()

    def _answer(self, request: Message) -> bool:
        """Answers the holder; returns whether it still holds the lease."""
        lease: Lease = self._lease or {}
        lost = why_lost(self._file, lease["token"])
        if lost is not None:
            give_up(self._file, lease)
            say("ended" if request["op"] == "look" else "lost", **lost)
            return False

        if request["op"] == "look":
            return True

        if request["op"] == "release":
            end_lease(lease)
        if not self._write(request["op"], lease["token"]):
            # The lease was lost at this moment.
            return self._answer(request)
        if self._lease is None:
            say("released")
            return False

        say("renewed", prefix=prefix(self._file, self._lease))
        return True

    def _write(self, operation: str, token: str) -> bool:
        """Renews or releases the lease in the record; returns whether the record still had it."""
        with suppress(DamagedRecordError), self._file.mutex() as record:
            lease = record["lease"]
            if lease is not None and lease["token"] == token:
                self._lease = record["lease"] = None if operation == "release" else self._extended(lease)
                return True
        return False

    def _go_on(self) -> Message | None:
        """Continues the controller's lease, or takes over the lease of an ended process of the same run."""
        with self._file.mutex() as record:
            lease = record["lease"]
            if lease is None:
                return None
            if lease["token"] == self._request.get("token"):
                record["lease"] = self._extended(lease)
                return {"lease": record["lease"], "adopted": True, "taken_over": None}
            # A lease of this run: no other holder's lease is ended.
            is_own = lease["token"] == self._request.get("succeeds")
            if is_own:
                return {**self._taken(record), "taken_over": None}
            return None

    def _wait_for_turn(self) -> Message | None:
        """Waits for all keepers that came earlier, then for the lease."""
        deadline = time.monotonic() + self._request["wait"]
        with self._file.mutex() as record:
            ticket = record["ticket"]
            record["ticket"] = ticket + 1
            fcntl.lockf(self._file.fd, fcntl.LOCK_EX, 1, self._file.tickets + ticket)

        try:
            if self._is_first(ticket, deadline):
                while True:
                    granted = self._take()
                    if granted is not None or time.monotonic() >= deadline:
                        return granted
                    time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
            return None
        finally:
            fcntl.lockf(self._file.fd, fcntl.LOCK_UN, 1, self._file.tickets + ticket)

    def _is_first(self, ticket: int, deadline: float) -> bool:
        """Waits until no keeper has an earlier ticket; returns whether that was in time."""
        if ticket == 0:
            return True

        fd = self._file.fd
        earlier = (ticket, self._file.tickets)
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

    def _take(self) -> Message | None:
        while True:
            with self._file.mutex() as record:
                before = record["lease"]
                if is_valid(before):
                    return None
                if is_settled(record) or not has_guard(self._file):
                    return self._taken(record)
            time.sleep(SETTLE_POLL_SECONDS)

    def _taken(self, record: Record) -> Message:
        """Writes the lease, after all processes of an earlier lease have ended."""
        before = record["lease"]
        if before is not None:
            end_lease(before)
        end_all(self._file)
        asked = self._request["lease"]
        short = {name: str(asked[name])[:LONGEST_TEXT] for name in ("owner", "purpose")}
        record["lease"] = self._extended({**asked, **short, "since": uptime()})
        return {"lease": record["lease"], "adopted": False, "taken_over": described(before)}

    def _extended(self, lease: Lease) -> Lease:
        same_boot = lease.get("boot") == boot()
        earlier = lease.get("expires", 0.0) if same_boot else 0.0
        since = lease["since"] if same_boot or "boot" not in lease else uptime()
        guard = {} if is_guarded(lease) else start_guard(self._file, lease["token"])
        expires = max(earlier, uptime() + self._seconds)
        return {**lease, "boot": boot(), "since": since, "expires": expires, **guard}


def status(request: Message) -> None:
    """Reports the holder of the lease."""
    with ReservationFile(request["directory"], request["name"]).mutex() as record:
        lease = record["lease"]
        say("status", holder=described(lease) if is_valid(lease) else None)


def clear(request: Message) -> None:
    """Ends the lease of the owner who asks, or by force any owner's lease."""
    file = ReservationFile(request["directory"], request["name"])
    damage = None
    try:
        file.glance()
    except DamagedRecordError as error:
        damage = error.why

    with file.mutex(repair=request["force"]) as record:
        lease = record["lease"]
        may = lease is None or request["force"] or lease["owner"] == request["owner"]
        if may:
            if lease is not None:
                end_lease(lease)
            end_all(file)
            record["lease"] = None

    say("cleared" if may else "refused", holder=described(lease) if is_valid(lease) else None, damage=damage)


def say(event: str, **fields: Any) -> None:
    """Writes a line."""
    os.write(1, json.dumps({"event": event, **fields}).encode() + b"\n")


def _first_line() -> bytes:
    """Reads a line, and no byte after it."""
    line = b""
    while not line.endswith(b"\n"):
        octet = os.read(0, 1)
        if not octet:
            sys.exit("There was no request.")
        line += octet
    return line


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
    except DamagedRecordError as error:
        way_out = "Make sure that nobody is measuring there, and repair it: lossratio lab release --force"
        damage = f"the record is damaged ({error.why}), so it is not known who has the testbed. {way_out}"
        why = damage if error.may_repair else error.why
        say("error", message=f"{request['directory']}/{request['name']}: {why}")
    except OSError as error:
        place = f"{request['directory']}/{request['name']}"
        say("error", message=f"{place}: {error.strerror}{_way_out_of(error)}")


def _way_out_of(error: OSError) -> str:
    """The remedy if the disk is to blame, after a full stop; empty in other cases."""
    elsewhere = "name a directory in memory in the topology file, e.g. reservation: {directory: /dev/shm/lossratio}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f". Make room on this disk, or {elsewhere}"
    if error.errno == errno.EROFS:
        return f". Find out why this file system is read-only, or {elsewhere}"
    return ""

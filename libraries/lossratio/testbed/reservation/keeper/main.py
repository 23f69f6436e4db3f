# SPDX-License-Identifier: Apache-2.0
"""Takes and holds a lease for a controller, reports the holder of a lease, or ends a lease.

Standard input has a request in each line, and standard output its answer, in JSON. ``take`` is repeated until the lease
is ``granted``; until then, the answer is ``waiting``. From then on, this process holds the lease until its connection
ends, or nothing is heard of the controller for the time in its request. ``renew`` shows that the controller lives,
``release`` gives the lease back, and ``leave`` leaves it for some time.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Dict

from .record import VERSION, DamagedRecordError, Lease, NewerRecordError, ReservationFile, boot, clock, described

MARK = "LOSSRATIO_LEASE"
"""Environment variable of all processes that were started under a lease, with the lease's token."""
PLACE = "LOSSRATIO_TESTBED"
"""Environment variable of the same processes, with the reservation's file and the file system that it is on."""
END_SECONDS = 2.0
WATCH_SECONDS = 1.0
"""Seconds between two looks at the record, in which another user may have ended the lease."""
Message = Dict[str, Any]


class Keeper:
    """Answers the requests of a controller, and holds its lease."""

    def __init__(self, file: ReservationFile) -> None:
        self._file = file
        self._ticket = time.time_ns()
        self._lease: Lease | None = None

    def status(self, request: Message) -> Message:
        """Reports the holder of the lease."""
        with self._file.mutex() as record:
            lease = record["lease"]
            return {"event": "status", "holder": described(lease) if self._file.is_held(lease) else None}

    def clear(self, request: Message) -> Message:
        """Ends the lease of the owner who asks, or by force any owner's lease."""
        with self._file.mutex(repair=request["force"]) as record:
            lease = record["lease"]
            holder = described(lease) if self._file.is_held(lease) else None
            if holder and not request["force"] and holder["owner"] != request["owner"]:
                return {"event": "refused", "holder": holder}
            _end_marked(PLACE, self._file.mark())
            record["lease"] = None
        return {"event": "cleared", "holder": holder}

    def take(self, request: Message) -> Message:
        """Takes the lease if nobody holds it or came earlier, or continues the lease with the token of the request."""
        with self._file.mutex() as record:
            before = record["lease"]
            if before is not None and before["token"] == request["token"]:
                self._file.lock(before["ticket"])
                return self._granted(before, adopted=True, taken_over=None)

            self._file.lock(self._ticket)
            is_held = self._file.is_held(before)
            # Those who came after the last lease was granted, and before this process, have their turn first.
            if is_held or not self._file.is_free(record["granted"] + 1, self._ticket):
                return {"event": "waiting", "holder": described(before) if is_held else None}

            # Processes of earlier leases end before this one begins.
            _end_marked(PLACE, self._file.mark())
            lease = {**request["lease"], "version": VERSION, "ticket": self._ticket, "expires": 0.0}
            record.update(lease=lease, granted=self._ticket)
        return self._granted(lease, adopted=False, taken_over=described(before))

    def keep(self, request: Message) -> Message:
        """Renews, releases or leaves the lease."""
        token = (self._lease or {})["token"]
        with self._file.mutex() as record:
            lease = record["lease"]
            if lease is None or lease["token"] != token:
                _end_marked(MARK, token)
                return {"event": "ended", "holder": described(lease)}
            # Another program may have put a copy in place of the file, which has no locks.
            self._file.lock(lease["ticket"])

            if request["op"] == "release":
                _end_marked(MARK, token)
                record["lease"] = None
            if request["op"] == "leave":
                over = clock() + request["seconds"]
                record["lease"] = {**lease, "version": VERSION, "boot": boot(), "expires": over}
        return {"event": "kept"}

    def watch(self) -> None:
        """Ends the processes of the lease if somebody else has ended it: their own user may always do that."""
        if self._lease is not None:
            self.keep({"op": "renew"})

    def end(self) -> None:
        """Ends the processes of the lease, unless the controller goes on with it over another connection."""
        if self._lease is not None and self._file.is_only(self._lease):
            _end_marked(MARK, self._lease["token"])

    def _granted(self, lease: Lease, **fields: Any) -> Message:
        self._lease = lease
        prefix = ["env", f"{MARK}={lease['token']}", f"{PLACE}={self._file.mark()}"]
        return {"event": "granted", "token": lease["token"], "prefix": prefix, **fields}

    renew = release = leave = keep


def main() -> None:
    """Answers the requests from standard input."""
    os.umask(0)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit())
    request = json.loads(sys.stdin.readline())
    place = f"{request['directory']}/{request['name']}"

    try:
        keeper = Keeper(ReservationFile(place))
        try:
            while True:
                signal.alarm(math.ceil(request["seconds"]))
                say(getattr(keeper, request["op"])(request))
                while not select.select([sys.stdin], [], [], WATCH_SECONDS)[0]:
                    keeper.watch()
                request = json.loads(sys.stdin.readline() or sys.exit())
        finally:
            keeper.end()
    except (DamagedRecordError, NewerRecordError) as error:
        say({"event": "error", "message": f"{place}: {error}"})
    except OSError as error:
        elsewhere = "To keep it elsewhere, e.g. in memory: reservation: {directory: /dev/shm/lossratio}"
        say({"event": "error", "message": f"{place}: {error.strerror}. {elsewhere} in the topology file"})


def say(event: Message) -> None:
    """Writes a line."""
    os.write(1, json.dumps(event).encode() + b"\n")


def _end_marked(name: str, value: str) -> None:
    """Ends all processes with a variable in their environment, and the processes that these start in the meantime."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        # A process that we may not kill belongs to another user, and to that user's lease.
        if not [pid for pid in _marked(f"{name}={value}".encode()) if _kill(pid)]:
            return
        time.sleep(0.002)


def _marked(mark: bytes) -> list[str]:
    """Ids in /proc of all processes with a variable in their environment."""
    own = os.readlink("/proc/self")
    marked = []
    for name in os.listdir("/proc"):
        if name.isdigit() and name != own:
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    marked.append(name)
    return marked


def _kill(visible: str) -> bool:
    """Kills a process by its id in /proc, which may be of another PID namespace than this process."""
    try:
        ids = _ids(visible)[len(_ids("self")) - 1 :]
        if ids:
            os.kill(int(ids[0]), signal.SIGKILL)
        return bool(ids)
    except OSError:
        return False


def _ids(visible: str) -> list[str]:
    """A process's ids, from the namespace of /proc to its own."""
    with open(f"/proc/{visible}/status", encoding="utf-8", errors="replace") as file:
        return next(line.split()[1:] for line in file if line.startswith("NSpid:"))

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
from contextlib import closing, suppress
from typing import Any, Dict

from .record import VERSION, Lease, RecordError, ReservationFile, boot, clock, described

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
            return {"event": "status", "holder": self._file.holder(record["lease"])}

    def clear(self, request: Message) -> Message:
        """Ends the lease of the owner who asks, or by force any owner's lease."""
        with self._file.mutex(repair=request["force"]) as record:
            holder = self._file.holder(record["lease"])
            if holder and not request["force"] and holder["owner"] != request["owner"]:
                return {"event": "refused", "holder": holder}
            _end_marked(PLACE, self._file.mark())
            record["lease"] = None
        return {"event": "cleared", "holder": holder}

    def take(self, request: Message) -> Message:
        """Takes the lease if nobody holds it or came earlier, or continues the lease with the token of the request."""
        with self._file.mutex() as record:
            before = record["lease"]
            adopted = before is not None and before["token"] == request["token"]
            if adopted:
                self._file.lock(before["ticket"])
            else:
                self._file.lock(self._ticket)
                holder = self._file.holder(before)
                # Those who came after the last lease was granted, and before this process, have their turn first.
                if holder or not self._file.is_free(record["granted"] + 1, self._ticket):
                    return {"event": "waiting", "holder": holder}

                # Processes of earlier leases end before this one begins.
                _end_marked(PLACE, self._file.mark())
                lease = {**request["lease"], "version": VERSION, "ticket": self._ticket, "expires": 0.0}
                record.update(lease=lease, granted=self._ticket)
            self._lease = record["lease"]

        token = self._lease["token"]
        return {
            "event": "granted",
            "token": token,
            "prefix": ["env", f"{MARK}={token}", f"{PLACE}={self._file.mark()}"],
            "adopted": adopted,
            "before": described(before),
        }

    def keep(self, request: Message) -> Message:
        """Renews, releases or leaves the lease."""
        if self._lease is None:
            return {"event": "ended", "holder": None}
        token = self._lease["token"]
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
                record["lease"] = {**lease, "version": VERSION, "boot": boot(), "expires": clock() + request["seconds"]}
        return {"event": "kept"}

    def close(self) -> None:
        """Ends the processes of the lease, unless the controller goes on with it over another connection."""
        if self._lease is not None and self._file.is_only(self._lease):
            _end_marked(MARK, self._lease["token"])

    renew = release = leave = keep


def main() -> None:
    """Answers the requests from standard input."""
    os.umask(0)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit())
    request = json.loads(sys.stdin.readline())

    try:
        with closing(Keeper(ReservationFile(request["file"]))) as keeper:
            while True:
                signal.alarm(math.ceil(request["seconds"]))
                print(json.dumps(getattr(keeper, request["op"])(request)), flush=True)
                while not select.select([sys.stdin], [], [], WATCH_SECONDS)[0]:
                    # Their own user may end the processes of the lease at any time, by ending the lease.
                    keeper.keep({"op": "renew"})
                request = json.loads(sys.stdin.readline() or sys.exit())
    except RecordError as error:
        problem = str(error)
    except OSError as error:
        elsewhere = "To keep it elsewhere, e.g. in memory: reservation: {directory: /dev/shm/lossratio}"
        problem = f"{error.strerror}. {elsewhere} in the topology file"
    print(json.dumps({"event": "error", "message": f"{request['file']}: {problem}"}))


def _end_marked(name: str, value: str) -> None:
    """Ends all processes with a variable in their environment, and the processes that these start in the meantime."""
    mark = f"{name}={value}".encode()
    own = os.readlink("/proc/self")
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        others = (name for name in os.listdir("/proc") if name.isdigit() and name != own)
        if not sum(_kill(visible, mark) for visible in others):
            return
        time.sleep(0.002)


def _kill(visible: str, mark: bytes) -> bool:
    """Kills a process with a variable, by its id in /proc, which may be of another PID namespace than this process."""
    # A process that we may not kill belongs to another user, and to that user's lease.
    with suppress(OSError, IndexError), open(f"/proc/{visible}/environ", "rb") as file:
        if mark in file.read().split(b"\0"):
            pid = _ids(visible)[len(_ids("self")) - 1]
            os.kill(int(pid), signal.SIGKILL)
            return True
    return False


def _ids(visible: str) -> list[str]:
    """A process's ids, from the namespace of /proc to its own."""
    with open(f"/proc/{visible}/status", encoding="utf-8", errors="replace") as file:
        return next(line.split()[1:] for line in file if line.startswith("NSpid:"))

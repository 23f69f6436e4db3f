"""A TG node to reserve: a real sshd of this machine, and a directory of the test's own on it."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

from lossratio.testbed.reservation import Claim, Lease
from lossratio.testbed.reservation.keeper.record import MUTEX, ReservationFile


class Lab:
    def __init__(self, server, directory):
        self.server = server
        self.directory = directory
        self.python = sys.executable
        self._stack = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def claim(self, owner="alice@here", seconds=5.0, **fields):
        return Claim(file=str(self.file), python=self.python, seconds=seconds, owner=owner, **fields)

    def session(self):
        return self._stack.enter_context(self.server.connect())

    def take(self, owner="alice@here", *, wait=0.0, seconds=5.0, session=None, **fields):
        lease = Lease.take((session or self.session(), self.claim(owner, seconds, **fields)), wait=wait)
        self._stack.callback(lease.release)
        return lease

    @property
    def file(self):
        return self.directory / "testbed"

    def record(self):
        return json.loads(self.file.read_bytes())

    def tickets(self):
        """The tickets of the processes that wait for the testbed or have it."""
        inode = str(self.file.stat().st_ino)
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return {fields[-2] for fields in locks if fields[-3].rpartition(":")[2] == inode and int(fields[-2]) > MUTEX}

    def change_lease(self, **fields):
        """Writes into the file what a time or a reboot would."""
        with ReservationFile(str(self.file)).mutex() as record:
            record["lease"].update(fields)

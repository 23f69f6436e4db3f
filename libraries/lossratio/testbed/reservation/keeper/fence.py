# SPDX-License-Identifier: Apache-2.0
"""Ends all processes that were started under a lease, however the lease ends.

Each process has the lease's token in its environment. If the kernel permits it, the processes are also in a PID
namespace of the lease. The guard, a process that outlives the keeper, watches the record. It ends all processes of the
lease as soon as the record no longer has the lease. The first process of the namespace dies with the guard, and the
kernel ends all others.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import signal
import socket
import time
from contextlib import suppress
from typing import Any

from .record import DamagedRecordError, Lease, ReservationFile, described, is_valid

MARK = "LOSSRATIO_LEASE"
"""Environment variable of all processes that were started under a lease, with the lease's token."""
PLACE = "LOSSRATIO_TESTBED"
"""Environment variable of the same processes, with the reservation's file and the file system that it is on."""
_WATCH_SECONDS = 0.5
_POLL_SECONDS = 0.02
_END_SECONDS = 2.0
_CLONE_NEWPID = 0x20000000
_PR_SET_PDEATHSIG = 1
_IN_MODIFY = 0x2
_IN_ATTRIB = 0x4
_IN_DELETE_SELF = 0x400
_IN_MOVE_SELF = 0x800


class Watch:
    """Waits for changes of a reservation's file."""

    def __init__(self, path: str) -> None:
        self._events = _inotify(path)

    def wait(self) -> None:
        """Waits until the file is touched, but at most half a second: some changes cause no event of inotify."""
        if self._events is None:
            time.sleep(_POLL_SECONDS)
        elif select.select([self._events], [], [], _WATCH_SECONDS)[0]:
            os.read(self._events, 4096)


def why_lost(file: ReservationFile, token: str) -> dict[str, Any] | None:
    """Why a lease is gone: a ``reason``, or the ``holder`` of the present lease; None: the lease is in the record."""
    if not file.is_in_place():
        return {"reason": f"another program removed or replaced {file.path}", "holder": None}

    try:
        record = file.glance()
        lease = record["lease"]
        damage = record.get("repaired")
    except DamagedRecordError as error:
        lease = None
        damage = error.why

    if lease is None:
        # The guard may have repaired a damaged record before the keeper looks.
        if damage:
            why = f"another program overwrote {file.path}: {damage}"
        else:
            why = "somebody has released it"

        return {"reason": why, "holder": None}
    if lease["token"] != token:
        return {"reason": None, "holder": described(lease)}
    return None


def start_guard(file: ReservationFile, token: str) -> dict[str, Any]:
    """Starts the guard of a lease before the lease is written, while this process has the mutex.

    Returns:
        The record's fields about the guard: ``guard``, its id and start time, and ``inside``, the id of the first
        process in the namespace; None if the kernel permits no namespace.

    Raises:
        OSError: If the guard dies before it has answered.
    """
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reading)
            _guard(file, token, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        report = pipe.readline()
    if not report:
        raise OSError(0, "the process that guards the lease has died")
    answer: dict[str, Any] = json.loads(report)
    return answer


def has_guard(file: ReservationFile) -> bool:
    """Whether the guard of any lease of a reservation is alive, even if the guard's file was removed."""
    beacon = _beacon(file)
    if beacon is not None:
        beacon.close()
    return beacon is None


def is_guarded(lease: Lease) -> bool:
    """Whether the guard of a lease is alive."""
    guard = lease.get("guard")
    return guard is not None and _identity(guard[0]) == guard


def prefix(file: ReservationFile, lease: Lease) -> list[str]:
    """The arguments before a command that is started under a lease."""
    marked = ["env", f"{MARK}={lease['token']}", f"{PLACE}={_place(file)}"]
    if lease.get("inside") is None:
        return marked
    return [*marked, "nsenter", "--target", str(lease["inside"]), "--pid", "--"]


def end_lease(lease: Lease) -> None:
    """Ends all processes of a lease. Returns when they have ended, or when nothing more can be done."""
    if is_guarded(lease):
        _kill(lease["guard"][0])
    end_marked(f"{MARK}={lease['token']}")


def end_all(file: ReservationFile) -> None:
    """Ends all processes of all leases of a reservation."""
    end_marked(f"{PLACE}={_place(file)}")


def end_marked(mark: str) -> None:
    """Ends all processes with a variable in their environment, and the processes that these start in the meantime."""
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        # A process that we may not kill belongs to another user, and to that user's lease.
        if not [pid for pid in _marked(mark.encode()) if _kill(pid)]:
            return
        time.sleep(0.002)


def give_up(file: ReservationFile, lease: Lease) -> None:
    """Ends a lease that is lost. Its record is repaired if it was damaged meanwhile."""
    end_lease(lease)
    with suppress(OSError, DamagedRecordError), file.mutex(repair=True):
        pass


def _guard(file: ReservationFile, token: str, report: int) -> None:
    os.setsid()
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    beacon = _beacon(file)
    inside, visible = _start_inside()
    watch = Watch(file.path)
    own = _identity(int(os.readlink("/proc/self")))
    os.write(report, json.dumps({"guard": own, "inside": visible}).encode() + b"\n")
    os.close(report)
    # The lease is in the record as soon as the keeper gives the mutex back.
    with suppress(OSError, DamagedRecordError), file.mutex():
        pass

    while _is_there(file, token) and (inside is None or os.waitpid(inside, os.WNOHANG)[0] == 0):
        # The previous guard may still have the name, or a process that asks whether there is a guard.
        beacon = beacon or _beacon(file)
        watch.wait()

    if inside is not None:
        # Do not wait for the first process: it cannot end before a frozen `nsenter`. An `nsenter` is outside the
        # namespace, and is killed by its mark below.
        with suppress(OSError):
            os.kill(inside, signal.SIGKILL)

    give_up(file, {"token": token})
    if beacon is not None:
        beacon.close()


def _beacon(file: ReservationFile) -> socket.socket | None:
    """A name that only one process of this node can have, and that nobody can remove; None: another process has it."""
    name = hashlib.sha256(_place(file).encode()).hexdigest()
    beacon = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        beacon.bind(f"\0lossratio {name}")
    except OSError:
        beacon.close()
        return None
    return beacon


def _is_there(file: ReservationFile, token: str) -> bool:
    with suppress(DamagedRecordError):
        return why_lost(file, token) is None and is_valid(file.glance()["lease"])
    return False


def _start_inside() -> tuple[int | None, int | None]:
    """Starts the first process of a PID namespace: its id, and its id in /proc; None if the kernel forbids it."""
    libc = _libc()
    if libc is None or shutil.which("nsenter") is None or libc.unshare(_CLONE_NEWPID) != 0:
        return None, None

    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # This way, the kernel waits for the namespace's orphans.
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            # Fails if the guard has died already.
            os.write(writing, os.readlink("/proc/self").encode())
            os.close(writing)
            while True:
                signal.pause()
        finally:
            os._exit(0)

    os.close(writing)
    with os.fdopen(reading) as pipe:
        visible = pipe.read()
    if visible:
        return (pid, int(visible))
    return (None, None)


def _place(file: ReservationFile) -> str:
    # Testbeds in namespaces of one machine may see each other's processes, and have the same paths.
    return f"{file.path}@{os.fstat(file.fd).st_dev}"


def _libc() -> Any:
    """The C library; None on a Python without ctypes."""
    try:
        import ctypes
    except ImportError:
        return None
    return ctypes.CDLL(None, use_errno=True)


def _inotify(path: str) -> int | None:
    libc = _libc()
    if libc is None:
        return None
    fd = int(libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    mask = _IN_MODIFY | _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF
    if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(path), mask) >= 0:
        return fd
    return None


def _identity(visible: int) -> list[int] | None:
    """A process's id and the time of its start, which no other process has; None: there is no such living process."""
    try:
        with open(f"/proc/{visible}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] == b"Z":
        return None
    return [visible, int(fields[19])]


def _marked(mark: bytes) -> list[int]:
    """Ids in /proc of all processes with a variable in their environment."""
    own = os.readlink("/proc/self")
    marked = []
    for name in os.listdir("/proc"):
        if name.isdigit() and name != own:
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    marked.append(int(name))
    return marked


def _kill(visible: int) -> bool:
    """Kills a process by its id in /proc, which may be of another PID namespace than this process."""
    try:
        ids = _ids(visible)[len(_ids(os.readlink("/proc/self"))) - 1 :]
        if ids:
            os.kill(int(ids[0]), signal.SIGKILL)
        return bool(ids)
    except OSError:
        return False


def _ids(visible: object) -> list[str]:
    """A process's ids, from the namespace of /proc to its own."""
    with open(f"/proc/{visible}/status", encoding="utf-8", errors="replace") as file:
        return next(line.split()[1:] for line in file if line.startswith("NSpid:"))

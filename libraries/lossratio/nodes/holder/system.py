"""System calls that Python 3.10 lacks, and child processes that report once to their parent."""

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEW_MOUNT = 0x00020000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

READ_ONLY = 1
NO_SUID = 2
NO_DEVICES = 4
BIND = 4096
RECURSIVE = 16384
SLAVE = 1 << 19

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path of programs. It includes the superuser's paths, because the sessions run as root."""
_SET_PARENT_DEATH_SIGNAL = 1
_GET_FLAGS = 0x8913
_RUNNING = 0x40
_ETHTOOL_REQUEST = 0x8946
_OFFLOADS = {"rx": 0x15, "tx": 0x17, "sg": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""ETHTOOL_S* commands that switch one offload each, by the name that ``ethtool -K`` has for it."""
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Gives the calling process its own namespaces; ``flags`` are the system call's."""
    _check(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def enter(descriptor: int, kind: int) -> None:
    """Moves the calling process into an existing namespace."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)), "setns")


def mount(
    source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None
) -> None:
    """Adds a file system or a bind mount; the arguments are the system call's."""
    arguments = (source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags))
    _check(_libc.mount(*arguments, options and options.encode()), f"mount {target}")


def die_with_parent() -> None:
    """Lets the kernel kill the calling process when the thread that forked it has ended; see PR_SET_PDEATHSIG."""
    _check(
        _libc.prctl(
            ctypes.c_int(_SET_PARENT_DEATH_SIGNAL), ctypes.c_ulong(signal.SIGKILL), 0, 0, 0
        ),
        "prctl",
    )


def unshare_user(user: int, group: int) -> None:
    """Moves the calling process into a new user namespace, in which it has the given ids and all capabilities."""
    outer_user, outer_group = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1")


def switch_offloads_off(interface: str) -> None:
    """Makes an interface of the current network namespace send and receive each frame unchanged, without offloads."""
    for command in _OFFLOADS.values():
        _switch(interface, command, on=False)


def take_xdp_frames(interface: str) -> None:
    """Makes a veth of the current network namespace accept frames that an XDP program at its other end redirects.

    A veth accepts such frames while it receives as cards do. Generic receive offload requires this, so it is switched
    on. The offload only joins TCP segments, and test traffic has none.
    """
    _switch(interface, _OFFLOADS["gro"], on=True)


def _switch(interface: str, command: int, *, on: bool) -> None:
    """Switches an offload of an interface; a driver without the switch does not have the offload."""
    value = ctypes.create_string_buffer(struct.pack("II", command, on))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        try:
            fcntl.ioctl(anything, _ETHTOOL_REQUEST, request)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise


def is_running(interface: str) -> bool:
    """Whether an interface of the current network namespace is up and has a carrier, and the kernel knows it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        reply = fcntl.ioctl(anything, _GET_FLAGS, struct.pack("16s24x", interface.encode()))
    (flags,) = struct.unpack_from("H", reply, 16)
    return bool(flags & _RUNNING)


def spawn(command: list[str], *, stdin: int, stdout: int, stderr: int) -> int:
    """Starts a program with the given descriptors and with default signals, and returns its process id."""
    return os.posix_spawn(
        command[0],
        command,
        {"PATH": SEARCH_PATH},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, own, number) for number, own in enumerate((stdin, stdout, stderr))
        ],
        setsigdef=[signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD],
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


class BuildError(Exception):
    """A part of the testbed cannot be built."""


@dataclass(frozen=True)
class Child:
    """A child process."""

    pid: int
    """Its process id."""
    pipe: int
    """The pipe that its report comes from."""

    def report(self) -> Any:
        """Waits for the child's report.

        Raises:
            BuildError: If the child failed, or was killed.
        """
        with os.fdopen(self.pipe) as pipe:
            line = pipe.readline()
        if not line:
            raise BuildError(
                f"process {self.pid}, which was building a part of the testbed, was killed"
            )
        report = json.loads(line)
        if "error" in report:
            raise BuildError(report["error"])
        return report["result"]


def fork(task: Callable[[Callable[[Any], None]], None]) -> Child:
    """Forks a child that runs a task and then ends. The task calls its argument, which sends the report, once."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)

    status = 1
    try:
        os.close(reading)
        task(lambda result: _send(writing, {"result": result}))
        status = 0
    except (BuildError, OSError) as error:
        _send(writing, {"error": str(error)})
    except BaseException:  # noqa: BLE001 - this frame must never return into the parent's code
        traceback.print_exc()
        _send(writing, {"error": traceback.format_exc().strip().splitlines()[-1]})
    finally:
        sys.stderr.flush()
        os._exit(status)


def _send(pipe: int, message: dict[str, Any]) -> None:
    try:
        os.write(pipe, json.dumps(message).encode() + b"\n")
        os.close(pipe)
    except OSError:
        # The child has already reported, or the parent has ended.
        return

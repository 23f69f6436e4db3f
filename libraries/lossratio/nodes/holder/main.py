"""The holder: builds a testbed, reports this to the run, and ends the testbed when the run ends."""

import json
import os
import select
import selectors
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lossratio.nodes.holder import nodes, system
from lossratio.nodes.holder.plan import Plan

_STAND_IN_ID = 1000
"""The user and group id that a caller with the id 0 gets in the outer user namespace."""


def main() -> None:
    """Reads a plan from standard input, which is a socket to the run, and holds the testbed until its end.

    The lines on that socket are: the plan, from the run; ``{"result": {"pid": ..., "nodes": {name: {"port": ...,
    "host_key": ...}}}}`` or ``{"error": ...}``, from the holder; and ``keep``, from the run, if the testbed must
    outlive the run. Without ``keep``, the testbed ends with the run, with the connection, or by SIGTERM, and its
    directory is removed.
    """
    control = socket.socket(fileno=os.dup(0))
    with control.makefile() as lines:
        line = lines.readline()
    if line:
        _quiet_surroundings()
        plan = Plan.from_json(line)
        # The holder of a testbed that stays must not be a child of the run.
        if not plan.keep or os.fork() == 0:
            _hold(plan, control)


def _quiet_surroundings() -> None:
    os.chdir("/")
    os.umask(0o022)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit())


def _hold(plan: Plan, control: socket.socket) -> None:
    os.set_inheritable(plan.lock, False)
    init = None
    try:
        runner = os.pidfd_open(plan.runner)
        authorized_key = nodes.make_key(plan.tools.ssh_keygen, Path(plan.directory, "id_ed25519"))
        init = _start_init(plan, authorized_key, control)
        # If another descriptor is readable first, the run has ended, and nobody waits for the testbed.
        if select.select([init.pipe, control.fileno(), runner], [], [])[0] == [init.pipe]:
            _tell(control, {"result": {"pid": os.getpid(), "nodes": init.report()}})
            _wait_for_the_end(control, runner, init.pid)
    except (system.BuildError, OSError) as error:
        _tell(control, {"error": str(error)})
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if init is not None:
            os.kill(init.pid, signal.SIGKILL)
            # This returns when the last process of the PID namespace has ended.
            os.waitpid(init.pid, 0)
        shutil.rmtree(plan.directory, ignore_errors=True)


def _tell(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _wait_for_the_end(control: socket.socket, runner: int, init: int) -> None:
    with selectors.DefaultSelector() as selector:
        for source in (control, runner, os.pidfd_open(init)):
            selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control or control.recv(16) != b"keep\n":
                    return
                selector.unregister(runner)
                selector.unregister(control)
                control.close()


def _start_init(plan: Plan, authorized_key: str, control: socket.socket) -> system.Child:
    if not plan.privileged:
        system.unshare_user(os.getuid() or _STAND_IN_ID, os.getgid() or _STAND_IN_ID)
    system.unshare(system.NEW_PID)
    reading, writing = os.pipe()

    def be_init(report: Callable[[Any], None]) -> None:
        # The other ends of these descriptors show when the holder ends, so only the holder may have these descriptors
        # open.
        os.close(writing)
        control.close()
        system.die_with_parent()
        # The holder may have died before this call.
        if not select.select([reading], [], [], 0)[0]:
            _be_init(plan, authorized_key, reading, report)

    init = system.fork(be_init)
    os.close(reading)
    # `writing` stays open until the holder ends. So init notices the end of the holder, even without the kernel's
    # signal.
    return init


def _be_init(plan: Plan, authorized_key: str, holder: int, report: Callable[[Any], None]) -> None:
    system.unshare(system.NEW_MOUNT)
    system.mount("none", "/", None, system.SLAVE | system.RECURSIVE)
    # Many containers hide parts of /proc, and then allow no mount of another /proc. The mounted one shows more
    # processes than needed, which does no harm.
    with suppress(PermissionError):
        system.mount("proc", "/proc", "proc", system.NO_SUID | system.NO_DEVICES)
    builder = system.fork(lambda send: nodes.build(plan, send))
    pids = builder.report()
    os.waitpid(builder.pid, 0)
    running = nodes.prepare_servers(plan, pids["visible"], authorized_key)
    report(
        {
            name: {"port": one.listener.getsockname()[1], "host_key": one.host_key}
            for name, one in running.items()
        }
    )

    nodes.serve(running, set(pids["own"]), holder, plan)

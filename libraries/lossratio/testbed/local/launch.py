"""Starts a testbed's holder, and talks to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lossratio.errors import TopologyError
from lossratio.holder import Plan
from lossratio.testbed.local import state
from lossratio.testbed.local.requirements import TestbedUnavailableError, why_unavailable

_BUILD_TIMEOUT = 30.0
_END_TIMEOUT = 30.0
_SOURCE_ROOT = Path(__file__).parents[3]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from lossratio.holder.main import main; main()"


class Holder:
    """A holder that has built its testbed.

    Attributes:
        pid: Its process id.
        nodes: How to reach the nodes, by name.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, built: dict[str, Any]) -> None:
        self.pid = int(built["pid"])
        self.nodes = {name: state.Access(**access) for name, access in built["nodes"].items()}
        self._process = process
        self._control = control

    def let_go(self) -> None:
        """Has the holder outlive this process."""
        self._control.sendall(b"keep\n")
        _wait_for_end_of(self._control)

    def close(self) -> None:
        """Ends the holder if it has not been let go, and waits for its end."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            _wait_for_end_of(self._control)
        _bury(self._process, self._control)


@contextmanager
def launch(plan: Plan, name: str) -> Iterator[Holder]:
    """Starts a holder, and waits until its testbed is up; should the block fail, it is taken down again.

    Args:
        plan: What to build; the descriptor of its lock is closed here.
        name: The testbed's name, for errors.

    Raises:
        TestbedUnavailableError: If this machine cannot have a local testbed.
        TopologyError: If this one cannot be built.
    """
    control, theirs = socket.socketpair()
    try:
        with theirs, open(Path(plan.directory, "holder.log"), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, str(_SOURCE_ROOT)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                pass_fds=(plan.lock,),
                # Not in the terminal's process group: Ctrl-C is for the run, which then ends the holder in order.
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
    except BaseException:
        # An interrupt, too, must not leave the other end of the holder's input open.
        control.close()
        raise
    finally:
        os.close(plan.lock)
    holder = None
    try:
        control.sendall(plan.to_json().encode() + b"\n")
        holder = Holder(process, control, _wait_until_built(control, name))
        yield holder
    except BaseException:
        # Interrupted or not, no testbed stays behind. It may have been let go already.
        if holder is not None:
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
        with suppress(OSError):
            control.shutdown(socket.SHUT_WR)
            _wait_for_end_of(control)
        _bury(process, control)
        raise


def _wait_until_built(control: socket.socket, name: str) -> Any:
    control.settimeout(_BUILD_TIMEOUT)
    try:
        with control.makefile() as lines:
            line = lines.readline()
    except TimeoutError as cause:
        raise TopologyError(f"Testbed {name} was not up within {_BUILD_TIMEOUT:g} s.") from cause
    message = json.loads(line) if line else {"error": "its holder was killed"}
    if "error" in message:
        why = why_unavailable()
        if why is None:
            raise TopologyError(f"Testbed {name} cannot be built: {message['error']}.")
        raise TestbedUnavailableError(f"No local testbed can be built: {why}.")
    return message["result"]


def _wait_for_end_of(control: socket.socket) -> None:
    control.settimeout(_END_TIMEOUT)
    while control.recv(4096):
        pass


def _bury(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    process.kill()
    process.wait()

"""A session on a network namespace of this machine, without SSH: the same agent, the same conversation."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from netns import NetnsLab

from lossratio.errors import NodeError


class LocalProcess:
    def __init__(self, process: subprocess.Popen[bytes], stderr: Path, node: str) -> None:
        self.process = process
        self._node = node
        self._stderr = stderr
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self.seconds_to_end = 60.0

    @property
    def exit_status(self) -> int | None:
        return self.process.poll()

    def write_line(self, text: str) -> None:
        try:
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise NodeError(self._obituary()) from error

    def read_line(self, timeout: float, meanwhile: Callable[[], None] = lambda: None) -> str:
        deadline = time.monotonic() + timeout
        while not self._lines:
            if not select.select([self.process.stdout], [], [], min(1.0, max(0.0, deadline - time.monotonic())))[0]:
                if time.monotonic() >= deadline:
                    raise NodeError(f"Node {self._node}: no answer within {timeout:g} s.")
                meanwhile()
                continue
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise NodeError(self._obituary())
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)
        return self._lines.popleft().decode()

    def stderr_tail(self) -> str:
        return self._stderr.read_text()[-2000:]

    def close(self) -> int | None:
        if not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            return self.process.wait(self.seconds_to_end)
        except subprocess.TimeoutExpired:
            return None

    def _obituary(self) -> str:
        tail = " | ".join(self.stderr_tail().splitlines()[-5:])
        return f"Node {self._node}: the process ended with {self.process.wait(60)}: {tail}"


class LocalSession:
    """Runs commands in a namespace; files of the user's cache are in `directory`."""

    name = "TG"

    def __init__(self, lab: NetnsLab, namespace: str, directory: Path, **environment: str) -> None:
        self.directory = directory
        self.processes: list[LocalProcess] = []
        self._lab = lab
        self._namespace = namespace
        variables = {"XDG_CACHE_HOME": str(directory), **environment}
        self._env = ("env", "-u", "SSH_CONNECTION", *(f"{name}={value}" for name, value in variables.items()))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self._lab.run(self._namespace, *self._env, *command)

    def put(self, data: bytes, remote_path: str) -> None:
        Path(remote_path).write_bytes(data)

    def start(self, *command: str) -> LocalProcess:
        stderr = self.directory / f"stderr{len(self.processes)}"
        with stderr.open("wb") as file:
            process = self._lab.popen(
                self._namespace, *(*self._env, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file
            )
        self.processes.append(LocalProcess(process, stderr, self.name))
        return self.processes[-1]


PYTHON = sys.executable


def bare_python(directory: Path) -> str:
    """A Python without numpy, in a new file of a directory."""
    python = directory / "bare-python"
    python.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')
    python.chmod(0o755)
    return str(python)

"""Calls of other people's programs on this machine, bounded in time and size."""

import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

_CHUNK = 1 << 16
_SHOWN = 200
_SECRETS = re.compile(r"(\w://)(?:\S*@)?([^\s?#]*)(?:[?#]\S*)?")


class CallError(Exception):
    """A call has failed."""


def without_secrets(text: str) -> str:
    """A text without the users, passwords and queries of its addresses."""
    return _SECRETS.sub(r"\1\2", text)


def said_by(stdout: str, stderr: str) -> str:
    """What a program that failed has printed: its errors, or else its output."""
    return (stderr or stdout).strip() or "it printed nothing"


def shown(answer: object) -> str:
    """An answer as errors show it: on one line, cut off after 200 characters."""
    text = " ".join(str(answer).split())
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}..."


def run_program(
    command: Sequence[str], *, stdin: bytes, timeout: float, most: int
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program on this machine with any exit status; an error kills it and everything that it started.

    Args:
        command: The program and its arguments; no shell reads them.
        stdin: Its standard input.
        timeout: Maximum time of the program, in seconds.
        most: Maximum number of bytes that it may print to each of standard output and standard error.

    Raises:
        CallError: If the program cannot be started, takes too long or prints too much.
    """
    deadline = time.monotonic() + timeout
    with tempfile.TemporaryFile() as given, selectors.DefaultSelector() as selector:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CallError(
                f"cannot be run on this machine: {getattr(error, 'strerror', None) or error}"
            ) from error

        with process:
            try:
                stdout, stderr = (
                    _selected(selector, stream) for stream in (process.stdout, process.stderr)
                )
                while selector.get_map():
                    for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                        chunk = os.read(key.fd, _CHUNK)
                        key.data.extend(chunk)
                        if not chunk:
                            selector.unregister(key.fileobj)
                        if len(key.data) > most:
                            raise CallError(f"printed more than {most:,} bytes")

                    if time.monotonic() > deadline:
                        raise CallError(f"took longer than {timeout:g} s")

                process.wait(max(0.0, deadline - time.monotonic()))
            except BaseException as error:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise CallError(f"took longer than {timeout:g} s") from error
                raise

    return subprocess.CompletedProcess(command, process.returncode, bytes(stdout), bytes(stderr))


def _selected(selector: selectors.BaseSelector, stream: IO[bytes] | None) -> bytearray:
    """The buffer for the bytes of a stream."""
    kept = bytearray()
    if stream is not None:
        selector.register(stream, selectors.EVENT_READ, kept)
    return kept

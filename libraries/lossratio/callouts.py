"""Calls of other people's services and programs, bounded in time and size: HTTP requests and local programs."""

import http.client
import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

_CHUNK = 1 << 16
_LONGEST_REASON = 100
_SHOWN = 200
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_PASSWORD = re.compile(r"^\w+://[^/@]*:[^/@]*@")
_SECRETS = re.compile(r"(\w://)(?:\S*@)?([^\s?#]*)(?:[?#]\S*)?")


class CallError(Exception):
    """A call has failed. Its text contains no secrets of the address."""


class AnswerError(CallError):
    """A server has answered with a status other than success."""


def without_secrets(text: str) -> str:
    """A text without the users, passwords and queries of its addresses."""
    return _SECRETS.sub(r"\1\2", text)


def variables_in(*texts: str) -> list[str]:
    """Names of environment variables in texts, as ``$NAME`` or ``${NAME}``."""
    return [name for text in texts for name in _VARIABLE.findall(text)]


def with_variables(text: str) -> str:
    """A text with the values of its environment variables; a variable that is not set is empty."""
    return _VARIABLE.sub(lambda match: os.environ.get(match.group(1), ""), text)


def said_by(stdout: str, stderr: str) -> str:
    """What a program that failed has printed: its errors, or else its output."""
    return (stderr or stdout).strip() or "it printed nothing"


def shown(answer: object) -> str:
    """An answer as errors show it: on one line, cut off after 200 characters."""
    text = " ".join(str(answer).split())
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}..."


def refuse_password(url: str) -> None:
    """Refuses an address for a file that contains a password.

    Raises:
        ValueError: If it contains one.
    """
    if _PASSWORD.match(url):
        raise ValueError(
            "a password does not belong in a file. Use headers: {Authorization: $NAME}"
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would carry the headers of the request, such as Authorization, to another server."""

    def redirect_request(self, *_: Any) -> None:
        """Makes no other request, so that the answer is an error."""


def http_request(
    url: str,
    *,
    method: str,
    body: bytes | None,
    headers: Mapping[str, str],
    timeout: float,
    most: int,
) -> bytes:
    """Makes an HTTP request; redirects are not followed.

    Args:
        url: The address, which errors show without its secrets.
        method: The HTTP method, e.g. ``POST``.
        body: The contents of the request; None: nothing.
        headers: Headers of the request, by name.
        timeout: Maximum time of the whole request, in seconds.
        most: Maximum number of bytes of the answer to read; of a longer answer, one more byte is read.

    Raises:
        AnswerError: If the server answers with an error or a redirect.
        CallError: If there is no answer in time, or the answer is not valid.
    """
    deadline = time.monotonic() + timeout
    data = bytearray()
    try:
        request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout) as response:
            while len(data) <= most and (
                chunk := response.read1(min(_CHUNK, most + 1 - len(data)))
            ):
                data += chunk
                if time.monotonic() > deadline:
                    raise CallError(f"the answer took longer than {timeout:g} s")
    except urllib.error.HTTPError as error:
        error.close()
        if 300 <= error.code < 400:
            more = "; redirects are not followed: give the final address"
        else:
            more = ""

        raise AnswerError(f"{error.code} {str(error.reason)[:_LONGEST_REASON]}{more}") from None
    except OSError as error:
        raise CallError(without_secrets(str(getattr(error, "reason", None) or error))) from error
    except (ValueError, http.client.HTTPException) as error:
        # The texts of these errors may contain the address or a header, which may be secret.
        raise CallError(
            f"the request or its answer is not valid ({type(error).__name__})"
        ) from None

    return bytes(data)


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

"""Calls of servers and programs of others: what they may not do to us."""

import socket
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from lossratio.callouts import AnswerError, CallError, http_request, run_program, without_secrets


@contextmanager
def server(answer):
    """Answers each connection with some bytes, again and again if they are an iterator; yields port and requests."""
    asked = []

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                asked.append(connection.recv(65536))
                try:
                    for part in answer() if callable(answer) else [answer]:
                        connection.sendall(part)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], asked
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def ask(url, **changes):
    options = {
        "method": "GET",
        "body": None,
        "headers": {"Authorization": "Bearer s3cret"},
        "timeout": 120.0,
        "most": 99,
    }
    return http_request(url, **{**options, **changes})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_carries_no_header_to_another_server(status, method):
    with server(b"HTTP/1.0 200 OK\r\n\r\n") as (other, asked):
        redirect = f"HTTP/1.0 {status} Elsewhere\r\nLocation: http://127.0.0.1:{other}/\r\n\r\n"
        with server(redirect.encode()) as (port, _), pytest.raises(AnswerError, match=f"{status} Elsewhere; redirects"):
            ask(f"http://127.0.0.1:{port}/", method=method, body=b"x" if method == "POST" else None)
    assert asked == []


def endless(part, pause):
    yield b"HTTP/1.0 200 OK\r\n\r\n"
    while True:
        yield part
        time.sleep(pause)


def test_an_answer_without_end_is_read_as_far_as_it_may_go():
    with server(lambda: endless(b"x" * 1000, 0.0)) as (port, _):
        assert ask(f"http://127.0.0.1:{port}/") == b"x" * 100
    with server(lambda: endless(b"x", 0.01)) as (port, _), pytest.raises(CallError, match=r"took longer than 0\.2 s"):
        ask(f"http://127.0.0.1:{port}/", most=10**6, timeout=0.2)


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("http://ann:s3cret@127.0.0.1:{port}/s3cret?key=s3cret", b"rubbish s3cret\r\n\r\n"),
        ("http://127.0.0.1:{port}/s3cret?key=s3cret", b"rubbish s3cret\r\n\r\n"),
        ("http://127.0.0.1:{port}/s3 cret", b""),
        ("http://127.0.0.1:s3cret/", b""),
        ("http://[s3cret/", b""),
        ("s3cret", b""),
    ],
)
def test_what_is_no_request_or_no_answer_is_an_error_without_secrets(url, answer):
    with server(answer) as (port, _), pytest.raises(CallError) as error:
        ask(url.format(port=port))
    assert "s3cret" not in str(error.value)


def test_a_text_loses_the_secrets_of_its_addresses_only():
    text = "PUT https://ann:pa@ss@host:1/a/b?token=x: no (s3://key:secret@bucket/p), why? ann@host"
    assert without_secrets(text) == "PUT https://host:1/a/b no (s3://bucket/p), why? ann@host"


def test_a_program_that_prints_without_end_or_takes_too_long_is_killed():
    def run(code, **options):
        return run_program([sys.executable, "-c", code], **{"stdin": b"in", "timeout": 120.0, "most": 10**6, **options})

    done = run("import sys; print(input()); print('x', file=sys.stderr); sys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"in\n", b"x\n")
    for stream in ("stdout", "stderr"):
        with pytest.raises(CallError, match="printed more than 1,000,000 bytes"):
            run(f"import sys\nwhile True: sys.{stream}.write('x' * 9999)")
    for code in ("import time; time.sleep(99)", "import os, time; os.close(1); os.close(2); time.sleep(99)"):
        with pytest.raises(CallError, match=r"took longer than 0\.3 s"):
            run(code, timeout=0.3)
    with pytest.raises(CallError, match="cannot be run on this machine: No such file"):
        run_program(["/no/such/program"], stdin=b"", timeout=1.0, most=1)

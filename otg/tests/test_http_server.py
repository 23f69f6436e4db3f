"""Servers of HTTP for this machine: whom they answer, slow clients, and crowds of them."""

import socket
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest
from waiting import PATIENCE

from lossratio_otg.http_server import LocalHandler, LocalServer

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


class Handler(LocalHandler):
    """Answers that it is here; on the path /wait, when it may go on."""

    protocol_version = "HTTP/1.1"
    may_go_on = threading.Event()
    begun = threading.Event()

    def do_GET(self):  # noqa: N802
        if self.path == "/wait":
            self.server.begin_answer(self.connection)
            self.begun.set()
            self.may_go_on.wait(PATIENCE)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"here")

    def do_POST(self):  # noqa: N802
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.is_late(self.connection):
            self.send_error(408)
        else:
            self.send_error(400, f"{len(data)} bytes")


@pytest.fixture
def served():
    """Starts servers, whose settings a test has changed before."""
    made = []

    def serve():
        server = LocalServer(socket.create_server(("127.0.0.1", 0)), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        made.append((server, thread))
        return server

    Handler.may_go_on.clear()
    Handler.begun.clear()
    yield serve
    Handler.may_go_on.set()
    for server, thread in made:
        server.shutdown()
        thread.join()
        server.server_close()


def connected(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE)


def status(server, path="/", **headers):
    """The status of an answer."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def answer_to(server, data):
    """Everything that a server says to some bytes, until it ends the connection."""
    with connected(server) as client:
        client.sendall(data)
        return client.makefile("rb").read()


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8080", "127.1.2.3", "[::1]:80"])
def test_names_of_this_machine_are_answered(served, host):
    assert status(served(), Host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "198.18.0.1",
        "[2001:2::1]",
        "0.0.0.0",  # noqa: S104
    ],
)
def test_a_name_of_somebody_else_that_leads_here_is_refused(served, host):
    assert status(served(), Host=host) == 403


@pytest.mark.parametrize("lines", ["", "Host: \r\n", "Host: a b\r\n", "Host: localhost\r\nHost: evil.example\r\n"])
def test_a_request_names_one_host(served, lines):
    assert b" 400 " in answer_to(served(), f"GET / HTTP/1.1\r\n{lines}\r\n".encode()).splitlines()[0]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1"])
def test_pages_of_other_sites_are_refused(served, origin):
    assert status(served(), Origin=origin) == 403


def test_who_listens_for_the_lab_is_asked_by_any_address_and_by_its_own_names_only(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "Tester")
    monkeypatch.setattr(socket, "getfqdn", lambda _: "tester.lab.example")
    with LocalServer(socket.create_server(("0.0.0.0", 0)), Handler) as server:  # noqa: S104
        asked = [
            "198.18.0.1",
            "[2001:2::1]",
            "localhost",
            "tester",
            "TESTER.lab.example.",
            "lab.example",
            "evil.example",
        ]
        assert [server.is_own(host) for host in asked] == [True] * 5 + [False] * 2


def test_other_sites_cannot_embed_an_answer(served):
    head = answer_to(served(), GET + b"Connection: close\r\n\r\n")
    assert b"\r\nCross-Origin-Resource-Policy: same-origin\r\n" in head
    assert head.endswith(b"\r\n\r\nhere")


@pytest.mark.parametrize(
    "begun", [GET, GET + b"X-Long: a", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc"]
)
def test_a_request_that_does_not_come_to_its_end_is_answered_as_too_slow(served, monkeypatch, begun):
    monkeypatch.setattr("lossratio_otg.http_server.REQUEST_SECONDS", 0.2)
    assert b" 408 " in answer_to(served(), begun).splitlines()[0]


def test_a_byte_now_and_then_does_not_keep_a_connection(served, monkeypatch):
    monkeypatch.setattr("lossratio_otg.http_server.REQUEST_SECONDS", 0.2)
    with connected(served()) as client:
        client.sendall(GET + b"X-Long: ")
        # Until the server ends the connection; without a deadline this would go on for ever.
        with suppress(OSError):
            while True:
                client.sendall(b"a")
                threading.Event().wait(0.02)


def test_slow_clients_keep_nobody_out(served, monkeypatch):
    monkeypatch.setattr("lossratio_otg.http_server.MOST_CONNECTIONS", 4)
    server = served()
    clients = [connected(server) for _ in range(12)]
    for client in clients:
        # Those that had to make room are gone.
        with suppress(OSError):
            client.sendall(b"GET")
    assert status(server) == 200
    for client in clients:
        client.close()


def test_there_are_so_many_connections_at_most_and_answers_in_the_making_are_not_cut(served, monkeypatch):
    monkeypatch.setattr("lossratio_otg.http_server.MOST_CONNECTIONS", 1)
    server = served()
    with connected(server) as first:
        first.sendall(GET.replace(b"/ ", b"/wait ", 1) + b"Connection: close\r\n\r\n")
        assert Handler.begun.wait(PATIENCE)
        answered = b""
        with suppress(ConnectionError):
            answered = answer_to(server, GET + b"Connection: close\r\n\r\n")
        assert not answered
        Handler.may_go_on.set()
        assert first.makefile("rb").read().endswith(b"here")

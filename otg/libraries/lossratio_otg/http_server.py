"""HTTP servers for this machine and its lab: whom they answer, and how long a request may take.

A page in a browser can ask any server that the browser reaches. So a request is refused if it comes from a page of
another site (``Origin``), or if it asks for a name other than this machine's (``Host``), because somebody else's name
may lead here. With TLS, a request may ask for any name, because the browser checks that name against the certificate.
"""

import math
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

MOST_CONNECTIONS = 32
"""Maximum number of connections that are served at once."""
REQUEST_SECONDS = 10.0
"""Maximum time from the start of a connection to the last byte of its request, in seconds."""
TOO_SLOW = f"a request may take at most {REQUEST_SECONDS:g} s"
"""The answer to a request that takes longer."""
_ROOM_SECONDS = 5.0
_CHUNK = 1 << 16
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)


def is_loopback(address: str) -> bool:
    """Whether an address, or the name ``localhost``, is reached from this machine alone."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class LocalServer(ThreadingHTTPServer):
    """A server with a thread for each connection, in which a `LocalHandler` answers.

    It takes over a socket that already listens, and closes it. With a TLS context, it speaks only TLS.

    Each connection has one request. If there are too many connections, the one that has waited longest for its client
    is closed. So slow clients cannot keep others out.
    """

    daemon_threads = True

    def __init__(
        self, listener: socket.socket, handler: "Callable[..., LocalHandler]", tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_port = self.server_address[1]
        self._tls = tls
        self._address = str(self.server_address[0]).lower()
        self._names = {socket.gethostname().lower(), socket.getfqdn(self._address).lower()}
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        # Connections that wait for their clients, the longest wait first, and when their requests must be complete.
        self._waiting: dict[socket.socket, float] = {}

    def is_own(self, host: str) -> bool:
        """Whether a name or an address can be this machine's, and nobody else's.

        If a request names an address, it is the address that the client has connected to, so any address is accepted.
        If the server listens on the loopback address, only that address is accepted. With TLS, the certificate says
        whose name it is.
        """
        if self._tls is not None:
            return True
        host = host.lower().strip("[]")
        on_loopback = is_loopback(self._address)
        try:
            asked = ip_address(host)
        except ValueError:
            own = {"localhost", self._address}
            if not on_loopback:
                own |= self._names
            return host.removesuffix(".") in own
        return asked.is_loopback or not on_loopback

    def is_late(self, connection: socket.socket) -> bool:
        """Whether the client of a connection has taken longer than `REQUEST_SECONDS`."""
        with self._lock:
            return self._waiting.get(connection, math.inf) < time.monotonic()

    def begin_answer(self, connection: socket.socket) -> None:
        """Notes that a request is complete: its connection waits no longer for its client, and is not cut off."""
        with self._lock:
            self._waiting.pop(connection, None)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection, if there is room for it."""
        connection, client = super().get_request()
        if self._tls is not None:
            # The connection's own thread makes the handshake while reading, so that no client keeps others waiting.
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        if not self._has_room():
            connection.close()
            raise ConnectionAbortedError("all connections are being answered")
        with self._lock:
            self._waiting[connection] = time.monotonic() + REQUEST_SECONDS
        return connection, client

    def shutdown_request(self, request: Any) -> None:
        """Ends a connection, which makes room for another one."""
        super().shutdown_request(request)
        self.begin_answer(request)
        self._room.release()

    def service_actions(self) -> None:
        """Ends requests that take too long. It is called about twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [connection for connection, end in self._waiting.items() if end < now]
        for connection in late:
            # The thread then reads the end of the request, and can still answer.
            _shut(connection, socket.SHUT_RD)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """Reports our own mistakes; a client that disconnects is not a mistake."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _has_room(self) -> bool:
        """Makes room for a connection by closing the connection that has waited longest."""
        if self._room.acquire(blocking=False):
            return True
        with self._lock:
            longest = next(iter(self._waiting), None)
        if longest is None:
            return False
        _shut(longest, socket.SHUT_RDWR)
        return self._room.acquire(timeout=_ROOM_SECONDS)


def _shut(connection: socket.socket, how: int) -> None:
    # The client or the thread may already have closed it.
    with suppress(OSError):
        # A TLS socket would go on without TLS after its own shutdown.
        socket.socket.shutdown(connection, how)


class LocalHandler(BaseHTTPRequestHandler):
    """Answers the request of a connection to a `LocalServer`, and refuses those of other sites' pages."""

    timeout = 30.0
    server: LocalServer

    def version_string(self) -> str:
        """The name that the server gives itself."""
        return "lossratio"

    def log_message(self, format: str, *args: Any) -> None:
        """Prints no line for a request."""

    def parse_request(self) -> bool:
        """Reads the request without its contents; if it cannot be accepted, the answer says why."""
        if not super().parse_request():
            return False
        self.close_connection = True
        refusal = self._refusal()
        if refusal is not None:
            self.send_error(*refusal)
        return refusal is None

    def discard_contents(self) -> None:
        """Reads the rest of a refused request: the client reads the answer only after sending everything."""
        if "Content-Length" not in getattr(self, "headers", ()):
            return
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
            while self.rfile.read1(_CHUNK) and not self.server.is_late(self.connection):
                pass

    def end_headers(self) -> None:
        """Ends the header of an answer, which pages of other sites must not use."""
        self.send_header("Connection", "close")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        super().end_headers()

    def _refusal(self) -> tuple[HTTPStatus, str] | None:
        if self.server.is_late(self.connection):
            return HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW
        hosts = self.headers.get_all("Host", [])
        host = _HOST.fullmatch(hosts[0].strip()) if len(hosts) == 1 else None
        if host is None:
            return HTTPStatus.BAD_REQUEST, "a request needs exactly one Host header"
        if not self.server.is_own(host[1]):
            return (
                HTTPStatus.FORBIDDEN,
                "this server does not have the name in the Host header: use the address that it shows when it starts",
            )
        if "Origin" in self.headers:
            return HTTPStatus.FORBIDDEN, "requests of other sites' pages (with an Origin header) are not answered"
        return None

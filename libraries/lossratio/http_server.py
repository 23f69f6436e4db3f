"""Servers of HTTP for this machine and its lab: whom they answer, and how long a request may take.

A page in a browser can ask any server that the browser reaches. So a request is refused if a page of another site makes
it (``Origin``), or if it asks for another name than this machine's (``Host``): a name of somebody else's may lead here.
With TLS it may ask for any name, as the browser looks for that name in the certificate.
"""

import math
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

MOST_CONNECTIONS = 32
"""The most connections that are served at a time."""
REQUEST_SECONDS = 10.0
"""Seconds from the first byte of a request to its last one."""
SILENT_SECONDS = 30.0
"""Seconds that a connection may be silent between two requests."""
TOO_SLOW = f"a request takes {REQUEST_SECONDS:g} s at most"
"""What is answered to one that takes longer."""
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
    """A server with a thread for each connection, where a `LocalHandler` answers.

    It listens at an address and port (0: any that is free), or on a socket that listens already, and closes that. With
    a context of TLS it speaks nothing else.

    If there are too many connections, the one that has waited for its client longest makes room. So clients that say
    little, slowly, keep nobody out.
    """

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS
    # Some versions of Python let two servers have one port.
    allow_reuse_port = False

    def __init__(
        self,
        place: tuple[str, int] | socket.socket,
        handler: "Callable[..., LocalHandler]",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener = place if isinstance(place, socket.socket) else None
        address = place.getsockname() if isinstance(place, socket.socket) else place
        self._tls = tls
        self._address = address[0].lower()
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        # Connections that wait for their clients, the longest first, and when a request must be whole.
        self._waiting: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def is_own(self, host: str) -> bool:
        """Whether a name or an address can be this machine's, and nobody else's.

        An address in a request is the one that its client has connected to, so any is; but on the loopback address
        nobody asks for another one. With TLS the certificate says whose it is.
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
                own |= {socket.gethostname().lower(), self.server_name.lower()}
            return host.removesuffix(".") in own
        return asked.is_loopback or not on_loopback

    def wait_for(self, connection: socket.socket, seconds: float = math.inf) -> None:
        """Notes that a connection waits for its client, which may take this many seconds from now on."""
        with self._lock:
            self._waiting.pop(connection, None)
            self._waiting[connection] = time.monotonic() + seconds

    def is_late(self, connection: socket.socket) -> bool:
        """Whether its client has taken longer."""
        with self._lock:
            return self._waiting.get(connection, math.inf) < time.monotonic()

    @contextmanager
    def at_work(self, connection: socket.socket) -> Iterator[None]:
        """While the answer for a connection is being made, it waits for nobody, and is not cut."""
        with self._lock:
            self._waiting.pop(connection, None)
        try:
            yield
        finally:
            self.wait_for(connection)

    def server_bind(self) -> None:
        """Binds to its address, or takes the socket that listens already."""
        if self._listener is None:
            super().server_bind()
            return
        self.socket.close()
        self.socket = self._listener
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = socket.getfqdn(self._address), self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection."""
        connection, client = super().get_request()
        if self._tls is None:
            return connection, client
        # Its own thread makes the handshake as it reads, so that no client keeps others waiting.
        secured = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return secured, client

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own."""
        if not self._has_room():
            self.shutdown_request(request)
            return
        self.wait_for(request)
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def service_actions(self) -> None:
        """Ends the requests that take too long; called about twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [connection for connection, end in self._waiting.items() if end < now]
        for connection in late:
            # Its thread finds the end of the request, and may still answer.
            _shut(connection, socket.SHUT_RD)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any
    ) -> None:
        """Reports a mistake of ours; a client that goes away is none."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _has_room(self) -> bool:
        """Gets room for a connection, at the cost of the one that has waited longest."""
        if self._room.acquire(blocking=False):
            return True
        with self._lock:
            longest = next(iter(self._waiting), None)
        if longest is None:
            return False
        _shut(longest, socket.SHUT_RDWR)
        return self._room.acquire(timeout=_ROOM_SECONDS)

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._waiting.pop(connection, None)
        self._room.release()


def _shut(connection: socket.socket, how: int) -> None:
    # Its client, or its thread, may have closed it already.
    with suppress(OSError):
        # A socket of TLS would go on without TLS after its own shutdown.
        socket.socket.shutdown(connection, how)


class LocalHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection to a `LocalServer`, and refuses those of other sites' pages."""

    timeout = SILENT_SECONDS
    server: LocalServer

    def version_string(self) -> str:
        """What it calls itself."""
        return "lossratio"

    def log_message(self, format: str, *args: Any) -> None:
        """Prints no line for a request."""

    def handle_one_request(self) -> None:
        """Waits for a request, and answers it."""
        self.server.wait_for(self.connection)
        try:
            is_there = bool(self.rfile.peek(1))  # type: ignore[attr-defined]
        except TimeoutError:
            is_there = False
        if not is_there:
            self.close_connection = True
            return
        self.server.wait_for(self.connection, REQUEST_SECONDS)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Reads the request without its contents; if it cannot be accepted, answers why."""
        if not super().parse_request():
            return False
        refusal = self._refusal()
        if refusal is None:
            if "Content-Length" not in self.headers:
                self.server.wait_for(self.connection)
            return True
        self.close_connection = True
        self.send_error(*refusal)
        return False

    def discard_contents(self) -> None:
        """Reads what is left of a request that was refused: its client reads the answer when all of it is sent."""
        if "Content-Length" not in getattr(self, "headers", ()):
            return
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
            while self.rfile.read1(_CHUNK) and not self.server.is_late(self.connection):
                pass

    def end_headers(self) -> None:
        """Ends the header of an answer, which pages of other sites must not make use of."""
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
            return HTTPStatus.BAD_REQUEST, "a request names one Host"
        if not self.server.is_own(host[1]):
            return (
                HTTPStatus.FORBIDDEN,
                "this is not the server of that name: use the address that it shows",
            )
        if "Origin" in self.headers:
            return HTTPStatus.FORBIDDEN, "pages of other sites are not answered"
        return None

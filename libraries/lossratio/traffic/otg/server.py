"""The REST interface of the Open Traffic Generator in front of a `Tester`: requests and answers by snappi's models."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from threading import BoundedSemaphore
from types import MappingProxyType
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.traffic.otg.models import ModelError, checked, load_snappi
from lossratio.traffic.otg.packets import FieldError
from lossratio.traffic.otg.tester import BusyError, Tester
from lossratio.version import __version__

MOST_BYTES = 1 << 23
"""The most bytes of a request."""

_MOST_CONNECTIONS = 32
_SILENT_SECONDS = 30.0


@dataclass(frozen=True)
class _Route:
    """What answers a request."""

    answer: Callable[[Tester, Any, Any], Any]
    """Makes the answer of the tester, the request as the models read it, and the request as it came."""
    returns: str
    """The model of the answer."""
    takes: str | None = None
    """The model of the request; None: it has no contents."""


def _version(_tester: Tester, _model: Any, _sent: Any) -> dict[str, Any]:
    local = load_snappi().api().get_local_version()
    versions = {"api_spec_version": local.api_spec_version, "sdk_version": local.sdk_version}
    return {**versions, "app_version": f"lossratio {__version__}"}


ROUTES: Mapping[tuple[str, str], _Route] = MappingProxyType(
    {
        ("GET", "/capabilities/version"): _Route(_version, "Version"),
        ("GET", "/config"): _Route(lambda tester, _, __: tester.config, "Config"),
        ("POST", "/config"): _Route(
            lambda tester, model, sent: {"warnings": tester.set_config(model, sent)}, "Warning", "Config"
        ),
        ("POST", "/control/state"): _Route(
            lambda tester, model, sent: {"warnings": tester.set_state(model, sent)}, "Warning", "ControlState"
        ),
        ("POST", "/monitor/metrics"): _Route(
            lambda tester, model, sent: tester.metrics(model, sent), "MetricsResponse", "MetricsRequest"
        ),
    }
)
"""What the server answers, by method and path."""


class _RefusalError(Exception):
    """A request that is refused before it is read."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = _SILENT_SECONDS
    server: OtgServer

    def version_string(self) -> str:
        return "lossratio"

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the tester reports what matters."""

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _handle(self) -> None:
        try:
            status, answer = HTTPStatus.OK, self._answer()
        except _RefusalError as error:
            # Its contents were not read, so nobody knows where the next request begins.
            self.close_connection = True
            status, answer = error.status, _error(error.status, "validation", error)
        except (FieldError, ModelError) as error:
            status, answer = HTTPStatus.BAD_REQUEST, _error(HTTPStatus.BAD_REQUEST, "validation", error)
        except BusyError as error:
            status, answer = HTTPStatus.CONFLICT, _error(HTTPStatus.CONFLICT, "validation", error)
        except LossRatioError as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            answer = _error(status, "internal", error)
        except Exception as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", error))
            raise
        self._send(status, answer)

    def _send(self, status: HTTPStatus, answer: Mapping[str, Any]) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _answer(self) -> dict[str, Any]:
        path = self.path.partition("?")[0]
        route = ROUTES.get((self.command, path))
        if route is None:
            there = ", ".join(" ".join(each) for each in ROUTES)
            raise _RefusalError(
                HTTPStatus.NOT_FOUND, f"{self.command} {path[:100]} is not supported; possible: {there}"
            )
        sent = None if route.takes is None else self._contents()
        model = None if route.takes is None else checked(route.takes, sent)
        return checked(route.returns, route.answer(self.server.tester, model, sent))

    def _contents(self) -> Any:
        # Pages in a browser cannot send this type to another server without asking it.
        if self.headers.get_content_type() != "application/json":
            raise _RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "requests have the Content-Type application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _RefusalError(HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            text = f"a request has {MOST_BYTES:,} bytes at most"
            raise _RefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        try:
            return json.loads(self.rfile.read(int(length)), parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the request is no JSON: {str(error)[:200]}") from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _error(status: HTTPStatus, kind: str, error: Exception) -> dict[str, Any]:
    return checked("Error", {"code": int(status), "kind": kind, "errors": [str(error)]})


class OtgServer(ThreadingHTTPServer):
    """The server; as a context manager it is closed at the end, and its tester with it.

    Args:
        tester: The tester.
        address: Address and TCP port to listen on; port 0: any that is free.

    Raises:
        TopologyError: If snappi is missing.
        OSError: If it cannot listen there.
    """

    daemon_threads = True

    def __init__(self, tester: Tester, address: tuple[str, int]) -> None:
        load_snappi()
        self.tester = tester
        self._connections = BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own, unless there are too many."""
        if self._connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Reports a mistake of ours; a client that goes away is none."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Stops all traffic, and listens no more."""
        self.tester.close()
        super().server_close()

"""The REST interface of the Open Traffic Generator in front of a `Tester`: requests and answers by snappi's models."""

import json
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from threading import BoundedSemaphore
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.traffic.otg.packets import FieldError, ModelError, checked, load_snappi
from lossratio.traffic.otg.tester import BusyError, Tester
from lossratio.version import __version__

MOST_BYTES = 1 << 23
"""The most bytes of a request."""
_MOST_CONNECTIONS = 32
_SILENT_SECONDS = 30.0


def _version(_tester: Tester, _model: Any, _sent: Any) -> dict[str, Any]:
    local = load_snappi().api().get_local_version()
    versions = {"api_spec_version": local.api_spec_version, "sdk_version": local.sdk_version}
    return {**versions, "app_version": f"lossratio {__version__}"}


ROUTES: Mapping[tuple[str, str], tuple[Callable[[Tester, Any, Any], Any], str, str | None]] = {
    ("GET", "/capabilities/version"): (_version, "Version", None),
    ("GET", "/config"): (lambda tester, _, __: tester.config, "Config", None),
    ("POST", "/config"): (lambda tester, *sent: {"warnings": tester.set_config(*sent)}, "Warning", "Config"),
    ("POST", "/control/state"): (
        lambda tester, *sent: {"warnings": tester.set_state(*sent)},
        "Warning",
        "ControlState",
    ),
    ("POST", "/monitor/metrics"): (Tester.metrics, "MetricsResponse", "MetricsRequest"),
}
"""What answers a request, by method and path: the function, the model of its answer, and the model of the request;
None: the request has no contents. The function gets the tester, the request as the models read it, and as it came."""


class _RefusalError(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SILENT_SECONDS
    server: "OtgServer"

    def version_string(self) -> str:
        return "lossratio"

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the tester reports what matters."""

    def do_GET(self) -> None:
        try:
            answer = self._answer()
        except _RefusalError as error:
            # Its contents were not read, so nobody knows where the next request begins.
            self.close_connection = True
            self._refuse(error.status, error)
        except (FieldError, ModelError) as error:
            self._refuse(HTTPStatus.BAD_REQUEST, error)
        except BusyError as error:
            self._refuse(HTTPStatus.CONFLICT, error)
        except LossRatioError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, error, "internal")
        except Exception as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, error, "internal")
            raise
        else:
            self._send(HTTPStatus.OK, answer)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815

    def _refuse(self, status: HTTPStatus, error: Exception, kind: str = "validation") -> None:
        self._send(status, checked("Error", {"code": int(status), "kind": kind, "errors": [str(error)]}))

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
        if (self.command, path) not in ROUTES:
            there = ", ".join(" ".join(each) for each in ROUTES)
            raise _RefusalError(
                HTTPStatus.NOT_FOUND, f"{self.command} {path[:100]} is not supported; possible: {there}"
            )
        answer, returns, takes = ROUTES[self.command, path]
        sent = None if takes is None else self._contents()
        model = None if takes is None else checked(takes, sent)
        return checked(returns, answer(self.server.tester, model, sent))

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


class OtgServer(ThreadingHTTPServer):
    """The server; as a context manager it is closed in the end, with its tester. TCP port 0: any that is free."""

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

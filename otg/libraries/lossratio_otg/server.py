"""The REST interface of the Open Traffic Generator in front of a `Tester`: requests and answers by snappi's models."""

import json
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.files import parse_json
from lossratio_otg.http_server import TOO_SLOW, LocalHandler, LocalServer
from lossratio_otg.models import ModelError, checked, load_snappi
from lossratio_otg.packets import FieldError
from lossratio_otg.tester import BusyError, Tester

MOST_BYTES = 1 << 20
"""The maximum number of bytes of a request."""


# Table: one row for each request.
ROUTES: Mapping[tuple[str, str], tuple[str, str | None]] = {
    ("GET", "/capabilities/version"): ("version", "Version"),
    ("GET", "/config"): ("get_config", "Config"),
    ("POST", "/config"): ("set_config", "Warning"),
    ("POST", "/control/state"): ("set_state", "Warning"),
    ("POST", "/monitor/metrics"): ("metrics", "MetricsResponse"),
    ("POST", "/monitor/capture"): ("capture", None),
}
"""How a request is answered, by method and path: the tester's method, which gets the contents of a POST, and the model
of its answer; None: the answer is a file."""
EARLIER: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "/control/transmit": ("/control/state", ("traffic", "flow_transmit")),
    "/control/capture": ("/control/state", ("port", "capture")),
    "/results/metrics": ("/monitor/metrics", ()),
    "/results/capture": ("/monitor/capture", ()),
}
"""Paths of requests in earlier models (snappi 0.9): the present path, and the parts of its request that contain the
contents."""


_STATUS = {FieldError: HTTPStatus.BAD_REQUEST, ModelError: HTTPStatus.BAD_REQUEST, BusyError: HTTPStatus.CONFLICT}


class _RefusalError(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(LocalHandler):
    protocol_version = "HTTP/1.1"
    server: "OtgServer"

    def do_GET(self) -> None:  # noqa: N802
        try:
            answer = self._answer()
        except _RefusalError as error:
            self.send_error(error.status, str(error))
        except Exception as error:
            self._refuse(_STATUS.get(type(error), HTTPStatus.INTERNAL_SERVER_ERROR), error)
            if not isinstance(error, LossRatioError):
                raise
        else:
            self._send(HTTPStatus.OK, answer)

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses a request that was not read completely."""
        status = HTTPStatus(code)
        self._refuse(status, message or explain or status.phrase)
        self.discard_contents()

    def _refuse(self, status: HTTPStatus, error: object) -> None:
        kind = "internal" if status is HTTPStatus.INTERNAL_SERVER_ERROR else "validation"
        self._send(status, checked("Error", {"code": int(status), "kind": kind, "errors": [str(error)]}))

    def _send(self, status: HTTPStatus, answer: Mapping[str, Any] | bytes) -> None:
        if isinstance(answer, bytes):
            kind, data = "application/octet-stream", answer
        else:
            kind, data = "application/json", json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self) -> dict[str, Any] | bytes:
        path = self.path.partition("?")[0]
        path, parts = EARLIER.get(path, (path, ()))
        if (self.command, path) not in ROUTES:
            there = ", ".join(" ".join(each) for each in ROUTES)
            raise _RefusalError(
                HTTPStatus.NOT_FOUND, f"{self.command} {path[:100]} is not supported; possible: {there}"
            )
        name, model = ROUTES[self.command, path]

        contents = [] if self.command == "GET" else [self._contents()]
        for part in reversed(parts):
            contents = [{"choice": part, part: contents[0]}]
        self.server.begin_answer(self.connection)
        made = getattr(self.server.tester, name)(*contents)
        return bytes(made) if model is None else checked(model, made)

    def _contents(self) -> Any:
        # Pages in a browser cannot send this type to another server without asking it.
        if self.headers.get_content_type() != "application/json":
            raise _RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request needs the Content-Type application/json")

        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise _RefusalError(HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            text = f"a request may have at most {MOST_BYTES:,} bytes"
            raise _RefusalError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)

        data = self.rfile.read(int(length))
        if len(data) < int(length):
            if self.server.is_late(self.connection):
                raise _RefusalError(HTTPStatus.REQUEST_TIMEOUT, TOO_SLOW)
            raise _RefusalError(HTTPStatus.BAD_REQUEST, "its contents are shorter than its Content-Length says")
        try:
            return parse_json(data)
        except ValueError as error:
            raise ModelError(f"the request is not JSON: {str(error)[:200]}") from error


class OtgServer(LocalServer):
    """The server on a socket that listens; as a context manager, it is closed at the end, with its tester.

    Raises:
        TopologyError: If snappi is not there.
    """

    def __init__(self, tester: Tester, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        load_snappi()
        self.tester = tester
        super().__init__(listener, _Handler, tls)

    def server_close(self) -> None:
        """Stops all traffic, and listens no more."""
        self.tester.close()
        super().server_close()

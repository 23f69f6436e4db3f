"""The REST interface of the Open Traffic Generator in front of a `Tester`: requests and answers by snappi's models."""

import json
import socket
import ssl
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from lossratio.errors import LossRatioError
from lossratio.input_file import parse_json
from lossratio.traffic.otg import ModelError, checked, load_snappi
from lossratio.version import __version__
from lossratio_otg.flows import check_counts
from lossratio_otg.http_server import TOO_SLOW, LocalHandler, LocalServer
from lossratio_otg.packets import FieldError
from lossratio_otg.tester import BusyError, Tester

MOST_BYTES = 1 << 20
"""The maximum number of bytes of a request."""


def _version(_tester: Tester, _model: Any, _sent: Any) -> dict[str, Any]:
    local = load_snappi().api().get_local_version()
    versions = {"api_spec_version": local.api_spec_version, "sdk_version": local.sdk_version}
    return {**versions, "app_version": f"lossratio {__version__}"}


def _config(tester: Tester, _model: Any, _sent: Any) -> Any:
    return tester.config


def _set_config(tester: Tester, model: Any, sent: Any) -> dict[str, Any]:
    return {"warnings": tester.set_config(model, sent)}


def _set_state(tester: Tester, model: Any, sent: Any) -> dict[str, Any]:
    return {"warnings": tester.set_state(model, sent)}


# Table: one row for each request.
ROUTES: Mapping[tuple[str, str], tuple[Callable[[Tester, Any, Any], Any], str | None, str | None]] = {
    ("GET", "/capabilities/version"): (_version, "Version", None),
    ("GET", "/config"): (_config, "Config", None),
    ("POST", "/config"): (_set_config, "Warning", "Config"),
    ("POST", "/control/state"): (_set_state, "Warning", "ControlState"),
    ("POST", "/monitor/metrics"): (Tester.metrics, "MetricsResponse", "MetricsRequest"),
    ("POST", "/monitor/capture"): (Tester.capture, None, "CaptureRequest"),
}
"""How a request is answered, by method and path: the function, the model of its answer, and the model of the request.

None: the answer is a file, or the request has no contents. The function gets the tester, the request as read by the
models, and the raw request."""
EARLIER: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "/control/transmit": ("/control/state", ("traffic", "flow_transmit")),
    "/control/capture": ("/control/state", ("port", "capture")),
    "/results/metrics": ("/monitor/metrics", ()),
    "/results/capture": ("/monitor/capture", ()),
}
"""Paths of requests in earlier models (snappi 0.9): the present path, and the parts of its request that contain the
contents."""


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

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses a request that was not read completely, because it is not known where the next one begins."""
        status = HTTPStatus(code)
        self.close_connection = True
        self._refuse(status, message or explain or status.phrase)
        self.discard_contents()

    def _refuse(self, status: HTTPStatus, error: object, kind: str = "validation") -> None:
        self._send(status, checked("Error", {"code": int(status), "kind": kind, "errors": [str(error)]}))

    def _send(self, status: HTTPStatus, answer: Mapping[str, Any] | bytes) -> None:
        if isinstance(answer, bytes):
            kind, data = "application/octet-stream", answer
        else:
            kind, data = "application/json", json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
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
        answer, returns, takes = ROUTES[self.command, path]

        sent = None if takes is None else self._contents()
        for part in reversed(parts):
            sent = {"choice": part, part: sent}
        with self.server.at_work(self.connection):
            check_counts(sent)
            model = None if takes is None else checked(takes, sent)
            made = answer(self.server.tester, model, sent)
            return checked(returns, made) if returns is not None else bytes(made)

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
    """The server; as a context manager, it is closed at the end, with its tester. TCP port 0: any free port.

    Raises:
        TopologyError: If snappi is not there.
    """

    def __init__(
        self, tester: Tester, place: tuple[str, int] | socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        load_snappi()
        self.tester = tester
        super().__init__(place, _Handler, tls)

    def server_close(self) -> None:
        """Stops all traffic, and listens no more."""
        self.tester.close()
        super().server_close()

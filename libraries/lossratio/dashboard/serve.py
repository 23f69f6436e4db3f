"""Shows a site to the browsers of this machine: read only, and to nobody else."""

import os
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lossratio.errors import ReportError

HOST = "127.0.0.1"
"""The only address that is listened on."""


class _Handler(SimpleHTTPRequestHandler):
    """Hands out the files of one folder."""

    def send_head(self) -> Any:
        # A page of another site whose name leads to this machine is not to read the results.
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        if host not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN, "Open the address that lossratio site --serve shows")
            return None
        if not self._is_inside():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def _is_inside(self) -> bool:
        """Whether the path is the file's own, without a link in it."""
        path = self.translate_path(self.path).rstrip("/")
        try:
            return os.path.realpath(path) == path
        except (OSError, ValueError):
            return False

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """Prints no line for a request: the browser shows the site."""


def serve_site(folder: Path, port: int, announce: Callable[[str], None]) -> None:
    """Serves a site until it is interrupted.

    Raises:
        ReportError: If the port cannot be had.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, directory=str(folder.resolve())))
    except OSError as error:
        raise ReportError(
            f"Port {port} cannot be had: {error.strerror}. Give another one, or leave --port out."
        ) from error
    with server:
        announce(f"http://{HOST}:{server.server_address[1]}/")
        server.serve_forever()

"""Runs `lossratio` for shell scripts under test, each command in a process of its own that need not import it anew.

``command_server.py SOCKET`` has imported what commands need, and forks for each one. `client` is the text of a program
that stands in the place of ``lossratio``: it hands its arguments, environment, directory and standard streams over, and
ends with the command's exit status.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
from importlib import import_module
from pathlib import Path

from lossratio.commands.main import main, sections

MOST_BYTES = 1 << 20


def client(address: Path) -> str:
    """A program that has a command run by the server at an address."""
    return f"""#!{sys.executable} -IS
import json, os, socket, sys
request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({str(address)!r})
    socket.send_fds(server, [request], [0, 1, 2])
    sys.exit(server.recv(1)[0])
"""


class _Command(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        request, streams, *_ = socket.recv_fds(self.request, MOST_BYTES, 3)
        arguments, directory, environment = json.loads(request)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["lossratio", *arguments]
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        sys.stdout.flush()
        self.request.sendall(bytes([status]))


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    pass


if __name__ == "__main__":
    for section in sections().values():
        for entry in section:
            entry.load()
    # The commands themselves import these late.
    for room in ("report.history", "report", "runs", "testbed.simulated"):
        import_module(f"lossratio.{room}")

    with _Server(sys.argv[1], _Command) as server:
        print("ready", flush=True)
        server.serve_forever()

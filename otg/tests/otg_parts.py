"""A server of the Open Traffic Generator that sends no frames, and a client of it."""

import json
import socket
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

from lossratio_otg.server import OtgServer
from lossratio_otg.tester import Tester

STATE = {
    word: {"choice": "traffic", "traffic": {"choice": "flow_transmit", "flow_transmit": {"state": word}}}
    for word in ("start", "stop")
}
"""Requests to start and to stop all flows."""


class Generator:
    """Stands for the generator of this machine: it sends nothing."""

    def __init__(self, kind):
        self.kind = kind
        self.flows = ()

    def configure(self, flows, configuration):
        self.flows = flows

    def close(self):
        pass


@contextmanager
def serving(monkeypatch, context=None):
    """A server with the ports tg0 and tg1, in a thread; with a context of TLS it speaks TLS alone."""
    monkeypatch.setattr("lossratio_otg.tester.OwnGenerator", Generator)
    tester = Tester({"tg0": "tg0", "tg1": "tg1"}, "afpacket", 0.1, print)
    with OtgServer(tester, socket.create_server(("127.0.0.1", 0)), context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, method, path, contents=None, **headers):
    """Status and answer of a request whose contents are JSON data, or bytes."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    body = contents if contents is None or isinstance(contents, bytes) else json.dumps(contents).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, {"Content-Type": "application/json", **names})
    answer = connection.getresponse()
    data = json.loads(answer.read())
    connection.close()
    return answer.status, data

"""An installation of TRex whose server and client are stand-ins: real processes, real connections, no frames.

The client says what tests/unit/traffic/trex_stand_in.py makes up, on this machine's clock, while its connection
to the process of the server lasts.
"""

from __future__ import annotations

import sys
from pathlib import Path

STAND_INS = Path(__file__).parents[1] / "traffic"

SERVER = f"""#!{sys.executable}
import signal, socket, sys, time

# A program that a shell starts in the background ignores it. TRex does not.
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("Starting  TRex v3.08 please wait  ...", flush=True)
configuration = open(sys.argv[sys.argv.index("--cfg") + 1]).read()
port = next(line.split()[-1] for line in configuration.splitlines() if "zmq_rpc_port" in line)
listener = socket.create_server(("127.0.0.1", int(port)))
time.sleep(600)
"""

CLIENT = f"""import socket, sys, time

sys.path.insert(0, {str(STAND_INS)!r})
from trex_parts import *
from trex_stand_in import Client, Server


class RealTime(Server):
    now = property(lambda self: time.monotonic(), lambda self, time_: time.sleep(max(0.0, time_ - time.monotonic())))


class STLClient(Client):
    def __init__(self, server, sync_port, **named):
        super().__init__(RealTime())
        self._place = (server, sync_port)
        self._socket = None

    def _called(self, method):
        try:
            if method == "connect":
                self._socket = socket.create_connection(self._place)
                self._socket.setblocking(False)
            if self._socket.recv(1) == b"":
                raise ConnectionResetError
        except BlockingIOError:
            pass
        except (OSError, AttributeError):
            raise TRexError("*** [RPC] - Failed to get server response from tcp://%s:%s" % self._place)
        super()._called(method)
"""


def install(directory: Path) -> Path:
    """Writes the installation, and returns its directory."""
    client = directory / "automation" / "trex_control_plane" / "interactive" / "trex" / "stl"
    client.mkdir(parents=True)
    for package in (client, client.parent):
        (package / "__init__.py").touch()
    (client / "api.py").write_text(CLIENT)
    program = directory / "_t-rex-64"
    program.write_text(SERVER)
    program.chmod(0o755)
    return directory

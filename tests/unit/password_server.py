"""An SSH server that lets in who knows the password."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import paramiko

PASSWORD = "open sesame"


class PasswordServer(paramiko.ServerInterface):
    """What OpenSSH does with a password needs accounts of the machine; this speaks the same protocol."""

    def get_allowed_auths(self, username):
        return "password"

    def check_auth_password(self, username, password):
        return paramiko.AUTH_SUCCESSFUL if password == PASSWORD else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        """Every command succeeds, and writes nothing."""

        def end():
            with suppress(EOFError, OSError):
                channel.send_exit_status(0)
                channel.close()

        # The answer to this request is sent first.
        threading.Timer(0.5, end).start()
        return True


@dataclass(frozen=True)
class Served:
    """Where the server is, on this machine, and its public host key."""

    port: int
    host_key: str


@contextmanager
def password_server() -> Iterator[Served]:
    """Serves one connection; somebody must make it."""
    host_key = paramiko.RSAKey.generate(2048)
    transports = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            transport = paramiko.Transport(connection)
            transports.append(transport)
            transport.add_server_key(host_key)
            # A client that refuses the host key may close its end with a reset.
            with suppress(EOFError, ConnectionError, paramiko.SSHException):
                transport.start_server(server=PasswordServer())

        thread = threading.Thread(target=serve)
        thread.start()
        yield Served(listener.getsockname()[1], f"ssh-rsa {host_key.get_base64()}")
        thread.join()
    for transport in transports:
        transport.close()

"""A real sshd on the loopback interface, with keys of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from ports import free_port
from waiting import PATIENCE

from lossratio.nodes import NodeSession
from lossratio.topology import Interface, Node

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") or ""
needs_sshd = [pytest.mark.netns, pytest.mark.skipif(not SSHD, reason="no sshd on this machine")]
RELAY = """
import os, select, socket, sys
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for ready in select.select([0, far], [], [])[0]:
        data = os.read(ready if ready == 0 else far.fileno(), 65536)
        if not data:
            raise SystemExit
        far.sendall(data) if ready == 0 else os.write(1, data)
"""
"""A program that is a `ProxyCommand`: it connects its own input and output with a host and a port."""


def make_key(path, kind="ed25519", passphrase=""):
    bits = ["-b", "2048"] if kind == "rsa" else []
    subprocess.run(["ssh-keygen", "-q", "-t", kind, *bits, "-N", passphrase, "-f", path], check=True)
    return Path(f"{path}.pub").read_text().strip()


def wait_until_listening(port, server):
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None, "sshd ended at once"
        time.sleep(0.01)
    raise AssertionError("sshd does not listen")


def private_command(command, directory):
    """As root, sshd needs /run/sshd, and the user's shell start-up files would cost a quarter second a command."""
    if os.geteuid() != 0:
        return command
    (directory / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n"
        + "".join(f"{one.pw_name}:x:{one.pw_uid}:{one.pw_gid}::/:/bin/false\n" for one in pwd.getpwall() if one.pw_uid)
    )
    (directory / "shadow").write_text("root:*:::::::\n")
    script = (
        'mount -t tmpfs none /run && mkdir /run/sshd && mount --bind "$1/passwd" /etc/passwd && '
        'mount --bind "$1/shadow" /etc/shadow && shift && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(directory), *command]


class Server:
    def __init__(self, directory, sudo):
        self.port = free_port()
        self.host_key = make_key(directory / "host_key")
        self.rsa_host_key = make_key(directory / "rsa_host_key", "rsa")
        authorized = make_key(directory / "user_key")
        authorized += "\n" + make_key(directory / "locked_key", passphrase="open sesame")
        (directory / "authorized_keys").write_text(authorized + "\n")
        make_key(directory / "other_key")
        (directory / "config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\n"
            f'HostKey "{directory}/host_key"\nHostKey "{directory}/rsa_host_key"\n'
            f'AuthorizedKeysFile "{directory}/authorized_keys"\nStrictModes no\nUsePAM no\nPidFile none\n'
            "PasswordAuthentication no\n"
            f'SetEnv "PATH={sudo}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin"\n'
        )
        self.directory = directory
        with (directory / "log").open("wb") as log:
            command = private_command([SSHD, "-D", "-e", "-f", str(directory / "config")], directory)
            self.process = subprocess.Popen(command, stderr=log)
        wait_until_listening(self.port, self.process)

    def node(self, **changes):
        fields = {
            "type": "DUT",
            "host": "127.0.0.1",
            "port": self.port,
            "key_file": self.directory / "user_key",
            "host_key": self.host_key,
            "interfaces": {"port0": Interface(link="link0", name="eth0")},
        }
        return Node(**{**fields, **changes})

    def connect(self, **changes):
        return NodeSession.connect("DUT1", self.node(**changes))

    def close(self):
        self.process.kill()
        self.process.wait()


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def sshd_of(session):
    with session.start("sh", "-c", "echo $$; cat", plain=True) as process:
        pid = int(process.read_line(PATIENCE))
        while not Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
            pid = parent_of(pid)
    return pid

from __future__ import annotations

import os
import subprocess

import pytest
from ssh_server import Server, needs_sshd
from waiting import wait_until

from lossratio.nodes import NodeSession
from lossratio.topology import Node


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("sshd")
    sudo = directory / "bin"
    sudo.mkdir()
    (sudo / "sudo").write_text('#!/bin/sh\necho "as root: $*" >&2\n[ "$1 $2" = "-n --" ] && shift 2 && exec "$@"\n')
    (sudo / "sudo").chmod(0o755)
    server = Server(directory, sudo)
    yield server
    server.close()


@pytest.fixture(scope="session")
def namespace(tmp_path_factory):
    """A directory with the name ``lab`` of a network namespace, as containerlab makes such names."""
    if os.geteuid() != 0:
        pytest.skip("only root enters namespaces without a log-in")
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as holder:
        names = tmp_path_factory.mktemp("netns")
        wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
        (names / "lab").symlink_to(f"/proc/{holder.pid}/ns/net")
        yield names
        holder.stdin.close()


@pytest.fixture
def ssh_session(server):
    """A session over SSH."""
    with server.connect() as session:
        yield session


@pytest.fixture(params=[pytest.param("ssh", marks=needs_sshd), "namespace"])
def session(request, monkeypatch):
    """A session over SSH, and one in a namespace of this machine: both behave in the same way."""
    if request.param == "ssh":
        yield request.getfixturevalue("ssh_session")
        return
    monkeypatch.setattr("lossratio.nodes.namespaces.NETNS_DIRECTORY", request.getfixturevalue("namespace"))
    node = Node(type="DUT", netns="lab", interfaces={"west": {"name": "eth1"}})
    with NodeSession.connect("DUT1", node) as session:
        yield session

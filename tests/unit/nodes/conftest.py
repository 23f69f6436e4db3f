from __future__ import annotations

import pytest
from ssh_server import Server


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


@pytest.fixture
def session(server):
    with server.connect() as session:
        yield session

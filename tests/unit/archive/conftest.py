from __future__ import annotations

import socket

import pytest
from archive_examples import measure


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("runs") / "tonight")


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

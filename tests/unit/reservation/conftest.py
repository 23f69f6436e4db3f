from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ssh_server import Server

sys.path.insert(0, str(Path(__file__).parent))

from reservation_lab import Lab


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("sshd"), "/nowhere")
    yield server
    server.close()


@pytest.fixture
def lab(server, tmp_path):
    with Lab(server, tmp_path / "lossratio") as lab:
        yield lab

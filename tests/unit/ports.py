"""Ports of the loopback interface which nobody else gets meanwhile."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

LOOPBACK = "127.0.0.1"
# Those from 32768 on are Linux's to give: to connections, and to servers that ask for any port.
ASSIGNED_BY_NOBODY = range(10_000, 32_768)


def free_port() -> int:
    """A port for a program that opens it itself."""
    # The seed of the module's own generator is the tests', and may be the same in other processes.
    chance = random.SystemRandom()
    while True:
        port = chance.choice(ASSIGNED_BY_NOBODY)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
        return port


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections, and stays taken."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield int(taken.getsockname()[1])

"""Tests in a laboratory of virtual machines. `make lab` runs them, and `make test` does not collect them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from layouts import for_tests, pair_of_machines
from machines import VirtualLab

TEST_SECONDS = 3600
"""The longest that a test may take: its machines may have to be made, and boot on a busy host."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Gives all of them their marker, and time."""
    item.add_marker(pytest.mark.virtual_lab)
    item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture(scope="session")
def lab() -> Iterator[VirtualLab]:
    """A TG and a DUT with kernels of Debian's release."""
    with for_tests(pair_of_machines) as machines:
        yield machines


@pytest.fixture
def lossratio(tmp_path: Path) -> Callable[..., str]:
    """Runs the command ``lossratio`` as users do, and returns what it printed."""

    def run(*arguments: object, status: int = 0) -> str:
        command = [sys.executable, "-m", "lossratio", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        assert done.returncode == status, done.stdout
        return done.stdout

    return run

"""Local testbeds for tests: whether they can be had here, and topology files and state directories of a test's own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lossratio.testbed.local import why_unavailable

LOCAL = Path(__file__).parents[2] / "topologies" / "local.yaml"
WHY_NOT = why_unavailable()
needs_testbed = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


def local_topology(directory: Path, name: str, more: str = "") -> Path:
    """A file of the local topology with a name that no other run of the tests has, and with more lines at its end."""
    file = directory / f"{name}-{os.getpid()}.yaml"
    file.write_text(LOCAL.read_text().replace("name: local", f"name: {file.stem}") + more)
    return file


@contextmanager
def own_state() -> Iterator[None]:
    """A state directory of its own, so that whatever else is up on this machine is not seen; with a short name."""
    with tempfile.TemporaryDirectory(prefix="lossratio-state-") as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state)
        yield

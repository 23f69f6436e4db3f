from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runner_examples import Finished

from lossratio.cli import main


@pytest.fixture
def lossratio(monkeypatch, capfd, tmp_path):
    """Runs the command in the test's own directory."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["lossratio", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        return Finished(status, *capfd.readouterr())

    return run

"""How a suite imports the keyword library."""

from __future__ import annotations

import subprocess
import sys

import pytest

SUITE = """*** Settings ***
Library    {library}

*** Test Cases ***
One
    {keyword}
"""


def _run(tmp_path, library, keyword="Tear Down Testbed"):
    (tmp_path / "one.robot").write_text(SUITE.format(library=library, keyword=keyword))
    command = [sys.executable, "-m", "robot", "--output", "NONE", "--log", "NONE", "--report", "NONE", "one.robot"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("library", ["LossRatio", "lossratio.keywords.LossRatio"])
def test_the_library_has_a_short_and_a_long_name(tmp_path, library):
    done = _run(tmp_path, library)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("library", ["lossratio", "lossratio    quick    resume=x", "lossratio.keywords"])
def test_the_python_api_is_no_library_and_says_which_import_is_meant(tmp_path, library):
    done = _run(tmp_path, library)
    assert done.returncode == 1
    assert "This name belongs to the Python API. The keyword library is: Library    LossRatio" in done.stderr
    assert "Traceback" not in done.stderr
    assert "No keyword with name 'Tear Down Testbed' found" in done.stdout

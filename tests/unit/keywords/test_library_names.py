"""How a suite imports the keyword library."""

from __future__ import annotations

import subprocess
import sys

import pytest

SUITE = """*** Settings ***
Library    {library}

*** Test Cases ***
One
    Tear Down Testbed
"""
LIBRARIES = ("LossRatio", "lossratio.keywords.LossRatio")
NO_LIBRARIES = ("lossratio", "lossratio    quick    resume=x", "lossratio.keywords")


def _run(directory, libraries):
    """One run of a suite for each name of a library."""
    for number, library in enumerate(libraries):
        (directory / f"{number}.robot").write_text(SUITE.format(library=library))
    command = [sys.executable, "-m", "robot", "--output", "NONE", "--log", "NONE", "--report", "NONE", "."]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.whole
def test_the_library_has_a_short_and_a_long_name(tmp_path):
    done = _run(tmp_path, LIBRARIES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 tests, 2 passed" in done.stdout


@pytest.mark.whole
def test_the_python_api_is_no_library_and_says_which_import_is_meant(tmp_path):
    done = _run(tmp_path, NO_LIBRARIES)
    assert done.returncode == len(NO_LIBRARIES)
    message = "This name belongs to the Python API. The keyword library is: Library    LossRatio"
    assert done.stderr.count(message) == len(NO_LIBRARIES)
    assert "Traceback" not in done.stderr
    assert done.stdout.count("No keyword with name 'Tear Down Testbed' found") == len(NO_LIBRARIES)

"""pabot runs suites in several processes, and what they leave is one run: the same names, one page, one history."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ports import free_port
from robot_runs import ROOT, SIMULATED, called, write_suite

from lossratio.report.run import read_run, runs_in
from lossratio.results.run_directory import RunDirectory

pytestmark = pytest.mark.whole

TESTS = """
64B mrr
    Measure MRR    64B    trials=1

1518B mrr
    Measure MRR    1518B    trials=1
"""
NAMES = ["Core.Suite.1518B mrr", "Core.Suite.64B mrr", "Edge.Suite.1518B mrr", "Edge.Suite.64B mrr"]
VARIABLES = ("--pythonpath", ROOT / "libraries", "--variable", f"TOPOLOGY:{SIMULATED}")


def pabot(folder, *arguments):
    """Runs the suites of a folder in two processes, and returns what was said."""
    robot = ("--command", sys.executable, "-m", "robot", "--end-command")
    command = [sys.executable, "-m", "pabot.pabot", *robot, "--processes", "2", "--outputdir", "night"]
    # Another run of these tests may have started its server on the usual port.
    command += ["--pabotlibport", str(free_port())]
    command += [*map(str, (*VARIABLES, *arguments))]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The folder of a project with two suites of one name, which pabot has run."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("core", "edge"):
        (folder / name).mkdir()
        write_suite(folder / name, TESTS)
        (folder / name / "robot.toml").unlink()
    (folder / "pyproject.toml").touch()
    pabot(folder, "core", "edge")
    return folder


def test_the_folder_of_a_parallel_run_is_one_run_with_one_page(project, lossratio):
    night = project / "night"
    assert len(list((night / "pabot_results").glob("*/results"))) == 2
    assert runs_in(night) == [night]
    assert sorted(result.test.full_name for result in read_run(night).results) == NAMES
    done = lossratio("report", night)
    assert done.status == 0, done.err
    page = (night / "lossratio.html").read_text()
    assert "4 values of 4 results" in page
    assert lossratio("report", night, "--format", "csv", "--output", "-").out.count("\nnight,") == 4


def test_a_parallel_night_and_a_plain_one_are_the_same_series(project, lossratio):
    assert called(project, *VARIABLES, "--outputdir", "plain", "edge", "core") == 0
    assert sorted(result.test.full_name for result in RunDirectory(project / "plain").results()) == NAMES
    done = lossratio("trend", project / "history", "--add", project / "night", "--add", project / "plain")
    assert "4 series of 8 results" in done.out, done.err
    compared = lossratio("compare", project / "night", project / "plain")
    assert "not in" not in compared.out

"""The guide's lab is set up as its reader would: own topology, own path, own suite; with real frames."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest
from examples import examples_in
from local_testbeds import needs_testbed
from robot_runs import ROOT, RobotRun

from lossratio.topology import load_topology

TEXT = (ROOT / "docs" / "how-to" / "add-a-topology.md").read_text()


def example(language):
    (text,) = examples_in(TEXT, language)
    return text


@pytest.fixture
def lab(tmp_path):
    """The directory with the reader's files."""
    (tmp_path / "our-lab.yaml").write_text(example("yaml"))
    (tmp_path / "our_suite.robot").write_text(example("robotframework"))
    return tmp_path


def test_its_paths_are_those_of_the_guide(lab):
    topology = load_topology(lab / "our-lab.yaml")
    assert [str(port) for port in (topology.path().west, topology.path().east)] == ["TG.p0", "TG.p1"]
    assert [hop.node_name for hop in topology.path().hops] == ["first", "second"]
    assert [str(port) for port in topology.path(duts=1).ports] == ["TG.p0", "first.west", "first.home", "TG.p2"]


@pytest.mark.netns
@needs_testbed
def test_its_suite_measures_on_it(lab):
    catalogue, include = "our-lab.yaml:duts=1", "64b"
    assert "lossratio.keywords.Catalogue:our-lab.yaml --include 3_node_single_link_topoANDmrr our_suite.robot" in TEXT
    assert f"lossratio.keywords.Catalogue:{catalogue} --include {include} our_suite.robot" in TEXT
    with tempfile.TemporaryDirectory(prefix="lossratio-state-") as state:
        path = str(ROOT / "libraries")
        run = subprocess.run(
            [
                *(sys.executable, "-m", "robot", "--outputdir", "out", "--include", include),
                *("--prerunmodifier", f"lossratio.keywords.Catalogue:{catalogue}", "our_suite.robot"),
            ],
            cwd=lab,
            env={**os.environ, "PYTHONPATH": path, "XDG_STATE_HOME": state},
            check=False,
            capture_output=True,
            text=True,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert list(RobotRun(lab / "out", run.returncode).tests) == ["64B-1c-eth-l2bdours-mrr"]

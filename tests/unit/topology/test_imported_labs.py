"""Labs are imported by command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lab_examples import ROUND, deployed

from lossratio.topology import load_topology


def test_an_imported_lab_is_a_topology_with_the_path(lossratio, tmp_path):
    (tmp_path / "round.json").write_text(ROUND)
    arguments = ("lab", "import", "containerlab", tmp_path / "round.json", "--tg", "tester")
    arguments += ("--output", tmp_path / "round.yaml")
    status, out, _ = lossratio(*arguments)
    assert status == 0
    assert "The path goes through r1 (nokia_srlinux), r2 (nokia_srlinux)." in out
    assert [hop.node_name for hop in load_topology(tmp_path / "round.yaml").path().hops] == ["r1", "r2"]
    status, _, err = lossratio(*arguments)
    assert (status, "already exists" in err) == (2, True)
    status, _, err = lossratio(*arguments, "--name", "mine")
    assert (status, "--name names a traffic profile" in err) == (2, True)


@pytest.mark.whole
def test_an_imported_lab_is_written_in_utf_8_whatever_the_language_of_the_shell(tmp_path):
    lab, file = tmp_path / "round.json", tmp_path / "round.yaml"
    lab.write_text(ROUND.replace('"name": "round"', '"name": "Büro"'), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "lossratio",
        "lab",
        "import",
        "containerlab",
        lab,
        "--tg",
        "tester",
        "--output",
        file,
    ]
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, env=plain, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "the lab Büro of containerlab" in file.read_text(encoding="utf-8")


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "measure-a-lab-of-another-tool.md"
KINDS = {"client1": "linux", "client2": "linux", "leaf1": "nokia_srlinux", "leaf2": "nokia_srlinux"}
CABLES = ("client1:eth1 leaf1:e1-1", "leaf1:e1-49 spine:e1-1", "spine:e1-2 leaf2:e1-49", "leaf2:e1-1 client2:eth1")


def test_the_command_on_the_page_about_other_labs_says_what_the_page_shows(lossratio, tmp_path, monkeypatch):
    command, *shown = PAGE.read_text().split("```console\n$ ")[1].split("\n```")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    Path("clab-clos01").mkdir()
    lab = deployed("clos01", {**KINDS, "spine": "nokia_srlinux"}, *CABLES)
    Path("clab-clos01", "topology-data.json").write_text(lab)
    program, *words = shlex.split(command)
    assert program == "lossratio"
    status, out, err = lossratio(*words)
    assert (status, err) == (0, "")
    assert out.splitlines() == shown
    topology = load_topology("clos01.yaml")
    assert (topology.tg_names, topology.nodes["client2"].netns) == (("client1", "client2"), "clab-clos01-client2")

"""Labs are imported and joined by command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lab_examples import ADDRESSED, ROUND
from local_testbeds import needs_testbed

from lossratio.topology import import_lab, load_topology, read_containerlab


def test_an_imported_lab_is_a_topology_with_the_path(lossratio, tmp_path):
    (tmp_path / "round.clab.yml").write_text(ROUND)
    arguments = ("lab", "import", "containerlab", tmp_path / "round.clab.yml", "--output", tmp_path / "round.yaml")
    status, out, _ = lossratio(*arguments)
    assert status == 0
    assert "The path goes through r1 (nokia_srlinux), r2 (nokia_srlinux)." in out
    assert [hop.node_name for hop in load_topology(tmp_path / "round.yaml").path().hops] == ["r1", "r2"]
    (tmp_path / "addressed.clab.yml").write_text(ADDRESSED)
    of_the_lab = ("--addresses", "lab", "--output", tmp_path / "addressed.yaml")
    assert lossratio("lab", "import", "containerlab", tmp_path / "addressed.clab.yml", *of_the_lab)[0] == 0
    assert load_topology(tmp_path / "addressed.yaml").addresses == "lab"
    status, _, err = lossratio(*arguments)
    assert (status, "already exists" in err) == (2, True)


@pytest.mark.whole
def test_an_imported_lab_is_written_in_utf_8_whatever_the_language_of_the_shell(tmp_path):
    lab, file = tmp_path / "round.clab.yml", tmp_path / "round.yaml"
    lab.write_text('prefix: ""\n' + ROUND.replace("name: round", "name: Büro"), encoding="utf-8")
    command = [sys.executable, "-m", "lossratio", "lab", "import", "containerlab", lab, "--output", file]
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, env=plain, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "the lab Büro of containerlab" in file.read_text(encoding="utf-8")


PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "measure-a-lab-of-another-tool.md"
CLOS = """\
name: clos01
topology:
  nodes:
    client1: {kind: linux, image: "alpine:3"}
    client2: {kind: linux, image: "alpine:3"}
    leaf1: {kind: nokia_srlinux}
    leaf2: {kind: nokia_srlinux}
    spine: {kind: nokia_srlinux}
  links:
    - endpoints: ["client1:eth1", "leaf1:e1-1"]
    - endpoints: ["leaf1:e1-49", "spine:e1-1"]
    - endpoints: ["spine:e1-2", "leaf2:e1-49"]
    - endpoints: ["leaf2:e1-1", "client2:eth1"]
"""


def test_the_command_on_the_page_about_other_labs_says_what_the_page_shows(lossratio, tmp_path, monkeypatch):
    command, *shown = PAGE.read_text().split("```console\n$ ")[1].split("\n```")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    Path("clos01.clab.yml").write_text(CLOS)
    program, *words = shlex.split(command)
    assert program == "lossratio"
    status, out, err = lossratio(*words)
    assert (status, err) == (0, "")
    assert out.splitlines() == shown
    topology = load_topology("clos01.yaml")
    assert (topology.tg_names, topology.nodes["client2"].netns) == (("client1", "client2"), "clab-clos01-client2")


JOIN = """
mount -t tmpfs tmpfs /run && ip netns add clab-round-r1 && ip netns add clab-round-r2 && cd "$0" || exit 9
"$1" -m lossratio lab join round.yaml && "$1" -m lossratio lab join round.yaml || exit 8
ip -n lossratio-round -br link show && ip -n clab-round-r1 -br link show e1-3 && ip -n clab-round-r2 -br link show e1-3
ip netns exec clab-round-r1 ethtool -k e1-3 | grep tx-checksumming
"$1" -m lossratio lab part round.yaml && ip netns list && ip -n clab-round-r1 link show e1-3
"""


@pytest.mark.netns
@needs_testbed
def test_a_namespace_is_joined_to_a_lab_and_taken_away(tmp_path):
    lab = tmp_path / "round.clab.yml"
    lab.write_text(ROUND)
    (tmp_path / "round.yaml").write_text(import_lab(read_containerlab(lab), lab, join=["r1", "r2"]))
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = ["unshare", *user, "--net", "--mount", "sh", "-c", JOIN, str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        "lossratio-round lr0 -- e1-3 clab-round-r1\nlossratio-round lr1 -- e1-3 clab-round-r2\n"
        "The namespace is already joined" in done.stdout
    )
    assert done.stdout.count(" UP ") == 4, done.stdout + done.stderr
    assert "tx-checksumming: off" in done.stdout
    assert "the namespace is removed" in done.stdout
    assert "lossratio-round" not in done.stdout.rpartition("removed.")[2]
    assert "does not exist" in done.stderr

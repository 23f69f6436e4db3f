from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from local_testbeds import LOCAL, local_topology, needs_testbed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["local", "simulated"])
def test_a_usable_topology_is_described(lossratio, name):
    status, out, err = lossratio("check", ROOT / "topologies" / f"{name}.yaml")
    assert (status, err) == (0, "")
    assert "The file is in order." in out
    ends = [" ".join(line.partition(":")[0].split()) for line in out.splitlines()[1:8]]
    assert ends[:6] == ["TG port0", "| link0", "DUT1 port0", "DUT1 port1", "| link1", "TG port1"]
    assert "kfps per interface" in out


def test_a_lab_is_not_taken_for_checked_where_only_its_file_was(lossratio):
    status, out, _ = lossratio("check", ROOT / "topologies" / "examples" / "lab-3n-afpacket.yaml")
    assert (status, "No node was looked at: --connect" in out) == (0, True)


def test_parallel_links_are_drawn(lossratio):
    file = ROOT / "topologies" / "local-2links.yaml"
    assert "parallel link 2 of 2:" in lossratio("check", file, "--links", "2")[1]
    status, _, err = lossratio("check", file, "--links", "3")
    assert (status, "there are 2" in err) == (2, True)


def test_a_generator_without_a_known_limit_is_told(lossratio, tmp_path):
    file = tmp_path / "unknown.yaml"
    file.write_text(LOCAL.read_text().replace(", max_rate: 200 kfps", ""))
    assert "max_load=" in lossratio("check", file)[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [", "wrong.yaml:"),
        ("format: lossratio-topology/1\nname: x\nnodes: {}\nspeed: 1\n", "wrong.yaml:4: speed: unknown field"),
    ],
)
def test_a_wrong_topology_is_one_message_and_status_2(lossratio, tmp_path, text, message):
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    status, out, err = lossratio("check", file)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [["check", "missing.yaml"], ["check"], ["nonsense"], ["testbed", "up", "missing"], ["report", "too-long" * 40]],
)
def test_what_cannot_be_done_is_status_2(lossratio, arguments):
    status, out, err = lossratio(*arguments)
    assert (status, out) == (2, "")
    assert "Traceback" not in err


def test_a_testbed_that_is_not_local_cannot_be_brought_up(lossratio):
    status, _, err = lossratio("testbed", "up", ROOT / "topologies" / "simulated.yaml")
    assert status == 2
    assert "simulated" in err


def test_the_version_and_the_help_are_told(lossratio):
    assert lossratio("--version")[1].startswith("lossratio, version")
    assert "testbed" in lossratio("--help")[1]


@pytest.mark.netns
@needs_testbed
def test_a_testbed_goes_up_and_down(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = local_topology(tmp_path, "of-the-command")

    def lossratio(*arguments):
        command = [sys.executable, "-m", "lossratio", "testbed", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert lossratio("status").stdout == "No testbed is up.\n"
    up = lossratio("up", file)
    assert (up.returncode, up.stderr) == (0, "")
    assert f"{file.stem} is up" in up.stdout
    again = lossratio("up", file)
    assert (again.returncode, again.stdout) == (2, "")
    assert "up already" in again.stderr
    assert lossratio("status").stdout == up.stdout
    assert lossratio("down").stdout == f"Testbed {file.stem} is down.\n"
    assert lossratio("status").stdout == lossratio("down").stdout == "No testbed is up.\n"

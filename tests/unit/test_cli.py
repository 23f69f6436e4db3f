from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from local_testbeds import LOCAL, local_topology, needs_testbed

from lossratio import open_testbed
from lossratio.commands import doctor
from lossratio.commands.main import SUBJECTS, commands, first_line, main, sections
from lossratio.errors import (
    ArchiveError,
    BuildError,
    JobError,
    NodeError,
    ReservationError,
    StorageError,
    TopologyError,
)
from lossratio.values.exit_status import MEANINGS, ExitStatus, status_of_error

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["local", "simulated"])
def test_a_usable_topology_is_described(lossratio, name):
    status, out, err = lossratio("check", ROOT / "topologies" / f"{name}.yaml")
    assert (status, err) == (0, "")
    assert "The file is valid." in out
    ends = [" ".join(line.partition(":")[0].split()) for line in out.splitlines()[1:8]]
    assert ends[:6] == ["TG port0", "| link0", "DUT1 port0", "DUT1 port1", "| link1", "TG port1"]
    assert "kfps per interface" in out


def test_a_lab_is_not_taken_for_checked_where_only_its_file_was(lossratio):
    status, out, _ = lossratio("check", ROOT / "topologies" / "examples" / "lab-3n-afpacket.yaml")
    assert (status, "No node was checked: --connect" in out) == (0, True)


TREX_LAB = """\
format: lossratio-topology/1
name: lab
nodes:
  TG:
    type: TG
    host: tg.example
    generator: {kind: trex, master_core: 0, latency_core: 1, cores: [{threads: [2]}]}
    interfaces:
      p0: {pci_address: "0000:3b:00.0", mac_address: "02:00:00:00:00:01", link: a}
      p1: {pci_address: "0000:3b:00.1", mac_address: "02:00:00:00:00:02", link: b}
  DUT1:
    type: DUT
    host: dut1.example
    interfaces:
      west: {name: e0, link: a}
      east: {name: e1, link: b}
"""
VPP = "host: dut1.example\n    vpp: {driver: rdma}"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"),
    [
        (', mac_address: "02:00:00:00:00:02"', "", 10, "nodes.TG.interfaces.p1: TRex needs the port's 'mac_address'"),
        ('pci_address: "0000:3b:00.0", mac_', "name: e0, mac_", 9, "TRex needs the port's 'pci_address'"),
        (":00:02", ":00:01", 10, "nodes.TG.interfaces.p1.mac_address: TG.p0 has the same mac_address"),
        ("3b:00.1", "3b:00.0", 10, "nodes.TG.interfaces.p1.pci_address: TG.p0 has the same pci_address"),
        ("[{threads: [2]}]", "[{threads: [2]}, {threads: [3]}]", 7, "cores: each pair of ports needs an entry"),
        ('"02:00:00:00:00:02"', '"03:00:00:00:00:02"', 10, "mac_address: no interface can have the address 03:00"),
        ("link: a}\n      p1", "link: a, speed: 100}\n      p1", 9, "write the unit, as in '25 Gbps'"),
        ("{kind: trex,", "{kind: trex, pin_cores: true,", 7, "'pin_cores' needs two or more cores"),
        ("{kind: trex,", "{kind: trex, tx_desc: 65536,", 7, "tx_desc"),
        ("{kind: trex,", "{kind: trex, rpc_port: 4500,", 7, "'rpc_port' and 'publisher_port' must differ"),
        (
            "host: dut1.example",
            "host: dut1.example\n    host_key: ssh-rsa none",
            14,
            "host_key: this is not a public key",
        ),
        ("host: dut1.example", VPP, 14, "VPP's driver rdma is for cards, and DUT1.west and DUT1.east would stay"),
    ],
)
def test_faults_that_would_end_a_set_up_are_found_in_the_file(lossratio, tmp_path, right, wrong, line, message):
    file = tmp_path / "lab.yaml"
    file.write_text(TREX_LAB)
    assert lossratio("check", file)[0] == 0
    assert right in TREX_LAB
    file.write_text(TREX_LAB.replace(right, wrong, 1))
    status, out, err = lossratio("check", file)
    assert (status, out) == (2, "")
    assert f"{file}:{line}: nodes." in err
    assert message in err


def test_a_model_of_nic_that_is_misspelt_is_noted_with_the_one_that_is_meant(lossratio, tmp_path):
    file = tmp_path / "lab.yaml"
    for model, note in (
        (
            "Intel-E810-CQ",
            "NOTE: TG.p1: the limits of the NIC model 'Intel-E810-CQ' are not known. Set them in 'nics', or ",
        ),
        ("Acme", "correct the model.\n"),
        ("intel-e810cq", None),
    ):
        file.write_text(TREX_LAB.replace("link: b}\n  DUT1", f"link: b, model: {model}}}\n  DUT1"))
        status, out, _ = lossratio("check", file)
        assert status == 0
        assert ("NOTE" in out) is (note is not None)
        assert note is None or note in out
        assert ("Is Intel-E810CQ meant?" in out) is (model == "Intel-E810-CQ")


def test_an_address_that_test_traffic_does_not_have_is_noted(lossratio, tmp_path):
    file = tmp_path / "lab.yaml"
    for own, is_noted in (("10.1.0.2/30", True), ("198.18.0.1/16", False)):
        file.write_text(TREX_LAB.replace("link: b}\n  DUT1", f"link: b, address: {own}}}\n  DUT1"))
        _, out, _ = lossratio("check", file)
        assert ("NOTE: TG.p1: its address 10.1.0.2/30 is not in 198.18.0.0/15" in out) is is_noted


def test_a_model_of_the_sut_that_makes_no_sense_is_found_in_the_file(lossratio, tmp_path):
    file = tmp_path / "simulated.yaml"
    text = (ROOT / "topologies" / "simulated.yaml").read_text()
    file.write_text(re.sub(r"sut: \{model: \w+", "sut: {model: magic", text))
    status, out, err = lossratio("check", file)
    assert (status, out) == (2, "")
    assert "nodes.DUT1.sut:" in err
    assert "magic" in err


def test_a_version_of_a_model_is_a_text_because_a_number_would_lose_its_last_zero(lossratio, tmp_path):
    file = tmp_path / "simulated.yaml"
    text = (ROOT / "topologies" / "simulated.yaml").read_text()
    file.write_text(text.replace("capacity: 150 kfps}", "capacity: 150 kfps, version: 26.10}"))
    status, out, err = lossratio("check", file)
    assert (status, out) == (2, "")
    assert "nodes.DUT1.sut: version: must be text, not 26.1. Put it in quotes" in err
    with pytest.raises(TopologyError, match="version: must be text"):
        open_testbed(file, dut="linux_bridge", options={"police": "50 kfps"})


@pytest.mark.whole
def test_every_topology_that_comes_along_is_in_order(lossratio):
    paths = sorted((ROOT / "topologies").rglob("*.yaml"))
    assert len(paths) > 10
    for path in paths:
        status, out, err = lossratio("check", path)
        assert (status, err, "The file is valid." in out) == (0, "", True), path


def test_parallel_links_are_drawn(lossratio):
    file = ROOT / "topologies" / "local-2links.yaml"
    assert "parallel link 2 of 2:" in lossratio("check", file, "--links", "2")[1]
    status, _, err = lossratio("check", file, "--links", "3")
    assert (status, "there are 2" in err) == (2, True)


def test_a_generator_without_a_known_limit_is_reported(lossratio, tmp_path):
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
    [["check", "missing.yaml"], ["check"], ["nonsense"], ["lab", "up", "missing"], ["report", "too-long" * 40]],
)
def test_an_impossible_request_is_status_2(lossratio, arguments):
    status, out, err = lossratio(*arguments)
    assert (status, out) == (2, "")
    assert "Traceback" not in err


def test_a_testbed_that_is_not_local_cannot_be_brought_up(lossratio):
    status, _, err = lossratio("lab", "up", ROOT / "topologies" / "simulated.yaml")
    assert status == 2
    assert "simulated" in err


def test_the_version_is_shown(lossratio):
    assert lossratio("--version")[1].startswith("lossratio, version")


@pytest.mark.whole
def test_the_help_shows_every_command_in_its_group_and_every_exit_status(lossratio):
    text = lossratio("--help").out
    for title, entries in sections().items():
        subject = title.removeprefix("lossratio ")
        help_text, section = (lossratio(subject, "--help").out, "Commands") if subject in SUBJECTS else (text, title)
        _, _, shown = help_text.partition(f"\n{section}:\n")
        names = [line.split()[0] for line in shown.partition("\n\n")[0].splitlines() if line[2] != " "]
        assert names == [entry.name.split()[-1] for entry in entries]
    assert text.count("\n  lab ") == 1
    for status, meaning in MEANINGS.items():
        assert f"{status:<5}{meaning}" in text
    assert "soak" not in text


def test_the_line_of_each_command_in_the_help_is_the_first_of_its_own_help():
    entries = [entry for section in sections().values() for entry in section]
    assert len(entries) > 20
    own = {entry.name: commands.get_command(click.Context(commands), entry.name).help for entry in entries}
    assert {name: text.splitlines()[0] for name, text in own.items()} == {
        entry.name: first_line(entry) for entry in entries
    }


@pytest.mark.whole
def test_the_help_imports_none_of_the_libraries_that_commands_need():
    code = (
        "import sys\n"
        "from lossratio.commands import main\n"
        "sys.argv = ['lossratio', '--help']\n"
        "main()\n"
        "print(*sys.modules)\n"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = {name.partition(".")[0] for name in output.splitlines()[-1].split()}
    assert "click" in loaded
    assert not loaded & {"numpy", "scipy", "pydantic", "robot", "paramiko", "yaml", "jinja2", "pyarrow", "duckdb"}


@pytest.mark.whole
def test_a_suite_that_estimates_nothing_does_not_load_the_special_functions():
    code = "import sys, lossratio.testbed.simulated; from lossratio.keywords import LossRatio; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not {"scipy.special", "scipy.stats"} & set(output.split())


def test_the_page_on_exit_statuses_has_those_of_the_table():
    page = (ROOT / "docs" / "reference" / "exit-statuses.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([^|:;]+)", page, flags=re.MULTILINE)
    assert [(int(status), meaning.strip()) for status, meaning in rows] == [
        (int(status), meaning) for status, meaning in MEANINGS.items()
    ]
    assert list(MEANINGS) == list(ExitStatus)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JobError("no such suite"), 2),
        (FileNotFoundError(2, "No such file", "lab.yaml"), 2),
        (OSError(28, "No space left on device", "report.md"), 69),
        (OSError(28, "No space left on device"), 69),
        (NodeError("TG: no connection"), 69),
        (StorageError("the disk is full"), 69),
        (ArchiveError("s3://bucket does not answer"), 69),
        (ReservationError("reserved for ann@host"), 75),
        (BuildError("build B cannot be set up", ExitStatus.FAILED), 1),
    ],
)
def test_an_error_ends_every_command_with_the_same_status(lossratio, monkeypatch, error, status):
    def failing(*arguments):
        raise error

    monkeypatch.setattr(commands, "get_command", failing)
    done = lossratio("check", "lab.yaml")
    assert (done.status, status_of_error(error)) == (status, status)
    assert done.err.startswith("Error: ")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("arguments", [("check", "local"), ("run", "--topology", "simulated", "linux_bridge")])
def test_a_working_directory_that_is_gone_is_one_sentence(arguments, tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "argv", ["lossratio", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    shown = f"Error: The working directory no longer exists: {gone} (deleted). Change to another one.\n"
    assert (end.value.code, *capsys.readouterr()) == (2, "", shown)


@pytest.mark.whole
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_command_with_the_status_of_a_stop_wherever_it_arrives(number):
    # As in the import of a dataclass, which compiles methods.
    code = (
        "import signal, sys\n"
        "from lossratio.commands.main import commands, main\n"
        # A test run without a terminal may ignore SIGHUP.
        f"signal.signal(signal.{number}, signal.SIG_DFL)\n"
        f"commands.get_command = lambda *given: exec('signal.raise_signal(signal.{number})')\n"
        "sys.argv = ['lossratio', 'check']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (ExitStatus.INTERRUPTED, "", "\nStopped.\n")


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_a_command_leaves_signals_as_they_were_and_ignored_ones_ignored(before, monkeypatch):
    of_test = signal.signal(signal.SIGTERM, before)
    monkeypatch.setattr(commands, "get_command", lambda *given: heard.append(signal.getsignal(signal.SIGTERM)))
    monkeypatch.setattr(sys, "argv", ["lossratio", "check"])
    heard = []
    try:
        with pytest.raises(SystemExit):
            main()
        after = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, of_test)
    assert (after, heard[0] is before) == (before, before is signal.SIG_IGN)


@pytest.mark.netns
@needs_testbed
def test_a_testbed_goes_up_and_down(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = local_topology(tmp_path, "of-the-command")

    def lossratio(*arguments):
        command = [sys.executable, "-m", "lossratio", "lab", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    assert lossratio("status").stdout == "No testbed is up.\n"
    up = lossratio("up", file)
    assert (up.returncode, up.stderr) == (0, "")
    assert f"{file.stem} is up" in up.stdout
    again = lossratio("up", file)
    assert (again.returncode, again.stdout) == (2, "")
    assert "already up" in again.stderr
    assert lossratio("status").stdout == up.stdout
    assert lossratio("down").stdout == f"Testbed {file.stem} is down.\n"
    assert lossratio("status").stdout == lossratio("down").stdout == "No testbed is up.\n"


def test_the_doctor_names_what_is_missing_and_the_way_out(lossratio, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("TREX_HOME", str(tmp_path))
    monkeypatch.delenv("VPP_HOME", raising=False)
    monkeypatch.setattr("lossratio.bpf.why_impossible", lambda: "the kernel is locked down")
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: "not installed: sshd")
    status, out, _ = lossratio("lab", "doctor")
    assert status == 0
    lines = out.splitlines()
    assert lines[2] == "For a first measurement:"
    assert lines[3].startswith("  yes  simulated testbeds")
    assert lines[4] == "   no  local testbeds of network namespaces: not installed: sshd"
    assert "   no  xdp (frames sent and received inside the kernel): the kernel is locked down" in lines
    assert "   no  git (bisection between revisions): apt install git" in lines
    assert f"   no  TRex (a traffic generator): {tmp_path} has no program _t-rex-64" in lines
    way_out = "if it is installed, set VPP_HOME to the directory that contains bin/vpp"
    assert f"   no  FD.io VPP: {way_out}" in lines


def test_the_doctor_says_that_a_first_measurement_needs_what_sets_up_the_demos_bridge(lossratio, monkeypatch):
    monkeypatch.setattr(doctor, "_has", lambda program: False)
    needed = lossratio("lab", "doctor").out.partition("For a first measurement:")[2].partition("Optional")[0]
    assert [words for words in ("apt install nftables", "apt install ethtool") if words not in needed] == []


def test_the_doctor_lists_every_extra_of_users_and_what_a_study_needs(lossratio, monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    lines = lossratio("lab", "doctor").out.splitlines()
    declared = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", declared, re.MULTILINE)) - {"docs", "test"}
    assert {line.split()[2] for line in lines if line.startswith("   no  extra ")} == extras
    way_out = "pip install 'robotframework-lossratio[history]' (in a clone: pip install '.[history]')"
    assert f"   no  extra history (trends and an archive of many runs): {way_out}" in lines
    (study,) = (line for line in lines if line.startswith("   no  lossratio-study"))
    assert study.endswith(" -m pip install ./study)")


def test_the_doctor_finds_what_is_there(lossratio, monkeypatch, tmp_path):
    for program in ("ovs-vswitchd", "bin/vpp"):
        (tmp_path / program).parent.mkdir(exist_ok=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VPP_HOME", str(tmp_path))
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    lines = lossratio("lab", "doctor").out.splitlines()
    devices = lines[lines.index("Optional: more devices to measure on this machine:") + 1]
    assert devices.startswith("  yes  ")
    assert {"Open vSwitch", "FD.io VPP"} <= set(devices.removeprefix("  yes  ").split(", "))

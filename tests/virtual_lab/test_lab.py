"""The laboratory itself: it leaves no machine behind, and takes no host for another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import paramiko
import pytest
from machines import QEMU, Machine, make_key, wait_until


def machines_of(pid: int) -> list[int]:
    """Pids of the machines that a process has switched on."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if Path(f"/proc/{child}/comm").read_text().startswith(QEMU[:15])]


def test_machines_end_with_a_process_that_is_killed(lab):
    with subprocess.Popen([sys.executable, Path(__file__).with_name("up.py")]) as process:
        wait_until(lambda: len(machines_of(process.pid)) == len(lab.machines), "both machines on")
        machines = machines_of(process.pid)
        process.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in machines), "both machines off")


def test_a_machine_with_another_host_key_is_refused(lab, tmp_path):
    make_key(tmp_path / "other")
    tg = lab["TG"]
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{tg.port} {(tmp_path / 'other.pub').read_text()}")
    (tmp_path / "user.key").write_bytes((lab.directory / "user.key").read_bytes())
    stranger = Machine("TG", tg.plan, tmp_path, (), tg.port)
    with pytest.raises(paramiko.BadHostKeyException):
        stranger.run("true")


def test_a_pulled_cable_takes_the_link_from_both_ends(lab):
    for machine in lab.machines.values():
        machine.run("ip", "link", "set", "dev", machine.interface(0), "up")

    def carriers() -> set[str]:
        return {
            machine.run("cat", f"/sys/class/net/{machine.interface(0)}/carrier").strip()
            for machine in lab.machines.values()
        }

    with lab.unplugged("a"):
        wait_until(lambda: carriers() == {"0"}, "both links down")
    wait_until(lambda: carriers() == {"1"}, "both links up")

"""Where a local testbed cannot be had, one line says why and what to do."""

import os
import shutil
import subprocess
import sys

import pytest
from testbed_probes import Caller

from lossratio.errors import TopologyError
from lossratio.testbed.local import status, why_unavailable

WHY = """
import json
from lossratio.testbed.local import why_unavailable
print(json.dumps(why_unavailable()))
"""
UP = """
import json
from testbed_probes import make_topology
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.local import TestbedUnavailableError
from lossratio.nodes import NodeSession
try:
    with LocalTestbed.up(make_topology()) as testbed:
        with NodeSession.connect("TG", testbed.topology.nodes["TG"]) as session:
            print(json.dumps(session.run("id", "-u").stdout))
except TestbedUnavailableError as error:
    print(json.dumps(str(error)))
"""


class Inside(Caller):
    """The caller, in surroundings that a shell command prepares."""

    def __init__(self, *prefix, first="true"):
        self._command = [*prefix, "sh", "-c", f'{first} && exec "$@"', "sh"]

    def command(self, *argv):
        return [*self._command, *argv]


@pytest.mark.netns
def test_nothing_stands_in_the_way_where_a_testbed_can_be_built():
    assert why_unavailable() is None


@pytest.mark.whole
def test_forbidden_user_namespaces_are_named_with_the_setting_that_forbids_them(state_home):
    can_nest = shutil.which("unshare") and subprocess.run(["unshare", "-Ur", "true"], check=False).returncode == 0
    if not can_nest:
        pytest.skip("no user namespace to forbid user namespaces in")
    inside = Inside("unshare", "-Ur", first="echo 0 > /proc/sys/user/max_user_namespaces")
    why = inside.run(state_home, WHY)
    assert why.startswith("user namespaces are forbidden by the sysctl user.max_user_namespaces; allow them: ")
    assert "\n" not in why
    assert inside.run(state_home, UP).startswith(f"No local testbed can be built: {why}")


@pytest.mark.netns
def test_root_without_a_root_s_power_builds_it_in_user_namespaces(state_home):
    inside = Inside("unshare", "-Ur")
    assert inside.run(state_home, WHY) is None
    assert inside.run(state_home, UP) == "0\n"


@pytest.mark.netns
def test_a_missing_program_is_named_with_its_package(state_home):
    sshd = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
    inside = Inside(*unshare, first=f"mount --bind /dev/null {sshd}")
    why = inside.run(state_home, WHY)
    assert why == "not installed: sshd; on Debian: apt install openssh-server"
    assert inside.run(state_home, UP) == f"No local testbed can be built: {why}."


def test_a_user_without_an_account_gets_an_error_with_that_reason(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 3_456_789)
    assert "user id 3456789 has no account" in why_unavailable()


def test_another_system_is_named(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert why_unavailable() == "a local testbed needs Linux, and this is darwin"


def test_a_user_without_a_home_is_told_to_name_a_directory(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/dev/null/home")
    with pytest.raises(
        TopologyError, match=r"for its keys: .*/dev/null/.*\. Set XDG_STATE_HOME to a writable directory"
    ):
        status()

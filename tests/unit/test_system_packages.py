"""What `tools/system-packages` asks of the machine, seen by stand-ins for the commands of root."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "system-packages"
ORDINARY_USER = "#!/bin/sh\necho 1000\n"
# Runs nothing but apt-get: the machine that runs the test stays as it is.
SUDO = '#!/bin/sh\nshift\ncase $* in *apt-get*) exec "$@";; esac\n'


@pytest.fixture
def install(tmp_path):
    """Runs the script beside an apt-get that notes its arguments, and ends with a given status."""

    def run(*pairs, apt_get_status=0):
        programs = {
            "id": ORDINARY_USER,
            "sudo": SUDO,
            "apt-get": f'#!/bin/sh\necho "$@" >>"{tmp_path}/asked"\necho "E: why"\nexit {apt_get_status}\n',
        }
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)

        path = f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(
            [SCRIPT, *pairs], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        asked = tmp_path / "asked"
        return done, asked.read_text().splitlines() if asked.exists() else []

    return run


def test_what_is_there_is_not_asked_for(install):
    done, asked = install("sh=dash")
    assert (done.returncode, done.stdout, asked) == (0, "", [])


def test_only_what_is_missing_is_installed_and_waits_for_upgrades_that_run(install):
    done, asked = install("sh=dash", "no-such-command=its-package")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Installing Debian packages: its-package\n"
    update, installation = asked
    assert update == "update"
    assert "DPkg::Lock::Timeout=" in installation
    assert installation.split()[-1] == "its-package"


def test_a_package_that_cannot_be_had_is_named_with_the_reason(install):
    done, _ = install("no-such-command=its-package", apt_get_status=100)
    assert done.returncode == 1
    assert done.stderr == "E: why\nCould not install: its-package\n"

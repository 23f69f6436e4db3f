"""Programs of the host that machines run: Debian does not have them, and they may need libraries that machines lack."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from machines import Machine

LIBRARIES = "/usr/local/lib"


def home_of(variable: str) -> Path | None:
    """The directory that an environment variable names; None: it names none."""
    home = os.environ.get(variable)
    return None if home is None else Path(home)


def lend(machine: Machine, home: Path) -> None:
    """Gives a machine a directory of its plan, and the libraries of the host that its programs need."""
    machine.mount_programs()
    needed: dict[str, Path] = {}
    for file in [*home.glob("bin/*"), *home.glob("lib/**/*.so"), *home.glob("_t-rex-64")]:
        done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
        for name, path in re.findall(r"^\s+(\S+) => (/\S+)", done.stdout, re.MULTILINE):
            if not path.startswith(str(home)):
                needed[name] = Path(path)
    there = machine.run("ldconfig", "-p")
    missing = {name: path for name, path in needed.items() if f"{name} " not in there}
    for name, path in missing.items():
        machine.copy(path.resolve(), f"{LIBRARIES}/{name}")
    machine.run("ldconfig")

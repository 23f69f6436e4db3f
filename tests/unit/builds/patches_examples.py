"""A simulated device whose capacity is what a build makes of it: a line in the topology file that set-ups write."""

from __future__ import annotations

import subprocess
from pathlib import Path

TOPOLOGY = (Path(__file__).parents[3] / "topologies" / "simulated.yaml").read_text()
SUITE = """*** Settings ***
Resource         lossratio/resources/performance.resource
Suite Setup      Set Up Testbed    ${TOPOLOGY}
Suite Teardown   Tear Down Testbed

*** Test Cases ***
64B-mrr
    Measure MRR    64B    trials=2
1518B-mrr
    Measure MRR    1518B    trials=2
"""


def write_lab(directory: Path) -> Path:
    # The folder is a project, so its suite has the name of its file.
    (directory / "robot.toml").touch()
    """Writes a suite, and a topology whose device has a capacity of 150 kfps; returns the topology file."""
    (directory / "mrr.robot").write_text(SUITE)
    (directory / "lab.yaml").write_text(TOPOLOGY)
    return directory / "lab.yaml"


def set_capacity(topology: Path, kfps: float) -> str:
    """A set-up command that gives the device a capacity."""
    return f"sed -i 's/capacity: [0-9.]* kfps/capacity: {kfps} kfps/' '{topology}'"


def make_repository(directory: Path, capacities: list[float | None]) -> list[str]:
    """A git repository with a revision for each capacity; None: one that cannot be built. Returns the revisions."""
    directory.mkdir()
    git(directory, "init", "--quiet", "--initial-branch=main")
    git(directory, "config", "user.name", "nobody")
    git(directory, "config", "user.email", "nobody@example.org")
    revisions = []
    for number, capacity in enumerate(capacities):
        (directory / "capacity").write_text("broken" if capacity is None else f"{capacity}")
        git(directory, "add", "capacity")
        git(directory, "commit", "--quiet", "--allow-empty", "--message", f"change {number}")
        revisions.append(git(directory, "rev-parse", "HEAD"))
    return revisions


def set_up_revision(repository: Path, topology: Path) -> str:
    """A set-up command that builds the revision in the environment."""
    read = f'capacity=$(git -C "{repository}" show "$LOSSRATIO_REVISION:capacity")'
    sed = f"""sed -i "s/capacity: [0-9.]* kfps/capacity: $capacity kfps/" "{topology}" """
    return f'{read} && if [ "$capacity" = broken ]; then exit 125; fi && {sed}'


def git(directory: Path, *arguments: str) -> str:
    """Runs git."""
    done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()

"""An earlier version beside this one: the rate of its generators, frames unsent, and the overhead of trials.

The earlier version comes from git's history into a temporary directory. Both have a testbed of their own, and measure
each case in turns, so that other work on the machine affects both alike. A ratio is this version's median over the
earlier one's.

VERSION is a version number, of which the last commit is taken, or a revision of git. The default is the last commit
before frames that came back were examined (0.1).
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import click

ROOT = Path(__file__).parent.parent
WORKER = Path(__file__).with_name("since_worker.py")
BEFORE_EXAMINATION = "d115b430~1"
VERSION_FILES = ("libraries/lossratio/version.py", "libraries/lossratio/__init__.py")

CASES: tuple[tuple[str, str, str, bool, float, float], ...] = (
    ("trial overhead, 0.1 s", "afpacket", "link", False, 10e3, 0.1),
    ("trial overhead, 1 s", "afpacket", "link", False, 10e3, 1.0),
    ("trial overhead, 0.1 s", "xdp", "link", False, 10e3, 0.1),
    ("trial overhead, 1 s", "xdp", "link", False, 10e3, 1.0),
    ("bare veth, one way", "afpacket", "link", False, 2e6, 1.0),
    ("bare veth, both ways", "afpacket", "link", True, 150e3, 1.0),
    ("bridge, both ways", "afpacket", "bridge", True, 1e6, 1.0),
    ("bare veth, one way", "xdp", "link", False, 6e6, 0.3),
    ("bare veth, two streams", "afpacket", "link", False, 2e6, 1.0),
    ("bare veth, two streams", "xdp", "link", False, 6e6, 0.3),
)
"""Name, generator, path, whether it goes both ways, load in frames per second, and seconds.

Versions without streams cannot do the cases that use streams."""


@click.command(help=__doc__)
@click.argument("version", default=BEFORE_EXAMINATION)
@click.option("--rounds", default=9, show_default=True, help="Trials of each version and case.")
@click.option("--only", default="", help="A part of the names of cases to measure; all if none is given.")
def main(version: str, rounds: int, only: str) -> None:
    """Measures, and prints a table."""
    with ExitStack() as stack:
        earlier = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        revision = _revision(version)
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(earlier, filter="data")
        trees = {"now": ROOT, "then": earlier}
        workers = {name: stack.enter_context(Worker(name, tree)) for name, tree in trees.items()}
        click.echo(f"then: {version} ({revision[:8]}). Medians of {rounds} trials each, in turns.")
        header = ("case", "generator", "figure", "then", "now", "now / then")
        click.echo(_line(*header))
        for case in CASES:
            name, generator, *_ = case
            if only not in name:
                continue
            seen: dict[str, list[dict[str, float]]] = {"now": [], "then": []}
            for turn in range(rounds + 1):
                for side in ("then", "now") if turn % 2 else ("now", "then"):
                    figures = workers[side].measure(case)
                    # The first trial is a cold one.
                    if figures is not None and turn:
                        seen[side].append(figures)
            if not seen["now"]:
                click.echo(_line(name, generator, "not possible here", "", "", ""))
                continue
            for figure in seen["now"][0]:
                if ("overhead" in figure) != ("overhead" in name):
                    continue
                then, now = (_median(seen[side], figure) for side in ("then", "now"))
                ratio = f"{now / then:.3f}" if then and now is not None else "-"
                cells = ("-" if value is None else f"{value:.4g}" for value in (then, now))
                click.echo(_line(name, generator, figure, *cells, ratio))
        click.echo(f"load average {os.getloadavg()[0]:.1f}")


class Worker:
    """A process with the library of one version, and a testbed of its own."""

    def __init__(self, name: str, tree: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "libraries")}
        command = [sys.executable, str(WORKER), name, str(tree / "topologies" / "local.yaml")]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, **pipes)

    def measure(self, case: tuple[Any, ...]) -> dict[str, float] | None:
        """The figures of one trial; None: this version cannot do it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise click.ClickException("A version ended; its words are above.")
        figures: dict[str, float] | None = json.loads(answer)
        return figures

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60.0)


def _revision(version: str) -> str:
    """A revision of git: the one before the last change of this version's number, or one by its name."""
    if version.replace(".", "").isdigit():
        changes = _git("log", "--format=%H", f'-S__version__ = "{version}', "--", *VERSION_FILES).split()
        if not changes:
            raise click.ClickException(f"No commit has the version {version}; name a revision of git.")
        return _git("rev-parse", f"{changes[0]}~1")
    return _git("rev-parse", "--verify", version)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _median(rows: list[dict[str, float]], figure: str) -> float | None:
    return median(row[figure] for row in rows) if rows else None


def _line(*columns: str) -> str:
    cells = zip(columns, (-24, -10, -26, 10, 10, 12), strict=True)
    return " ".join(text.ljust(-width) if width < 0 else text.rjust(width) for text, width in cells)


if __name__ == "__main__":
    main()

"""The programs in the folders of benchmarks still run with the library of today."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
WITH_OPTIONS = ("argparse.ArgumentParser(", "@click.command", "@click.group")
FILES = [path for folder in ("benchmarks", "study/benchmarks") for path in sorted((ROOT / folder).glob("*.py"))]
PROGRAMS = [path for path in FILES if any(text in path.read_text() for text in WITH_OPTIONS)]


def printed_by(program: Path, *arguments: str) -> str:
    """What a program prints; the test fails if the program fails."""
    command = [sys.executable, str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def forked() -> Iterator[Callable[..., str]]:
    """Runs a program as `printed_by`, but in a fork of one process that has imported the library."""
    command = [sys.executable, str(Path(__file__).with_name("program_forks.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forks:

        def run(program: Path, *arguments: str) -> str:
            print(json.dumps([str(program), *arguments]), file=forks.stdin, flush=True)
            status, text = json.loads(forks.stdout.readline())
            assert status == 0, text
            return text

        yield run
        forks.stdin.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_program_says_how_it_is_used(forked, program):
    assert f"usage: {program.name}" in forked(program, "--help").replace("Usage", "usage")


def test_soak_tests_are_judged_by_their_truth(tmp_path):
    store = tmp_path / "judged.jsonl"
    one = ("judge", "--seconds", "60", "--families", "sharp", "--store", str(store))
    (line,) = printed_by(ROOT / "study" / "benchmarks" / "soak.py", *one).splitlines()
    assert "right 1 of 1; regular and above 0, in sight 0; healthy: 0 of 1 irregular, 1 within 1 %" in line
    (run,) = map(json.loads, store.read_text().splitlines())
    assert 0.9 <= run["share"] <= 1.0

"""The programs in the folder of benchmarks still run with the library of today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
WITH_OPTIONS = ("argparse.ArgumentParser(", "@click.command")
PROGRAMS = [path.name for path in sorted(FOLDER.glob("*.py")) if any(text in path.read_text() for text in WITH_OPTIONS)]


def printed_by(program: str, *arguments: str) -> str:
    """What a program prints; the test fails if the program fails."""
    command = [sys.executable, str(FOLDER / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.rotated
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_says_how_it_is_used(program):
    assert f"usage: {program}" in printed_by(program, "--help").replace("Usage", "usage")


def test_each_mechanism_of_soak_tests_can_be_switched_off(tmp_path):
    store = tmp_path / "ablation.jsonl"
    short = ("--seconds", "20", "--seeds", "1", "--drawn", "0", "1")
    header, _, *rows = printed_by("soak_ablation.py", *short, "--store", str(store)).splitlines()
    assert header.startswith("| without | searches that differ |")
    differ = {name.strip("| "): int(number) for name, number, *_ in (row.split(" | ") for row in rows)}
    assert len(differ) == len(store.read_text().splitlines())
    assert differ["nothing"] == 0
    assert differ["halving of wide ranges"] == 1

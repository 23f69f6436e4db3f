"""Attacks all readers with documents that hypothesis makes: for a minute in all, or for as long as one says.

``pytest tests/unit/hostile_input --fuzz-seconds 3600`` attacks for an hour; ``--fuzz-seed 1000`` begins with other
documents. These are the same in every run, only their number depends on the machine. A failure prints its document and
seed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzzer.py")
TARGETS = (
    *("topology.yaml", "csit-topology.yaml", "profile.yaml", "goals.yaml", "job.yaml", "annotations.yaml"),
    *(
        "self-test.yaml",
        "trials.jsonl",
        "old-trials.jsonl",
        "result.json",
        "run.json",
        "builds.jsonl",
        "reservation.json",
        "values",
        "arguments",
        "commands",
    ),
)
LONGEST_SHRINKING = 600
"""Seconds that the search for the smallest document may take after one was found, and a busy machine."""


# The machine may be so busy that a fixed time is none: the process below has a limit of its own.
@pytest.mark.timeout(0)
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_is_refused_with_a_clear_error_in_bounded_time_and_memory(target, pytestconfig):
    seconds = pytestconfig.getoption("--fuzz-seconds") / len(TARGETS)
    seed = pytestconfig.getoption("--fuzz-seed")
    command = [sys.executable, str(FUZZER), target, f"{seconds:.3f}", str(seed)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds + LONGEST_SHRINKING,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-20_000:]}"


def test_every_kind_of_file_is_attacked():
    from fuzzer import targets

    assert set(targets()) == set(TARGETS)

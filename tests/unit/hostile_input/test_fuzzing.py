"""Attacks all readers with documents that hypothesis makes: with one round of them, or for as long as one says.

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
    *("trials.jsonl", "result.json", "run.json", "builds.jsonl", "reservation.json", "values", "arguments", "commands"),
)


@pytest.fixture(scope="module")
def fuzzer(pytestconfig):
    """A process that attacks targets by name. It imports all readers once, which takes longer than a short attack."""
    seconds = pytestconfig.getoption("--fuzz-seconds") / len(TARGETS)
    command = [sys.executable, "-u", str(FUZZER), f"{seconds:.3f}", str(pytestconfig.getoption("--fuzz-seed"))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **pipes) as process:
        yield process
        process.stdin.close()


# The machine may be so busy that a fixed time is none: the fuzzer has a limit of its own.
@pytest.mark.whole
@pytest.mark.timeout(0)
@pytest.mark.xdist_group("fuzzing")
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_is_refused_with_a_clear_error_in_bounded_time_and_memory(target, fuzzer):
    print(target, file=fuzzer.stdin, flush=True)
    output = []
    for line in fuzzer.stdout:
        if line.startswith("exit status "):
            break
        output.append(line)
    assert output
    assert line == "exit status 0\n", f"{target}, {fuzzer.args}\n{''.join(output)[-20_000:]}"


def test_every_kind_of_file_is_attacked():
    from fuzzer import targets

    assert set(targets()) == set(TARGETS)

"""Mutants: small mistakes that are put into a copy of the library, each of which the tests must notice.

`make mutants` makes them one by one, and runs the tests that must fail. A mutant that they pass has survived: then the
exit status is 1, and a test is missing. It is 2 if the named tests fail without the mistake, too, or cannot be run.

Each mutation is a row of a table in the folder ``mutations``. Its text must be in its file exactly once; after a change
of the library, a test says which rows must follow it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mutations import MUTATIONS

ROOT = Path(__file__).parents[2]
LEFT_OUT = {".venv", ".git", "build", "dist", "results"}
"""What no test needs, at the top."""

LIMIT = 300.0
"""Seconds for the tests of a mutant. One that takes longer is noticed, too: it goes on for ever."""

PASSED, FAILED, NONE_CHOSEN = 0, 1, 5

BY_DEFAULT = ("-m", "smoke or not (whole or netns or quiet)")
"""The tests that `make test` runs. Where files are named, pytest would run all of theirs."""


def left_out(directory: str, names: Sequence[str]) -> set[str]:
    """The names in a directory that are not copied."""
    return {name for name in names if name == "__pycache__" or (directory == str(ROOT) and name in LEFT_OUT)}


def status_of(tree: Path, tests: Sequence[str], options: Sequence[str], limit: float = LIMIT) -> int:
    """Runs tests of a copy with the library of that copy, until one fails.

    Args:
        tree: The copy.
        tests: Files of tests.
        options: More options of pytest.
        limit: Seconds that they may take.

    Returns:
        The exit status of pytest, or `FAILED` if it did not end within the limit (seconds).
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "libraries"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [*command, *options, *(f"tests/unit/{test}" for test in tests)],
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return FAILED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORDS", default="", help="mutations with these words in their names")
    parser.add_argument("--by-default", action="store_true", help="only with the tests that `make test` runs")
    options = parser.parse_args()
    tier = BY_DEFAULT if options.by_default else ()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name]
    if not chosen:
        # pytest would run all tests.
        parser.error(f"no mutation has these words in its name: {options.only}")
    survivors, broken = 0, 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(ROOT, tree, ignore=left_out)
        every = sorted({test for mutation in chosen for test in mutation.tests})
        if status_of(tree, every, tier, 10 * LIMIT) != PASSED:
            print(f"BROKEN    without any mistake, too: {' '.join(every)}", flush=True)
            broken += 1
        for mutation in chosen if not broken else ():
            path = tree / "libraries" / "lossratio" / mutation.file
            right, wrong = path.read_text(), mutation.text_in(tree)
            path.write_text(wrong)
            status = status_of(tree, mutation.tests, tier)
            path.write_text(right)
            word = {PASSED: "SURVIVED", NONE_CHOSEN: "SURVIVED", FAILED: "noticed"}.get(status, "BROKEN")
            survivors, broken = survivors + (word == "SURVIVED"), broken + (word == "BROKEN")
            print(f"{word:9} {mutation.name} ({mutation.file}; {' '.join(mutation.tests)})", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survived, {broken} broken")
    sys.exit(2 if broken else bool(survivors))


if __name__ == "__main__":
    main()

"""Reads hostile documents for some seconds per kind, in processes with limits: ``echo KIND | fuzzer.py SECONDS SEED``.

Standard input names one kind per line. Each is attacked in a process of its own, that starts with everything imported.
The line ``exit status N`` ends what is written about it.

Each round of examples has a seed of its own, the first one SEED, the next one more. So what was found is found again
with the seed that is printed, and one second.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import hypothesis
from command_lines import check_arguments, check_command, check_value
from document_kinds import all_kinds
from hostile_documents import HOSTILE_TEXTS, json_documents, yaml_documents
from hypothesis import strategies as st

from lossratio.errors import LossRatioError

MOST_BYTES = 3 << 30
"""Address space of the process."""
MOST_CPU_SECONDS = 60
"""What one document may take; a busy machine does not count."""
EXAMPLES = 10
"""Documents of a round; the time is looked at after each round only, as a round that is cut off looks flaky."""
LONGEST_MESSAGE = 10_000
LONGEST_SHRINKING = 600
"""Seconds that the search for the smallest document may take after one was found, and a busy machine."""


def fuzz(strategy: st.SearchStrategy, check: Callable, seconds: float, first_seed: int) -> None:
    """Checks rounds of examples of a strategy for some seconds, one round at least."""
    end = time.monotonic() + seconds
    for seed in itertools.count(first_seed):
        print(f"seed {seed}", flush=True)

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
        )
        @hypothesis.given(strategy)
        def attack(document: object) -> None:
            signal.setitimer(signal.ITIMER_PROF, MOST_CPU_SECONDS)
            try:
                check(document)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)

        attack()
        if time.monotonic() > end:
            return


def reader(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Checks that a document is read, or refused with one clear error that names the file."""

    def check(document: bytes) -> None:
        path.write_bytes(document)
        try:
            read(path)
        except LossRatioError as error:
            message = str(error)
            message.encode()
            assert str(path.parent) in message, message
            assert len(message) < LONGEST_MESSAGE, message
            assert not any(ord(character) < 32 and character not in "\n\t" for character in message), message

    return check


def targets() -> dict[str, tuple[st.SearchStrategy, Callable]]:
    """What can be attacked, by name."""
    targets_by_name: dict[str, tuple[st.SearchStrategy, Callable]] = {}
    for kind in all_kinds():
        is_yaml = kind.name.endswith(".yaml")
        documents = yaml_documents(kind.text) if is_yaml else json_documents(kind.text.splitlines(), kind.seal)
        targets_by_name[kind.name] = (documents, reader(Path(kind.name).absolute(), kind.use))
    texts = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(max_size=30))
    targets_by_name["values"] = (texts, check_value)
    targets_by_name["arguments"] = (
        st.dictionaries(texts, texts | st.integers() | st.floats(), max_size=4),
        check_arguments,
    )
    targets_by_name["commands"] = (st.data(), check_command)
    return targets_by_name


def _too_long(number: int, frame: object) -> None:
    raise AssertionError(f"more than {MOST_CPU_SECONDS} s of CPU for one document")


def attack(name: str, seconds: float, seed: int) -> None:
    """Attacks one target in this process, which ends by a signal if that takes far too long."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _too_long)
    signal.alarm(int(seconds) + LONGEST_SHRINKING)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        fuzz(*targets()[name], seconds, seed)


def main() -> None:
    """Attacks targets one after the other."""
    # Examples of results are beside this folder.
    sys.path.append(str(Path(__file__).parents[1]))
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    # What they have built once is there for all processes.
    targets()
    for line in sys.stdin:
        attacker = multiprocessing.get_context("fork").Process(target=attack, args=(line.strip(), seconds, seed))
        attacker.start()
        attacker.join()
        print(f"exit status {attacker.exitcode}", flush=True)


if __name__ == "__main__":
    main()

"""How tests are spread over processes, and which of them have the machine for themselves."""

from __future__ import annotations

import datetime
import fcntl
import gc
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# No answer depends on who runs the tests: on the width of a terminal, or on a proxy, which would get even what a test
# asks this machine. Before anything is imported, as some libraries look only then.
os.environ["COLUMNS"] = "80"
for _name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[_name]

LEAST_WORKERS = 10
"""Processes that run tests, also on fewer cores: tests in network namespaces wait most of the time."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """As many processes as cores, and a few more where there are few cores."""
    return max(len(os.sched_getaffinity(0)), LEAST_WORKERS)


RERUNS = 3
"""How often a test with real frames or processes runs again after it has failed; one that calculates never does."""
BEFORE_RERUN = 1.0
"""Seconds that a stall of the host may still take before that."""


THIRDS = 3
"""In how many parts the rotated tests of a file run, one part each day."""
ROTATED = frozenset({"rotated", "netns", "long"})
"""Markers of rotated tests: they have many cases of one law, or take long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what is left out: which rotated tests, and how many searches."""
    parser.addoption("--whole", action="store_true", help="All rotated tests, and laws of chance over all searches.")
    thirds = range(1, THIRDS + 1)
    parser.addoption("--third", type=int, choices=thirds, help="Which of the rotated tests; otherwise by date.")


@pytest.fixture
def how_many(pytestconfig: pytest.Config) -> Callable[[int, int], int]:
    """The first of two numbers of searches; the second one with ``--whole``, as ``make chaos`` does."""
    is_whole = pytestconfig.getoption("whole")
    return lambda few, all_of_them: all_of_them if is_whole else few


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the day's third, and collects no garbage while tests are collected, as all of them stay."""
    if config.option.third is None:
        # The processes of pytest-xdist get it with the options, so midnight does not part them.
        today = datetime.datetime.now(datetime.timezone.utc).date()
        config.option.third = today.toordinal() % THIRDS + 1
    gc.disable()


def pytest_report_header(config: pytest.Config) -> str:
    """Says which rotated tests run, and how the same ones run again."""
    if config.option.whole:
        return "rotated: all tests"
    return f"rotated: third {config.option.third} of {THIRDS} (again: --third {config.option.third}; all: --whole)"


def pytest_collection_finish() -> None:
    """Keeps modules and collected tests out of each later search for garbage: those are half a million objects."""
    gc.freeze()
    gc.enable()


IS_ROTATED = pytest.StashKey[bool]()
"""Whether a test runs on one of three days."""
TURN = pytest.StashKey[int]()
"""When a test's turn is: those with the smallest number come first."""
ACCEPTANCE, SHARED, WAITS, LONG, SHORT, QUIET = range(6)
"""Suites, tests that wait (those of a group of several files first), tests that calculate, those that need quiet."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Puts tests into groups; one process runs all tests of a group, one after the other."""
    # Looked up once: each search for a marker goes through the markers of all directories above.
    markers = {marker.name for marker in item.iter_markers()}
    item.stash[TURN] = _turn(markers)
    item.stash[IS_ROTATED] = bool(markers & ROTATED)
    if markers & {"netns", "quiet"} and item.config.pluginmanager.hasplugin("rerunfailures"):
        # A stalled host decides no test. One that hangs would do so again, and nothing would end it.
        again = {"reruns": RERUNS, "reruns_delay": BEFORE_RERUN, "rerun_except": "^Failed: Timeout"}
        item.add_marker(pytest.mark.flaky(**again))
    # Not in pytest_collection_modifyitems: pytest-xdist has read the groups by then.
    if "quiet" in markers:
        item.add_marker(pytest.mark.xdist_group("quiet"))
    elif not markers & {"xdist_group", "acceptance"}:
        # A file opens its testbed once, and makes once what its tests share; its tests that wait come first, alone.
        kind = "waits" if "netns" in markers else "calculates"
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {kind}"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Orders tests, and leaves out those of another day.

    Files with tests that wait come first, and between them files that calculate for a short time, for processors that
    would otherwise be idle. Files that calculate long come next, so that none of them is left to the last process, and
    tests that need quiet come last.
    """
    if not _asks_for_all_tests(config):
        _leave_other_thirds_out(config, items)
    items.sort(key=lambda item: item.stash[TURN])
    items[:] = _with_work_between(items)


def _with_work_between(items: list[pytest.Item]) -> list[pytest.Item]:
    """Puts half of the files without a long test between those that wait."""
    files: dict[tuple[Path, int], list[pytest.Item]] = {}
    for item in items:
        turn = item.stash[TURN]
        # A long test takes the others of its file along.
        kind = LONG if turn == SHORT else turn
        files.setdefault((item.path, kind), []).append(item)

    by_turn: dict[int, list[list[pytest.Item]]] = {}
    for tests in files.values():
        by_turn.setdefault(tests[0].stash[TURN], []).append(tests)

    waiting = by_turn.get(WAITS, [])
    short = by_turn.get(SHORT, [])
    between = short[: len(short) // 2] if waiting else []
    ordered = by_turn.get(ACCEPTANCE, []) + by_turn.get(SHARED, [])
    used = 0
    for number, tests in enumerate(waiting, start=1):
        ordered.append(tests)
        due = number * len(between) // len(waiting)
        ordered += between[used:due]
        used = due
    ordered += by_turn.get(LONG, [])
    ordered += short[used:]
    ordered += by_turn.get(QUIET, [])
    return [item for tests in ordered for item in tests]


def _asks_for_all_tests(config: pytest.Config) -> bool:
    """Whether all rotated tests run: with ``--whole``, and where files or tests are named."""
    directory = config.invocation_params.dir
    names_no_directory = any(not (directory / argument).is_dir() for argument in config.args)
    return config.option.whole or names_no_directory or bool(config.option.keyword)


def _leave_other_thirds_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the rotated tests of other days: each file runs a third of its own, counted from a day of its own."""
    rotated: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.stash[IS_ROTATED]:
            rotated.setdefault(item.path, []).append(item)

    left_out: set[pytest.Item] = set()
    for path, tests in rotated.items():
        # Otherwise, files with one such test would all run it on the same day.
        own_day = zlib.crc32(path.name.encode())
        first = (config.option.third + own_day) % THIRDS
        left_out.update(set(tests).difference(tests[first::THIRDS]))

    items[:] = [item for item in items if item not in left_out]
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))


def _turn(markers: set[str]) -> int:
    if "quiet" in markers:
        return QUIET
    if "acceptance" in markers:
        return ACCEPTANCE
    if "netns" in markers:
        return SHARED if "xdist_group" in markers else WAITS
    return LONG if "long" in markers else SHORT


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lets a test that needs quiet wait until no other process runs a test, and the others wait for it.

    The wait is outside of the test's time limit. A test that runs pytest itself keeps its lock; the inner pytest is
    none of several processes, and takes none.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    is_quiet = item.get_closest_marker("quiet") is not None
    with Path(__file__).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if is_quiet else fcntl.LOCK_SH)
        return (yield)

"""How tests are spread over processes, and which of them have the machine for themselves."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LEAST_WORKERS = 10
"""Processes that run tests, also on fewer cores: tests in network namespaces wait most of the time."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """As many processes as cores, and a few more where there are few cores."""
    return max(len(os.sched_getaffinity(0)), LEAST_WORKERS)


RERUNS = 2
"""How often a test with real frames or processes runs again after it has failed; one that calculates never does."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option of tests whose laws of chance take many searches."""
    parser.addoption("--whole", action="store_true", help="Laws of chance over all of their searches, not over a few.")


@pytest.fixture
def how_many(pytestconfig: pytest.Config) -> Callable[[int, int], int]:
    """The first of two numbers of searches; the second one with ``--whole``, as ``make chaos`` does."""
    is_whole = pytestconfig.getoption("whole")
    return lambda few, all_of_them: all_of_them if is_whole else few


def pytest_configure() -> None:
    """Collects no garbage while tests are collected, as all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keeps modules and collected tests out of each later search for garbage: those are half a million objects."""
    gc.freeze()
    gc.enable()


TURN = pytest.StashKey[int]()
"""When a test's turn is: those with the smallest number come first."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Puts tests into groups; one process runs all tests of a group, one after the other."""
    # Looked up once: each search for a marker goes through the markers of all directories above.
    markers = {marker.name for marker in item.iter_markers()}
    item.stash[TURN] = _turn(markers)
    if markers & {"netns", "quiet"} and item.config.pluginmanager.hasplugin("rerunfailures"):
        # A stalled host decides no test. One that hangs would do so again, and nothing would end it.
        item.add_marker(pytest.mark.flaky(reruns=RERUNS, rerun_except="^Failed: Timeout"))
    # Not in pytest_collection_modifyitems: pytest-xdist has read the groups by then.
    if "quiet" in markers:
        item.add_marker(pytest.mark.xdist_group("quiet"))
    elif not markers & {"xdist_group", "acceptance"}:
        # A file opens its testbed once, and makes once what its tests share; its tests that wait come first, alone.
        kind = "waits" if "netns" in markers else "calculates"
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {kind}"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders tests: those that wait, then those that calculate, the longest files first, at last those that need quiet.

    So no file is left to the last process while the others have nothing to do.
    """
    items.sort(key=lambda item: item.stash[TURN])


def _turn(markers: set[str]) -> int:
    if "quiet" in markers:
        return 4
    if "acceptance" in markers:
        return 0
    if "netns" in markers:
        return 1
    return 2 if "long" in markers else 3


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

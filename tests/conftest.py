"""How tests are spread over processes, and which of them have the machine for themselves."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Iterator
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


def pytest_configure() -> None:
    """Collects no garbage while tests are collected, as all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keeps modules and collected tests out of each later search for garbage: those are half a million objects."""
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Puts tests into groups; one process runs all tests of a group, one after the other."""
    can_rerun = item.config.pluginmanager.hasplugin("rerunfailures")
    if can_rerun and (item.get_closest_marker("netns") or item.get_closest_marker("quiet")):
        # A stalled host decides no test. One that hangs would do so again, and nothing would end it.
        item.add_marker(pytest.mark.flaky(reruns=RERUNS, rerun_except="^Failed: Timeout"))
    # Not in pytest_collection_modifyitems: pytest-xdist has read the groups by then.
    if item.get_closest_marker("quiet"):
        item.add_marker(pytest.mark.xdist_group("quiet"))
    elif item.get_closest_marker("xdist_group") is None and not item.get_closest_marker("acceptance"):
        # A file opens its testbed once, and makes once what its tests share; its tests that wait come first, alone.
        kind = "waits" if item.get_closest_marker("netns") else "calculates"
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {kind}"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders tests: those that wait, then those that calculate, the longest files first, at last those that need quiet.

    So no file is left to the last process while the others have nothing to do.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("quiet"):
        return 4
    if item.get_closest_marker("acceptance"):
        return 0
    if item.get_closest_marker("netns"):
        return 1
    return 2 if item.get_closest_marker("long") else 3


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

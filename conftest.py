"""Which tests run, what they may cost, and which of them have the machine for themselves."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import pytest
from _pytest.runner import runtestprotocol

# No answer depends on who runs the tests: on the width of a terminal, or on a proxy, which would get even what a test
# asks this machine. Before anything is imported, as some libraries look only then.
os.environ["COLUMNS"] = "80"
for _name in [name for name in os.environ if name.lower().endswith("_proxy")]:
    del os.environ[_name]

CHEAP_S = 0.25
"""Seconds of CPU that a test may cost which is always run. Those that took more than 0.1 s are marked `whole`."""
LOOP_S = 0.02
"""Seconds of CPU that `_at_rest` counts for its loop on a machine that does nothing else."""
TRIES = 3
"""How often a test must have taken longer: the first time, it may import modules, and the machine may be busy."""
SHARED_S = 2.0
"""Seconds of CPU for what several of these tests share, such as a fixture of their file."""
SMOKE_TESTS = 60
SMOKE_S = 120.0
"""How many tests may be marked `smoke`, and the seconds of CPU of all of them."""

THIRDS = 3
"""Into how many parts CI divides the files with real frames: each commit runs one, which its hash chooses."""

RERUNS = 3
"""How often a test with real frames or processes runs again, alone, after it failed; one that calculates never does."""
BEFORE_RERUN = 1.0
"""Seconds that a stall of the host may still take before that."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds options for the tests that are left out by default."""
    parser.addoption("--whole", action="store_true", help="All tests.")
    parser.addoption("--commit", metavar="HASH", help="Also those left out that calculate, and a third of the others.")


def pytest_configure(config: pytest.Config) -> None:
    """Judges what tests cost, and collects no garbage while tests are collected, as all of them stay."""
    gc.disable()
    if not config.option.whole:
        config.pluginmanager.register(Budget(), "budget")


def pytest_collection_finish() -> None:
    """Keeps modules and collected tests out of each later search for garbage: those are half a million objects."""
    gc.freeze()
    gc.enable()


IS_LEFT_OUT = pytest.StashKey[bool]()
"""Whether `make test` leaves a test out."""
IS_SMOKE = pytest.StashKey[bool]()
"""Whether a test is in the smoke tier: of a test with several cases, that is the first one."""
WITH_CASES = pytest.StashKey[set[str]]()
"""The tests of the smoke tier that were collected, without their cases."""
KIND = pytest.StashKey[int]()
"""What a test needs: one of the following."""
ACCEPTANCE, WAITS, CALCULATES, QUIET = range(4)
LOCK = pytest.StashKey[BinaryIO]()
"""What a test holds while it runs in one of several processes: shared with other tests, or alone."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Puts tests into groups; one process runs all tests of a group, one after the other."""
    # Looked up once: each search for a marker goes through the markers of all directories above.
    markers = {marker.name for marker in item.iter_markers()}
    item.stash[KIND] = _kind(markers)
    costs = "whole" in markers or not markers.isdisjoint({"netns", "quiet"})
    item.stash[IS_SMOKE] = "smoke" in markers and ("acceptance" in markers or _is_first_case(item))
    item.stash[IS_LEFT_OUT] = costs and not item.stash[IS_SMOKE]
    if markers & {"netns", "quiet"} and item.config.pluginmanager.hasplugin("rerunfailures"):
        # A stalled host decides no test. One that hangs would do so again, and nothing would end it.
        again = {"reruns": RERUNS, "reruns_delay": BEFORE_RERUN, "rerun_except": "^Failed: Timeout"}
        item.add_marker(pytest.mark.flaky(**again))
    # Not in pytest_collection_modifyitems: pytest-xdist has read the groups by then.
    if "quiet" in markers:
        item.add_marker(pytest.mark.xdist_group("quiet"))
    elif "xdist_group" not in markers:
        # A file opens its testbed once, and makes once what its tests share; those that wait are a group of their own.
        item.add_marker(pytest.mark.xdist_group(f"{item.path.name} {item.stash[KIND]}"))


def _is_first_case(item: pytest.Item) -> bool:
    known = item.config.stash.setdefault(WITH_CASES, set())
    test = item.nodeid.partition("[")[0]
    is_first = test not in known
    known.add(test)
    return is_first


def _kind(markers: set[str]) -> int:
    if "quiet" in markers:
        return QUIET
    if "acceptance" in markers:
        return ACCEPTANCE
    return WAITS if "netns" in markers else CALCULATES


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves expensive tests out, and orders the others.

    Suites come first and tests that need quiet last. Between them, files that wait and files that calculate alternate,
    so that no processor is idle.
    """
    chosen = [*filter(_choice(config), items)]
    if left_out := set(items).difference(chosen):
        config.hook.pytest_deselected(items=list(left_out))

    groups = dict.fromkeys((item.stash[KIND], item.path) for item in chosen)
    of_kind = Counter(kind for kind, _ in groups)
    seen: Counter[int] = Counter()
    turns: dict[tuple[int, Path], tuple[int, float]] = {}
    for kind, path in groups:
        seen[kind] += 1
        between = 1 if kind in (WAITS, CALCULATES) else 2 * (kind == QUIET)
        turns[kind, path] = (between, seen[kind] / of_kind[kind])
    items[:] = sorted(chosen, key=lambda item: turns[item.stash[KIND], item.path])


def _choice(config: pytest.Config) -> Callable[[pytest.Item], bool]:
    """Whether a test runs: all of them with ``--whole``, and where files or tests are named."""
    if config.option.commit:
        third = int(config.option.commit, 16) % THIRDS
        return lambda item: (
            not item.stash[IS_LEFT_OUT] or item.stash[KIND] == CALCULATES or _third_of(item.path) == third
        )
    directory = config.invocation_params.dir
    names_no_directory = any(not (directory / argument).is_dir() for argument in config.args)
    if config.option.whole or names_no_directory or config.option.keyword:
        return lambda item: True
    return lambda item: not item.stash[IS_LEFT_OUT]


def _third_of(path: Path) -> int:
    return crc32(path.name.encode()) % THIRDS


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lets a test that needs quiet wait until no other process runs a test, and the others wait for it.

    The wait is outside of the test's time limit. A test that runs pytest itself keeps its lock; the inner pytest is
    none of several processes, and takes none.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with Path(__file__).open("rb") as lock:
        item.stash[LOCK] = lock
        _share_machine(item, fcntl.LOCK_EX if item.stash[KIND] == QUIET else fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives a test that has failed the machine to itself: what fails then is no matter of other tests."""
    if getattr(item, "execution_count", 1) > 1 and LOCK in item.stash:
        _share_machine(item, fcntl.LOCK_EX)


def _share_machine(item: pytest.Item, how: int) -> None:
    """Waits until a test may run: with others, or alone. Others wait behind one that waits to be alone."""
    fcntl.flock(item.stash[LOCK], fcntl.LOCK_UN)
    queue = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(item.stash[LOCK], how)
    finally:
        os.close(queue)


class Budget:
    """Fails a run in which a test costs more CPU than its tier may; what several tests share has a limit of its own."""

    def __init__(self) -> None:
        self._began = 0.0
        self._cost = 0.0
        """What the last test has cost, if it is one without a marker."""
        self._shared: dict[str, float] = {}
        """By fixture that several tests share, what the test that runs has spent on it."""
        self._costs: dict[str, dict[str, float]] = {"cheap": {}, "smoke": {}, "shared": {}}
        """By tier, each test and its seconds of CPU; for what is shared, the fixture and the test that came first."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[bool]:
        """Runs a test again that has cost too much, and reports only what it costs then."""
        result = yield
        for _ in range(TRIES - 1):
            if self._cost <= CHEAP_S:
                break
            item._initrequest()
            *_, last = runtestprotocol(item, log=False, nextitem=nextitem)
            item.ihook.pytest_runtest_logreport(report=last)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Begins to count."""
        self._shared = {}
        self._began = _cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
        """Counts what several tests share apart."""
        before, known = _cpu_s(), sum(self._shared.values())
        made = yield
        if fixturedef.scope != "function":
            others = sum(self._shared.values()) - known
            self._shared[fixturedef.argname] = _cpu_s() - before - others
        return made

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Notes what the test cost: its report carries it to the process that judges."""
        result = yield
        cost = _cpu_s() - self._began - sum(self._shared.values())
        notes = []
        self._cost = 0.0
        if item.stash[IS_SMOKE] and item.stash[KIND] != ACCEPTANCE:
            notes.append(("smoke", "", _at_rest(cost, 0.0)))
        elif not (item.stash[IS_LEFT_OUT] or item.stash[IS_SMOKE]):
            self._cost = _at_rest(cost, CHEAP_S)
            notes.append(("cheap", "", self._cost))
            for name, spent in self._shared.items():
                notes.append(("shared", f"the fixture {name} of ", _at_rest(spent, SHARED_S)))
        item.user_properties.append(("cpu_s", notes))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the costs of a test."""
        for tier, of_what, cost in dict(report.user_properties).get("cpu_s", ()):
            self._costs[tier][of_what + report.nodeid] = cost

    def problems(self) -> list[str]:
        """What costs too much, and what to do."""
        found = [
            f"{what} took {cost:.2f} s of CPU, more than {limit} s: make it cheaper, or mark the test `whole`."
            for tier, limit in (("cheap", CHEAP_S), ("shared", SHARED_S))
            for what, cost in self._costs[tier].items()
            if cost > limit
        ]
        smoke = self._costs["smoke"]
        if len(smoke) > SMOKE_TESTS or sum(smoke.values()) > SMOKE_S:
            dearest = sorted(smoke, key=smoke.__getitem__, reverse=True)[:5]
            found.append(
                f"{len(smoke)} tests marked `smoke` took {sum(smoke.values()):.0f} s of CPU; at most {SMOKE_TESTS} and "
                f"{SMOKE_S:.0f} s are allowed. Mark some of them `whole`. The dearest: {', '.join(dearest)}"
            )
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """A run with too costly tests has failed, although the tests have passed."""
        if self.problems() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what costs too much."""
        if problems := self.problems():
            terminalreporter.section("tests that cost too much")
            for problem in problems:
                terminalreporter.write_line(problem)


def _at_rest(cost: float, limit: float) -> float:
    """Seconds of CPU that something costs on a machine that does nothing else; looked at only beyond a limit.

    Beside other work, each calculation takes more seconds of CPU, because programs share caches and cores.
    """
    if cost <= limit:
        return cost
    began = time.process_time()
    sum(range(1_000_000))
    return cost / max(1.0, (time.process_time() - began) / LOOP_S)


def _cpu_s() -> float:
    """Seconds of CPU of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)

"""Which tests run, what they may cost, and how they are spread over processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from itertools import groupby, permutations
from pathlib import Path

import pytest

pytest_plugins = "pytester"
CONFTEST = Path(__file__).parents[2] / "conftest.py"
MARKERS = "[pytest]\nmarkers =\n    whole\n    smoke\n    netns\n    quiet\n    acceptance\n"

TIERS = """
import pytest

def test_a_cheap_one():
    pass

@pytest.mark.whole
def test_a_costly_one():
    pass

@pytest.mark.netns
def test_one_with_frames():
    pass

@pytest.mark.smoke
@pytest.mark.netns
@pytest.mark.parametrize("case", range(2))
def test_one_of_the_smoke_tier(case):
    pass

@pytest.mark.quiet
def test_one_with_a_clock():
    pass
"""
DEFAULT = {"a_cheap_one", "one_of_the_smoke_tier[0]"}
LEFT_OUT = {"a_costly_one", "one_with_frames", "one_with_a_clock", "one_of_the_smoke_tier[1]"}

COSTS = """
import time
import pytest

def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    spend(0.02)

def test_with_what_others_share(shared):
    pass

def test_a_dear_one():
    spend(0.02)

ran = []

def test_one_that_is_dear_the_first_time():
    spend(0.0 if ran else 0.02)
    ran.append(1)

@pytest.mark.whole
def test_a_dear_one_that_says_so():
    spend(0.02)

@pytest.mark.smoke
def test_of_the_smoke_tier():
    spend(0.02)

@pytest.mark.smoke
def test_another_of_the_smoke_tier():
    spend(0.02)
"""


@pytest.fixture
def own_tests(pytester):
    """Writes files of tests beside what spreads the project's own tests, with other limits where some are given."""

    def write(*, files, **budget):
        text = CONFTEST.read_text()
        for name, value in budget.items():
            text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
        pytester.makeconftest(text)
        pytester.makeini(MARKERS)
        pytester.makepyfile(**files)
        return pytester

    return write


def names_of(result):
    return {line.partition("::test_")[2] for line in result.outlines if "::" in line}


def chosen(pytester, *options):
    """The names of the tests that run."""
    return names_of(pytester.runpytest_inprocess("--collect-only", "-q", "-p", "no:cacheprovider", *options))


@pytest.mark.whole
def test_by_default_cheap_tests_and_the_smoke_tier_run_the_same_every_day(own_tests):
    assert chosen(own_tests(files={"test_tiers": TIERS}), ".") == DEFAULT


@pytest.mark.whole
@pytest.mark.parametrize("options", [("--whole", "."), ("-k", "one", "."), ("test_tiers.py",)])
def test_all_tests_run_where_they_are_asked_for(own_tests, options):
    assert chosen(own_tests(files={"test_tiers": TIERS}), *options) == DEFAULT | LEFT_OUT


@pytest.mark.whole
def test_ci_adds_the_costly_tests_that_calculate_and_a_third_of_the_others_by_the_commit(own_tests):
    files = {f"test_tiers_{number}": TIERS for number in range(6)}
    pytester = own_tests(files=files)
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", ".")
    thirds = []
    for commit in ("0", "1", "a4"):
        lines = pytester.runpytest_inprocess("--commit", commit, *options).outlines
        thirds.append({line for line in lines if "::" in line})
    whole = {line for line in pytester.runpytest_inprocess("--whole", *options).outlines if "::" in line}

    assert set.union(*thirds) == whole
    assert {line.partition("::test_")[2] for line in set.intersection(*thirds)} == DEFAULT | {"a_costly_one"}
    assert all(0 < len(third) < len(whole) for third in thirds)


@pytest.mark.whole
def test_files_that_wait_and_files_that_calculate_alternate_and_quiet_ones_are_last(own_tests):
    marks = {"a": "netns", "b": "netns", "c": "whole", "d": "whole", "e": "quiet", "f": "acceptance"}
    test = "import pytest\n\n@pytest.mark.{}\ndef test_one():\n    pass\n"
    pytester = own_tests(files={f"test_{name}": test.format(mark) for name, mark in marks.items()})
    result = pytester.runpytest_inprocess("--collect-only", "-q", "--whole", ".")
    assert [line[len("test_")] for line in result.outlines if "::" in line] == ["f", "a", "c", "b", "d", "e"]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ({}, []),
        ({"CHEAP_S": 0.018}, ["test_costs.py::test_a_dear_one took 0.0"]),
        # Where a loop takes longer than at rest, the test does, too.
        ({"CHEAP_S": 0.018, "SHARED_S": 0.018, "LOOP_S": 0.001}, []),
        ({"SHARED_S": 0.018}, ["the fixture shared of test_costs.py::test_with_what_others_share took 0.0"]),
        ({"SMOKE_TESTS": 1}, ["2 tests marked `smoke` took 0 s of CPU; at most 1 and 120 s are allowed."]),
        ({"SMOKE_S": 0.03}, ["2 tests marked `smoke` took 0 s of CPU; at most 60 and 0 s are allowed."]),
    ],
)
def test_a_dear_test_fails_the_run_with_the_way_out(own_tests, budget, told):
    budget = {"LOOP_S": 100.0} | budget
    result = own_tests(files={"test_costs": COSTS}, **budget).runpytest_inprocess("-p", "no:cacheprovider", ".")
    result.assert_outcomes(passed=5, deselected=1)
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if told else pytest.ExitCode.OK)
    words = [line for line in result.outlines if "s of CPU" in line]
    assert len(words) == len(told)
    for line, begin in zip(words, told, strict=True):
        assert line.startswith(begin)
        assert "`whole`." in line


@pytest.mark.whole
def test_the_fixtures_of_a_directory_are_there_when_named_files_leave_it_and_return(pytester):
    # pytest 9.1 loses them (its issues 14640, 14964 and 14971).
    below = pytester.mkdir("below")
    (below / "conftest.py").write_text(
        "import pytest\n\nran = []\n\n"
        "@pytest.fixture(autouse=True)\ndef always():\n    ran.append(1)\n\n"
        "@pytest.fixture\ndef asked_for():\n    return ran\n"
    )
    for name in "ac":
        (below / f"test_{name}.py").write_text(
            "def test_one(asked_for):\n    assert asked_for\n    asked_for.clear()\n"
        )
    pytester.makepyfile(test_b="def test_one():\n    pass\n")
    files = ("below/test_a.py", "test_b.py", "below/test_c.py")
    pytester.runpytest_inprocess("-p", "no:cacheprovider", *files).assert_outcomes(passed=3)


SPREAD = """
import json, os, pathlib, time
import pytest

def note(name):
    began = time.monotonic()
    time.sleep(0.02)
    line = json.dumps([began, time.monotonic(), name, os.getpid()])
    pathlib.Path(__file__).with_name("notes").open("a").write(line + "\\n")

@pytest.mark.quiet
@pytest.mark.parametrize("number", range(5))
def test_a_quiet_one(number):
    note("quiet")

@pytest.mark.parametrize("number", range(20))
def test_one_that_calculates(number):
    note("calculates")

@pytest.mark.netns
@pytest.mark.parametrize("number", range(5))
def test_one_that_waits(number):
    note("waits")
"""
AGAIN = """
import json, os, pathlib, time
import pytest

NOTES = pathlib.Path(__file__).with_name("notes")

def note(name):
    began = time.monotonic()
    time.sleep(0.02)
    line = json.dumps([began, time.monotonic(), name, os.getpid()])
    NOTES.open("a").write(line + "\\n")

@pytest.mark.netns
@pytest.mark.xdist_group("a")
def test_that_passes_when_it_runs_again():
    first = NOTES.with_name("first")
    note("again" if first.exists() else "first")
    assert first.exists() or first.touch()

@pytest.mark.parametrize("number", range(100))
def test_another(number):
    note("another")

@pytest.mark.netns
@pytest.mark.xdist_group("b")
@pytest.mark.parametrize("number", range(100))
def test_one_that_waits(number):
    note("waits")
"""
NET = """
import pathlib
import pytest

HERE = pathlib.Path(__file__).parent

def passes_at_second_try(name):
    is_second = (HERE / name).exists()
    (HERE / name).touch()
    assert is_second

@pytest.mark.netns
def test_with_real_frames():
    passes_at_second_try("frames")

@pytest.mark.quiet
def test_with_a_clock():
    passes_at_second_try("clock")

def test_that_calculates():
    passes_at_second_try("numbers")

@pytest.mark.netns
def test_of_something_broken():
    assert False
"""


def spread(directory, tests, processes, status=0):
    """Runs tests in several processes with what spreads the project's own tests; returns the output."""
    shutil.copy(CONFTEST, directory)
    (directory / "test_some.py").write_text(tests)
    (directory / "pytest.ini").write_text(MARKERS)
    command = [sys.executable, "-m", "pytest", "-raR", "-q", "-p", "no:cacheprovider", "--whole", "."]
    command += ["--numprocesses", str(processes), "--dist", "loadgroup", "--no-loadscope-reorder"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.whole
def test_a_group_has_one_process_and_a_quiet_test_has_the_machine(tmp_path):
    spread(tmp_path, SPREAD, 3)
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    assert len(notes) == 30
    for (began, ended, name, _), (other_began, other_ended, _, _) in permutations(notes, 2):
        assert name != "quiet" or other_ended <= began or ended <= other_began
    for _, group in groupby(sorted(notes, key=lambda note: note[2]), key=lambda note: note[2]):
        assert len({process for *_, process in group}) == 1


@pytest.mark.whole
def test_what_runs_again_has_the_machine(tmp_path):
    spread(tmp_path, AGAIN, 3)
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    (again,) = [note for note in notes if note[2] == "again"]
    others = [note for note in notes if note[2] not in ("again", "first")]
    assert len(others) == 200
    assert any(ended <= again[0] for _, ended, _, _ in others)
    assert any(began >= again[1] for began, _, _, _ in others)
    assert all(ended <= again[0] or began >= again[1] for began, ended, _, _ in others)


@pytest.mark.whole
def test_a_stall_decides_no_test_with_real_frames_and_mistakes_still_do(tmp_path):
    told = spread(tmp_path, NET, 2, status=1)
    failed = {line.partition("::test_")[2].partition("@")[0] for line in told.splitlines() if line.startswith("FAILED")}
    assert failed == {"of_something_broken", "that_calculates"}
    assert "2 failed, 2 passed, 5 rerun in" in told.splitlines()[-1]
    assert re.search("^RERUN .*test_with_real_frames", told, flags=re.MULTILINE)


def test_make_runs_the_tests_in_groups(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("these tests are not spread over processes: --numprocesses 4 --dist loadgroup")
    assert request.node.nodeid.endswith("@test_groups.py 2")

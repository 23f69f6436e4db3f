"""How the tests themselves are spread over processes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from itertools import groupby, permutations
from pathlib import Path

import pytest

# The tests share the outcome of one run.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spread")]
CONFTEST = Path(__file__).parents[2] / "conftest.py"
TESTS = """
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


def runner(directory, tests, status=0):
    """Writes tests, and gives what runs them with what spreads the project's own tests; it returns the output."""
    shutil.copy(CONFTEST, directory)
    (directory / "test_some.py").write_text(tests)
    markers = "".join(f"\n    {marker}" for marker in ("netns", "long", "quiet", "acceptance", "rotated"))
    (directory / "pytest.ini").write_text(f"[pytest]\nmarkers ={markers}\n")

    def run(*options):
        chosen = () if "test_some.py" in options else (".",)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *chosen]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def some_tests(tmp_path_factory):
    """Runs pytest on some tests of all kinds, with what spreads the project's own tests; gives their directory."""
    directory = tmp_path_factory.mktemp("spread")
    return directory, runner(directory, TESTS)


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


ROTATED = """
import pytest

@pytest.mark.rotated
@pytest.mark.parametrize("first", range(2))
@pytest.mark.parametrize("second", range(4))
def test_a_law(first, second):
    pass

@pytest.mark.netns
@pytest.mark.parametrize("number", range(3))
def test_a_law_of_real_frames(number):
    pass

@pytest.mark.long
def test_a_law_without_cases():
    pass

@pytest.mark.parametrize("number", range(3))
def test_each_day_as_it_is_quick(number):
    pass
"""


@pytest.fixture(scope="module")
def some_rotated_tests(tmp_path_factory):
    """Gives the names of the tests that pytest chooses among some that are rotated, and its whole output."""
    run = runner(tmp_path_factory.mktemp("rotated"), ROTATED)

    def chosen(*options):
        output = run("--collect-only", *options)
        return {line.partition("::")[2] for line in output.splitlines() if "::" in line}, output

    return chosen


@pytest.fixture(scope="module")
def notes(some_tests):
    """When each of these tests began and ended, what it was, and the process that ran it."""
    directory, run = some_tests
    run("--whole", "--numprocesses", "3", "--dist", "loadgroup", "--no-loadscope-reorder")
    return [json.loads(line) for line in (directory / "notes").read_text().splitlines()]


def test_nothing_else_runs_while_a_test_needs_quiet(notes):
    assert len(notes) == 30
    for (began, ended, name, _), (other_began, other_ended, _, _) in permutations(notes, 2):
        assert name != "quiet" or other_ended <= began or ended <= other_began


def test_tests_that_wait_come_first_and_those_that_need_quiet_last(some_tests):
    _, run = some_tests
    names = [line.partition("::test_")[2] for line in run("--collect-only").splitlines()]
    kinds = [kind for kind, _ in groupby(name.partition("[")[0] for name in names if name)]
    assert kinds == ["one_that_waits", "one_that_calculates", "a_quiet_one"]


def test_files_that_calculate_for_a_short_time_come_between_those_that_wait(tmp_path):
    run = runner(tmp_path, "")
    waits, calculates = "@pytest.mark.netns\n", ""
    kinds = {"a": waits, "b": waits, "c": calculates, "d": calculates, "e": calculates, "f": calculates}
    kinds |= {"g": "@pytest.mark.long\n", "h": waits + "@pytest.mark.xdist_group('of several')\n"}
    for name, marks in kinds.items():
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n\n{marks}def test_one():\n    pass\n")
    files = [line[len("test_")] for line in run("--collect-only", "--whole").splitlines() if "::" in line]
    assert files == ["h", "a", "c", "b", "d", "g", "e", "f"]


@pytest.mark.parametrize("kind", ["quiet", "waits", "calculates"])
def test_one_process_runs_a_group(notes, kind):
    assert len({process for _, _, name, process in notes if name == kind}) == 1


def test_make_runs_the_tests_in_groups(request):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("these tests are not spread over processes: --numprocesses auto --dist loadgroup")
    assert request.node.nodeid.endswith("@spread")


def test_a_stall_decides_no_test_with_real_frames_and_mistakes_still_do(tmp_path):
    run = runner(tmp_path, NET, status=1)
    told = run("-raR", "--whole", "--numprocesses", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
    failed = {line.partition("::test_")[2].partition("@")[0] for line in told.splitlines() if line.startswith("FAILED")}
    assert failed == {"of_something_broken", "that_calculates"}
    assert "2 failed, 2 passed, 5 rerun in" in told.splitlines()[-1]
    assert re.search("^RERUN .*test_with_real_frames", told, flags=re.MULTILINE)


def test_three_days_run_each_rotated_test_once_and_all_others_each_day(some_rotated_tests):
    thirds = [some_rotated_tests("--third", str(third))[0] for third in (1, 2, 3)]
    rotated = [{name for name in third if "law" in name} for third in thirds]
    assert [len(tests) for tests in rotated] == [4, 4, 4]
    assert len(set().union(*rotated)) == 12
    assert [len(third) - len(tests) for third, tests in zip(thirds, rotated, strict=True)] == [3, 3, 3]


@pytest.mark.parametrize("options", [("--whole",), ("-k", "law or each"), ("test_some.py",)])
def test_all_rotated_tests_run_where_they_are_asked_for(some_rotated_tests, options):
    assert len(some_rotated_tests(*options)[0]) == 15


def test_a_run_says_which_rotated_tests_it_has_and_runs_the_same_in_all_processes(tmp_path):
    run = runner(tmp_path, ROTATED)
    told = run("-vv", "--numprocesses", "2", "--dist", "loadgroup")
    (third,) = re.findall(
        r"^rotated: third ([123]) of 3 \(again: --third \1; all: --whole\)$", told, flags=re.MULTILINE
    )
    again = run("-vv", "--third", third)
    names = [set(re.findall(r"::(test_\w+(?:\[[\d-]+\])?)", output)) for output in (told, again)]
    assert names[0] == names[1]
    assert len(names[0]) == 7

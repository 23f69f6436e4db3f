"""Ten more ways to call the same tests: none of them renames a test; and 40 nights in these ways are one series."""

from __future__ import annotations

import os

import pytest
from history_examples import nightly
from robot_runs import ROOT, SIMULATED, called, write_suite

from lossratio.report.history import History
from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.annotations import ANNOTATIONS_NAME
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory

pytestmark = pytest.mark.whole

TESTS = """
64B mrr
    Measure MRR    64B    trials=1

${SIZE} mrr
    [Template]    Measure MRR
    ${SIZE}    trials=1

*** Variables ***
${SIZE}    1518B
"""
NAMES = ["Core.Fast.Suite.1518B mrr", "Core.Fast.Suite.64B mrr"]
KEEPS = """
class Keeps:
    def start_suite(self, suite):
        suite.tests = sorted(suite.tests, key=lambda test: test.name)

    visit_suite = start_suite
"""


@pytest.fixture
def project(tmp_path):
    """A project with a suite in nested folders, whose names have spaces, and with init files that have metadata."""
    folder = tmp_path / "my project"
    place = folder / "core" / "fast"
    place.mkdir(parents=True)
    write_suite(place, TESTS)
    (place / "robot.toml").unlink()
    for number, above in enumerate((folder, folder / "core", place)):
        settings = f"*** Settings ***\nMetadata    Owner    {number}\nName    Level {number}\n"
        (above / "__init__.robot").write_text(settings)
    (folder / "robot.toml").touch()
    (folder / "Keeps.py").write_text(KEEPS)
    (folder / "inner.args").write_text("--name Inner\ncore\n")
    (folder / "outer.args").write_text("# nested\n--argumentfile inner.args\n")
    (folder / "linked").symlink_to(folder / "core")
    return folder


def robot(project, *arguments, output="run"):
    common = ["--variable", f"TOPOLOGY:{SIMULATED}", "--pythonpath", ROOT / "libraries"]
    directory = project.parent / output
    assert called(project, *common, "--outputdir", directory, *arguments) == 0
    return sorted(result.test.full_name for result in RunDirectory(directory).results())


WAYS = {
    "tasks": ("--rpa", "core"),
    "a filter of suites": ("--suite", "*.Suite", "core"),
    "a filter of long names": ("-N", "Night 7", "--suite", "Night 7.Level 2.Suite", "core"),
    "nested argument files": ("--argumentfile", "outer.args"),
    "a variable that changes no device": ("--variable", "NIGHT:7", "core"),
    "a modifier": ("--prerunmodifier", "Keeps.py", "core"),
    "a link to the folder": ("linked",),
    "a path with dots": ("core/../core/./fast/../fast/suite.robot",),
    "parse include": ("--parseinclude", "**/suite.robot", "core"),
    "a folder within the folder": ("core/fast",),
    "another language": ("--language", "fi", "core"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_tests_have_the_same_names(project, way):
    assert robot(project, *WAYS[way]) == NAMES


def test_a_suite_that_moved_with_its_id_keeps_names_in_all_ways(project):
    moved = project / "elsewhere" / "other.robot"
    moved.parent.mkdir()
    text = (project / "core" / "fast" / "suite.robot").read_text()
    moved.write_text(text.replace("*** Settings ***", "*** Settings ***\nMetadata    ID    Core.Fast.Suite"))
    (project / "core" / "fast" / "suite.robot").unlink()
    os.rename(project / "elsewhere", project / "ELSEWHERE")
    assert robot(project, "ELSEWHERE") == robot(project, ".", output="again") == NAMES


def test_40_nights_in_turn_in_these_ways_are_one_series_with_one_alarm_whose_ack_is_kept(project):
    ways = [WAYS[way] for way in ("tasks", "a filter of long names", "nested argument files")]
    called_names = set()
    for number, way in enumerate(ways):
        robot(project, *way, output=f"run{number}")
        for result in read_run(project.parent / f"run{number}").results:
            called_names.add((result.test.full_name, result.test.long_name))
    assert {name for name, _ in called_names} == set(NAMES)
    long_names = sorted(long for name, long in called_names if name == NAMES[1])
    assert len(long_names) == 3
    history = History(project.parent / "history")
    for night in range(40):
        made = nightly(night, (100e3 if night < 36 else 80e3) + night % 3, test=NAMES[1])
        history.add([{**made, "long_name": long_names[night % 3], "device": "vpp"}])
    analysis = analyse(history, TrendRequest())
    assert [len(trend.series.times) for trend in analysis.trends] == [40]
    assert [trend.series.key.test for trend in analysis.alarms] == [NAMES[1]]
    (history.path / ANNOTATIONS_NAME).write_text(
        f"changes: [{{date: {analysis.alarms[0].began:%Y-%m-%d}, note: known, test: {NAMES[1]}, device: vpp}}]\n"
    )
    history.add([{**nightly(40, 80e3, test=NAMES[1]), "long_name": "Renamed.Once More", "device": "vpp"}])
    assert analyse(history, TrendRequest()).alarms == ()

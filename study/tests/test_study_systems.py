"""Every system of the source documents by name: as the documentation says, on models, recorded trials and testbeds."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lossratio.trials import TrialInput, TrialOutput, read_journal
from lossratio_study.command import study
from lossratio_study.csit import CSIT
from lossratio_study.search import GOAL_SETS
from lossratio_study.suts import Overhead
from lossratio_study.systems import SYSTEMS
from lossratio_study.testbed import WithOverhead

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "study-searches.md").read_text()
READERS = {"docs/how-to/study-searches.md": PAGE, "study/README.md": (ROOT / "study" / "README.md").read_text()}
KNOWING = {name for name, system in SYSTEMS.items() if system.algorithm.knows_the_sut}
CAPACITY = 75_000
"""Of the simulated testbed, in frames per second per interface."""


def goals_of(name):
    """The goal sets that a system can search for, the quickest first."""
    quickest = ("G4", "G6", "G1", "G3", "G2", "G5")
    return [goals for goals in quickest if SYSTEMS[name].algorithm.applies(GOAL_SETS[goals].goals)]


def run(*arguments):
    done = CliRunner().invoke(study, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_names_every_system_with_its_document():
    lines = run("--systems").splitlines()
    assert [line.split("  ")[0] for line in lines] == list(SYSTEMS)
    goals = [re.findall(r"\bG\d\b", line) for line in lines]
    assert goals == [sorted(goals_of(name)) for name in SYSTEMS]
    assert all(line.endswith(system.source) for line, system in zip(lines, SYSTEMS.values(), strict=True))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=f"{file} {number}")
        for file, text in READERS.items()
        for number, line in enumerate(re.findall(r"^\$ lossratio[- ]study ((?:.*\\\n)*.*)$", text, flags=re.MULTILINE))
    ],
)
def test_the_commands_of_the_pages_can_be_given(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "last-night" / "trials").mkdir(parents=True)
    context = study.make_context("study", shlex.split(line.replace("\\\n", " ")))
    assert isinstance(context, click.Context)
    assert set(context.params["algorithms"]) <= set(SYSTEMS)


def test_the_algorithm_of_the_page_takes_part(tmp_path, monkeypatch):
    *_, example = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "mine.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    small = ("--goals", "G4", "--family", "sharp knee", "--seeds", "0", "--repeats", "1", "--jobs", "1")
    shown = run("--algorithm", "mine:WARMED_UP", *small, "--results", tmp_path / "study")
    assert "G4 with a warm-up" in shown


@pytest.mark.whole
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_searches_on_models_by_its_name(name, tmp_path):
    small = ("--family", "sharp knee", "--seeds", "0", "--repeats", "1", "--jobs", "1", "--results", tmp_path)
    assert f" {name} " in run("--algorithm", name, "--goals", goals_of(name)[0], *small)


@pytest.mark.whole
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_searches_on_recorded_trials_by_its_name(name, tmp_path):
    (tmp_path / "nights").mkdir()
    lines = [{"load": load, "frames": load, "lost": max(0, load - 50_000)} for load in range(10_000, 100_000, 5_000)]
    (tmp_path / "nights" / "one.jsonl").write_text("\n".join(map(json.dumps, lines)))
    small = ("--replay", tmp_path / "nights", "--seeds", "0", "--repeats", "1", "--jobs", "1", "--results", tmp_path)
    shown = run("--algorithm", name, "--goals", goals_of(name)[0], *small)
    (line, *_) = (line for line in shown.splitlines() if line.startswith("one.jsonl: "))
    *_, bound, regular, _, searches = line.split()
    assert float(bound) == pytest.approx(50_000, rel=0.01)
    assert regular == searches == "1"


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in KNOWING])
def test_a_system_searches_on_a_testbed_by_its_name(name, tmp_path):
    asked = ("--testbed", "simulated", "--goals", goals_of(name)[0], "--algorithm", name)
    shown = run(*asked, "--results", tmp_path / "study")
    assert "Fault of" not in shown
    (line, *_) = (line for line in shown.splitlines() if re.search(rf", {re.escape(name)}  ", line))
    *_, bound, regular, _, searches = line.split()
    assert float(bound) == pytest.approx(CAPACITY, rel=0.011)
    assert regular == searches == "1"
    (journal,) = (tmp_path / "study").glob("testbed-*/trials/*.jsonl")
    trials = read_journal(journal).entries
    assert len(trials) > 3
    again = ("--replay", journal.parent, "--goals", "G4", "--algorithm", "lossratio", "--jobs", "1")
    assert "lossratio" in run(*again, "--results", tmp_path / "replayed")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("--goals", "G4", "--algorithm", "oracle"), "oracle must know the SUT"),
        (("--goals", "G4", "--algorithm", "MLRsearch 2019"), "None of these algorithms can search for these goals"),
        ((), "On a testbed, choose what to search for with --goals: G1, G2"),
        (("--goals", "G4", "--family", "jitter"), "Leave out --family"),
        (("--goals", "G4", "--option", "police"), "write it as NAME=VALUE"),
    ],
)
def test_what_makes_no_sense_on_a_testbed_is_refused_before_it_is_opened(asked, reason, tmp_path):
    done = CliRunner().invoke(study, ["--testbed", str(tmp_path / "nowhere.yaml"), *asked])
    assert done.exit_code != 0
    assert reason in f"{done.output} {done.exception}"


class Timed:
    """A measurer whose trials take 0.1 s besides rest and traffic."""

    def measure(self, trial):
        self.trial = trial
        return TrialOutput(0.0, elapsed=trial.duration + trial.rest + 0.1)


def test_on_a_testbed_the_trials_of_csit_rest_and_their_whole_time_counts():
    device = Timed()
    output = WithOverhead(device, CSIT.overhead).measure(TrialInput(1.0, 1e6))
    assert device.trial == TrialInput(1.0, 1e6, rest=0.5)
    assert output.effective_duration == output.elapsed == pytest.approx(1.6)


def test_on_a_testbed_the_trials_of_others_are_as_the_testbed_makes_them():
    device = Timed()
    output = WithOverhead(device, Overhead(0.0), step=1000.0).measure(TrialInput(1.0, 1_000_400.0))
    assert device.trial == TrialInput(1.0, 1_000_000.0)
    assert output.effective_duration is None


@pytest.mark.whole
def test_csit_has_its_overhead_whatever_the_study_has(tmp_path):
    small = ("--family", "sharp knee", "--seeds", "0", "--repeats", "1", "--jobs", "1", "--results", tmp_path)
    shown = run("--algorithm", "CSIT", "--algorithm", "as CSIT", "--goals", "G1", *small)
    free, _, counted = shown.partition("Overhead 0.5 s, counted: searches")
    assert "G1 as CSIT" in free
    assert "G1 CSIT" not in free
    assert "G1 CSIT" in counted
    assert "G1 as CSIT" not in counted

"""`lossratio run` takes the options that users know from Robot Framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossratio.commands.main import SUBJECTS, commands
from lossratio.traffic import profile_names

SUITE = """*** Settings ***
Test Tags    {tag}

*** Test Cases ***
First ${{WORD}}
    Log    ${{WORD}}
Second
    [Tags]    slow
    No Operation
"""


@pytest.fixture
def suite(tmp_path):
    file = tmp_path / "small.robot"
    file.write_text(SUITE.format(tag="small"))
    return file


@pytest.mark.parametrize(
    ("options", "tests"),
    [
        ((), {"First one", "Second"}),
        (("--test", "Sec*"), {"Second"}),
        (("--exclude", "slow"), {"First one"}),
        (("--test", "Second", "--test", "First*"), {"First one", "Second"}),
        (("--include", "small", "--exclude", "slow"), {"First one"}),
        (("-i", "small", "-e", "slow", "-v", "MORE:", "-t", "First*"), {"First one"}),
    ],
)
def test_tests_are_chosen_and_results_go_where_the_user_says(lossratio, suite, tmp_path, options, tests):
    done = lossratio(*("run", "--topology", "simulated", suite, "--output", "here", "--variable", "WORD:one", *options))
    assert done.status == 0, done
    log = (tmp_path / "here" / "output.xml").read_text()
    assert {name for name in ("First one", "Second") if f'name="{name}"' in log} == tests


@pytest.mark.parametrize("given", ["FRAME_SIZE=64B", "FRAME_SIZE"])
def test_a_variable_without_a_value_is_refused_before_the_run(lossratio, suite, given):
    refused = lossratio("run", "--topology", "simulated", suite, "--variable", given)
    assert refused.status == 2
    assert f"--variable {given}: it has no value; write NAME:VALUE" in refused.err


def test_a_wrong_value_is_refused_wherever_the_variable_is_given(lossratio, suite):
    refused = lossratio("run", "--topology", "simulated", suite, "--", "--variable", "GOALS:quik")
    assert refused.status == 2
    assert "--variable GOALS:quik: There is no set of search goals 'quik'." in refused.err
    assert "Did you mean 'quick'?" in refused.err


@pytest.mark.whole
def test_verbose_is_a_variable_for_the_keywords(lossratio, suite, tmp_path):
    shown = suite.with_name("verbose.robot")
    shown.write_text("*** Test Cases ***\nShown\n    Should Be Equal    ${LOSSRATIO_VERBOSE}    yes\n")
    assert lossratio("run", "--topology", "simulated", shown, "--output", "usual").status == 1
    assert lossratio("run", "--topology", "simulated", shown, "--output", "verbose", "--verbose").status == 0


@pytest.mark.parametrize("option", ["--loglevel", "--LogLevel", "-L", "--set-tag", "-s", "--dryrun", "-X"])
def test_an_option_of_robot_framework_is_told_to_go_behind_the_dashes(lossratio, suite, option):
    refused = lossratio("run", "--topology", "simulated", suite, option, "DEBUG")
    assert refused.status == 2
    assert f"{option} is an option of Robot Framework. Put Robot's options after --" in refused.err
    assert f"-- {option} ..." in refused.err


@pytest.mark.parametrize("option", ["-d", "--outputdir", "--OutputDir"])
def test_robots_directory_of_output_is_an_option_of_the_command(lossratio, suite, option):
    refused = lossratio("run", "--topology", "simulated", suite, option, "here")
    assert refused.status == 2
    assert f"{option} is an option of Robot Framework. Here it is --output DIR." in refused.err


def test_the_directory_of_output_is_named_once(lossratio, suite, tmp_path):
    refused = lossratio("run", "--topology", "simulated", suite, "--output", "a", "--", "-d", "b")
    assert refused.status == 2
    assert "--outputdir is --output here. Leave one of them out." in refused.err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("option", ["--output=o.xml", "--output=NONE", "--timestampoutputs", "-T"])
@pytest.mark.parametrize("way", ["command line", "environment"])
def test_an_output_of_another_name_is_refused_because_a_run_could_not_be_resumed(
    lossratio, suite, tmp_path, monkeypatch, option, way
):
    if way == "environment":
        monkeypatch.setenv("ROBOT_OPTIONS", option)
    options = ("--", option) if way == "command line" else ()
    refused = lossratio("run", "--topology", "simulated", suite, "--output", "here", *options)
    assert refused.status == 2
    assert "cannot be used here, because reports and --resume read output.xml." in refused.err
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("option", ["--dryrun", "--DryRun", "--dry", "of the environment"])
def test_a_dry_run_is_not_said_to_have_measured(lossratio, suite, monkeypatch, option):
    if option == "of the environment":
        monkeypatch.setenv("ROBOT_OPTIONS", "--dryrun")
    options = ("--", option) if option.startswith("--") else ()
    done = lossratio("run", "--topology", "simulated", suite, "--output", "dry", *options)
    assert done.status == 0
    assert "tests passed a dry run, which measures nothing. Exit status 0." in done.err


def test_a_dry_run_is_not_resumed_because_that_would_measure_nothing(lossratio, suite):
    assert lossratio("run", "--topology", "simulated", suite, "--output", "dry", "--", "--dryrun").status == 0
    refused = lossratio("run", "--resume", "dry")
    assert refused.status == 2
    assert "it was a dry run, which measures nothing. To measure, start a new run without --dryrun." in refused.err


def test_an_unknown_option_names_the_nearest(lossratio, suite):
    misspelt = lossratio("run", "--topology", "simulated", suite, "--inclde", "x")
    assert "--include" in misspelt.err


def test_a_misspelt_command_of_a_subject_names_the_nearest(lossratio):
    assert "Did you mean 'doctor'?" in lossratio("lab", "doctr").err


def test_the_front_is_short():
    front = ["demo", "init", "check", "list", "run", "between", "report", "compare", "trend"]
    assert commands.list_commands(None)[: len(front) + len(SUBJECTS)] == [*front, *SUBJECTS]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("what", "name", "text"),
    [
        ("suites", "linux_bridge", "Linux bridge, policed to 50 kfps each way"),
        ("topologies", "local", "network namespaces on this machine"),
        ("profiles", "ethip4-udp", "Ethernet, IPv4, UDP; 254 source addresses"),
        ("devices", "linux_bridge", "A bridge that only forwards"),
    ],
)
def test_what_has_a_name_is_listed_with_what_it_is(lossratio, what, name, text):
    lines = lossratio("list", what).out.splitlines()
    if what == "suites":
        families, blank, *lines = lines
        assert " suites: " in families
        assert not blank
    assert text in lines[lines.index(name) + 1]
    assert all(line.strip() for line in lines), "each name has a text"


def test_every_suite_and_topology_that_comes_along_can_be_listed(lossratio):
    root = Path(__file__).parents[3]
    suites = {path.stem for path in (root / "libraries/lossratio/suites").glob("*.robot")}
    assert suites <= set(lossratio("list", "suites").out.splitlines())
    assert {*profile_names()} <= set(lossratio("list", "profiles").out.splitlines())


@pytest.mark.parametrize("word", ["suites", "topologies", "profiles", "devices"])
def test_what_can_be_listed_is_no_command_but_names_the_one_that_lists_it(lossratio, word):
    assert f"Did you mean 'lossratio list {word}'?" in lossratio(word).err

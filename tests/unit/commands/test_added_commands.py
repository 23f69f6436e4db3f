"""Commands of other packages, installed as the reader of the how-to would install them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from itertools import chain
from pathlib import Path

import click
import pytest
from examples import examples_in
from report_examples import mrr, throughput

from lossratio.commands.main import sections
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "add-a-command.md").read_text()
GROUP = "lossratio.command"


def example(language):
    (block,) = examples_in(TEXT, language)
    return block


@pytest.fixture
def _doubts(install_package):
    header, entry = example("toml").strip().splitlines()
    assert header == f'[project.entry-points."{GROUP}"]'
    install_package("our_commands", {GROUP: [entry.replace('"', "")]}, our_commands=example("python"))


@pytest.mark.usefixtures("_doubts")
def test_a_command_of_another_package_is_in_the_help_and_not_imported_for_that(lossratio):
    text = lossratio("--help").out
    line = "List the doubts about the results of the run in DIR."
    assert f"Added by our_commands 1.0:\n  doubts  {line}\n" in text
    assert "our_commands" not in sys.modules


@pytest.mark.usefixtures("_doubts")
def test_its_parameters_and_errors_are_treated_as_those_of_every_command(lossratio, tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.write(throughput())
    run.write(mrr(SharpKnee(capacity=200_000.0)))
    assert re.fullmatch(r"[^:]*-mrr: MRR below PDR: .*\n", lossratio("doubts", "run").out)
    assert lossratio("doubts", "--least", "9", "run") == (0, "", "")
    assert "Did you mean 'doubts'?" in lossratio("doubt").err
    missing = lossratio("doubts", "missing")
    assert (missing.status, missing.err.partition(" ")[0]) == (2, "Error:")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:worst", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("unreadable:worst", "cannot be loaded: SyntaxError"),
        ("other_commands:number", "is not a click.Command"),
    ],
)
def test_a_broken_package_is_named_and_every_other_command_works(lossratio, install_package, target, message):
    install_package("other_commands", {GROUP: [f"worst = {target}"]}, other_commands="number = 1", unreadable="class")
    done = lossratio("worst")
    assert (done.status, done.out) == (2, "")
    assert f"The command 'worst' of other_commands 1.0 ({target}) {message}" in done.err
    assert lossratio("check", "simulated").status == 0
    listed = lossratio("--help")
    assert listed.status == 0
    assert "Added by other_commands 1.0:\n  worst" in listed.out


def test_two_commands_of_one_name_are_refused(lossratio, install_package):
    install_package("other_commands", {GROUP: ["check = other_commands:check"]}, other_commands="")
    done = lossratio("check", "simulated")
    assert done.status == 2
    assert "Several packages have a command 'check': lossratio.commands.testbed:check (lossratio), " in done.err
    assert "other_commands:check (other_commands 1.0). Uninstall all but one." in done.err


@pytest.mark.whole
def test_the_page_of_commands_has_all_of_them(tmp_path):
    # The table is made where the site is built.
    conf = Path(__file__).parents[3] / "docs" / "conf.py"
    code = (
        "import runpy\n"
        f"conf = runpy.run_path({str(conf)!r})\n"
        "source = ['']\n"
        "conf['list_commands'](None, conf['COMMAND_PAGE'], source)\n"
        "print(source[0])\n"
    )
    page = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    names = [entry.name for section in sections().values() for entry in section]
    assert re.findall(r"^\| \[`lossratio ([^`]+)`\]\(\S+\) \| \w", page, flags=re.MULTILINE) == names
    assert re.findall(r"^## lossratio (.+)$", page, flags=re.MULTILINE) == names


def test_the_page_of_commands_has_every_option_of_lossratio_itself(tmp_path):
    conf = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "conf.py"))
    entries = list(chain(*sections().values()))
    assert entries
    for entry in entries:
        text = conf["described_command"](entry)
        options = [option for option in entry.load().params if isinstance(option, click.Option)]
        assert [option.opts[0] for option in options if f"`{option.opts[0]}" not in text] == []


@pytest.mark.parametrize(("command", "package"), [(("study", "--systems"), "study"), (("otg-serve", "lo"), "otg")])
def test_a_command_of_another_package_of_ours_says_what_to_install(lossratio, monkeypatch, command, package):
    monkeypatch.setattr("lossratio.files.plugins._installed", lambda group, path: ())
    assert command[0] not in lossratio("--help").out
    done = lossratio(*command)
    assert (done.status, done.out) == (2, "")
    assert f"The command '{command[0]}' belongs to lossratio-{package}, which is not installed: " in done.err
    assert f"pip install ./{package}" in done.err


@pytest.mark.whole
def test_our_packages_that_are_installed_add_their_commands_without_being_imported():
    listing = (
        "import sys\n"
        "from lossratio.commands.main import commands\n"
        "commands(['--help'], standalone_mode=False)\n"
        "late = {'numpy', 'pandas', 'lossratio.mlrsearch', 'lossratio_study.command', 'lossratio_otg.command'}\n"
        "print(sorted(late & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", listing], check=True, capture_output=True, text=True)
    ours = r"Added by lossratio-study \S+:\n  csit-coverage  .*\n(?:   .*\n)*  study +Compare search"
    assert re.search(ours, done.stdout)
    line = "  otg-serve  Serve the Open Traffic Generator's REST interface"
    assert re.search(rf"Added by lossratio-otg \S+:\n{line}", done.stdout)
    assert done.stdout.endswith("[]\n")

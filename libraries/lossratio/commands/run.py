"""The command ``lossratio run``."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossratio.commands.parameters import (
    DURATION,
    NEW_IN_RESULTS,
    ONLY_NAME,
    ONLY_TAG,
    SUITE,
    TESTBED,
    OneOf,
    OneValueEach,
    argument,
    command,
    option,
    say,
)
from lossratio.values import ExitStatus

if TYPE_CHECKING:
    from lossratio.runs import RunOutcome, TestVerdict


VERBOSE_RULES = (
    "Show Robot Framework's output, how each result was measured, and which rule chose each trial."
)
"""Help of an option that shows more while measuring."""


class _RunCommand(OneValueEach):
    """A command whose options end at ``--``: the rest goes to Robot Framework."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            args, ctx.obj = args[:end], tuple(args[end + 1 :])
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            instead = _instead_of(error.option_name, ctx.command_path)
            if instead is None:
                raise
            raise click.UsageError(instead, ctx) from error


_VARIABLES = ("GOALS", "LATENCY", "TELEMETRY", "FRAME_SIZE", "CORES", "NIC")
"""Variables that most suites have."""


def _instead_of(option_name: str, command_path: str) -> str | None:
    """What to write instead of an option that the command does not have; None: not known."""
    variable = option_name.lstrip("-").replace("-", "_").upper()
    if variable in _VARIABLES:
        return f"{option_name} is not an option but a variable of the suites: --variable {variable}:VALUE"

    meant = _option_of_robot(option_name)
    if meant is None:
        return None
    named = f"{option_name} is an option of Robot Framework."
    if meant == "--outputdir":
        return f"{named} Here it is --output DIR."
    return f"{named} Put Robot's options after --: {command_path} SUITE... -- {option_name} ..."


def _option_of_robot(name: str) -> str | None:
    """The long name of a Robot Framework option, which may have capitals and hyphens; None: there is no such option."""
    from robot.run import USAGE

    options = re.findall(r"^ (?:(-[A-Za-z])| {2}) (--[a-z]+)", USAGE, re.MULTILINE)
    known = {short: long for short, long in options if short}
    known |= {long: long for _, long in options}
    plain = name if not name.startswith("--") else f"--{name.replace('-', '').lower()}"
    return known.get(plain)


@dataclass(frozen=True)
class _Tests:
    """The tests, and what changes in them."""

    job: Path | None = option("A job file, instead of suites.", metavar="FILE")
    include: tuple[str, ...] = option(ONLY_TAG, "-i", "--include", metavar="TAG")
    exclude: tuple[str, ...] = option(
        "Leave out tests with this tag, or pattern of tags.", "-e", "--exclude", metavar="TAG"
    )
    test: tuple[str, ...] = option(ONLY_NAME, "-t", "--test", metavar="NAME")
    variable: tuple[str, ...] = option(
        "A variable of the suites, e.g. FRAME_SIZE:64B.", "-v", "--variable", metavar="NAME:VALUE"
    )
    output: Path | None = option(NEW_IN_RESULTS, metavar="DIR")
    doubts: str | None = option(
        "Whether a doubt about a result is a warning or fails the test.",
        type=OneOf(["warn", "fail"]),
    )

    def robot_options(self) -> Iterator[str]:
        """The options of Robot Framework that say the same."""
        yield from _repeated("--test", self.test)
        yield from _repeated("--exclude", self.exclude)
        yield from _repeated("--variable", self.variable)
        if self.doubts is not None:
            yield from ("--variable", f"DOUBTS:{self.doubts}")
        if self.output is not None:
            yield from ("--outputdir", str(self.output))


@dataclass(frozen=True)
class _Start:
    """When the run begins or continues, and how long its tests may take."""

    wait: float | None = option("Wait at most this long for the testbed, e.g. 2h.", type=DURATION)
    purpose: str = option("The reason, shown to other users of the testbed.", default="")
    resume: Path | None = option("Continue the run in this directory.", metavar="DIR")
    force: bool = option("Continue even if conditions have changed.")
    test_timeout: float | None = option(
        "Time limit of each test without its teardown, e.g. 1h.", type=DURATION
    )


@command(cls=_RunCommand)
def run(
    suites: tuple[Path, ...] = argument("SUITE... [-- ROBOT OPTIONS]", type=SUITE),
    *,
    topologies: tuple[Path, ...] = option(
        f"{TESTBED} If it is given several times, the run takes the first free one.",
        "--topology",
        metavar="FILE|NAME",
    ),
    tests: _Tests,
    start: _Start,
    verbose: bool = option(VERBOSE_RULES),
) -> None:
    """Run suites on a testbed, and reserve the testbed until the run ends.

    Options after -- are passed to Robot Framework unchanged.

    Exit status: 0 all tests passed, 1 a test failed, 2 bad input, 3 a value has regressed, 5 every test was skipped, 69
    the infrastructure failed, 75 the testbed is not available, 130 the user stopped it. After 69 and 75, try again.
    """
    for_robot = click.get_current_context().obj or ()
    named = (_option_of_robot(word.partition("=")[0]) for word in for_robot)
    if tests.output is not None and "--outputdir" in named:
        raise click.UsageError("--outputdir is --output here. Leave one of them out.")

    shown = VERBOSE if verbose else ()
    robot_options = (*tests.robot_options(), *shown, *for_robot)
    outcome = _performed(suites, topologies, tests, start, robot_options)

    show_problems(outcome)
    if outcome.error is None:
        _show_skipped(outcome.verdicts)
        if outcome.status is ExitStatus.PASSED and not outcome.is_dry:
            later = f"lossratio compare {shlex.quote(str(outcome.directory))} LATER_RUN"
            say(f"Next, to compare it with a later run: {later}", err=True)
        say(_summary(outcome), err=True)
    sys.exit(int(outcome.status))


def _performed(
    suites: tuple[Path, ...],
    topologies: tuple[Path, ...],
    tests: _Tests,
    start: _Start,
    robot_options: tuple[str, ...],
) -> RunOutcome:
    """Begins the run, or continues it.

    Raises:
        click.UsageError: If it is not clear what to run, or options do not go together.
    """
    from lossratio.runs import RunRequest, resume as go_on, run as begin

    wait = start.wait or 0.0
    if start.resume is not None:
        if topologies or suites or tests.include or tests.job or robot_options:
            raise click.UsageError("A resumed run keeps its suites and options: leave them out.")
        return go_on(start.resume, force=start.force, wait=wait, test_timeout=start.test_timeout)

    if tests.job is None:
        if not topologies:
            raise click.UsageError(
                "Name the testbed, for example --topology local or --topology my-lab.yaml."
            )
        if not suites:
            raise click.UsageError("Name the suites to run, or --job FILE.")
    request = RunRequest(
        topologies,
        suites,
        tests.include,
        robot_options,
        wait,
        start.purpose,
        tests.job,
        start.test_timeout,
    )
    return begin(request)


VERBOSE = ("--variable", "LOSSRATIO_VERBOSE:yes")
"""The measuring keywords read this variable."""


def _show_skipped(verdicts: Sequence[TestVerdict]) -> None:
    """Shows each reason for which tests were skipped, with the number of these tests."""
    from lossratio.values import tests_counted

    skipped = Counter(
        (verdict.skip, verdict.message) for verdict in verdicts if verdict.skip is not None
    )
    for (what, reason), count in skipped.items():
        say(f"{what.capitalize()}, {tests_counted(count)}: {reason}", err=True)


def _repeated(name: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from (name, value)


def show_problems(outcome: RunOutcome) -> None:
    """Shows what went wrong in a run, and how to resume a run that was stopped."""
    for problem in (*outcome.troubles, *filter(None, (outcome.error,))):
        say(f"Error: {problem}", err=True)
    if outcome.status is ExitStatus.INTERRUPTED and outcome.directory is not None:
        way_on = shlex.join(["lossratio", "run", "--resume", str(outcome.directory)])
        say(f"All trials are kept in {outcome.directory}. To continue: {way_on}", err=True)


def _summary(outcome: RunOutcome) -> str:
    from lossratio.values import tests_counted

    verdicts = outcome.verdicts
    passed = sum(verdict.status == "PASS" for verdict in verdicts)
    skipped = Counter(verdict.skip for verdict in verdicts if verdict.skip is not None)
    failures = Counter(verdict.failure.value for verdict in verdicts if verdict.failure is not None)

    did = "passed a dry run, which measures nothing" if outcome.is_dry else "passed"
    counts = [f"{passed} of {tests_counted(len(verdicts))} {did}"]
    counts += [f"{count} {what}" for what, count in skipped.items()]
    counts += [f"{count} failed ({kind})" for kind, count in failures.items()]
    if outcome.was_finished:
        counts.append("all tests had finished before, and none ran again")
    return f"lossratio run: {'; '.join(counts)}. Exit status {int(outcome.status)}."

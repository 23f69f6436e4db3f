"""The command ``lossratio run``."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lossratio.commands.parameters import DURATION, SUITE, TESTBED, argument, command, option
from lossratio.exit_status import ExitStatus, with_trouble

if TYPE_CHECKING:
    from lossratio.runs import TestVerdict


class _RunCommand(click.Command):
    """A command whose options end at ``--``: the rest goes to Robot Framework."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            args, ctx.obj = args[:end], tuple(args[end + 1 :])
        return super().parse_args(ctx, _any_of_expanded(args))


def _any_of_expanded(args: Sequence[str]) -> list[str]:
    """Puts the option before each of several files behind ``--any-of``."""
    expanded: list[str] = []
    is_listing = False
    for word in args:
        if word == "--any-of":
            is_listing = True
            continue
        is_listing = is_listing and word.endswith((".yaml", ".yml"))
        expanded += ["--any-of", word] if is_listing else [word]
    return expanded


@command(cls=_RunCommand)
def run(
    suites: tuple[Path, ...] = argument("SUITE... [-- ROBOT OPTIONS]", type=SUITE),
    *,
    topology: Path | None = option(TESTBED, metavar="FILE|NAME"),
    any_of: tuple[Path, ...] = option(
        "Several equal testbeds; the first one that is free is taken.", metavar="FILE..."
    ),
    job: Path | None = option("The job, in place of suites.", metavar="FILE"),
    include: tuple[str, ...] = option("Only tests with this tag, or pattern of tags.", metavar="TAG"),
    wait: float | None = option("How long to wait for the testbed at most, e.g. 2h.", type=DURATION),
    purpose: str = option("The reason, which other users of the testbed see.", default=""),
    resume: Path | None = option("Go on with the run in this directory.", metavar="DIR"),
    force: bool = option("Resume it although conditions have changed."),
    test_timeout: float | None = option(
        "How long each test may take, e.g. 1h; its tear-down comes on top.", type=DURATION
    ),
    suite_timeout: float | None = option("How long each suite may take; the rest of its tests fail.", type=DURATION),
    run_timeout: float | None = option("How long the run may take; then it is stopped in order.", type=DURATION),
    results: str | None = option("The archive to send the run to, e.g. s3://bucket/path or a folder.", metavar="URL"),
) -> None:
    """Run suites on a testbed, which is reserved for the time of the run.

    Options behind -- go to Robot Framework as they are.

    Exit status: 0 all tests passed, 1 a test failed, 2 bad input, 3 a value has regressed, 69 the infrastructure
    failed, 75 the testbed is not available, 130 the user stopped the run. After 69 and 75, try again.
    """
    # Imported here because Robot Framework and all that measures take a while; a wrong option need not wait for them.
    from lossratio.runs import Limits, ResumeRequest, RunRequest, resume as go_on, run as begin

    robot_options: tuple[str, ...] = click.get_current_context().obj or ()
    limits = Limits(test_timeout, suite_timeout, run_timeout)
    topologies = (*((topology,) if topology else ()), *any_of)
    if resume is not None:
        if topologies or suites or include or job or robot_options:
            raise click.UsageError("A resumed run has the suites and options that it began with: give no others.")
        outcome = go_on(ResumeRequest(resume, force, wait or 0.0, limits))
    else:
        if not topologies and job is None:
            raise click.UsageError("Name the testbed: --topology FILE, or --any-of FILE FILE.")
        if not suites and job is None:
            raise click.UsageError("Name the suites to run, or --job FILE.")
        outcome = begin(RunRequest(topologies, suites, include, robot_options, wait or 0.0, purpose, job, limits))
    status = outcome.status
    if results is not None and outcome.directory is not None and not _is_kept(outcome.directory, results):
        status = with_trouble(status)
    for trouble in outcome.troubles:
        click.echo(f"Error: {trouble}", err=True)
    if outcome.status is ExitStatus.INTERRUPTED and outcome.directory is not None:
        click.echo(
            f"To go on with it: {shlex.join(['lossratio', 'run', '--resume', str(outcome.directory)])}", err=True
        )
    if outcome.error is None:
        click.echo(_summary(outcome.verdicts, int(status)), err=True)
    else:
        click.echo(f"Error: {outcome.error}", err=True)
    sys.exit(int(status))


def _is_kept(directory: Path, url: str) -> bool:
    """Sends a run to the archive, or keeps it on this machine until it can; whether its disk took it."""
    from lossratio.errors import ArchiveError, ReportError, StorageError
    from lossratio.history import Outbox

    outbox = Outbox.of(url)
    try:
        for problem in outbox.add(directory):
            click.echo(problem, err=True)
        outbox.send()
    except StorageError as error:
        click.echo(f"Not sent: {error}", err=True)
        return False
    except (ArchiveError, ReportError) as error:
        click.echo(f"Not sent: {error} The next run, or 'lossratio send', sends the files in {outbox.path}.", err=True)
    return True


def _summary(verdicts: Sequence[TestVerdict], status: int) -> str:
    passed = sum(verdict.status == "PASS" for verdict in verdicts)
    failures = Counter(verdict.failure.value for verdict in verdicts if verdict.failure is not None)
    counts = [
        f"{passed} of {len(verdicts)} tests passed",
        *(f"{count} failed: {kind}" for kind, count in failures.items()),
    ]
    return f"lossratio run: {'; '.join(counts)}. Exit status {status}."

"""The commands ``lossratio report``, ``lossratio compare`` and ``lossratio csit``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lossratio.errors import ReportError
from lossratio.report import (
    FILE_NAMES,
    ReportFormat,
    csit_export,
    junit_xml,
    read_run,
    read_runs,
    render,
    runs_in,
    write_report,
)
from lossratio.results import repair as repair_files

RUN_DIRECTORY = click.Path(path_type=Path)
NOT_WHOLE = 1
"""Exit status of a report of a run that was cut off or has damaged files."""

REGRESSION = 1
"""Exit status where something got worse."""

TROUBLE = 2
"""Exit status where nothing can be said."""


@click.command()
@click.argument("directories", metavar="DIR...", type=RUN_DIRECTORY, nargs=-1, required=True)
@click.option(
    "--format",
    "report_format",
    type=click.Choice([each.value for each in ReportFormat]),
    default=ReportFormat.HTML.value,
    show_default=True,
    help="What to write.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The file to write; - is standard output. Left out, it is a file in DIR.",
)
def report(directories: tuple[Path, ...], report_format: str, output: Path | None) -> None:
    """Report the runs in directories DIR.

    The exit status is 1 if a run was cut off or has files that cannot be read; the rest is reported, and it is said.
    """
    runs = read_runs(directories)
    chosen = ReportFormat(report_format)
    text = render(chosen, runs)
    if output is None and len(runs) > 1:
        raise click.UsageError(
            "A report of several runs belongs to none of their directories; say where: --output FILE."
        )
    path = directories[0] / FILE_NAMES[chosen] if output is None else output
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_report(path, text)
        click.echo(path)
    for run in runs:
        for problem in (*run.problems, *(f"{test.name} was cut off." for test in run.cut_off)):
            click.echo(f"{run.path}: {problem}", err=True)
    if not all(run.is_whole for run in runs):
        sys.exit(NOT_WHOLE)


@click.command()
@click.argument("paths", metavar="PATH...", type=RUN_DIRECTORY, nargs=-1, required=True)
def repair(paths: tuple[Path, ...]) -> None:
    """Save what is good of damaged journals and results. PATH is such a file, or the directory of a run.

    Of a journal, the trials before the first damaged line are kept; of a result, all of it if its journal proves it.
    The original stays beside it, with '.damaged' behind its name. The exit status is 0 if nothing is damaged, 1 if
    something is, and 2 if a file cannot be read, is no journal or result, or is of a newer version: it is left as it
    is.
    """
    statuses = {0}
    for path in paths:
        for found in repair_files(path):
            click.echo(f"{found.path}: {found.done}.")
            if found.damage is not None:
                statuses.add(NOT_WHOLE if found.is_known else TROUBLE)
                click.echo(found.damage, err=True)
    sys.exit(max(statuses))


@click.command()
@click.argument("before", metavar="A", type=RUN_DIRECTORY)
@click.argument("after", metavar="B", type=RUN_DIRECTORY)
@click.option(
    "--least-change",
    type=click.FloatRange(min=0.0),
    default=1.0,
    show_default=True,
    help="Per cent; smaller changes are none.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write a JUnit file, too.")
def compare(before: Path, after: Path, least_change: float, junit: Path | None) -> None:
    """Compare the tests of run B with those of run A; each is the directory of a run, or a folder of such directories.

    Repeat the runs: their spread is what tells a change from chance. The exit status is 0 if nothing got worse, 1 if
    something did, and 2 if that cannot be told.
    """
    # Imported here because scipy takes a while, and the other commands need none of it.
    from lossratio.report import compare as compare_runs
    from lossratio.report import comparison_cases, comparison_table

    found = compare_runs(read_runs(runs_in(before)), read_runs(runs_in(after)), least_change=least_change / 100)
    click.echo(comparison_table(found))
    if junit is not None:
        write_report(junit, junit_xml({f"{before.name} and {after.name}": comparison_cases(found)}))
    if found.regressions:
        sys.exit(REGRESSION)
    if not found.has_verdict:
        sys.exit(TROUBLE)


@click.command()
@click.argument("directory", metavar="DIR", type=RUN_DIRECTORY)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
def csit(directory: Path, folder: Path) -> None:
    """Export the results of the run in DIR for FD.io CSIT's dashboards, below FOLDER.

    A result that would mean something else there is refused, with the reason, and the exit status is 1.
    """
    run = read_run(directory)
    refused = [*run.problems, *(f"{test.name} was cut off." for test in run.cut_off)]
    for result in run.results:
        try:
            export = csit_export(result)
        except ReportError as error:
            refused.append(str(error))
        else:
            click.echo(export.write(folder))
    for reason in refused:
        click.echo(f"Not exported: {reason}", err=True)
    if refused:
        sys.exit(NOT_WHOLE)

"""The commands ``lossratio report`` and ``lossratio compare``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lossratio.report.formats import FILE_NAMES, ReportFormat, render, write_report
from lossratio.report.run import read_runs

RUN_DIRECTORY = click.Path(path_type=Path)
NOT_WHOLE = 1
"""Exit status of a report of a run that was cut off or has damaged files."""


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

"""The commands ``report``, ``compare``, ``archive repair`` and ``csit export``, which read directories of runs."""

import sys
from pathlib import Path

import click

from lossratio import report as reports
from lossratio.commands.parameters import (
    FILE_OR_OUTPUT,
    FILE_TO_WRITE,
    OneOf,
    PerCent,
    WholeNumber,
    argument,
    check_files_to_write,
    command,
    option,
    say,
)
from lossratio.errors import ReportError
from lossratio.report import FORMATS, PAGE, junit_xml, read_run, runs_in, write_report
from lossratio.results import in_columns, message, provenance, repair as repair_files
from lossratio.values import ExitStatus


@command()
def report(
    directories: tuple[Path, ...] = argument("DIR...", required=True),
    *,
    report_format: str = option(
        "The format of the report.", "--format", type=OneOf(FORMATS.names()), default=PAGE
    ),
    output: Path | None = option(
        "The file to write; - is standard output. Default: a file in DIR.", type=FILE_OR_OUTPUT
    ),
    verbose: bool = option("Also show how each result was measured."),
) -> None:
    """Write a report on the runs in directories DIR.

    If a run was cut off or has files that cannot be read, the command names them, reports the rest, and ends with exit
    status 1. Skipped tests are named with the reason, and do not change the exit status.
    """
    places = [directory.resolve() for directory in directories]
    twice = [
        directory
        for directory, place in zip(directories, places, strict=True)
        if places.count(place) > 1
    ]
    if twice:
        raise click.UsageError(f"{twice[-1]} is given twice. Name each run once.")
    runs = [read_run(directory) for directory in directories]
    chosen = reports.report_format(report_format)
    text = chosen.write(runs)
    if output is None and len(runs) > 1:
        raise click.UsageError(
            "A report on several runs does not belong in the directory of one of them. Name the file: --output FILE."
        )

    path = directories[0] / chosen.file_name if output is None else output
    if str(path) == "-":
        click.echo(text, nl=False)
    else:
        write_report(path, text)
        say(path)

    if verbose:
        for result in (result for run in runs for result in run.results):
            say(f"{result.test.name}\n{in_columns(message(result))}", err=True)
            say(in_columns(provenance(result)), err=True)

    for run in runs:
        for problem in run.lacks:
            say(f"{run.path}: {problem}", err=True)
        for skipped in reports.skips_in_words(run.skipped):
            say(f"{run.path}: {skipped}", err=True)

    if any(run.lacks for run in runs):
        sys.exit(ExitStatus.FAILED)


@command()
def repair(paths: tuple[Path, ...] = argument("PATH...", required=True)) -> None:
    """Save the good part of damaged journals and results.

    PATH is a journal, a result or the directory of a run.

    In a journal, the trials before the first damaged line are kept. A damaged result is set aside, and a resumed run
    makes it again from its journal. The original stays next to it, with '.damaged' after its name.

    Exit status: 0 if nothing is damaged, 1 if something is, 2 if a file cannot be read, is not a journal or result, or
    comes from a newer version. Such a file is not changed.
    """
    statuses = {ExitStatus.PASSED}
    for path in paths:
        repaired = None
        for repaired in repair_files(path):
            say(f"{repaired.path}: {repaired.done}.")
            if repaired.damage is not None:
                statuses.add(ExitStatus.FAILED if repaired.is_known else ExitStatus.BAD_INPUT)
                say(repaired.damage, err=True)
        if repaired is None:
            say(
                f"{path}: nothing to repair. It has no journal (trials/*.jsonl) and no result (results/*.json)."
            )
    sys.exit(max(statuses))


@command()
def compare(
    before: Path = argument("A"),
    after: Path = argument("B"),
    *,
    least_change: float = option(
        "Ignore changes below this percentage.", type=PerCent(min=0.0), default=1.0
    ),
    table_format: str = option(
        "Plain text in the order of the tests, or Markdown with the regressions first.",
        "--format",
        type=OneOf(["text", "md"]),
        default="text",
    ),
    html: Path | None = option("Also write a page, e.g. compare.html.", type=FILE_TO_WRITE),
    junit: Path | None = option("Also write a JUnit file.", type=FILE_TO_WRITE),
) -> None:
    """Compare the tests of run B with the tests of run A.

    A and B are directories of runs, or folders of such directories. Repeat the runs: their spread distinguishes a
    change from chance.

    Exit status: 0 if no test got worse, 3 if a test got worse, 1 if a test no longer has a value, 4 if undecided:
    repeat the runs. A test that seems worse is undecided, because all values on each side are equal.
    """
    check_files_to_write(html=html, junit=junit)
    paths = runs_in(before), runs_in(after)
    if {path.resolve() for path in paths[0]} == {path.resolve() for path in paths[1]}:
        raise click.UsageError(
            f"A ({before}) and B ({after}) are the same. Name earlier runs first, and later runs second."
        )
    sides = [read_run(path) for path in paths[0]], [read_run(path) for path in paths[1]]
    comparison = reports.compare(*sides, least_change=least_change / 100)
    if table_format == "md":
        say(reports.comparison_markdown(comparison))
    else:
        say(reports.comparison_table(comparison))
    if html is not None:
        write_report(
            html,
            reports.comparison_page(
                comparison, *sides, (before.resolve().name, after.resolve().name)
            ),
        )
        say(html, err=True)

    if junit is not None:
        write_report(
            junit,
            junit_xml({f"{before.name} and {after.name}": reports.comparison_cases(comparison)}),
        )

    if comparison.worse:
        sys.exit(ExitStatus.REGRESSION)
    if comparison.broken:
        sys.exit(ExitStatus.FAILED)
    if comparison.is_undecided:
        sys.exit(ExitStatus.UNDECIDED)


@command()
def csit(
    directory: Path = argument("DIR"),
    folder: Path = argument("FOLDER"),
    *,
    job: str | None = option(
        "Name of the job for all results. Default: each type of test has its own job.",
        metavar="NAME",
    ),
    build: int | None = option(
        "Number of the run, unique within its job. Default: the Unix time of the run's start.",
        type=WholeNumber(min=0),
    ),
) -> None:
    """Export the results of the run in DIR to FOLDER, for FD.io CSIT's dashboards.

    The files are FOLDER/JOB/BUILD/tests/.../TEST.info.json.gz, as in CSIT. If a result would mean something else in a
    dashboard, the command refuses it with the reason, and ends with exit status 1. Skipped tests are named.
    """
    run = read_run(directory)
    refused = [*run.lacks]
    exports = []

    for result in run.results:
        try:
            exports.append(reports.csit_export(result))
        except ReportError as error:
            refused.append(str(error))

    if exports:
        started = min(result.started for result in run.results)
        number = int(started.timestamp()) if build is None else build
        for path in reports.write_csit(folder, exports, job=job, build=number):
            say(path)

    for reason in (*refused, *reports.skips_in_words(run.skipped)):
        say(f"Not exported: {reason}", err=True)
    if refused:
        sys.exit(ExitStatus.FAILED)

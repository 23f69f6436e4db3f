"""The commands around a night: those that plan its tests, and those that send its results to an archive and back."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from lossratio.commands.parameters import (
    ONLY_TAG,
    SUITE,
    LocalPath,
    OneOf,
    WholeNumber,
    argument,
    command,
    option,
)
from lossratio.errors import ArchiveError
from lossratio.shipped import SUITES

ARCHIVE = option("The archive: a folder, or e.g. s3://bucket/path.", "--results", metavar="URL")


@command()
def plan(
    suites: tuple[Path, ...] = argument("[SUITE...]", type=SUITE),
    *,
    topologies: tuple[Path, ...] = option(
        "A testbed. If you give several, they must be identical.", "--topology", metavar="FILE"
    ),
    job_file: Path | None = option(
        "A job file, instead of suites and topologies.", "--job", metavar="FILE"
    ),
    include: tuple[str, ...] = option(ONLY_TAG, metavar="TAG"),
    history: str | None = option(
        "Results of earlier nights, which show how long tests take.", metavar="DIR|URL"
    ),
    write: Path | None = option(
        "Write an argument file for Robot Framework for each testbed.",
        metavar="DIR",
        type=LocalPath(path_type=Path, file_okay=False),
    ),
    as_json: bool = option("Print JSON.", "--json"),
) -> None:
    """Show how long a night will take, and distribute its tests over identical testbeds.

    The plan expects each test to take as long as it did in recent runs. For a test that was never measured, it uses the
    forecast for the search.
    """
    from lossratio.runs import (
        KnownTimes,
        Testbed,
        describe_plan,
        load_job,
        plan_job,
        plan_suites,
        write_argument_files,
    )
    from lossratio.topology import load_topology

    times = KnownTimes()
    if history is not None:
        from lossratio.history import open_history

        times = KnownTimes.of(open_history(history).read().table)
    if job_file is not None:
        if suites or topologies or include:
            raise click.UsageError(
                "A job names suites, testbeds and tags: give --job without any of these."
            )
        planned = plan_job(load_job(job_file), times)
    elif suites and topologies:
        planned = plan_suites(
            suites, [Testbed(file, load_topology(file)) for file in topologies], times, include
        )
    else:
        raise click.UsageError("Name what to plan: SUITE... with --topology FILE, or --job FILE.")
    if write is not None:
        for file in write_argument_files(planned, write):
            click.echo(f"Wrote {file}.", err=True)
    click.echo(
        json.dumps({**asdict(planned), "seconds": planned.seconds})
        if as_json
        else describe_plan(planned)
    )


@command()
def matrix(
    places: tuple[Path, ...] = argument("FILE|DIR...", required=True),
    kinds: tuple[str, ...] = option(
        "Only testbeds of this kind.", "--kind", type=OneOf(["lab", "local", "simulated"])
    ),
) -> None:
    """Print the jobs of a nightly run as JSON for CI systems, one for each testbed.

    The testbeds are those of topology files, of directories with such files, and of job files.
    """
    from lossratio.runs import matrix as jobs

    click.echo(json.dumps(jobs(places, kinds)))


@command("csit-coverage")
def csit_coverage_command(
    directory: Path = argument(
        "DIRECTORY", type=LocalPath(path_type=Path, exists=True, file_okay=False)
    ),
    suites: tuple[Path, ...] = argument("[SUITE...]", type=SUITE),
    *,
    jobs: str = option(
        "Only jobs with this name; * stands for any characters.",
        "--job",
        default="*",
        metavar="PATTERN",
    ),
    ids: bool = option(
        "Print the id of each of CSIT's tests, with = if lossratio has the same test, ~ if its test differs, ? if only "
        "the name is the same, and - if it has no such test."
    ),
) -> None:
    """Compare the tests of FD.io CSIT's jobs with lossratio's suites.

    DIRECTORY is a clone of CSIT's repository. Without SUITE, the command compares the suites that come with lossratio.
    """
    from lossratio.runs import CoverageVerdict, csit_coverage, describe_coverage

    coverage = csit_coverage(directory, suites or tuple(map(SUITES.own_path, SUITES.names())), jobs)
    if not ids:
        click.echo(describe_coverage(coverage))
        return
    signs = dict(zip(CoverageVerdict, "=~?-", strict=True))
    for job, tests in coverage.jobs.items():
        for test, judged in tests.items():
            click.echo(f"{signs[judged.verdict]} {job} {test.id}")


@command()
def send(directories: tuple[Path, ...] = argument("[DIR...]"), url: str = ARCHIVE) -> None:
    """Send the runs in directories DIR to the archive.

    If there is no archive yet, the command creates it, and says so. If the archive does not accept a run, the run stays
    on this machine, and the next command sends it.
    """
    from lossratio.history import Outbox
    from lossratio.units import counted

    outbox = Outbox.of(url)
    for directory in directories:
        for problem in outbox.add(directory):
            click.echo(problem, err=True)
    try:
        beginning = outbox.beginning()
        sent = outbox.send()
    except ArchiveError as error:
        raise ArchiveError(f"{error} {outbox.way_on()}".rstrip()) from error
    click.echo(f"Sent {counted(sent, 'file')} to {outbox.store}.")
    if beginning is not None:
        click.echo(beginning)


@command()
def fetch(
    directory: Path = argument("DIR", type=LocalPath(path_type=Path, file_okay=False)),
    *,
    url: str = ARCHIVE,
    testbed: str = option("The testbed whose runs are fetched.", metavar="NAME"),
    newest: int = option("How many runs at most.", type=WholeNumber(min=1), default=1),
    may_be_new: bool = option(
        "Also exit with status 0 if there is no archive yet, as before the first night."
    ),
) -> None:
    """Fetch the newest runs of a testbed from the archive into DIR.

    Each run gets its own directory in DIR, for `lossratio compare`.

    Exit status: 0 even if the archive has no runs of the testbed yet, 2 if there is no archive.
    """
    from lossratio.history import ObjectStore, fetch_newest

    store = ObjectStore(url)
    if not may_be_new:
        store.require_archive()
    runs = fetch_newest(store, testbed, newest, directory)
    for run in runs:
        click.echo(run)
    if not runs:
        click.echo(f"{store} has no runs of testbed {testbed} yet.", err=True)

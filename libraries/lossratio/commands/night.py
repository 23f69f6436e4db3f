"""The commands around a night: ``lossratio plan`` and ``matrix`` before it, ``send`` and ``fetch`` after it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lossratio.runs import History

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("suites", metavar="[SUITE...]", type=FILE, nargs=-1)
@click.option(
    "--topology", "topologies", metavar="FILE", type=FILE, multiple=True, help="A testbed; several are equal."
)
@click.option("--job", "job_file", metavar="FILE", type=FILE, help="The job, in place of suites and topologies.")
@click.option("--include", metavar="TAG", multiple=True, help="Only tests with this tag, or pattern of tags.")
@click.option("--history", metavar="DIR|URL", help="Results of earlier nights: how long tests took.")
@click.option("--write", metavar="DIR", type=FILE, help="Write an argument file for Robot Framework per testbed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    suites: tuple[Path, ...],
    topologies: tuple[Path, ...],
    job_file: Path | None,
    include: tuple[str, ...],
    history: str | None,
    write: Path | None,
    as_json: bool,
) -> None:
    """Show how long a night will take, and spread its tests over equal testbeds.

    A test is expected to take as long as it did lately. A test that was never measured takes the time that is forecast
    for its search.
    """
    # Imported here because Robot Framework, numpy and pyarrow take a while; a wrong option need not wait for them.
    from lossratio.runs import Testbed, describe_plan, load_job, plan_job, plan_suites, write_argument_files
    from lossratio.topology import load_topology

    times = _history(history)
    if job_file is not None:
        if suites or topologies or include:
            raise click.UsageError("A job names suites, testbeds and tags: give --job without any of these.")
        planned = plan_job(load_job(job_file), times)
    elif suites and topologies:
        testbeds = [Testbed(file, load_topology(file)) for file in topologies]
        planned = plan_suites(suites, testbeds, times, include)
    else:
        raise click.UsageError("Name what to plan: SUITE... with --topology FILE, or --job FILE.")
    if write is not None:
        for file in write_argument_files(planned, write):
            click.echo(f"Wrote {file}.", err=True)
    click.echo(json.dumps({**asdict(planned), "seconds": planned.seconds}) if as_json else describe_plan(planned))


@click.command()
@click.argument("places", metavar="FILE|DIR...", type=FILE, nargs=-1, required=True)
@click.option("--kind", "kinds", type=click.Choice(["lab", "local", "simulated"]), multiple=True, help="Only these.")
def matrix(places: tuple[Path, ...], kinds: tuple[str, ...]) -> None:
    """Print the jobs of a nightly as JSON for CI systems, one for each testbed.

    The testbeds are those of topology files, of directories with such files, and of job files.
    """
    from lossratio.runs import matrix as jobs
    from lossratio.topology import TestbedKind

    click.echo(json.dumps(jobs(places, [TestbedKind(kind) for kind in kinds])))


def _history(place: str | None) -> History:
    from lossratio.runs import History

    if place is None:
        return History()
    from lossratio.history import open_history

    return History.of(open_history(place).read().table)


@click.command()
@click.argument("directories", metavar="[DIR...]", type=click.Path(path_type=Path), nargs=-1)
@click.option("--results", "url", metavar="URL", required=True, help="The archive: a folder, or e.g. s3://bucket/path.")
def send(directories: tuple[Path, ...], url: str) -> None:
    """Send the runs in directories DIR to the archive.

    Runs that the archive does not take wait on this machine; the next command sends them, too.
    """
    # Imported here because pyarrow and fsspec take a while, and a wrong option need not wait for them.
    from lossratio.history import Outbox

    outbox = Outbox.of(url)
    for directory in directories:
        for problem in outbox.add(directory):
            click.echo(problem, err=True)
    click.echo(f"Sent {outbox.send()} files to {url}.")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--results", "url", metavar="URL", required=True, help="The archive: a folder, or e.g. s3://bucket/path.")
@click.option("--testbed", required=True, help="The testbed whose runs are fetched.")
@click.option("--newest", type=click.IntRange(min=1), default=1, show_default=True, help="How many runs at most.")
def fetch(directory: Path, url: str, testbed: str, newest: int) -> None:
    """Fetch the newest runs of a testbed from the archive into DIR.

    Each run gets a directory of its own below DIR, for 'lossratio compare'.
    """
    # Imported here because fsspec takes a while, and a wrong option need not wait for it.
    from lossratio.history import ObjectStore, fetch_newest

    for run in fetch_newest(ObjectStore(url), testbed, newest, directory):
        click.echo(run)

"""The commands ``lossratio send`` and ``lossratio fetch``."""

from __future__ import annotations

from pathlib import Path

import click


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

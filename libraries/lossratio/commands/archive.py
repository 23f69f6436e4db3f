"""The commands ``lossratio send`` and ``lossratio fetch``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directories", metavar="[DIR...]", type=click.Path(path_type=Path), nargs=-1)
@click.option("--results", "url", metavar="URL", required=True, help="The archive: a folder, or e.g. s3://bucket/path.")
def send(directories: tuple[Path, ...], url: str) -> None:
    """Send runs in directories DIR to the archive, and whatever could not be sent to it before.

    What the archive does not take waits on this machine, and is sent by the next command.
    """
    # Imported here because pyarrow and fsspec take a while, and most other commands need neither.
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
    """Fetch the newest runs of a testbed from the archive into DIR, one directory each; see 'lossratio compare'."""
    # Imported here because fsspec takes a while, and most other commands do not need it.
    from lossratio.history import ObjectStore, fetch_newest

    for run in fetch_newest(ObjectStore(url), testbed, newest, directory):
        click.echo(run)

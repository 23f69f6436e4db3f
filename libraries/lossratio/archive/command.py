"""The command ``lossratio send``."""

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
    from lossratio.archive.outbox import Outbox

    outbox = Outbox.of(url)
    for directory in directories:
        for problem in outbox.add(directory):
            click.echo(problem, err=True)
    click.echo(f"Sent {outbox.send()} files to {url}.")

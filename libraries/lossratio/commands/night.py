"""The commands that send results of nights to an archive, and fetch them."""

from pathlib import Path

from lossratio.commands.parameters import LocalPath, WholeNumber, argument, command, option, say
from lossratio.errors import ArchiveError

ARCHIVE = option("The archive: a folder, or e.g. s3://bucket/path.", "--results", metavar="URL")


@command()
def send(directories: tuple[Path, ...] = argument("[DIR...]"), url: str = ARCHIVE) -> None:
    """Send the runs in directories DIR to the archive.

    If there is no archive yet, the command creates it, and says so. If the archive does not accept a run, the run stays
    on this machine, and the next command sends it.
    """
    from lossratio.report.history import Outbox
    from lossratio.values import counted

    outbox = Outbox.of(url)
    for directory in directories:
        for problem in outbox.add(directory):
            say(problem, err=True)
    try:
        beginning = outbox.beginning()
        sent = outbox.send()
    except ArchiveError as error:
        raise ArchiveError(f"{error} {outbox.way_on()}".rstrip()) from error
    say(f"Sent {counted(sent, 'file')} to {outbox.store}.")
    if beginning is not None:
        say(beginning)


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
    from lossratio.report.history import ObjectStore, fetch_newest

    store = ObjectStore(url)
    if not may_be_new:
        store.require_archive()
    runs = fetch_newest(store, testbed, newest, directory)
    for run in runs:
        say(run)
    if not runs:
        say(f"{store} has no runs of testbed {testbed} yet.", err=True)

"""The command ``lossratio site``."""

import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from lossratio.commands.parameters import argument, command, option
from lossratio.commands.trend import TrendRules, opened_history


def _address(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    scheme = (value or "").partition(":")[0].lower() if ":" in (value or "") else ""
    if scheme not in ("", "http", "https", "file"):
        raise click.BadParameter("begins with http://, https:// or file://, or is relative to the site.")
    return value


@command()
def site(
    history: str = argument(),
    *,
    output: Path | None = option("Folder of the site.", type=click.Path(path_type=Path, file_okay=False)),
    runs: tuple[Path, ...] = option("Add a run first.", "--add", metavar="DIR"),
    title: str | None = option("Title of the site. Left out: the name of HISTORY."),
    pages: str | None = option(
        "Where the pages of runs are; {run} is the name of a run. Without {run}: URL/{run}/lossratio.html.",
        "--runs",
        metavar="URL",
        callback=_address,
    ),
    serve: bool = option("Show the site to browsers of this machine, until Ctrl-C."),
    port: int = option("Port for --serve.", type=click.IntRange(0, 65535), default=0, show_default="any"),
    rules: TrendRules,
) -> None:
    """Write a site with the trends, coverage and comparisons of HISTORY, which needs no server.

    HISTORY is a folder of results, an archive in a folder, or an archive's URL (e.g. s3://bucket/path).

    Exit status: 0 the site is written; files of the history that cannot be read are named, and left out.
    """
    # Imported here because numpy, scipy, pyarrow and DuckDB take a while, and a wrong option need not wait for them.
    from lossratio.dashboard import SiteRequest, serve_site, write_site

    if output is None and not serve:
        raise click.UsageError("Give a folder for the site with --output, or look at it with --serve.")
    folder = opened_history(history, runs)
    name = title or history.rstrip("/").rpartition("/")[2] or history
    with ExitStack() as stack:
        place = output or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lossratio-site-")))
        written = write_site(folder, place, SiteRequest(name, rules.request(), pages))
        for problem in written.problems:
            click.echo(f"Not read: {problem}", err=True)
        click.echo(
            f"{written.page}: {written.results:,} results in {written.series:,} series, {written.alarms} of them "
            f"alarms; {written.written} files changed."
        )
        if serve:
            # Ctrl-C is how a look at the site ends, and no failure.
            stack.enter_context(suppress(KeyboardInterrupt))
            serve_site(place, port, lambda address: click.echo(f"{address}  (Ctrl-C ends it)"))

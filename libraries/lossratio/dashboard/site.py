"""Writes the site: a page, and slices of data as scripts beside it. So it works from a folder and from a server."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lossratio.dashboard.slices import NEWEST, Job, Results, as_script, slices
from lossratio.drawing import html_fragment
from lossratio.errors import FREE_SPACE, ReportError, storing
from lossratio.history import (
    RUNS,
    TELEMETRY,
    History,
    TrendRequest,
    address_of_run,
    analyse_entries,
    known_changes,
    series_of_readings,
)
from lossratio.http_server import LocalHandler, LocalServer
from lossratio.report import LEAST_CHANGE, SIGNIFICANCE
from lossratio.results import INTERRUPTED, TERMINATED
from lossratio.version import __version__

PAGE = "index.html"
"""Name of the page in the folder of a site."""
_DATA = "data"
_MARK = '<meta name="generator" content="lossratio archive site">'
_SCRIPTS = (
    "elements.js",
    "statistics.js",
    "charts.js",
    "store.js",
    "lists.js",
    "tests.js",
    "sweeps.js",
    "site.js",
)


@dataclass(frozen=True)
class SiteRequest:
    """What a site shows."""

    title: str
    """Its title."""
    trend: TrendRequest = field(default_factory=TrendRequest)
    """The trends, as in `lossratio.history.analyse`; a site shows all testbeds and tests."""
    runs: str | None = None
    """Address of a run's page, with ``{run}`` for the name of the run's directory; None: runs have no pages."""


@dataclass(frozen=True)
class Site:
    """A site that was written."""

    page: Path
    """Its page."""
    results: int
    """Number of results that it shows."""
    series: int
    """Number of their series."""
    alarms: int
    """Number of series that somebody should look at."""
    written: int
    """Number of files that changed."""
    problems: tuple[str, ...]
    """Files of the history that cannot be read."""


def write_site(history: History, folder: Path, request: SiteRequest) -> Site:
    """Writes the site of a history. Unchanged files are left alone.

    Raises:
        ReportError: If the history cannot be read, the folder contains other files, or the links do not result in
            addresses.
        StorageError: If the site cannot be written to the disk.
    """
    _check_folder(folder)
    stored = history.read(readings=True)
    known = stored.names.followed(known_changes(history, request.trend.annotations))
    analysis = analyse_entries(stored, known, request.trend)
    telemetry = series_of_readings(
        stored.table, request.trend.last, request.trend.fresh, (TELEMETRY,)
    )
    links = _links(history, folder, request.runs, Results(stored.table).jobs)
    data = folder / _DATA
    digest = hashlib.sha256()
    names = set()
    written = 0

    with storing(f"write the site in {folder}", f"{FREE_SPACE}, and repeat the command."):
        data.mkdir(parents=True, exist_ok=True)
        for name, content in slices(stored.table, analysis, links, telemetry):
            script = as_script(
                name,
                {**content, **_about(request, analysis.problems)} if name == "index" else content,
            )
            digest.update(script)
            names.add(f"{name}.js")
            written += _write(data / f"{name}.js", script)

        written += _write(folder / PAGE, _page(request.title, digest.hexdigest()[:16]).encode())
        for path in data.glob("*.js"):
            if path.name not in names:
                path.unlink()

    results = stored.table.num_rows
    return Site(
        folder / PAGE,
        results,
        len(analysis.trends),
        len(analysis.alarms),
        written,
        analysis.problems,
    )


def _about(request: SiteRequest, problems: Sequence[str]) -> dict[str, Any]:
    trend = request.trend
    rules = {
        "last": trend.last,
        "fresh": trend.fresh,
        "confirm": trend.confirm,
        "trendChange": trend.least_change,
        "newest": NEWEST,
        "leastChange": LEAST_CHANGE,
        "significance": SIGNIFICANCE,
        "stopped": [INTERRUPTED, TERMINATED],
    }
    return {
        "title": request.title,
        "made": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
        "version": __version__,
        "problems": list(problems),
        "rules": rules,
    }


def _check_folder(folder: Path) -> None:
    """Refuses a folder with a page, or with data, that is not a site of ours."""
    if folder.exists() and not folder.is_dir():
        raise ReportError(f"{folder} is a file. Name a folder for the site with --output.")
    page = folder / PAGE
    if page.exists():
        if _MARK not in page.read_text(encoding="utf-8", errors="replace")[:2000]:
            raise ReportError(
                f"{page} was not written by 'lossratio archive site', and stays. Name another folder with --output."
            )
    elif (folder / _DATA).exists() and any((folder / _DATA).iterdir()):
        raise ReportError(
            f"{folder / _DATA} has files of another program. Name another folder with --output."
        )


def _links(
    history: History, folder: Path, runs: str | None, jobs: Sequence[Job]
) -> Mapping[Job, str]:
    """Addresses of runs: their pages, or else their files in the archive that the history is in."""
    links = {}
    archive = history.path.parent / RUNS
    address = address_of_run(runs, {})

    for job in dict.fromkeys(jobs):
        if job.name is None:
            continue
        if (page := address(job.name)) is not None:
            links[job] = page
        else:
            began = datetime.fromtimestamp(job.started, tz=timezone.utc)
            place = archive / f"testbed={quote(job.testbed, safe=' ')}" / f"date={began:%Y-%m-%d}"
            packed = sorted(place.glob(f"{began:%H%M%S}-*.tar.gz"))
            if len(packed) == 1:
                links[job] = quote(
                    Path(os.path.relpath(packed[0].resolve(), folder.resolve())).as_posix()
                )

    return links


def _page(title: str, stamp: str) -> str:
    sources = files("lossratio.dashboard")
    scripts = [sources.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return html_fragment(
        "lossratio.dashboard",
        "site.html.jinja",
        title=title,
        stamp=stamp,
        mark=_MARK,
        scripts=scripts,
    )


def _write(path: Path, content: bytes) -> bool:
    """Writes a file as a whole, if its content is not yet the same. Returns whether it was written.

    A site can be made again at any time, so its many small files are not forced onto the disk one by one.
    """
    if path.exists() and path.stat().st_size == len(content) and path.read_bytes() == content:
        return False
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)
    return True


HOST = "127.0.0.1"
"""The only address to listen on."""


class _Handler(LocalHandler, SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        path = self.translate_path(self.path).rstrip("/")
        with suppress(OSError, ValueError):
            # The path is the file's own, without a link in it.
            if os.path.realpath(path) == path:
                return super().send_head()
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def list_directory(self, path: Any) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)


def serve_site(folder: Path, port: int, announce: Callable[[str], None]) -> None:
    """Serves a site until it is interrupted.

    Raises:
        ReportError: If the port cannot be used.
    """
    try:
        server = LocalServer((HOST, port), partial(_Handler, directory=str(folder.resolve())))
    except OSError as error:
        raise ReportError(
            f"Port {port} cannot be used: {error.strerror}. Choose another one, or leave out --port."
        ) from error
    with server:
        announce(f"http://{HOST}:{server.server_address[1]}/")
        server.serve_forever()

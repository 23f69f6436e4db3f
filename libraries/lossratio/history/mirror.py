"""The history of an archive on this machine's disk."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lossratio.errors import ReportError
from lossratio.history.annotations import ANNOTATIONS_NAME
from lossratio.history.object_store import ObjectStore
from lossratio.history.store import History

HISTORY = "history"
"""Below an archive's URL: rows of all its runs, a `lossratio.history.store.History`."""


def is_url(text: str) -> bool:
    """Whether something is the URL of an archive, and not a folder of this machine."""
    return "://" in text


def open_history(place: str) -> History:
    """The history in a folder, that of an archive in a folder, or a mirror of that of an archive with a URL.

    Raises:
        ArchiveError: If the archive does not give it.
        ReportError: If it has no history.
    """
    if is_url(place):
        return mirror_history(ObjectStore(place))
    archived = Path(place) / HISTORY
    return History(archived if archived.is_dir() else Path(place))


def mirror_history(store: ObjectStore, cache: Path | None = None) -> History:
    """Fetches what is new in an archive's history, and removes what is gone from it.

    A file's name follows from what is in it, so one that is here already is never fetched again.

    Args:
        store: The archive.
        cache: Where to keep it; None: in this user's cache.

    Raises:
        ArchiveError: If the archive does not give it.
        ReportError: If it has no history.
    """
    folder = cache or _cache(store.url)
    names = store.names(f"{HISTORY}/**")
    wanted = {name.removeprefix(f"{HISTORY}/") for name in names if name.endswith((".parquet", ANNOTATIONS_NAME))}
    if not wanted:
        raise ReportError(f"{store.url} has no history yet: nothing below {HISTORY}/.")
    here = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")} if folder.is_dir() else set()
    for name in sorted(wanted - here):
        store.get(f"{HISTORY}/{name}", folder / name)
    for name in here - wanted:
        (folder / name).unlink(missing_ok=True)
    return History(folder)


def _cache(url: str) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "lossratio" / "history" / hashlib.sha256(url.encode()).hexdigest()[:16]

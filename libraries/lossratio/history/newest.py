"""The newest runs of a testbed, back from the archive: what tonight is compared with."""

from __future__ import annotations

import gzip
import tarfile
import tempfile
import zlib
from pathlib import Path
from urllib.parse import quote

from lossratio.errors import ArchiveError, StorageError
from lossratio.history.object_store import ObjectStore
from lossratio.history.outbox import RUNS


def fetch_newest(store: ObjectStore, testbed: str, count: int, directory: Path) -> list[Path]:
    """Unpacks the runs of the newest days that a testbed has in the archive.

    Args:
        store: The archive.
        testbed: Name of the testbed.
        count: How many runs at most.
        directory: Where each run gets a directory of its own, ``<day>-<run>``; one that is there already is kept.

    Returns:
        The directories, the newest last; none if the archive has no run of that testbed.

    Raises:
        ArchiveError: If the archive does not give them, or gives what is no run.
        StorageError: If they cannot be written, e.g. because the disk is full.
    """
    names = store.names(f"{RUNS}/testbed={quote(testbed, safe=' ')}/date=*/*.tar.gz")
    try:
        return [_fetched(store, name, directory) for name in names[-count:]]
    except OSError as error:
        raise StorageError(
            f"Cannot unpack runs to {directory}: {error.strerror}. Make room there, or name another directory."
        ) from error


def _fetched(store: ObjectStore, name: str, directory: Path) -> Path:
    *_, day, file = name.split("/")
    place = directory / f"{day.removeprefix('date=')}-{file.removesuffix('.tar.gz')}"
    if place.exists():
        return place
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".") as temporary:
        packed, unpacked = Path(temporary) / file, Path(temporary) / "run"
        store.get(name, packed)
        unpacked.mkdir()
        try:
            with tarfile.open(packed) as archive:
                archive.extractall(unpacked, filter="data")
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
            raise ArchiveError(f"{store.url}: {name} is damaged: {error}.") from error
        runs = [*unpacked.iterdir()]
        if len(runs) != 1 or not runs[0].is_dir():
            raise ArchiveError(f"{store.url}: {name} is damaged: it does not hold one directory, that of a run.")
        runs[0].rename(place)
    return place

"""The outbox: what is to go to the archive waits on this machine's disk until the archive has it.

So a run is never lost to an archive that cannot be reached: it is sent by whoever comes next.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from lossratio.errors import StorageError
from lossratio.history.entries import entries_of
from lossratio.history.mirror import HISTORY
from lossratio.history.object_store import ObjectStore
from lossratio.history.store import History
from lossratio.report import Run, read_run
from lossratio.results import write_whole

RUNS = "runs"
"""Below the archive's URL: ``testbed=<name>/date=<day>/<run>.tar.gz``, whole directories of runs."""


@dataclass(frozen=True)
class Outbox:
    """What waits to be sent to one archive.

    Attributes:
        path: The folder where it waits, in the archive's own layout.
        store: The archive.
    """

    path: Path
    store: ObjectStore

    @classmethod
    def of(cls, url: str) -> Outbox:
        """This user's outbox for the archive with a URL."""
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        digest = hashlib.sha256(url.encode()).hexdigest()[:16]
        return cls(state / "lossratio" / "outbox" / digest, ObjectStore(url))

    def add(self, directory: Path) -> list[str]:
        """Puts a run into the outbox; the same run again has the same names.

        Returns:
            What of the run could not be read; the rest was added.

        Raises:
            ReportError: If it is no run directory.
            StorageError: If the outbox cannot be written, e.g. because the disk is full.
        """
        run = read_run(directory)
        try:
            History(self.path / HISTORY).add(entries_of(run))
            self._add_directory(run)
        except OSError as error:
            raise StorageError(
                f"Cannot write the outbox {self.path}: {error.strerror}. Make room, and send the run with: "
                f"lossratio send {directory} --results {self.store.url}"
            ) from error
        return list(run.problems)

    def waiting(self) -> list[Path]:
        """The files that wait, those of the history last: what it tells of is in the archive then."""
        found = (path for path in self.path.rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(found, key=lambda path: (path.relative_to(self.path).parts[0] == HISTORY, path))

    def send(self) -> int:
        """Sends what waits; each file leaves the outbox when the archive has it.

        Returns:
            How many files were sent.

        Raises:
            ArchiveError: If the archive does not take one; that and the rest stay in the outbox.
        """
        waiting = self.waiting()
        for path in waiting:
            self.store.put(path, path.relative_to(self.path).as_posix())
            path.unlink(missing_ok=True)
        return len(waiting)

    def _add_directory(self, run: Run) -> None:
        """Packs the whole directory, under each testbed and date that it has results of (usually one).

        Its name begins with the time of day (UTC) of the first of these, so that runs of a day are in their order.
        """
        data, digest = _packed(run.path), _digest(run.path)
        places: dict[tuple[str, str], str] = {}
        for each in sorted(run.results, key=lambda result: result.started):
            place = (each.conditions.testbed.name, each.started.date().isoformat())
            places.setdefault(place, f"{each.started:%H%M%S}-{digest}")
        for (testbed, day), name in (places or {("unknown", "unknown"): digest}).items():
            folder = self.path / RUNS / f"testbed={quote(testbed, safe=' ')}" / f"date={day}"
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / f"{name}.tar.gz", data)


def _packed(directory: Path) -> bytes:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in _contents(directory):
                archive.add(directory / name, arcname=f"{directory.resolve().name}/{name}", recursive=False)
        file.seek(0)
        return file.read()


def _digest(directory: Path) -> str:
    """Follows from the names and contents of all files, and from nothing else."""
    digest = hashlib.sha256()
    for name in _contents(directory):
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _contents(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*")):
        # Hidden files are not sent: one of them holds the token of a lease, which is a secret.
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield path.relative_to(directory).as_posix()

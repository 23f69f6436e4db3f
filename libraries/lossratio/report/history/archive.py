"""The archive: runs and history in a folder or an object store, sent through an outbox and fetched back.

All object stores that fsspec knows are supported, such as S3, GCS and Azure.
"""

import gzip
import hashlib
import os
import re
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from lossratio.errors import FREE_SPACE, ArchiveError, ReportError, remedy_for, storing
from lossratio.files import as_path, how_to_install, shell_word, without_secrets
from lossratio.report import Run, read_run
from lossratio.report.history.annotations import ANNOTATIONS_NAME
from lossratio.report.history.entries import entries_of
from lossratio.report.history.store import History
from lossratio.report.history.unmeasured import left_out_of, nothing_measured
from lossratio.results import write_whole
from lossratio.trials import lock
from lossratio.values import counted

_MIRRORED = re.compile(rf"testbed=[^/]+/date=[^/]+/[^/]+\.parquet|{re.escape(ANNOTATIONS_NAME)}")
# A password may contain slashes; an address with a password may lack slashes, or have encoded punctuation.
_SECRETS = re.compile(r"://([^/@]*@|[^@]*:[^@]*@|[^?]*\?)|@.*://")
_MISTYPED = re.compile(r"([a-z][a-z0-9+.-]*:|//)[^@]*:[^@]*@", re.IGNORECASE)
"""A mistyped address of a store: it has a user, but lacks ``//`` or its kind. No folder has such a name."""
_AZURE = re.compile(r"abfss?://[\w-]+@[\w.-]+(/[^@?]*)?$", re.ASCII)
"""The address of a container in a storage account. The name before its ``@`` is the container, not a user."""
_PACKAGE = re.compile(r"\b(?:fsspec|s3fs|gcsfs|adlfs)\b")
"""The packages of fsspec and its kinds of stores, one of which an ImportError names."""
_EXTRAS = {"fsspec": "history", "s3fs": "s3"}
HISTORY = "history"
"""Folder below an archive's URL with the rows of all its runs, a `lossratio.report.history.History`."""
_LOOK_EVERY = 0.1
"""Seconds between two looks whether another process has sent its files."""
RUNS = "runs"
"""Folder below an archive's URL with whole runs, ``testbed=<name>/date=<day>/<run>.tar.gz``."""


@dataclass(frozen=True)
class ObjectStore:
    """A store of objects, whose names contain slashes."""

    url: str
    """A folder, or a URL such as ``s3://bucket/lossratio``. Credentials are in the environment, where the store's own
    tools read them (e.g. ``AWS_PROFILE``), and never in the URL. Credentials in the URL are a `ReportError`, which does
    not show them."""

    def __post_init__(self) -> None:
        check_without_secrets(self.url)

    def __str__(self) -> str:
        return without_secrets(self.url)

    def is_archive(self) -> bool:
        """Whether there is an archive: runs, or a history.

        Raises:
            ArchiveError: If the store does not say whether there is an archive.
        """
        return not {RUNS, HISTORY}.isdisjoint(self.names("*"))

    def require_archive(self) -> None:
        """Checks that there is an archive.

        Raises:
            ReportError: If there is none yet.
            ArchiveError: If the store does not say whether there is an archive.
        """
        if not self.is_archive():
            raise ReportError(
                f"There is no archive at {self} yet: it has neither {RUNS}/ nor {HISTORY}/. Correct the address, or "
                f"create an archive there with a first run: lossratio archive send DIR --results {shell_word(self)}"
            )

    def put(self, file: Path, name: str) -> None:
        """Stores a file as a whole or not at all, replacing an earlier one.

        Raises:
            ArchiveError: If the store does not accept it.
        """
        with self._errors(f"take {name}", stores=True):
            files, root = self._opened
            path = f"{root}/{name}"
            if _is_folder(files):
                # Only object stores show nothing but whole objects.
                _write(Path(path), file.read_bytes())
            else:
                files.put_file(str(file), path)

    def get(self, name: str, file: Path) -> None:
        """Fetches an object into a file, as a whole or not at all.

        Raises:
            ArchiveError: If the store refuses.
        """
        with self._errors(f"give {name}"):
            files, root = self._opened
            _write(file, files.cat_file(f"{root}/{name}"))

    def names(self, pattern: str) -> list[str]:
        """Names of the objects that match a pattern, with ``*`` within and ``**`` across slashes.

        Raises:
            ArchiveError: If the store does not list them.
        """
        with self._errors(f"list {pattern}"):
            files, root = self._opened
            files.invalidate_cache()
            return sorted(
                str(path).removeprefix(f"{root}/") for path in files.glob(f"{root}/{pattern}")
            )

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        # Imported here because it takes a while, and few runs go to an archive.
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        files, root = url_to_fs(self.url)
        return files, str(root).rstrip("/")

    @contextmanager
    def _errors(self, what: str, *, stores: bool = False) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            missing = _PACKAGE.search(f"{error.name} {error}")
            package = "fsspec" if missing is None else missing[0]

            way = f"pip install {package}"
            if package in _EXTRAS:
                way = how_to_install(_EXTRAS[package])
            raise ArchiveError(
                f"{self}: this kind of store needs the Python package {package!r}. Install it with {way}."
            ) from error
        except Exception as error:
            # Each kind of store has its own errors, without a common class.
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            words = f"{self} does not {what}: {reason.rstrip('.')}."
            if stores and (remedy := remedy_for(error)) is not None:
                words += f" {remedy}{' there' if remedy == FREE_SPACE else ''}."
            raise ArchiveError(without_secrets(words)) from error


def _is_folder(files: Any) -> bool:
    """Whether a file system of fsspec is this machine's own."""
    from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]

    return isinstance(files, LocalFileSystem)


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, data)


def check_without_secrets(place: str) -> None:
    """Checks that the address of an archive or a history has no credentials.

    Raises:
        ReportError: If it has credentials; the message does not show them.
    """
    written = unquote(place)
    if _AZURE.match(place) or not (_SECRETS.search(written) or _MISTYPED.match(written)):
        return
    raise ReportError(
        "The address of an archive must not have a user, a password or a query (?...): others would see these "
        "secrets. Put credentials where the store's own tools read them, for example in AWS_PROFILE or, for any "
        "kind of store, in fsspec variables such as FSSPEC_SFTP_USERNAME."
    )


def is_url(text: str) -> bool:
    """Whether a text is the URL of an archive, and not a folder of this machine."""
    return "://" in text


def open_history(place: str) -> History:
    """Opens a history: in a folder, in an archive in a folder, or a mirror of the history in an archive with a URL.

    Raises:
        ArchiveError: If the archive does not give the history.
        ReportError: If the archive has no history.
    """
    folder = as_path(ReportError, "A history", place)
    check_without_secrets(place)
    if is_url(place):
        return mirror_history(ObjectStore(place))
    archived = folder / HISTORY
    return History(archived if archived.is_dir() else folder)


def mirror_history(store: ObjectStore, cache: Path | None = None) -> History:
    """Fetches new files of an archive's history, and removes files that the archive no longer has.

    A file's name follows from its content, so an existing file is never fetched again.

    Raises:
        ReportError: If there is no archive, or no history in it.
        ArchiveError: If the store refuses.
    """
    folder = cache or _folder(store.url, "XDG_CACHE_HOME", ".cache", "history")
    names = {name.removeprefix(f"{HISTORY}/") for name in store.names(f"{HISTORY}/**")}
    # Only a file of a history's own layout is fetched: another name might lead out of the mirror.
    wanted = {name for name in names if _MIRRORED.fullmatch(name)}
    if not wanted:
        store.require_archive()
        raise ReportError(
            f"{store} has no history yet. Send a run to it: lossratio archive send DIR --results {shell_word(store)}"
        )
    here = _mirrored(folder)
    for name in sorted(wanted - (here - {ANNOTATIONS_NAME})):
        store.get(f"{HISTORY}/{name}", folder / name)
    for name in here - wanted:
        (folder / name).unlink(missing_ok=True)
    return History(folder)


def _mirrored(folder: Path) -> set[str]:
    """The names of the files in a mirror, without those that another process is fetching."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if _MIRRORED.fullmatch(name)}


def put_annotations(url: str, history: History) -> None:
    """Stores the known changes of an archive's mirror in the archive.

    Raises:
        ArchiveError: If the archive does not take them.
    """
    ObjectStore(url).put(history.path / ANNOTATIONS_NAME, f"{HISTORY}/{ANNOTATIONS_NAME}")


def _folder(url: str, variable: str, default: str, name: str) -> Path:
    """This user's folder for an archive; archives of the same relative path in two directories have two folders."""
    root = Path(os.environ.get(variable) or Path.home() / default)
    place = url if "://" in url else str(Path.cwd() / Path(url).expanduser())
    return root / "lossratio" / name / hashlib.sha256(place.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outbox:
    """The files that wait on this machine's disk until an archive has them, so that a lost connection loses no run."""

    path: Path
    """The folder of the files, in the archive's own layout."""
    store: ObjectStore
    """The archive."""

    @classmethod
    def of(cls, url: str) -> "Outbox":
        """This user's outbox for the archive with a URL.

        Raises:
            ReportError: If the URL has credentials.
        """
        return cls(_folder(url, "XDG_STATE_HOME", ".local/state", "outbox"), ObjectStore(url))

    def add(self, directory: Path) -> list[str]:
        """Puts a run into the outbox. The same run always gets the same names.

        Returns:
            Messages about files that cannot be read, and about tests without rows in the history; all others were
            added.

        Raises:
            ReportError: If it is not the directory of a run.
            StorageError: If the outbox cannot be written, e.g. because the disk is full.
        """
        run = read_run(directory)
        way_out = (
            f"Free some space, and send the run with: lossratio archive send {shell_word(directory)} "
            f"--results {shell_word(self.store)}"
        )
        with storing(f"write the outbox {self.path}", way_out):
            History(self.path / HISTORY).add(entries_of(run))
            self._add_directory(run)
        return [*run.problems, *left_out_of(run)]

    def waiting(self) -> list[Path]:
        """The files that wait. Files of the history come last, so that the runs of its rows are already archived."""
        files = (
            path
            for path in self.path.rglob("*")
            if path.is_file() and not path.name.startswith(".")
        )
        return sorted(
            files, key=lambda path: (path.relative_to(self.path).parts[0] == HISTORY, path)
        )

    def beginning(self) -> str | None:
        """The remark that a new archive begins with the waiting files; None: there already is an archive.

        Raises:
            ArchiveError: If the store does not say whether there is an archive.
            ReportError: If there is no archive, and no files wait from which it could begin.
        """
        if not self.waiting():
            self.store.require_archive()
        if self.store.is_archive():
            return None
        return f"There was no archive at {self.store}: it was created with these files."

    def send(self) -> int:
        """Sends the files that wait, and counts them. Each file leaves the outbox once the archive has it.

        If another process sends files of the outbox, it waits for that process.

        Raises:
            ArchiveError: If the archive does not take a file; this file and the rest stay in the outbox.
        """
        if not self.waiting():
            return 0
        with self._alone():
            waiting = self.waiting()
            for path in waiting:
                self.store.put(path, path.relative_to(self.path).as_posix())
                path.unlink(missing_ok=True)
        return len(waiting)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other processes from sending files of the outbox."""
        # The folder itself is locked, because a full disk has no room for a file of locks.
        folder = os.open(self.path, os.O_RDONLY)
        try:
            while True:
                with suppress(BlockingIOError):
                    lock(folder, self.path)
                    break
                time.sleep(_LOOK_EVERY)
            yield
        finally:
            os.close(folder)

    def way_on(self) -> str:
        """Where the files wait that the archive did not take, and how to send them, in a sentence; empty: none wait."""
        waiting = len(self.waiting())
        if not waiting:
            return ""
        verb = "waits" if waiting == 1 else "wait"
        return (
            f"{counted(waiting, 'file')} {verb} in {self.path} until a later run, or this command, sends them: "
            f"lossratio archive send --results {shell_word(self.store)}"
        )

    def _add_directory(self, run: Run) -> None:
        """Packs the whole directory, for each testbed and date of its results (usually one).

        The name begins with the time of day (UTC) of the first of these results, so that names are in order of time. If
        a run has no results, tests that measured nothing take their place.
        """
        data, digest = _packed(run.path), _digest(run.path)
        names: dict[tuple[str, str], str] = {}
        tests = [(result.started, result.conditions.testbed.name) for result in run.results]
        for begun, testbed in sorted(
            tests or [(test.time, test.testbed) for test in nothing_measured(run)]
        ):
            names.setdefault((testbed, begun.date().isoformat()), f"{begun:%H%M%S}-{digest}")
        for (testbed, day), name in (names or {("unknown", "unknown"): digest}).items():
            folder = self.path / RUNS / f"testbed={quote(testbed, safe=' ')}" / f"date={day}"
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / f"{name}.tar.gz", data)


def _packed(directory: Path) -> bytes:
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name in _contents(directory):
                archive.add(
                    directory / name, arcname=f"{directory.resolve().name}/{name}", recursive=False
                )
        file.seek(0)
        return file.read()


def _digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for name in _contents(directory):
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(hashlib.sha256((directory / name).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _contents(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*")):
        # Hidden files are not sent, because one of them has the token of a lease, which is a secret.
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield path.relative_to(directory).as_posix()


def fetch_newest(store: ObjectStore, testbed: str, count: int, directory: Path) -> list[Path]:
    """Fetches the newest runs of a testbed into directories named ``<day>-<run>``, which it returns, newest last.

    Without runs of the testbed, or without an archive, it returns none.

    Raises:
        ArchiveError: If the archive does not give a run, or gives a damaged one.
        StorageError: If the runs cannot be written to the disk.
    """
    names = store.names(f"{RUNS}/testbed={quote(testbed, safe=' ')}/date=*/*.tar.gz")
    with storing(
        f"unpack runs to {directory}", "Free some space there, or name another directory."
    ):
        return [_fetched(store, name, directory) for name in names[-count:]]


def _unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpacks the files of a run. An archive cannot write anywhere else.

    Raises:
        ValueError: If the archive has something else than files and directories, or a name outside of the folder.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return

    # Python 3.10 has the filter since 3.10.12, and Python 3.11 since 3.11.4.
    for member in archive.getmembers():
        place = Path(os.path.normpath(folder / member.name))
        if not (member.isfile() or member.isdir()) or not place.is_relative_to(folder):
            raise ValueError(f"{member.name!r} does not belong in it")
        archive.extract(member, folder, set_attrs=False)


def _fetched(store: ObjectStore, name: str, directory: Path) -> Path:
    *_, day, file = name.split("/")
    run = directory / f"{day.removeprefix('date=')}-{file.removesuffix('.tar.gz')}"
    if run.exists():
        return run

    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".") as temporary:
        packed = Path(temporary) / file
        unpacked = Path(temporary) / "run"
        store.get(name, packed)
        unpacked.mkdir()

        try:
            with tarfile.open(packed) as archive:
                _unpack(archive, unpacked)
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
            raise ArchiveError(
                f"{store}: {name} is damaged: {error}. Remove it from the archive, or send its run again."
            ) from error

        runs = [*unpacked.iterdir()]
        if len(runs) != 1 or not runs[0].is_dir():
            raise ArchiveError(
                f"{store}: {name} is damaged: it does not contain the directory of one run. Remove it from the "
                "archive, or send its run again."
            )
        runs[0].rename(run)

    return run

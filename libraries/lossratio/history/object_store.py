"""A folder or an object store, by its URL: whatever fsspec knows, such as S3, GCS and Azure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lossratio.errors import ArchiveError


@dataclass(frozen=True)
class ObjectStore:
    """Where objects are kept under names with slashes in them.

    Attributes:
        url: A folder, or a URL such as ``s3://bucket/lossratio``. Who may use it is a matter of the environment that
            the store's own tools read (e.g. ``AWS_PROFILE``); no secret is in the URL.
    """

    url: str

    def put(self, file: Path, name: str) -> None:
        """Stores a file under a name, as a whole or not at all; one of that name is replaced.

        Raises:
            ArchiveError: If the store does not take it.
        """
        with self._errors(f"take {name}"):
            place = f"{self._root}/{name}"
            if "file" in _protocols(self._files):
                # Object stores show an object when it is whole; a folder does so only with what is moved into it.
                part = f"{place}.{secrets.token_hex(4)}.part"
                self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(file), part)
                self._files.mv(part, place)
            else:
                self._files.put_file(str(file), place)

    def get(self, name: str, file: Path) -> None:
        """Fetches an object into a file, which is there as a whole or not at all.

        Raises:
            ArchiveError: If the store does not give it.
        """
        with self._errors(f"give {name}"):
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
            try:
                self._files.get_file(f"{self._root}/{name}", str(part))
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)

    def names(self, pattern: str) -> list[str]:
        """Names of the objects that match a pattern, with ``*`` within and ``**`` across slashes.

        Raises:
            ArchiveError: If the store does not tell.
        """
        with self._errors(f"list {pattern}"):
            self._files.invalidate_cache()
            found = self._files.glob(f"{self._root}/{pattern}")
            return sorted(str(place).removeprefix(f"{self._root}/") for place in found)

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        # Imported here, as most runs are kept where they are.
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        files, root = url_to_fs(self.url)
        return files, str(root).rstrip("/")

    @property
    def _files(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return self._opened[1]

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise ArchiveError(
                f"{self.url}: a Python package for this kind of store is missing ({error}). "
                f"Folders need fsspec, S3 needs s3fs, GCS gcsfs and Azure adlfs."
            ) from error
        except Exception as error:
            # Each kind of store has errors of its own, which have nothing else in common.
            raise ArchiveError(f"{self.url} does not {what}: {type(error).__name__}: {error}") from error


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)

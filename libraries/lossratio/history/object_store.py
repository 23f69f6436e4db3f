"""A folder or an object store, by its URL: all kinds that fsspec knows, such as S3, GCS and Azure."""

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
    """A store of objects, whose names have slashes.

    Attributes:
        url: A folder, or a URL such as ``s3://bucket/lossratio``. Credentials are in the environment, where the store's
            own tools read them (e.g. ``AWS_PROFILE``), and never in the URL.
    """

    url: str

    def put(self, file: Path, name: str) -> None:
        """Stores a file under a name, as a whole or not at all. An object with that name is replaced.

        Raises:
            ArchiveError: If the store does not take the file.
        """
        with self._errors(f"take {name}"):
            place = f"{self._root}/{name}"
            if "file" in _protocols(self._files):
                # Object stores show whole objects only. In a folder this takes a file that is moved there.
                part = f"{place}.{secrets.token_hex(4)}.part"
                self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(file), part)
                self._files.mv(part, place)
            else:
                self._files.put_file(str(file), place)

    def get(self, name: str, file: Path) -> None:
        """Fetches an object into a file, as a whole or not at all.

        Raises:
            ArchiveError: If the store does not give the object.
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
            ArchiveError: If the store does not list them.
        """
        with self._errors(f"list {pattern}"):
            self._files.invalidate_cache()
            places = self._files.glob(f"{self._root}/{pattern}")
            return sorted(str(place).removeprefix(f"{self._root}/") for place in places)

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        # Imported here because it takes a while, and few runs go to an archive.
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
            # Each kind of store has errors of its own, without a common class.
            raise ArchiveError(f"{self.url} does not {what}: {type(error).__name__}: {error}") from error


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)

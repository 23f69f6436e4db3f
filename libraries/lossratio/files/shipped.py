"""Named files that come with lossratio (topologies, suites)."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lossratio.values import did_you_mean

_PACKAGE = Path(__file__).parents[1]
_MOST_SHOWN = 20
"""Maximum number of names in an error. Nobody reads more."""


@dataclass(frozen=True)
class Shipped:
    """A kind of files that come with lossratio."""

    folder: str
    """Their folder in the package."""
    suffix: str
    """The ending of the files, which their names here do not have."""
    is_there: Callable[[str | Path], bool]
    """Whether the user has such a file, which takes precedence over a file that comes with lossratio."""

    def path(self, name: str | Path, folder: Path = Path()) -> Path:
        """The user's file in a folder, or else the file of this name that comes with lossratio, if there is one."""
        # Unlike Path, os.path has an answer for a name that is too long for a file.
        if str(name) in self.names() and not self.is_there(folder / name):
            return self.own_path(str(name))
        return folder / name

    def own_path(self, name: str) -> Path:
        """The file of this name that comes with lossratio."""
        return _PACKAGE / self.folder / f"{name}{self.suffix}"

    def name(self, path: Path) -> str:
        """The name of a file that comes with lossratio, which means the same on every machine; otherwise the path."""
        if path.parent == _PACKAGE / self.folder:
            return path.stem
        return str(path)

    def has(self, path: Path) -> bool:
        """Whether a file comes with lossratio. In a checkout, its folder is a link to another folder."""
        return path.resolve().parent == (_PACKAGE / self.folder).resolve()

    def names(self) -> tuple[str, ...]:
        """The names of all these files."""
        return tuple(sorted(path.stem for path in (_PACKAGE / self.folder).glob(f"*{self.suffix}")))

    def hint(self, name: str | Path) -> str:
        """A hint for the error that a file is missing: what may be meant, if the user gave a name and not a path."""
        if not all(part.isalnum() for part in re.split("[-_]", str(name))):
            return ""
        for other in (TOPOLOGIES, SUITES):
            if other is not self and str(name) in other.names():
                return f" {name} is one of the {other.folder}, not of the {self.folder}."

        names = self.names()
        shown = f" These come with lossratio: {', '.join(names)}."
        if len(names) > _MOST_SHOWN:
            shown = f" 'lossratio list {self.folder}' lists those that come with lossratio."
        return did_you_mean(str(name), names) or shown


TOPOLOGIES = Shipped("topologies", ".yaml", os.path.isfile)
SUITES = Shipped("suites", ".robot", os.path.exists)

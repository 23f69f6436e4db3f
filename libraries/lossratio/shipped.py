"""Files that come with lossratio and have names: topologies, suites; and what a misspelt name may mean."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = Path(__file__).parent
_MOST_SHOWN = 20
"""More names than so many are not read in an error."""


@dataclass(frozen=True)
class Shipped:
    """One kind of such files."""

    folder: str
    """The folder of the package."""
    suffix: str
    """What their names lack as names of files."""
    is_there: Callable[[str | Path], bool]
    """Whether the user has such a file, which goes before one that comes with lossratio."""

    def path(self, name: str | Path, folder: Path = Path()) -> Path:
        """The user's file in a folder; where there is none, the one that comes with lossratio by this name, if any."""
        # Unlike Path, os.path has an answer for a name that is too long for a file.
        if str(name) in self.names() and not self.is_there(folder / name):
            return _PACKAGE / self.folder / f"{name}{self.suffix}"
        return folder / name

    def name(self, path: Path) -> str:
        """The name of a file that comes with lossratio, which means the same on every machine; else its path."""
        if path.parent == _PACKAGE / self.folder:
            return path.stem
        return str(path)

    def has(self, path: Path) -> bool:
        """Whether a file comes with lossratio: in a checkout its folder is a link to another one."""
        return path.resolve().parent == (_PACKAGE / self.folder).resolve()

    def names(self) -> tuple[str, ...]:
        """The names that there are."""
        return tuple(sorted(path.stem for path in (_PACKAGE / self.folder).glob(f"*{self.suffix}")))

    def hint(self, name: str | Path) -> str:
        """For the error that there is no such file: what may be meant, if a name is given and no path."""
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


_NEAR = 0.75
"""How alike two names are at least, of which one may be meant by the other: as `difflib` measures it, 0 to 1."""
_SHORTEST_PART = 3


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of some names that another may mean: misspelt, shortened, or with letters exchanged; None: none is near.

    A name that is only a bit alike is none: an answer that is far from what was meant is worse than none.
    """
    known = {each.casefold(): each for each in names}
    asked = name.casefold()
    close = get_close_matches(asked, known, n=1, cutoff=_NEAR)
    if close:
        return known[close[0]]

    for folded, each in known.items():
        if sorted(folded) == sorted(asked):
            return each
    if len(asked) < _SHORTEST_PART:
        return None
    for folded, each in known.items():
        if folded.startswith(asked) or asked in re.split("[-_ ]", folded):
            return each
    return None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The question whether the nearest of some names is meant, behind a blank; empty if none is near."""
    meant = nearest(name, names)
    if meant is not None:
        return f" Did you mean {meant!r}?"
    return ""


def names_near(name: str, names: Iterable[str]) -> str:
    """The end of a sentence that lists the names that there are, with the question whether the nearest is meant."""
    return f"{', '.join(names := list(names))}.{did_you_mean(name, names)}"

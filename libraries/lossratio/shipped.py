"""Named files that come with lossratio (topologies, suites), and suggestions for misspelt names."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = Path(__file__).parent
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


_NEAR = 0.75
"""Minimum similarity of two names, as measured by `difflib` (0 to 1), for suggesting one instead of the other."""
_SHORTEST_PART = 3
_OTHER_NAMES = {
    "vlan": "dot1q",
    "vlans": "dot1q",
    "qinq": "dot1ad",
    "duration": "timeout",
    "markdown": "md",
}
"""Names from other tools, in lower case, that resemble names of something else, each with the name that is meant."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is meant by one that is misspelt, shortened, extended, or has swapped letters; None: none is near.

    A name that is only a bit similar is not suggested: a wrong suggestion is worse than none.
    """
    known = {each.casefold(): each for each in names}
    asked = name.casefold()
    other = _OTHER_NAMES.get(asked)
    if other in known:
        return known[other]
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
    return known.get(re.split("[-_ ]", asked)[0])


# Table: what takes the place of a name that was removed.
REMOVED = {
    "--addresses": "set 'addresses: lab' in the topology file, or use lossratio between",
    "--any-of": "give --topology several times",
    "--as-before": "to save time, measure with --in-place or with the goals quick",
    "--join": "add two nodes of kind linux to the lab, and name them with --tg",
    "--record": "set the generator's 'max_rate' in the topology file to the limit that is found",
    "--results": "after the run, send it with lossratio archive send DIR --results URL",
    "--run-timeout": "begin the command with timeout --signal INT, e.g. timeout --signal INT 9h",
    "--suite-timeout": "begin the command with timeout --signal INT, e.g. timeout --signal INT 9h",
    "--trex": "write these values into the topology file (docs/how-to/use-trex.md)",
    "--webhook": "send alerts with a 'command', such as curl with 'input: json'",
    "email": "send alerts with a 'command', such as apprise or mail",
    "headers": "use curl as a 'command' with 'runs_on: controller'",
    "matrix": "write your testbeds into the matrix of your CI system's file",
    "memory_rest": "compare a search with one with rest=15 s",
    "modifier": "use a traffic profile with a broadcast_share or random addresses",
    "modifier_commands": "run your own command alongside the tests",
    "plan": "write your testbeds into the matrix of your CI system's file",
    "record": "set the generator's 'max_rate' in the topology file to the limit that is found",
    "repeat": "call the keyword several times",
    "self_test": "set 'max_rate' of the topology's generator to the limit that lossratio lab self-test finds",
    "snmp": "use snmpget as a 'command' with 'runs_on: controller'",
    "url": "use curl as a 'command' with 'runs_on: controller'",
    "webhook": "send alerts with a 'command', such as curl with 'input: json'",
}
"""What takes the place of options, arguments, fields and commands of earlier versions, by their names."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What took a name's place, or else whether the nearest name is meant, after a blank; empty if nothing is known."""
    if name in REMOVED:
        return f" Earlier versions had {name!r}. Instead, {REMOVED[name]}."
    meant = nearest(name, names)
    if meant is not None:
        return f" Did you mean {meant!r}?"
    return ""


def names_near(name: str, names: Iterable[str]) -> str:
    """The end of a sentence that lists the valid names, with the question whether the nearest one is meant."""
    return f"{', '.join(names := list(names))}.{did_you_mean(name, names)}"

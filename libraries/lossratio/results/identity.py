"""What a test is, however Robot Framework was called: the file of its suite, and its name in there.

Robot Framework's own full name of a test depends on what else it runs: with a second suite on the command line, all
names change. A result, a history and an alarm must not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lossratio.shipped import SUITES

ID = "Id"
"""Metadata of a suite that names it whatever its file is called: for who moves or renames the file."""
VARIATION = "Variation"
"""Metadata that distinguishes suites that were made of one file, such as one for each model of NIC."""
PROJECT_FILES = (".git", ".hg", "pyproject.toml", "robot.toml")
"""What the folder of a project has in it."""


def identity_of(test: Any) -> str:
    """The identity of a test of Robot Framework, before a run, in it or in its output."""
    return f"{suite_identity_of(test.parent)}.{test.name}"


def suite_identity_of(suite: Any) -> str:
    """The identity of a suite of Robot Framework, likewise."""
    return suite_identity(suite.source, suite.metadata, suite.full_name)


def suite_identity(source: str | Path | None, metadata: Mapping[str, str], long_name: str) -> str:
    """The identity of a suite.

    It is the metadata ``Id``, or else the name of a suite that comes with lossratio, or else the path of the file in
    its project: below the innermost folder with one of `PROJECT_FILES`. Outside of any project it is the file with its
    folder. Paths are in words, as Robot Framework makes names of them.

    Args:
        source: The suite's file; None or an empty text: it has none.
        metadata: The suite's metadata.
        long_name: Robot Framework's full name, for a suite without a file.
    """
    # Robot Framework's names of metadata mind no case.
    given = {str(key).title(): str(value) for key, value in metadata.items()}
    name = given.get(ID) or (_name_of(Path(source)) if source else long_name)
    variation = given.get(VARIATION)
    return f"{name}.{variation}" if variation else name


def _name_of(source: Path) -> str:
    # Robot Framework takes long to import, and the results of scripts need none of it.
    from robot.running import TestSuite

    source = source.resolve()
    if SUITES.has(source):
        return str(TestSuite.name_from_source(source))
    project = next((folder for folder in source.parents if _is_project(folder)), source.parent.parent)
    paths = [source, *source.parents]
    below = paths[: paths.index(project)]
    return ".".join(str(TestSuite.name_from_source(path)) for path in reversed(below))


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in PROJECT_FILES)


def fitting(earlier: Iterable[str], identities: Iterable[str]) -> dict[str, list[str]]:
    """The identities that full names of earlier versions may mean, by these names; names that fit none are left out.

    Earlier versions had Robot Framework's full name, whose end (the file and the test) is that of the identity.
    """
    known: dict[str, list[str]] = {}
    for identity in dict.fromkeys(identities):
        known.setdefault(_end_of(identity), []).append(identity)
    return {name: known[_end_of(name)] for name in dict.fromkeys(earlier) if _end_of(name) in known}


def _end_of(name: str) -> str:
    return ".".join(name.rsplit(".", 2)[-2:])

"""What identifies a test in every run: the file of its suite, and its name in the file.

Robot Framework's own full name for a test depends on what else it runs: with a second suite on the command line, all
names change. Results, histories and alarms must not change with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossratio.files import SUITES

ID = "Id"
"""Metadata that names a suite independently of its file, for users who move or rename the file."""
VARIATION = "Variation"
"""Metadata that distinguishes suites made from one file, such as one for each NIC model."""
PROJECT_FILES = (".git", ".hg", "pyproject.toml", "robot.toml")
"""Files and folders that mark the folder of a project."""
_INIT_FILE = "__init__.robot"
"""The file with the settings of a folder, which Robot Framework reads."""


def identity_of(test: Any) -> str:
    """The identity of a Robot Framework test, before or during a run, or in its output."""
    return f"{suite_identity_of(test.parent)}.{test.name}"


def suite_identity_of(suite: Any) -> str:
    """The identity of a suite of Robot Framework."""
    return suite_identity(suite.source, suite.metadata, suite.full_name)


def suite_identity(source: str | Path | None, metadata: Mapping[str, str], long_name: str) -> str:
    """The identity of a suite.

    It is the metadata ``Id``, or else the name of a suite that comes with lossratio, or else the path of the file in
    its project: below the innermost folder with one of `PROJECT_FILES`. Outside of any project, it is the file with its
    folder. If a folder has an ``Id`` in its ``__init__.robot``, this replaces the path of the folder. Paths are in
    words, as in Robot Framework's names.

    Args:
        source: The suite's file; None or an empty text: it has none.
        metadata: The suite's metadata.
        long_name: Robot Framework's full name, for a suite without a file.
    """
    given = _by_name(metadata)
    name = given.get(ID) or (_name_of(Path(source)) if source else long_name)
    variation = given.get(VARIATION)
    return f"{name}.{variation}" if variation else name


def _by_name(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata by names in one spelling, because Robot Framework ignores case."""
    return {str(key).title(): str(value) for key, value in metadata.items()}


def _name_of(source: Path) -> str:
    # Robot Framework takes long to import, and results of scripts do not need it.
    from robot.running import TestSuite

    source = source.resolve()
    own = str(TestSuite.name_from_source(source))
    if SUITES.has(source):
        return own

    names = [own]
    project = next(
        (folder for folder in source.parents if _is_project(folder)), source.parent.parent
    )
    for folder in source.parents:
        given = _id_of_folder(folder)
        if given:
            names.append(given)
            break
        if folder == project:
            break
        names.append(str(TestSuite.name_from_source(folder)))
    return ".".join(reversed(names))


def _is_namesake(one: Path, part: Path) -> bool:
    """Whether a file or folder has the same suite name as another, and no ``Id`` of its own."""
    from robot.running import TestSuite

    if part.is_dir():
        is_alike = one.is_dir()
    else:
        is_alike = one.suffix == part.suffix
    if not is_alike or TestSuite.name_from_source(one) != TestSuite.name_from_source(part):
        return False
    return not (one.is_dir() and _id_of_folder(one))


def namesakes_of(source: Path) -> list[Path]:
    """Other files whose suites have the same name, in the order of their paths: their tests would be one series.

    Robot Framework leaves out numbers that order files, as in ``01__ip4.robot``, and capitalizes first letters. A file
    or folder with an ``Id`` has its own name.
    """
    source = source.resolve()
    if SUITES.has(source):
        return []

    project = next(filter(_is_project, source.parents), source.parent.parent)
    alike = [project]
    for part in (*reversed(source.parents), source):
        if project not in part.parents:
            continue
        inside = (child for folder in alike for child in folder.iterdir())
        alike = [child for child in inside if child == part or _is_namesake(child, part)]

    others = {file.resolve() for file in alike} - {source}
    return sorted(file for file in others if not _id_of_file(file))


def names_of_tests_in(file: Path) -> list[str]:
    """The names of the tests in a suite's file, as written there."""
    from robot.api import get_model
    from robot.api.parsing import TestCase, TestCaseSection

    sections = [part for part in get_model(file).sections if isinstance(part, TestCaseSection)]
    return [str(test.name) for part in sections for test in part.body if isinstance(test, TestCase)]


def _id_of_file(file: Path) -> str | None:
    from robot.api import get_model

    return _id_in(get_model(file))


def _id_of_folder(folder: Path) -> str | None:
    """The ``Id`` in the file ``__init__.robot`` of a folder, even if Robot Framework only runs one file in it."""
    file = folder / _INIT_FILE
    if not file.is_file():
        return None
    from robot.api import get_init_model

    return _id_in(get_init_model(file))


def _id_in(model: Any) -> str | None:
    """The ``Id`` in the settings of a file."""
    from robot.api.parsing import Metadata, SettingSection

    sections = [section for section in model.sections if isinstance(section, SettingSection)]
    settings = [
        setting for section in sections for setting in section.body if isinstance(setting, Metadata)
    ]
    return _by_name({setting.name: setting.value for setting in settings}).get(ID)


def _is_project(folder: Path) -> bool:
    return any((folder / name).exists() for name in PROJECT_FILES)


def with_any_values(name: str) -> str:
    """A regular expression of a name whose variables may have any values."""
    from robot.variables.search import VariableMatches

    pattern = ""
    for match in VariableMatches(name, ignore_errors=True):
        pattern += f"{re.escape(match.before)}.*"
        name = match.after
    return pattern + re.escape(name)

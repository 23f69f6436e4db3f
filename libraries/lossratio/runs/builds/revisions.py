"""The revisions of a git repository that a bisection searches."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from lossratio.errors import BuildError
from lossratio.files import shown_name
from lossratio.values import ExitStatus, shortened, shown_value

_LONGEST_OF_GIT = 300
_FATAL = re.compile(r"^(fatal|error): ", re.MULTILINE)


def revisions_between(good: str, bad: str, repository: Path) -> tuple[str, ...]:
    """The revisions from the good one to the bad one, along first parents, so that each was a state of the branch.

    Raises:
        BuildError: If git does not know the revisions, or the bad one does not come after the good one.
    """
    _git(repository, "rev-parse", "--git-dir")
    first = _commit_of(good, repository)
    last = _commit_of(bad, repository)
    between = _git(repository, "rev-list", "--reverse", "--first-parent", f"{first}..{last}")
    if not between or first not in _git(repository, "rev-list", "--first-parent", last):
        raise BuildError(
            f"{bad} does not come after {good} along first parents in {repository}. Name an earlier revision with "
            "--good, or a later one with --bad.",
            ExitStatus.BAD_INPUT,
        )
    return (first, *between)


def _commit_of(revision: str, repository: Path) -> str:
    """The commit that a revision names."""
    try:
        return _git(repository, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")[0]
    except BuildError:
        raise BuildError(
            f"{shown_name(repository)} has no revision {shown_value(revision)}. 'git log' shows its revisions.",
            ExitStatus.BAD_INPUT,
        ) from None


def subject_of(repository: Path) -> Callable[[str], str]:
    """A function that describes a revision: its abbreviated name and its subject."""
    return lambda revision: _git(repository, "log", "-1", "--format=%h %s", revision)[0]


def _git(repository: Path, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True,
            text=True,
            check=True,
            errors="replace",
        )
    except FileNotFoundError as error:
        raise BuildError("The program git is missing. Install it.", ExitStatus.BAD_INPUT) from error
    except subprocess.CalledProcessError as error:
        said = shortened(_FATAL.sub("", error.stderr).strip(), _LONGEST_OF_GIT)
        raise BuildError(
            f"git {arguments[0]} failed in {shown_name(repository)}: {said}. Name a git repository with "
            "--repository.",
            ExitStatus.BAD_INPUT,
        ) from error

    return done.stdout.splitlines()

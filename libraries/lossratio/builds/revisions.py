"""The revisions of a repository, and the search for the one that changed a test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from lossratio.builds.bisection import Bisection, BisectionResult, BisectionVerdict
from lossratio.builds.record import BuildRecord
from lossratio.errors import BuildError
from lossratio.exit_status import ExitStatus

MeasureRevision = Callable[[str, BuildRecord], Mapping[str, float] | None]


def revisions_between(good: str, bad: str, repository: Path) -> tuple[str, ...]:
    """The revisions from the good one to the bad one, along first parents: each is a state that the branch was in.

    Raises:
        BuildError: If git does not know them, or the bad one does not come after the good one.
    """
    first = _git(repository, "rev-parse", "--verify", f"{good}^{{commit}}")
    last = _git(repository, "rev-parse", "--verify", f"{bad}^{{commit}}")
    between = _git(repository, "rev-list", "--reverse", "--first-parent", f"{first[0]}..{last[0]}")
    parents = _git(repository, "rev-list", "--first-parent", last[0])
    if not between or first[0] not in parents:
        raise BuildError(f"{bad} does not come after {good} along first parents in {repository}.", ExitStatus.BAD_INPUT)
    return (first[0], *between)


def bisect(
    search: Bisection, record: BuildRecord, measure: MeasureRevision, tell: Callable[[str], None]
) -> BisectionResult:
    """Measures revisions until it is clear which one changed the throughput; what is in the record counts.

    Args:
        search: Chooses the revisions.
        record: What was measured so far.
        measure: Sets a revision up and measures it; None: it cannot be measured.
        tell: Told about every measurement, in a line.

    Raises:
        BuildError: If a revision cannot be measured, or there is not exactly one value.
    """
    step = 0
    while (revision := search.next_revision()) is not None:
        if step == len(record.measurements):
            record.add(revision, measure(revision, record), record.next_directory(revision))
        values = record.measurements[step].values
        step += 1
        if values is None:
            search.skip(revision)
            tell(f"{step:>3}  {revision[:12]}  left out")
            continue
        if len(values) != 1:
            names = ", ".join(values)
            raise BuildError(
                f"One value is needed, and these were measured: {names}. Choose a test, and --quantity.",
                ExitStatus.BAD_INPUT,
            )
        (value,) = values.values()
        search.record(revision, value)
        tell(f"{step:>3}  {revision[:12]}  {value:,.0f} fps")
    return search.result()


def describe_bisection(result: BisectionResult, subject: Callable[[str], str]) -> str:
    """What was found, in a few lines.

    Args:
        result: What was found.
        subject: Tells what a revision is, in a line.
    """
    counted = f"after {result.measurements} measurements"
    if result.verdict is BisectionVerdict.NO_CHANGE:
        return f"No change that matters between the first and the last revision, {counted}."
    change = "" if result.change is None else f" by {result.change:+.2%}"
    sure = f"probability {result.probability:.1%}, {counted}"
    if result.verdict is BisectionVerdict.UNDECIDED:
        return f"Undecided at the limit; the likeliest is {result.candidates[0]} ({sure})."
    if len(result.candidates) > 1:
        listed = "\n".join(f"  {subject(each)}" for each in result.candidates)
        return f"One of these changed it{change} ({sure}); those between could not be measured:\n{listed}"
    return f"It changed{change} ({sure}) with:\n  {subject(result.candidates[0])}"


def subject_of(repository: Path) -> Callable[[str], str]:
    """Tells what a revision of a repository is: its abbreviated name and its subject."""
    return lambda revision: _git(repository, "log", "-1", "--format=%h %s", revision)[0]


def _git(repository: Path, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True, errors="replace"
        )
    except FileNotFoundError as error:
        raise BuildError("The program git is missing.", ExitStatus.BAD_INPUT) from error
    except subprocess.CalledProcessError as error:
        raise BuildError(
            f"git {arguments[0]} failed in {repository}: {error.stderr.strip()}", ExitStatus.BAD_INPUT
        ) from error
    return done.stdout.splitlines()

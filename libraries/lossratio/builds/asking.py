"""Questions to builds: is the SUT as in the earlier searches of a test? If it is, the build is not searched.

The answer is not a value. Its strength as evidence about a change comes from replays of these searches: from how often
they give this answer after such a change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lossratio.measurements.throughput import REPLAYED_CHANGES
from lossratio.results import Finding, QuestionBefore, RunDirectory, read_result

LEAST_ASKED = min(REPLAYED_CHANGES)
"""The smallest change, as a share of the throughput, about which an answer says anything."""


@dataclass(frozen=True)
class Wanted:
    """The measurements that are wanted of a build."""

    asks: bool = False
    """Whether its searches ask first whether the SUT is as before."""
    tests: tuple[str, ...] = ()
    """Full names of the only tests to measure; none: all."""


WHOLE = Wanted()
"""All tests, by searches."""


@dataclass(frozen=True)
class AsBefore:
    """The answer *as before*, instead of a value."""

    values: tuple[float, ...]
    """What the earlier searches found: frames per second per interface."""
    unchanged: float
    """The probability of this answer if nothing has changed."""
    missed: tuple[tuple[float, float], ...]
    """Sizes of changes, as shares of the throughput, and the probability of this answer after each of them."""

    def probability(self, change: float) -> float:
        """The probability of this answer after a change; 1 if it is smaller than all that were replayed.

        Args:
            change: The change, as a share of the throughput.
        """
        smaller = [missed for missed in self.missed if missed[0] <= abs(change)]
        return max(smaller)[1] if smaller else 1.0

    @classmethod
    def of(cls, finding: Finding) -> "AsBefore | None":
        """The answer instead of a finding's value; None: there was a search."""
        if finding.question is None or not finding.is_as_before:
            return None
        return cls.after(finding.question)

    @classmethod
    def after(cls, question: QuestionBefore) -> "AsBefore":
        """The answer to a question, with probabilities from its replays."""
        # Laplace's rule of succession: what never happened in so many replays may still happen.
        shares = {
            change: (as_before + 1) / (questions + 2)
            for change, questions, as_before in question.replays
        }
        unchanged = shares.pop(0.0, 1.0)
        return cls(question.values, unchanged, tuple(sorted(shares.items())))


def runs_before(time: datetime, test: str, folder: Path, links: Path) -> Path:
    """Makes a folder with links to those runs of another folder that measured a test before a given time.

    Args:
        time: The time.
        test: The full name of the test.
        folder: The folder with the runs.
        links: The folder that is made.

    Raises:
        ReportError: If a result cannot be read.
    """
    links.mkdir(parents=True, exist_ok=True)
    for run in sorted(folder.iterdir()):
        file = RunDirectory(run).result_path(test)
        link = links / run.name
        if file.is_file() and not link.is_symlink() and read_result(file).started < time:
            link.symlink_to(run.resolve())
    return links


def why_not_asked(findings: Iterable[Finding]) -> dict[str, str]:
    """Why tests were searched without a question, by the test's full name."""
    reasons: dict[str, str] = {}
    for finding in findings:
        name = finding.result.test.full_name
        if finding.question is None:
            reasons[name] = (
                "it is not a search, or its suite does not take HINTS and NIGHTLY from performance.resource"
            )
        elif finding.question.reason is not None:
            reasons[name] = finding.question.reason
    return reasons

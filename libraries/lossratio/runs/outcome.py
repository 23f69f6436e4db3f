"""What came of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lossratio.errors import LossRatioError
from lossratio.exit_status import ExitStatus, FailureKind, status_of_kinds
from lossratio.runs.verdicts import TestVerdict, failure_kind


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run.

    Attributes:
        status: Its exit status.
        directory: Where its output is; None: it never began.
        verdicts: What became of each test that was begun, those of earlier attempts included.
        error: Why it never began; None if it did.
        troubles: What failed apart from tests: files that a disk did not take.
    """

    status: ExitStatus
    directory: Path | None = None
    verdicts: tuple[TestVerdict, ...] = ()
    error: str | None = None
    troubles: tuple[str, ...] = ()


def outcome_of(perform: Callable[[], RunOutcome]) -> RunOutcome:
    """What comes of a run; an error before the first test is told in the outcome, with the status that it means."""
    try:
        return perform()
    except LossRatioError as error:
        return RunOutcome(status_of_kinds({failure_kind(error, FailureKind.BAD_INPUT)}), error=str(error))

"""Verdicts of tests: why a test failed, and the exit status of the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robot.errors import ExecutionFailed

from lossratio.exit_status import ExitStatus, FailureKind, kind_of_error, status_of_kinds
from lossratio.trials import NegativeLossError

_INTERRUPTED = "Execution terminated by signal"
# Return codes of Robot Framework that are no number of failed tests.
_ROBOT_STATUSES = {252: ExitStatus.BAD_INPUT, 253: ExitStatus.INTERRUPTED, 255: ExitStatus.INTERNAL}


@dataclass(frozen=True)
class TestVerdict:
    """The verdict of a test.

    Attributes:
        name: Full name of the test.
        status: Robot Framework's status: PASS, FAIL or SKIP.
        message: Robot Framework's message.
        failure: Why the test failed; None if it did not.
    """

    __test__ = False

    name: str
    status: str
    message: str
    failure: FailureKind | None

    @property
    def is_final(self) -> bool:
        """Whether another attempt would show nothing new: it passed, was skipped, or failed because of the DUT."""
        return self.failure in (None, FailureKind.REGRESSION, FailureKind.TEST)


def failure_kind(error: BaseException, default: FailureKind = FailureKind.TEST) -> FailureKind:
    """What kind of failure an exception is. Only its class counts, not the words in its message.

    Args:
        error: The exception that failed a test, or ended a run before its first test.
        default: The kind of exceptions that nothing is known about.
    """
    if isinstance(error, ExecutionFailed) and error.message == _INTERRUPTED:
        return FailureKind.INTERRUPTED
    # No other attempt mends a DUT that duplicates frames: the trial was measured again before it failed.
    return FailureKind.TEST if isinstance(error, NegativeLossError) else kind_of_error(error, default)


def exit_status(return_code: int, verdicts: Sequence[TestVerdict], troubles: Sequence[str] = ()) -> ExitStatus:
    """The exit status of a run.

    Args:
        return_code: Robot Framework's.
        verdicts: The verdicts of the tests.
        troubles: Messages about files that a disk did not take.
    """
    if return_code in _ROBOT_STATUSES:
        return _ROBOT_STATUSES[return_code]
    kinds = {verdict.failure for verdict in verdicts if verdict.failure is not None}
    return status_of_kinds(kinds | ({FailureKind.INFRASTRUCTURE} if troubles else set()))

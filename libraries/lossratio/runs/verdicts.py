"""What kind of failure a failed test is: what a pipeline may repeat is told apart from what it must alarm on."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from robot.errors import ExecutionFailed

from lossratio.errors import (
    DutError,
    LossRatioError,
    NodeError,
    RegressionError,
    ReservationError,
    StorageError,
    TopologyError,
    TrafficError,
)
from lossratio.traffic import AgentRefusalError
from lossratio.trials import NegativeLossError


class FailureKind(str, Enum):
    """Why a test failed."""

    REGRESSION = "regression"
    """A value is lower than it used to be."""
    INTERRUPTED = "interrupted"
    """Somebody stopped the run."""
    UNAVAILABLE = "testbed not available"
    """Somebody else has reserved the testbed."""
    INFRASTRUCTURE = "infrastructure"
    """A node, a link, the traffic generator or a disk failed: another attempt may succeed, and none says anything about
    the DUT."""
    BAD_INPUT = "bad input"
    """The topology does not fit the testbed."""
    TEST = "test"
    """Anything else: a device that does not work, a value that was demanded."""
    NO_VERDICT = "no verdict"
    """The test was not begun, or the run was cut off before anybody could record why it failed: another attempt shows
    it."""


_INTERRUPTED = "Execution terminated by signal"
# Of a disk that takes no more: Robot Framework cannot write its output then.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_KINDS: tuple[tuple[FailureKind, tuple[type[BaseException], ...]], ...] = (
    (FailureKind.REGRESSION, (RegressionError,)),
    (FailureKind.UNAVAILABLE, (ReservationError,)),
    # The first row that lists an error decides its kind. No other attempt mends a DUT that duplicates frames: the trial
    # was measured again before it failed.
    (FailureKind.TEST, (DutError, NegativeLossError)),
    (FailureKind.INFRASTRUCTURE, (NodeError, TrafficError, AgentRefusalError, StorageError)),
    (FailureKind.BAD_INPUT, (TopologyError,)),
)


@dataclass(frozen=True)
class TestVerdict:
    """What became of a test.

    Attributes:
        name: Its full name.
        status: Robot Framework's: PASS, FAIL or SKIP.
        message: Its message.
        failure: Why it failed; None if it did not.
    """

    __test__ = False

    name: str
    status: str
    message: str
    failure: FailureKind | None

    @property
    def is_final(self) -> bool:
        """Whether running it again would show nothing new: it passed, was skipped, or failed because of the DUT."""
        return self.failure in (None, FailureKind.REGRESSION, FailureKind.TEST)


def failure_kind(error: BaseException) -> FailureKind:
    """Why a test failed that an exception failed. Only the exception itself counts, not the words in its message."""
    if isinstance(error, ExecutionFailed) and error.message == _INTERRUPTED:
        return FailureKind.INTERRUPTED
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return FailureKind.INFRASTRUCTURE
    return _listed_kind(error, FailureKind.TEST)


def kind_of_error(error: LossRatioError) -> FailureKind:
    """What kind of failure an error before the first test is."""
    return _listed_kind(error, FailureKind.BAD_INPUT)


def kinds_of(verdicts: Iterable[TestVerdict]) -> set[FailureKind]:
    """All kinds of failures there are."""
    return {verdict.failure for verdict in verdicts if verdict.failure is not None}


def _listed_kind(error: BaseException, default: FailureKind) -> FailureKind:
    return next((kind for kind, errors in _KINDS if isinstance(error, errors)), default)

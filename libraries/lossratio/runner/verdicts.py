"""What kind of failure a failed test is: what a pipeline may repeat is told apart from what it must alarm on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from lossratio.counters import NegativeLossError
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


_INTERRUPTED = "Execution terminated by signal"
_NEVER_RUN = "Test execution stopped due to a fatal error."
# What --exitonfailure and --exitonerror leave out, after another test that has failed.
_NOT_BEGUN = (
    "Failure occurred and exit-on-failure mode is in use.",
    "Error occurred and exit-on-error mode is in use.",
)
# Robot Framework's own error when its output cannot be written.
_DISK_FULL = re.compile(r"OSError: \[Errno \d+\] (No space left on device|Disk quota exceeded|File too large)")
# Robot Framework keeps nothing of an exception but the name of its class and its message.
_ERROR_NAME = re.compile(r"(?:^|[\s(])(\w+Error): ")
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
    """

    __test__ = False

    name: str
    status: str
    message: str

    @property
    def failure(self) -> FailureKind | None:
        """Why it failed; None if it did not."""
        return failure_kind(self.message) if self.status == "FAIL" else None

    @property
    def is_final(self) -> bool:
        """Whether running it again would tell nothing new: it passed, was skipped, or failed because of the DUT."""
        was_begun = not self.message.startswith(_NOT_BEGUN)
        return was_begun and self.failure in (None, FailureKind.REGRESSION, FailureKind.TEST)


def failure_kind(message: str) -> FailureKind:
    """Tells from a failed test's message why it failed; where several things failed, the first of `FailureKind`."""
    if _INTERRUPTED in message or message.startswith(_NEVER_RUN):
        return FailureKind.INTERRUPTED
    kinds = {_kind_of_name(name) for name in _ERROR_NAME.findall(message)}
    if _DISK_FULL.search(message):
        kinds.add(FailureKind.INFRASTRUCTURE)
    return next((kind for kind in FailureKind if kind in kinds), FailureKind.TEST)


def kind_of_error(error: LossRatioError) -> FailureKind:
    """What kind of failure an error is."""
    return next((kind for kind, errors in _KINDS if isinstance(error, errors)), FailureKind.BAD_INPUT)


def kinds_of(verdicts: Iterable[TestVerdict]) -> set[FailureKind]:
    """All kinds of failures there are."""
    return {verdict.failure for verdict in verdicts if verdict.failure is not None}


def _kind_of_name(name: str) -> FailureKind:
    """What kind of failure an error of this name is."""
    for kind, errors in _KINDS:
        if any(each.__name__ == name for error in errors for each in _with_subclasses(error)):
            return kind
    return FailureKind.TEST


def _with_subclasses(error: type[BaseException]) -> Iterator[type[BaseException]]:
    yield error
    for subclass in error.__subclasses__():
        yield from _with_subclasses(subclass)

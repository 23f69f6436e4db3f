"""The exit statuses of all commands, in one table, and the status that each kind of failure means."""

import errno
from collections.abc import Collection
from enum import Enum, IntEnum

from lossratio import errors


class ExitStatus(IntEnum):
    """The exit statuses of all commands. A pipeline repeats ``INFRASTRUCTURE`` and ``UNAVAILABLE``."""

    PASSED = 0
    FAILED = 1
    BAD_INPUT = 2
    REGRESSION = 3
    UNDECIDED = 4
    NOTHING_MEASURED = 5
    # 69, 70 and 75 are EX_UNAVAILABLE, EX_SOFTWARE and EX_TEMPFAIL of sysexits.h.
    INFRASTRUCTURE = 69
    INTERNAL = 70
    UNAVAILABLE = 75
    INTERRUPTED = 130


MEANINGS = {
    ExitStatus.PASSED: "everything is fine",
    ExitStatus.FAILED: "a test failed or has no value, or something is incomplete",
    ExitStatus.BAD_INPUT: "bad input",
    ExitStatus.REGRESSION: "a value has regressed",
    ExitStatus.UNDECIDED: "a verdict is undecided",
    ExitStatus.NOTHING_MEASURED: "every test was skipped, so that nothing was measured",
    ExitStatus.INFRASTRUCTURE: "the infrastructure failed",
    ExitStatus.INTERNAL: "Robot Framework itself failed",
    ExitStatus.UNAVAILABLE: "the testbed is not available",
    ExitStatus.INTERRUPTED: "the user stopped the command",
}
"""The meaning of each exit status, for the help and for ``docs/reference/exit-statuses.md``."""

FAILURES = "failures.jsonl"
"""Name of a run's file of failed tests. It has a line for each failure; the last line of a test counts."""


class FailureKind(str, Enum):
    """Why a test or a command failed; if several things failed, the first of these kinds counts."""

    REGRESSION = "regression"
    """A value is lower than it used to be."""
    INTERRUPTED = "interrupted"
    """The user stopped the run."""
    UNAVAILABLE = "testbed not available"
    """Somebody else has reserved the testbed."""
    INFRASTRUCTURE = "infrastructure"
    """A node, a link, the traffic generator, a disk or the archive failed: another attempt may succeed, and the failure
    says nothing about the DUT."""
    BAD_INPUT = "bad input"
    """The topology does not fit the testbed, or the suite calls what is not there."""
    TEST = "test"
    """Any other reason: a device that does not work, a demand that was not met."""
    NO_VERDICT = "no verdict"
    """The test did not begin, or the run was cut off before the reason was recorded: another attempt will show it."""


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Table: the first matching line decides the kind of an error.
_KINDS: tuple[tuple[FailureKind, tuple[type[BaseException], ...]], ...] = (
    (FailureKind.REGRESSION, (errors.RegressionError,)),
    (FailureKind.UNAVAILABLE, (errors.ReservationError,)),
    (FailureKind.TEST, (errors.DutError,)),
    (
        FailureKind.BAD_INPUT,
        (errors.TopologyError, errors.ProfileError, errors.UnknownArgumentError),
    ),
    (
        FailureKind.INFRASTRUCTURE,
        (errors.NodeError, errors.TrafficError, errors.StorageError, errors.ArchiveError),
    ),
)
_STATUSES = {
    FailureKind.INTERRUPTED: ExitStatus.INTERRUPTED,
    # A regression is never hidden behind a failure that a pipeline would repeat.
    FailureKind.REGRESSION: ExitStatus.REGRESSION,
    FailureKind.UNAVAILABLE: ExitStatus.UNAVAILABLE,
    # This comes before failed tests, because a resumed run keeps failed tests, and reports them when the rest has been
    # run.
    FailureKind.INFRASTRUCTURE: ExitStatus.INFRASTRUCTURE,
    FailureKind.BAD_INPUT: ExitStatus.BAD_INPUT,
    FailureKind.TEST: ExitStatus.FAILED,
    FailureKind.NO_VERDICT: ExitStatus.FAILED,
}


def kind_of_error(
    error: BaseException, default: FailureKind = FailureKind.BAD_INPUT
) -> FailureKind:
    """The kind of failure of an error; unlisted errors are bad input, which was checked before anything else."""
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return FailureKind.INFRASTRUCTURE
    return next((kind for kind, classes in _KINDS if isinstance(error, classes)), default)


def status_of_error(error: BaseException) -> ExitStatus:
    """The exit status of a command that an error ended."""
    if isinstance(error, errors.BuildError):
        return ExitStatus(error.status)
    return _STATUSES[kind_of_error(error)]


def status_of_kinds(kinds: Collection[FailureKind]) -> ExitStatus:
    """The exit status of a run with these kinds of failures: the status of the most important kind."""
    return next((status for kind, status in _STATUSES.items() if kind in kinds), ExitStatus.PASSED)

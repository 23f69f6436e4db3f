"""The exit statuses of ``lossratio run``: what a pipeline decides by."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from lossratio.runs.verdicts import FailureKind, TestVerdict, kinds_of


class ExitStatus(IntEnum):
    """What became of a run. A pipeline repeats ``UNAVAILABLE`` and ``INFRASTRUCTURE``, and alarms on the others."""

    PASSED = 0
    """All tests passed."""
    TESTS_FAILED = 1
    """A test failed because of the DUT."""
    BAD_INPUT = 2
    """What was asked for makes no sense, or does not fit the testbed."""
    REGRESSION = 3
    """A value has regressed: `Throughput Should Not Have Regressed` failed."""
    INFRASTRUCTURE = 69
    """A node, the traffic generator or a disk failed, so that a test has no verdict (sysexits: EX_UNAVAILABLE)."""
    INTERNAL = 70
    """Robot Framework itself failed (sysexits: EX_SOFTWARE)."""
    UNAVAILABLE = 75
    """Somebody else has the testbed (sysexits: EX_TEMPFAIL)."""
    INTERRUPTED = 130
    """Somebody stopped the run."""


_ROBOT_BAD_INPUT = 252
_ROBOT_STOPPED = 253
_ROBOT_FAILED = 255

_BY_KIND = (
    (FailureKind.INTERRUPTED, ExitStatus.INTERRUPTED),
    # Never hidden behind what a pipeline would repeat.
    (FailureKind.REGRESSION, ExitStatus.REGRESSION),
    (FailureKind.UNAVAILABLE, ExitStatus.UNAVAILABLE),
    # Before failed tests: these are kept when the run is resumed, and told when the rest has been run.
    (FailureKind.INFRASTRUCTURE, ExitStatus.INFRASTRUCTURE),
    (FailureKind.BAD_INPUT, ExitStatus.BAD_INPUT),
    (FailureKind.TEST, ExitStatus.TESTS_FAILED),
    (FailureKind.NO_VERDICT, ExitStatus.TESTS_FAILED),
)


def status_of_kinds(kinds: set[FailureKind]) -> ExitStatus:
    """The exit status that tells of the most important one of some failures."""
    return next((status for kind, status in _BY_KIND if kind in kinds), ExitStatus.PASSED)


def exit_status(return_code: int, verdicts: Sequence[TestVerdict], troubles: Sequence[str] = ()) -> ExitStatus:
    """The exit status of a run.

    Args:
        return_code: Robot Framework's.
        verdicts: What became of the tests.
        troubles: What failed apart from tests: files that a disk did not take.
    """
    if return_code == _ROBOT_BAD_INPUT:
        return ExitStatus.BAD_INPUT
    if return_code == _ROBOT_STOPPED:
        return ExitStatus.INTERRUPTED
    if return_code == _ROBOT_FAILED:
        return ExitStatus.INTERNAL
    return status_of_kinds(kinds_of(verdicts) | ({FailureKind.INFRASTRUCTURE} if troubles else set()))


def with_trouble(status: ExitStatus) -> ExitStatus:
    """The exit status of a run after which a disk did not take something: never hidden behind a test that failed."""
    order = [each for _, each in _BY_KIND]
    is_more = status in order and order.index(status) < order.index(ExitStatus.INFRASTRUCTURE)
    return status if is_more or status is ExitStatus.INTERNAL else ExitStatus.INFRASTRUCTURE

"""Verdicts of tests: why a test failed, the record of the reasons, and the exit status of the whole run.

Robot Framework only keeps the message of an exception, and users write their own messages. So a listener notes the kind
of each failure while its exception passes. The record beside ``output.xml`` keeps the kinds for later attempts.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from typing import Any

import robot.running
from robot.errors import DataError, ExecutionFailed, ExecutionStatus
from robot.result import TestCase

from lossratio.report import (
    Misfits,
    facts_of,
    forget_failure,
    note_failure,
    note_skip,
    noted_failures,
    reason_of_skip,
    what_a_skip_is,
)
from lossratio.results import INTERRUPTED, TERMINATED, identity_of
from lossratio.trials import NegativeLossError
from lossratio.values import ExitStatus, FailureKind, kind_of_error, status_of_kinds

# Return codes of Robot Framework that are not a number of failed tests.
_ROBOT_STATUSES = {252: ExitStatus.BAD_INPUT, 253: ExitStatus.INTERRUPTED, 255: ExitStatus.INTERNAL}
# Robot Framework's own messages of tests that it leaves out: after a fatal error, --exitonfailure, --exitonerror.
_STOPPED = "Test execution stopped due to a fatal error."
_NOT_BEGUN = (
    "Failure occurred and exit-on-failure mode is in use.",
    "Error occurred and exit-on-error mode is in use.",
)
# Such messages may hold another message in a changed form: with markup, or shortened because it was too long.
_MARKUP = "*HTML*"
_SHORTENED = "[ Message content over the limit has been removed. ]"


@dataclass(frozen=True)
class TestVerdict:
    """The verdict of a test."""

    __test__ = False

    name: str
    """The test's identity."""
    status: str
    """Robot Framework's status: PASS, FAIL or SKIP."""
    message: str
    """Robot Framework's message; for a skipped test, only the reason."""
    failure: FailureKind | None
    """Why the test failed; None if it did not."""
    is_misfit: bool = False
    """Whether it was skipped because the testbed is too small for it."""

    @property
    def skip(self) -> str | None:
        """What happened to a skipped test, in words; None: it was not skipped."""
        if self.status == "SKIP":
            return what_a_skip_is(is_misfit=self.is_misfit)
        return None

    @property
    def is_final(self) -> bool:
        """Whether another attempt would show nothing new: it passed, was skipped, or failed because of the DUT."""
        return self.failure in (None, FailureKind.REGRESSION, FailureKind.TEST)


def verdict_of(test: Any, failure: FailureKind | None, *, is_misfit: bool) -> TestVerdict:
    """The verdict of a test of Robot Framework's result, and whether the testbed was too small for the test."""
    message = reason_of_skip(test) if test.skipped else test.message
    return TestVerdict(identity_of(test), test.status, message, failure, is_misfit)


def failure_kind(error: BaseException, default: FailureKind = FailureKind.TEST) -> FailureKind:
    """The kind of failure of an exception. Only its class counts, not the words in its message."""
    if any(map(_is_interrupt, _with_causes(error))):
        return FailureKind.INTERRUPTED
    # Another attempt does not help if a DUT duplicates frames: the trial was repeated before it failed.
    if isinstance(error, NegativeLossError):
        return FailureKind.TEST
    if _is_wrong_call(error):
        return FailureKind.BAD_INPUT
    return kind_of_error(error, default)


def _is_wrong_call(error: BaseException) -> bool:
    """Whether Robot Framework refused a call: there is no such keyword or argument.

    Its own keywords raise the same class of errors while they run, for example if an expression cannot be evaluated.
    """
    if not isinstance(error, DataError):
        return False
    frames = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and Path(frames[-1]).is_relative_to(Path(robot.running.__file__).parent)


def _is_interrupt(error: BaseException) -> bool:
    """Whether this is Robot Framework's form of Ctrl-C within a keyword."""
    return isinstance(error, ExecutionFailed) and error.message == TERMINATED


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it was raised for. A log-in to a node, for example, fails after Ctrl-C."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def exit_status(
    return_code: int, verdicts: Sequence[TestVerdict], troubles: Sequence[str] = ()
) -> ExitStatus:
    """The exit status of a run."""
    status = _ROBOT_STATUSES.get(return_code)
    kinds = {verdict.failure for verdict in verdicts if verdict.failure is not None}
    # After Ctrl-C within a message, Robot Framework cannot read its own output, and treats that as bad input.
    if status is not None and not (
        status is ExitStatus.BAD_INPUT and FailureKind.INTERRUPTED in kinds
    ):
        return status
    if troubles:
        kinds.add(FailureKind.INFRASTRUCTURE)
    if not kinds and {verdict.status for verdict in verdicts} == {"SKIP"}:
        return ExitStatus.NOTHING_MEASURED
    return status_of_kinds(kinds)


_Failure = tuple[str, frozenset[FailureKind]]
"""The message of a failed keyword, or of another part of a test, and the kinds of the exceptions that caused it."""


def kinds_of_failures(directory: Path) -> Mapping[str, FailureKind]:
    """Why the tests of a run failed, by full name. The last line of a test counts; one that was cut off is left out."""
    kinds: dict[str, FailureKind] = {}
    for entry in noted_failures(directory):
        kinds.pop(entry["test"], None)
        with suppress(ValueError, LookupError):
            kinds[entry["test"]] = FailureKind(entry["failure"])
    return kinds


class VerdictListener:
    """Listens to tests, and notes their verdicts.

    A failure counts for a test if the messages of all keywords around it, and of the test, contain its message. A
    failure that the suite handles (``TRY``, ``Run Keyword And Ignore Error``) is not a failure of the test. Its
    `troubles` are messages about records that could not be written to the disk.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, directory: Path) -> None:
        self.troubles: list[str] = []
        self._directory = directory
        # Suites, tests and keywords that are running, outermost first, with the failures so far inside each.
        self._open: list[tuple[Any, list[_Failure]]] = []
        self._misfits = Misfits()
        self._kinds: dict[str, frozenset[FailureKind]] = {}
        self._verdicts: dict[str, TestVerdict] = {}

    @property
    def verdicts(self) -> tuple[TestVerdict, ...]:
        """The verdict of each test that was begun, in order."""
        return tuple(self._verdicts.values())

    def start_suite(self, data: Any, result: Any) -> None:
        """Opens a suite, a test, a keyword or a control structure."""
        self._open.append((result, []))

    start_test = start_body_item = start_suite

    def end_body_item(self, data: Any, result: Any) -> None:
        """Keeps the failure of a keyword or a control structure for the structure around it."""
        inside = self._close(result)
        self._misfits.look_at(result)
        if result.status != "FAIL" or not self._open:
            return
        # Robot Framework calls this while the exception passes through the keyword.
        error = sys.exc_info()[1]
        own = set() if error is None else {failure_kind(error)}
        if isinstance(error, ExecutionStatus):
            # This error only passes on an inner failure. An interrupt is never passed on.
            own &= {FailureKind.INTERRUPTED}
        self._open[-1][1].append((result.message, _kinds_in(result.message, inside) | own))

    def end_test(self, data: Any, result: Any) -> None:
        """Notes the verdict of a test; set-ups of suites around it may have failed it."""
        inside = self._close(result)
        self._note(
            result, [*(failure for _, failures in self._open for failure in failures), *inside]
        )

    def end_suite(self, data: Any, result: Any) -> None:
        """Notes the verdicts again, as the tear-down of a suite may have failed tests that had passed."""
        inside = self._close(result)
        for test in result.all_tests:
            self._note(test, inside)

    def cut_off(self) -> None:
        """Notes the test that a second Ctrl-C cut off: Robot Framework does not report its end."""
        for running, _ in self._open:
            if isinstance(running, TestCase):
                name = identity_of(running)
                self._keep(running, TestVerdict(name, "FAIL", INTERRUPTED, FailureKind.INTERRUPTED))

    def _close(self, result: Any) -> list[_Failure]:
        """The failures inside a suite, test or keyword that ends now."""
        # If Robot Framework cannot write its output, it does not report the end of inner keywords.
        while any(running is result for running, _ in self._open):
            running, failures = self._open.pop()
            if running is result:
                return failures
        return []

    def _note(self, result: Any, failures: Sequence[_Failure]) -> None:
        before = self._verdicts.get(result.id)
        if result.skipped and before is not None and before.status == result.status:
            # The set-up that skipped the test has the reason, which Robot Framework drops when the suite has ended.
            return

        kinds = self._kinds.get(result.id, frozenset()) | _kinds_in(result.message, failures)
        self._kinds[result.id] = kinds
        failure = None
        if result.status == "FAIL":
            failure = _kind_of_test(result.message, kinds)

        verdict = verdict_of(
            result, failure, is_misfit=result.skipped and self._misfits.has(result)
        )

        self._keep(result, verdict)

    def _keep(self, result: Any, verdict: TestVerdict) -> None:
        """Records the verdict of a test, if it is new."""
        if verdict != self._verdicts.get(result.id):
            try:
                if verdict.failure is not None:
                    facts = {"failure": verdict.failure.value, **facts_of(result)}
                    note_failure(self._directory, verdict.name, verdict.message, **facts)
                elif result.skipped:
                    note_skip(self._directory, result, is_misfit=verdict.is_misfit)
                else:
                    forget_failure(self._directory, verdict.name)
            except OSError as error:
                self.troubles.append(
                    f"Cannot record the verdict of {result.full_name}: {error.strerror}."
                )

        self._verdicts[result.id] = verdict


def _kinds_in(message: str, failures: Iterable[_Failure]) -> frozenset[FailureKind]:
    """The kinds of failures whose messages an outer failure's message contains: the suite has not handled these."""
    is_changed = message.startswith(_MARKUP) or _SHORTENED in message
    return frozenset(
        kind for inner, kinds in failures if is_changed or inner in message for kind in kinds
    )


def _kind_of_test(message: str, kinds: frozenset[FailureKind]) -> FailureKind:
    """Why a test failed; if there are several kinds, the first one in `FailureKind`."""
    if kinds:
        return next(kind for kind in FailureKind if kind in kinds)
    # No keyword of the test failed: Robot Framework left the test out, or failed it itself.
    if message.startswith(_STOPPED):
        return FailureKind.INTERRUPTED
    if message.startswith(_NOT_BEGUN):
        return FailureKind.NO_VERDICT
    return FailureKind.TEST

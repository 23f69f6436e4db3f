"""Watches the testbed while a measurement goes on: no trial is believed before it is known what changed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from lossratio.errors import LossRatioError, NodeError, TrafficError
from lossratio.testbed.blame import ERRORS, Act
from lossratio.testbed.changes import Change, Way, changes_between, error_of, faults_in
from lossratio.testbed.fingerprint import Fingerprint

VERIFY_SECONDS = 20.0
"""Seconds of trials after which the configuration of the DUTs is compared with what was set up: that takes about 0.2 s,
a hundredth of the time, and as much is lost if the configuration is found changed."""


class Reader(Protocol):
    """Reads fingerprints; `lossratio.testbed.fingerprint.FingerprintReader` is one."""

    def read(self) -> Fingerprint:
        """Reads all nodes at once; raises NodeError if one does not answer."""

    def read_answering(self) -> Fingerprint:
        """Reads those nodes that answer."""


class Watch:
    """Compares fingerprints before and after each trial, and the DUTs' configuration every now and then.

    Args:
        reader: Reads the fingerprints.
        way: The way of the test traffic.
        verify: Raises DutError if a DUT is not as it was set up.
        clock: Seconds, to know when to verify again.
    """

    def __init__(
        self, reader: Reader, way: Way, verify: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader = reader
        self._way = way
        self._verify = verify
        self._clock = clock
        self._first: Fingerprint | None = None
        self._last: Fingerprint | None = None
        self._verified_at = 0.0
        self._trials = 0
        self._known_good = 0

    @property
    def known_good(self) -> int:
        """How many trials of the measurement had been trusted when the DUTs were last found as they were set up."""
        return self._known_good

    def begin(self) -> None:
        """Takes the present state, which was verified just now, for that in which a measurement begins.

        Raises:
            NodeError: If a node does not answer.
        """
        self._first = self._last = self._reader.read()
        self._trials = self._known_good = 0
        self._verified_at = self._clock()

    def go_on(self) -> tuple[Change, ...]:
        """Takes the present state for a good one after a repair.

        Returns:
            What is not as it was when the measurement began, and is never brought back by a repair: if there is
            anything, the measurement cannot go on.

        Raises:
            NodeError: If a node does not answer.
        """
        self._last = self._reader.read()
        if self._first is None:
            return ()
        changes = changes_between(self._first, self._last, self._way)
        return tuple(change for change in changes if change.rule.act is Act.FAIL)

    def changes(self) -> tuple[Change, ...]:
        """What changed since this was asked before (or the measurement began), in the order of the table.

        Raises:
            NodeError: If a node does not answer.
        """
        before, self._last = self._last, self._reader.read()
        return () if before is None else changes_between(before, self._last, self._way)

    def trust(self, *, is_doubtful: bool = False) -> None:
        """Counts a trial that no change speaks against, and verifies the DUTs if it is time for that.

        Args:
            is_doubtful: Whether the DUTs are verified in any case, as the trial lost all that it can.

        Raises:
            DutError: If a DUT is not as it was set up.
            NodeError: If one cannot be asked; then the trial does not count.
        """
        if is_doubtful or self._clock() - self._verified_at >= VERIFY_SECONDS:
            self._verify()
            self._verified_at = self._clock()
            self._known_good = self._trials + 1
        self._trials += 1

    def save_trials(self) -> None:
        """Verifies the DUTs if that is possible: then the trials so far are known to be good."""
        with suppress(LossRatioError):
            self._verify()
            self._known_good = self._trials

    def explain(self, error: LossRatioError) -> tuple[LossRatioError, tuple[Change, ...]]:
        """Looks who is to blame for an error.

        Returns:
            The error of the guilty side, with the first one's message, and what changed; the first one itself where
            nobody is known to be guilty, or it is the guilty side's error already.
        """
        if type(error) in ERRORS.values():
            return error, ()
        try:
            changes = self.changes()
            if not any(change.is_fatal for change in changes):
                changes = (*faults_in(self.read(), self._way), *changes)
        except NodeError:
            changes = self._deaths()
        if not any(change.is_fatal for change in changes):
            return error, ()
        blamed = error_of(changes)
        return type(blamed)(f"{blamed} It was noticed by this: {error}"), changes

    def _deaths(self) -> tuple[Change, ...]:
        """DUTs whose links are lost, too, so that not only the connection to them is."""
        if self._last is None:
            return ()
        changes = changes_between(self._last, self._reader.read_answering(), self._way)
        return tuple(change for change in changes if change.rule.change == "dead")

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Turns errors of the block into those of the guilty side, where it is known."""
        try:
            yield
        except (TrafficError, NodeError) as error:
            blamed, _ = self.explain(error)
            if blamed is error:
                raise
            raise blamed from error

    def check_way(self) -> None:
        """Makes sure that nothing on the way is down.

        Raises:
            LossRatioError: The error of the guilty side if something is.
            NodeError: If a node does not answer.
        """
        faults = faults_in(self.read(), self._way)
        if faults:
            raise error_of(faults)

    def read(self) -> Fingerprint:
        """The present state, which is compared with nothing.

        Raises:
            NodeError: If a node does not answer.
        """
        return self._reader.read()

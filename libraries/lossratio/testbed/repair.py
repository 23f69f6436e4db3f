"""Watches the testbed between trials, and repeats trials that failed because of the infrastructure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from lossratio.dut import Dut, DutOptions
from lossratio.errors import (
    DutError,
    LinkError,
    LossRatioError,
    NodeError,
    ReservationError,
    TesterError,
    TrafficError,
)
from lossratio.testbed.changes import ERRORS, Act, Change, Way, changes_between, error_of, faults_in
from lossratio.testbed.fingerprint import Fingerprint
from lossratio.testbed.testbed import Recovery, TrafficSource
from lossratio.traffic import REPEATS, AgentRefusalError, StoppedTraffic
from lossratio.trials import CountersError, Incident, LatencyOutput, Measurer, TrialInput, TrialOutput

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


REPAIRABLE_KINDS = frozenset(
    {
        "abandoned",
        "counters_reset",
        "interface_down",
        "interface_replaced",
        "mtu_changed",
        "no_such_interface",
        "sender_died",
        "server_lost",
    }
)
"""Kinds of the agent's errors that another attempt may not have."""

_LOG = logging.getLogger(__name__)


class RepairingMeasurer:
    """Performs trials with another measurer, which is replaced when the infrastructure below it had to be repaired.

    Args:
        measurer: Performs the trials.
        repair: Repairs whatever it can, and gives a new measurer.
        check: Raises an error if the testbed is not ours: no trial may begin then, and none is believed that ended.
        watch: Finds what changed on the testbed during a trial, and who is to blame for it.
        recovery: How much is done.
    """

    def __init__(
        self,
        measurer: Measurer,
        *,
        repair: Callable[[], Measurer],
        check: Callable[[], None],
        watch: Watch,
        recovery: Recovery,
    ) -> None:
        self._measurer = measurer
        self._repair = repair
        self._check = check
        self._watch = watch
        self._recovery = recovery
        self._repairs_left = self._repeats_left = recovery.most

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            LossRatioError: If it could not be performed in spite of all repairs, or the DUT is dead.
        """
        attempts = _Attempts()
        while True:
            self._check()
            try:
                output = self._measurer.measure(trial)
                # Whoever has the testbed meanwhile may have sent, too: such a trial must not get into the journal.
                self._check()
                changes = self._watch.changes()
                fault = error_of(changes) if any(change.is_fatal for change in changes) else None
                if fault is None and not self._is_to_be_repeated(changes, attempts):
                    lost_all = any(direction.sent and not direction.received for direction in output.directions)
                    self._watch.trust(is_doubtful=lost_all)
                    return attempts.completed(output, changes)
            except (TrafficError, NodeError) as error:
                # What has ended with the reservation needs no repair.
                self._check()
                fault, changes = self._watch.explain(error)
            if fault is None:
                attempts.repeat(output, changes)
            else:
                self._recover(fault, changes, attempts)

    def _is_to_be_repeated(self, changes: Sequence[Change], attempts: _Attempts) -> bool:
        if attempts.repeats >= REPEATS or not self._repeats_left:
            return False
        if any(change.rule.act is Act.REPEAT for change in changes):
            self._repeats_left -= 1
            return True
        return False

    def _recover(self, first: LossRatioError, changes: Sequence[Change], attempts: _Attempts) -> None:
        """Repairs until a trial can be tried again; notes the fault and how often that was attempted."""
        if not is_repairable(first) or any(change.rule.act is Act.FAIL for change in changes):
            raise first
        attempts.incidents += (change.incident("repaired") for change in changes)
        repairs, fault = attempts.repairs, first
        while self._repairs_left and len(repairs) < len(self._recovery.pauses):
            self._repairs_left -= 1
            repairs.append(str(fault))
            pause = self._recovery.pauses[len(repairs) - 1]
            _LOG.warning("Repair %d of a trial, in %g s: %s", len(repairs), pause, fault)
            time.sleep(pause)
            try:
                self._measurer = self._repair()
                lasting = self._watch.go_on()
            except ReservationError:
                raise
            except LossRatioError as error:
                fault = error
            else:
                if lasting:
                    raise error_of(lasting) from fault
                return
        if isinstance(fault, DutError) or not repairs:
            raise fault
        # The side that was guilty first stays so, however the attempts to repair it failed.
        said = first if isinstance(first, TesterError | LinkError) else fault
        kind = type(said) if isinstance(said, TesterError | LinkError) else TrafficError
        last = "" if said is fault else f" The last one: {fault}"
        raise kind(f"{said} Attempts to repair that, none of which helped: {len(repairs)}.{last}") from fault


@dataclass
class _Attempts:
    """What became of attempts at one trial.

    Attributes:
        repairs: What attempts failed of that was repaired.
        incidents: What changed on the testbed.
        repeats: How many were thrown away without a repair.
        wasted: Seconds that these took.
    """

    repairs: list[str] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    repeats: int = 0
    wasted: float = 0.0

    def repeat(self, output: TrialOutput, changes: Sequence[Change]) -> None:
        """Throws an attempt away."""
        self.incidents += (change.incident("repeated") for change in changes)
        self.repeats += 1 + output.repeats
        self.wasted += output.elapsed or 0.0

    def completed(self, output: TrialOutput, changes: Sequence[Change]) -> TrialOutput:
        """The output of the attempt that is believed, with what became of the others."""
        incidents = (*self.incidents, *(change.incident("stands") for change in changes))
        return replace(
            output,
            repeats=self.repeats + output.repeats,
            elapsed=None if output.elapsed is None else self.wasted + output.elapsed,
            repairs=tuple(self.repairs),
            incidents=incidents,
        )


def is_repairable(error: LossRatioError) -> bool:
    """Whether a trial failed of something that does not depend on the trial, and may be over."""
    if isinstance(error, DutError):
        return False
    if isinstance(error, AgentRefusalError):
        return error.kind in REPAIRABLE_KINDS
    return not isinstance(error, CountersError)


class ResettingMeasurer:
    """Performs trials with another measurer, and resets DUTs before each of them; a `lossratio.trials.trial.Measurer`.

    Args:
        measurer: Performs the trials.
        duts: The DUTs to reset.
    """

    def __init__(self, measurer: Measurer, duts: Sequence[Dut[DutOptions]]) -> None:
        self._measurer = measurer
        self._duts = duts

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Resets the DUTs, and performs one trial.

        Raises:
            LossRatioError: If a DUT cannot be reset, or the trial could not be performed.
        """
        for dut in self._duts:
            dut.reset()
        return self._measurer.measure(trial)


def resetting(measurer: Measurer, duts: Sequence[Dut[DutOptions]]) -> Measurer:
    """The measurer, with those DUTs reset before each trial whose options ask for that."""
    asked = [dut for dut in duts if dut.options.reset]
    return ResettingMeasurer(measurer, asked) if asked else measurer


class WatchedSource:
    """Traffic besides trials that is not believed if the testbed changed; a `lossratio.testbed.testbed.TrafficSource`.

    Args:
        source: Measures latency, and sends the traffic.
        watch: Watches the testbed.
    """

    def __init__(self, source: TrafficSource, watch: Watch) -> None:
        self._source = source
        self._watch = watch

    def latency(self, load: float, duration: float) -> LatencyOutput:
        """See `lossratio.testbed.testbed.TrafficSource.latency`."""
        with self._watch.blaming():
            output = self._source.latency(load, duration)
            changes = self._watch.changes()
        _raise_error_of(changes)
        return output

    def start_traffic(self, load: float) -> None:
        """See `lossratio.testbed.testbed.TrafficSource.start_traffic`."""
        with self._watch.blaming():
            self._source.start_traffic(load)

    def stop_traffic(self, late_wait: float) -> StoppedTraffic:
        """See `lossratio.testbed.testbed.TrafficSource.stop_traffic`."""
        with self._watch.blaming():
            stopped = self._source.stop_traffic(late_wait)
            changes = self._watch.changes()
        _raise_error_of(changes)
        return stopped


def _raise_error_of(changes: Sequence[Change]) -> None:
    if any(change.is_fatal for change in changes):
        raise error_of(changes)

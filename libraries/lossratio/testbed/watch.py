"""Watches the testbed between trials, and finds the side to blame for an error."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from lossratio.errors import DutError, LossRatioError, NodeError, TrafficError
from lossratio.testbed.changes import Change, Way, changes_between, error_of, faults_in
from lossratio.testbed.connections import Connections
from lossratio.testbed.fingerprint import Fingerprint, FingerprintReader
from lossratio.testbed.queues import QueueReader
from lossratio.testbed.rules import ERRORS
from lossratio.traffic import Answer, TrafficMeasurer
from lossratio.trials import LatencyOutput, QueueCounters, TrialOutput, missing_frames

VERIFY_SECONDS = 20.0
"""Seconds of trials after which the configuration of the DUTs is compared with the configuration that was set up. This
takes about 0.2 s, a hundredth of the time. The trials of these seconds are not used if the configuration has changed,
or the measurement is killed."""

VERIFY_OFTEN_SECONDS = 2.0
"""The same in a run that was cut off before its trials were verified; otherwise, a run that is cut off again and again
would make no progress."""

_LOG = logging.getLogger(__name__)


class Watch:
    """Compares fingerprints before and after each trial, and from time to time the DUTs' configuration.

    `verify` raises DutError if a DUT is not as it was set up. With `resets_duts`, DUTs are reset while traffic flows.
    """

    def __init__(
        self,
        reader: FingerprintReader,
        way: Way,
        verify: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        queues: QueueReader | None = None,
    ) -> None:
        self._queues = queues or QueueReader(())
        self.resets_duts = self._is_dut_away = False
        self._reader = reader
        self._way = way
        self._verify = verify
        self._clock = clock
        self._first: Fingerprint | None = None
        self._last: Fingerprint | None = None
        self._verified_at = 0.0
        self._verify_seconds = VERIFY_SECONDS
        self.is_verified = True
        """Whether the DUTs were found as they were set up after the last trial. That also proves all earlier trials."""
        self._tampered: DutError | None = None

    def begin(self) -> None:
        """Begins a measurement: takes the present state, which was just verified, as its first state."""
        self._first = self._last = self._reader.read()
        self._queues.begin()
        self.resets_duts = self._is_dut_away = False
        self.is_verified, self._tampered = True, None
        self._verified_at = self._clock()
        self._verify_seconds = VERIFY_SECONDS

    def verify_often(self) -> None:
        """Verifies the DUTs more often from now on, in this measurement."""
        self._verify_seconds = VERIFY_OFTEN_SECONDS

    def go_on(self) -> tuple[Change, ...]:
        """Continues after a repair, from the present state; returns the changes that make this impossible."""
        self._last = self._reader.read()
        if self._first is None:
            return ()
        changes = changes_between(self._first, self._last, self._way)
        return tuple(change for change in changes if change.rule.act == "fail")

    def changes(self) -> tuple[Change, ...]:
        """Changes since the last call (or since the measurement began), in the order of the table.

        It is called after any traffic, because no earlier verification proves that traffic. If DUTs are reset
        meanwhile, they need not answer, and the effects of a reset are left out.

        Raises:
            NodeError: If a node does not answer; DUTs that are being reset need not.
        """
        self.is_verified = False
        before = self._last
        self._last = self._reader.read(may_be_silent=self.resets_duts)
        changes: tuple[Change, ...] = ()
        if before is not None:
            changes = changes_between(before, self._last, self._way)

        if not self.resets_duts:
            return changes
        for name in self._way.tg_names:
            if name not in self._last.nodes:
                raise NodeError(f"Node {name} no longer answers.")
        outages = [change for change in changes if change.is_of_a_reset]
        silent = self._first is not None and self._first.nodes.keys() != self._last.nodes.keys()
        self._is_dut_away = silent or any(
            change.rule.change not in ("flapped", "damaged") for change in outages
        )
        return tuple(change for change in changes if change not in outages)

    def queues(self, output: TrialOutput) -> tuple[QueueCounters, ...]:
        """The counters of the DUTs' receive queues in the trial before; none if it lost no frame.

        Raises:
            NodeError: If a node cannot be reached.
        """
        counters = self._queues.read()
        missing = missing_frames(output)
        if missing is None or not missing.without_tester:
            return ()
        return counters

    @contextmanager
    def allowing_absence(self) -> Iterator[None]:
        """Accepts a DUT that lost its link in the last reset, or has not answered since.

        The trials of the reset stand, and show that the DUT did not come back.
        """
        try:
            yield
        except (DutError, NodeError) as error:
            if not self._is_dut_away:
                raise
            _LOG.warning("After the reset, a DUT is not as before: %s", error)

    def verify(self) -> None:
        """Verifies the DUTs.

        A DUT that was once found different stays an error, because it is not known which trials were affected.

        Raises:
            DutError: If a DUT is not as it was set up, now or at an earlier call.
            NodeError: If a node cannot be reached.
        """
        if self._tampered is not None:
            raise self._tampered
        try:
            self._verify()
        except DutError as error:
            self._tampered = error
            raise
        self._verified_at = self._clock()
        self.is_verified = True

    def trust(self, *, is_doubtful: bool = False) -> None:
        """Trusts a trial, and verifies the DUTs when that is due, or if the trial lost all frames of a direction."""
        if is_doubtful or self._clock() - self._verified_at >= self._verify_seconds:
            self.verify()

    def verify_within(self, seconds: float) -> bool:
        """Verifies the DUTs if that would be due within this many seconds; returns whether it did."""
        if self.is_verified or self._clock() - self._verified_at + seconds < self._verify_seconds:
            return False
        # If a node does not answer now, it is repaired when the next trial notices that.
        with suppress(NodeError):
            self.verify()
        return self.is_verified

    def save_trials(self) -> None:
        """Verifies the DUTs if possible. If they are as they were set up, all trials so far are proved."""
        if not self.is_verified:
            with suppress(LossRatioError):
                self.verify()

    def explain(self, error: LossRatioError) -> tuple[LossRatioError, tuple[Change, ...]]:
        """The error of the side to blame, which quotes this error, and the changes.

        If that side is not known, or if this error is already that side's, this error is returned unchanged.
        """
        if type(error) in ERRORS.values():
            return error, ()

        try:
            changes = self.changes()
            if not any(change.is_fatal for change in changes):
                changes = (*faults_in(self.read(), self._way), *changes)
        except NodeError:
            # DUTs that do not answer, and whose links are also lost.
            seen: tuple[Change, ...] = ()
            if self._last is not None:
                seen = changes_between(self._last, self._reader.read(may_be_silent=True), self._way)

            changes = tuple(change for change in seen if change.rule.change == "dead")

        if not any(change.is_fatal for change in changes):
            return error, ()

        blamed = error_of(changes)
        return type(blamed)(f"{blamed} The error was: {error}"), changes

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Turns errors of the block into errors of the side to blame, if it is known.

        Raises:
            LossRatioError: If the block failed: of the class for the side to blame, or the block's own error if that
                side is not known.
        """
        try:
            yield
        except (TrafficError, NodeError) as error:
            blamed, _ = self.explain(error)
            if blamed is error:
                raise
            raise blamed from error

    def check_way(self) -> None:
        """Checks that no interface or link on the path is down.

        Raises:
            LossRatioError: If one is down: of the class for the side to blame.
        """
        faults = faults_in(self.read(), self._way)
        if faults:
            raise error_of(faults)

    def read(self) -> Fingerprint:
        """Reads the present state, without a comparison."""
        return self._reader.read()


class WatchedSource:
    """A source of latency trials and of running traffic that raises an error if the testbed changes meanwhile.

    Traffic whose losses are located in time continues through resets of the DUTs, whose effects are no error.
    """

    def __init__(
        self, source: TrafficMeasurer, watch: Watch, connections: Connections | None = None
    ) -> None:
        self._source = source
        self._watch = watch
        self._connections = connections

    def latency(self, load: float, duration: float) -> LatencyOutput:
        """See `lossratio.testbed.testbed.TrafficSource.latency`."""
        with self._watch.blaming():
            self._establish(load)
            output = self._source.latency(load, duration)
            changes = self._watch.changes()
        _raise_error_of(changes)
        return output

    def now(self) -> float:
        """See `lossratio.testbed.testbed.TrafficSource.now`."""
        return self._source.now()

    def wait(self, seconds: float) -> None:
        """See `lossratio.testbed.testbed.TrafficSource.wait`."""
        self._source.wait(seconds)

    def start_traffic(self, load: float, watch: bool = False) -> None:
        """See `lossratio.testbed.testbed.TrafficSource.start_traffic`."""
        with self._watch.blaming():
            self._establish(load)
            self._source.start_traffic(load, watch)
        self._watch.resets_duts = watch

    def stop_traffic(self, late_wait: float) -> Answer:
        """See `lossratio.testbed.testbed.TrafficSource.stop_traffic`."""
        with self._watch.blaming():
            stopped = self._source.stop_traffic(late_wait)
            changes = self._watch.changes()
        self._watch.resets_duts = False
        _raise_error_of(changes)
        return stopped

    def _establish(self, load: float) -> None:
        if self._connections is not None:
            self._connections.establish(load, self._source.measure)


def _raise_error_of(changes: Sequence[Change]) -> None:
    if any(change.is_fatal for change in changes):
        raise error_of(changes)

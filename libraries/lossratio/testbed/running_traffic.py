"""Traffic apart from trials: it flows while something else is done, until it is stopped."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from lossratio.errors import TrafficError
from lossratio.results import Conditions
from lossratio.testbed.testbed import Testbed
from lossratio.traffic import StoppedTraffic, TrafficProfile
from lossratio.trials import Integrity, NegativeLossError, check_integrity, faults_in_words
from lossratio.units import format_frame_rate

DEFAULT_LATE_WAIT = 0.5
"""Seconds for which late frames are waited for, unless said otherwise."""


class RunningTraffic:
    """Traffic of a constant load; begin it with `start_traffic`, and stop it before the next measurement.

    As a context manager it is stopped in the end, whatever happens::

        with start_traffic(testbed, profile, 10_000.0) as traffic:
            reconfigure()
            stopped = traffic.stop()
        print(stopped.lost)

    Attributes:
        profile: What the traffic is.
        load: Frames per second, per interface.
        conditions: Everything that a test report states about it.
    """

    def __init__(self, testbed: Testbed, profile: TrafficProfile, load: float, integrity: Integrity) -> None:
        """Begins the traffic.

        Raises:
            LossRatioError: If it cannot be generated, or does not get through.
        """
        self.profile = profile
        self.load = load
        self._integrity = integrity
        with ExitStack() as opened:
            ready = opened.enter_context(testbed.ready_for(profile, integrity=integrity))
            ready.source.start_traffic(load)
            self._source = ready.source
            self.conditions: Conditions = ready.conditions
            self._opened = opened.pop_all()
        self._flows = True

    def __enter__(self) -> RunningTraffic:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        self._flows = False
        # An error goes through the testbed, which ends its agent then, and with it the traffic.
        self._opened.__exit__(kind, error, traceback)

    def close(self) -> None:
        """Stops it, if it still flows; whatever it counted is of no interest.

        Raises:
            LossRatioError: If the agent is lost, or the testbed is not as it was when the traffic began.
        """
        if self._flows:
            self._end(0.0)

    def stop(self, late_wait: float = DEFAULT_LATE_WAIT) -> StoppedTraffic:
        """Stops it, waits for frames in flight, and says what was counted.

        Args:
            late_wait: Seconds to wait on after that, for frames that are late; they are counted apart.

        Raises:
            NegativeLossError: If a direction received more than it sent.
            IntegrityError: If frames did not come back as they were sent, and must.
            TrafficError: If it was stopped before, or there are no counters worth anything.
        """
        if not self._flows:
            raise TrafficError("This traffic has been stopped before. Start it again to count anew.")
        stopped = self._end(late_wait)
        if self._integrity is Integrity.FAIL:
            check_integrity(stopped.directions, f"at {format_frame_rate(self.load)}")
        for each in stopped.directions:
            if each.received + stopped.late_by_direction[each.name] > each.sent:
                raise NegativeLossError(
                    f"{each.name}: {each.sent} frames were sent, and {each.received} received, besides "
                    f"{stopped.late_by_direction[each.name]} late ones. Look for duplicated frames on these links."
                )
        return stopped

    def _end(self, late_wait: float) -> StoppedTraffic:
        self._flows = False
        with self._opened:
            return self._source.stop_traffic(late_wait)


def start_traffic(
    testbed: Testbed, profile: TrafficProfile, load: float, integrity: Integrity = Integrity.DOUBT
) -> RunningTraffic:
    """Makes a testbed ready for a traffic profile, and begins to send until it is stopped.

    Args:
        testbed: The testbed.
        profile: What the traffic is.
        load: Frames per second, per interface.
        integrity: What happens if frames do not come back as they were sent, which is known when it is stopped.

    Raises:
        LossRatioError: If the traffic cannot be generated, or does not get through; or the testbed is simulated, where
            no time passes between trials.
    """
    return RunningTraffic(testbed, profile, load, integrity)


def describe_stopped(stopped: StoppedTraffic) -> str:
    """What traffic counted, in a line for each direction."""
    return "\n".join(
        f"{each.name}: sent {each.sent:,}, received {each.received:,} and {late:,} late, "
        f"lost {each.sent - each.received - late:,}; the generator could not send {each.unsent:,}, "
        f"and dropped {each.generator_drops:,}" + (f"; {faults_in_words(each)}" if each.faulty else "")
        for each in stopped.directions
        for late in [stopped.late_by_direction[each.name]]
    )

"""Running traffic: it flows while other keywords or code run until it is stopped, and belongs to no trial."""

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from lossratio.errors import TrafficError
from lossratio.results import Conditions
from lossratio.testbed.testbed import Testbed, TrialSettings
from lossratio.traffic import Answer, TrafficProfile
from lossratio.trials import (
    Integrity,
    NegativeLossError,
    check_integrity,
    faults_in_words,
    sendable,
)
from lossratio.values import checked, format_frame_rate

DEFAULT_LATE_WAIT = 0.5
"""Seconds to wait for late frames by default."""


class RunningTraffic(AbstractContextManager["RunningTraffic"]):
    """Traffic of a constant load. Begin it with `start_traffic`, and stop it before the next measurement.

    As a context manager, it stops at the end of the block, also after an error::

        with start_traffic(testbed, profile, 10_000.0) as traffic:
            reconfigure()
            stopped = traffic.stop()
        print(stopped.lost)
    """

    def __init__(
        self, testbed: Testbed, profile: TrafficProfile, load: float, integrity: Integrity
    ) -> None:
        """Begins the traffic.

        Args:
            testbed: Sends the traffic.
            profile: The traffic.
            load: Frames per second per interface.
            integrity: Whether frames that come back changed are an error when the traffic is
                stopped.
        """
        self.profile = profile
        self.load = sendable(load, testbed.load_step(profile))
        """Frames per second, per interface."""
        self._integrity = integrity
        with ExitStack() as opened:
            ready = opened.enter_context(
                testbed.ready_for(profile, TrialSettings(integrity=integrity))
            )
            ready.source.start_traffic(self.load)
            self._source = ready.source
            self.conditions: Conditions = ready.conditions
            """The conditions of the traffic for test reports."""
            self._opened = opened.pop_all()
        self._flows = True

    def __exit__(self, *failure: Any) -> None:
        if failure == (None, None, None):
            self.close()
            return
        self._flows = False
        # The testbed gets the error, and then ends its agent and with it the traffic.
        self._opened.__exit__(*failure)

    def close(self) -> None:
        """Stops traffic that still flows, without its counters.

        Raises:
            LossRatioError: If the agent is lost.
        """
        if self._flows:
            self._end(0.0)

    def stop(self, late_wait: float = DEFAULT_LATE_WAIT) -> Answer:
        """Stops the traffic, waits for frames in flight and then for late ones, and returns the counters of both.

        Args:
            late_wait: Seconds in which late frames are counted, after the wait for frames in flight.

        Raises:
            NegativeLossError: If a direction received more frames than it sent.
            IntegrityError: If frames came back changed, and integrity is ``fail``.
            TrafficError: If the traffic was stopped before, or its counters are not valid.
        """
        if not self._flows:
            raise TrafficError("This traffic was already stopped. Start it again for new counts.")

        stopped = self._end(late_wait)
        if self._integrity is Integrity.FAIL:
            check_integrity(stopped.directions, f"at {format_frame_rate(self.load)}")
        for direction in stopped.directions:
            late = stopped.late_by_direction[direction.name][0]
            if direction.received_frames + late > direction.sent_frames:
                raise NegativeLossError(
                    f"{direction.name}: more frames came back than were sent ({direction.sent_frames} sent, "
                    f"{direction.received_frames} received, {late} late). Look for what duplicates frames on these "
                    "links."
                )

        return stopped

    def _end(self, late_wait: float) -> Answer:
        self._flows = False
        with self._opened:
            return self._source.stop_traffic(late_wait)


@checked(TrafficError)
def start_traffic(
    testbed: Testbed, profile: TrafficProfile, load: float, integrity: Integrity = Integrity.DOUBT
) -> RunningTraffic:
    """Makes a testbed ready for a traffic profile, and sends until the traffic is stopped.

    Args:
        testbed: Sends the traffic.
        profile: The traffic.
        load: Frames per second per interface.
        integrity: Whether frames that come back changed are an error when the traffic is stopped.

    Raises:
        LossRatioError: If the traffic cannot be generated, or does not get through; or if the testbed is simulated,
            because no time passes between trials there.
    """
    return RunningTraffic(testbed, profile, load, integrity)


def describe_stopped(stopped: Answer) -> str:
    """The counters of stopped traffic, in a line for each direction."""
    lines = []
    for direction in stopped.directions:
        late = stopped.late_by_direction[direction.name][0]
        received = f"{direction.received_frames:,} and {late:,} late"
        parts = [
            f"{direction.name}: sent {direction.sent_frames:,}, received {received}, lost {direction.lost - late:,}",
            f"the generator could not send {direction.unsent_frames:,}, and dropped "
            f"{direction.generator_drop_frames:,}",
        ]
        if direction.faulty:
            parts.append(faults_in_words(direction))
        lines.append("; ".join(parts))
    return "\n".join(lines)

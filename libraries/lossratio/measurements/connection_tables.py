"""Whether connections were lost because of their rate or because of their number: trials that tell them apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lossratio.errors import DutError
from lossratio.measurements.connections import OpeningRequest, is_spoilt
from lossratio.trials import LateFrames, Measurer, TrialInput, TrialOutput, TrialResult

if TYPE_CHECKING:
    from lossratio.testbed import Ready, Testbed

LEAST_LOST = 5
"""Minimum number of lost connections before a search for the cause (table or limited rate): fewer may be chance."""
_MORE, _FEWER, _SLOWER = 1.5, 0.5, 0.5
"""The connections and rates of the trials that find the cause, as multiples of the established connections and their
rate."""
_OF_LONGEST = 0.9
"""The maximum duration of these trials, as a share of the time after which a device forgets a connection."""
_SAME_SHARE, _AS_MANY = 0.5, 1.05
"""Two shares of losses count as equal if the smaller is at least this part of the larger. Two numbers of connections
count as equal if they differ by less than this factor."""
_MOST_ASKED = 3


class TableMeasurer:
    """Performs trials. After the first trial with lost connections, more trials show whether their rate is limited.

    First, one and a half times as many connections as were established are opened at half their rate. A device that
    limits the rate loses none of them. If connections are lost, the same number is opened at the whole rate, where a
    device that limits the rate establishes fewer. Half the number is also opened in the time of the slow trial: a
    device that loses a share of all connections, or forgets them after a while, loses the same share again. So only one
    quantity changes at a time. The remaining case is a device that loses connections because of their number. The time
    of these trials counts as part of the first trial's time.

    Args:
        measurer: Performs each trial.
        request: What is measured.
        longest_trial: Seconds after which a device forgets connections.
        late_frames: Finds the late frames of the first trial, also while further trials are performed.
    """

    def __init__(
        self,
        measurer: Measurer,
        request: OpeningRequest,
        longest_trial: float,
        late_frames: LateFrames,
    ) -> None:
        self._measurer = measurer
        self._late_frames = late_frames
        self._request = request
        self._longest_trial = _OF_LONGEST * longest_trial
        self._questions = _MOST_ASKED

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial, and further trials if they may show the cause of lost connections.

        Raises:
            DutError: If the device loses connections because of their number.
        """
        output = self._measurer.measure(trial)
        first = TrialResult(trial, output)
        if not self._questions or not first.loss_ratio or is_spoilt(output):
            return output

        with self._late_frames.aside():
            asked = self._asked(first)
        elapsed = first.elapsed + sum(result.elapsed for result in asked)
        return replace(output, elapsed=elapsed)

    def _asked(self, first: TrialResult) -> list[TrialResult]:
        """The trials after a trial that lost connections, until they show whether the rate may be limited."""
        most = min(_MORE * _established(first), self._request.profile.flows)
        rate = _SLOWER * _established(first) / first.duration
        if not rate or most / rate > self._longest_trial:
            return []

        self._questions -= 1
        slow = self._perform(most, rate)
        if is_spoilt(slow.output) or _lost(slow) < LEAST_LOST:
            if not slow.loss_ratio:
                self._questions = 0
            return [slow]

        fast = self._perform(most, min(first.load, most / first.duration))
        if _came_late(fast.output) or is_spoilt(fast.output):
            return [slow, fast]
        if _established(slow) > _AS_MANY * _established(fast):
            self._questions = 0
            return [slow, fast]

        few = self._perform(_FEWER * _established(first), rate * _FEWER / _MORE)
        if is_spoilt(few.output) or few.loss_ratio >= _SAME_SHARE * slow.loss_ratio:
            return [slow, fast, few]

        asked = [slow, fast, few]
        if any(_came_late(result.output) for result in asked):
            return asked
        raise _table_error(slow, fast, few, self._request.way_to_fewer)

    def _perform(self, connections: float, rate: float) -> TrialResult:
        asked = TrialInput(round(connections) / rate, rate)
        return TrialResult(asked, self._measurer.measure(asked))


def _opened(trial: TrialResult) -> float:
    return trial.load * trial.duration


def _lost(trial: TrialResult) -> float:
    return _opened(trial) * trial.loss_ratio


def _established(trial: TrialResult) -> float:
    return _opened(trial) - _lost(trial)


def _came_late(output: TrialOutput) -> bool:
    """Whether this trial shows that connections of earlier trials were not lost, but late."""
    return any(way.late_frames or any(way.earlier_late_frames) for way in output.directions)


def _table_error(slow: TrialResult, fast: TrialResult, few: TrialResult, way_out: str) -> DutError:
    """The error of a measurement of rates whose device loses connections because of their number."""
    at_slow = f"{_established(slow):,.0f} were established at {slow.load:,.0f} connections/s"
    at_fast = f"{_established(fast):,.0f} at {fast.load:,.0f}"
    of_few = f"of only {_opened(few):,.0f}, it lost {_lost(few):,.0f}"
    return DutError(
        "The device loses connections because of their number, not because they are opened too fast: of "
        f"{_opened(slow):,.0f} connections, {at_slow}, and {at_fast}; {of_few}. Raise the limit of its table, look for "
        f"foreign entries in it, or {way_out}. `Find Connection Table Capacity` measures its size."
    )


class OfConnectionRates:
    """A kind whose trials show rates of connections. It comes first among the base classes."""

    def measurer(self, request: OpeningRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Performs the trials, and finds out whether the device limits the rate of connections."""
        if request.exchange.established:
            # These connections already exist, so the device cannot limit the rate of new ones.
            return ready.measurer
        longest = request.longest_trial_of(testbed)
        return TableMeasurer(ready.measurer, request, longest, ready.late_frames)

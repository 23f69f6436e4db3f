"""The measurer over SSH: one line to the agent and one line back for each trial."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from lossratio import trials
from lossratio.agent import Exchange, Plan, frames_within
from lossratio.traffic.answers import Answer, by_traffic
from lossratio.traffic.client import AgentClient

FALTERING = 0.05
"""Largest share of unsent frames that always counts as a stall of the generator. A larger share is the generator's
limit if it occurred twice, or once at the same or a lower load, but not far below what the generator has sent."""
_IN_FLIGHT_DECAY = 0.9
"""What remains of the allowance for frames in flight after an early verdict that proved right."""
REPEATS = 3
"""How often a trial is repeated, unless stated otherwise."""
SHORT = 1.0
"""Seconds: shorter trials are repeated more often, because that takes little time."""
SHORT_REPEATS = 9
"""How often a short trial is repeated: beside other work on the machine, one such trial of ten is sent in time."""
BURST_LATENESS = 0.005
"""Share of a burst's duration by which its last frame may leave late."""


class TrafficMeasurer:
    """Performs trials with a traffic agent that has been configured; a `lossratio.trials.trial.Measurer`.

    It also measures latency, and sends traffic outside of trials, with the same idle time before.

    The allowance for frames in flight in a running trial is doubled if an early verdict proves wrong, and falls by a
    tenth if one proves right. It is always at least twice the number seen in flight in the latest such trial.

    Args:
        agent: The agent.
        idle_time: Seconds without traffic before each trial, for the DUT to recover: a property of the DUT. They are
            part of a trial's time.
        quiet_since: When the trials before this measurer's ended, in seconds of the monotonic clock; None: now. Checks
            of the path since then do not count against a trial's rest.
        repeats: How often a trial is repeated at most. It is repeated if its counters were refused, or if the generator
            left frames unsent, unless the trial keeps these; frames that the SUT lost make no difference. The last
            attempt counts, with its unsent frames. The second attempt with a larger share of unsent frames than
            `FALTERING` also counts; from then on, at that load or a higher load, the first such attempt counts. None:
            `REPEATS`. Short trials with unsent frames whose load the SUT forwards are then repeated `SHORT_REPEATS`
            times, until these repeats do not help at that load or a lower load. Loads far below what was sent in
            another trial are always within the generator's reach: only other work on its machine can leave them unsent.
        tolerance: Seconds of traffic that may be missing without counting as unsent.
        ramp: Seconds before each trial in which the load grows from zero, and nothing is counted.
        reset: Resets devices to their state before a trial, if they can be reset: before all traffic, and before the
            seconds in which they recover.
        forget: Makes devices forget all connections, before each attempt to open some.
        look: Examines single frames if a trial has faulty ones and its generator cannot say what differs in them: it
            returns the fields that come back with other values, by direction. Once is enough.
        late_frames: Where late frames are reported, with the traffic that they belong to.
    """

    def __init__(
        self,
        agent: AgentClient,
        *,
        idle_time: float = 0.0,
        quiet_since: float | None = None,
        repeats: int | None = None,
        tolerance: float = trials.START_TOLERANCE,
        ramp: float = 0.0,
        reset: Callable[[], None] = lambda: None,
        forget: Callable[[], None] = lambda: None,
        late_frames: trials.LateFrames | None = None,
        look: Callable[[], Mapping[str, tuple[trials.ChangedField, ...]]] | None = None,
    ) -> None:
        self._agent = agent
        self._look = look
        self._repeats = REPEATS if repeats is None else repeats
        self._short_repeats = SHORT_REPEATS if repeats is None else repeats
        self._output = partial(trials.output_from_counters, tolerance=tolerance)
        self._ramp = ramp
        self._limit = math.inf
        self._hopeless = math.inf
        self._sent = 0.0
        self._in_flight = trials.IN_FLIGHT
        self._pauses = _Pauses(
            idle_time,
            time.monotonic() if quiet_since is None else quiet_since,
            late_frames or trials.LateFrames(),
            reset=reset,
            forget=forget,
        )

    def measure(self, trial: trials.TrialInput) -> trials.TrialOutput:
        """Performs one trial.

        Raises:
            NegativeLossError: If more frames were received than sent, repeatedly.
            BurstRateError: If the generator repeatedly could not keep the rate of a burst.
            TrafficError: If there are no valid counters; the other two are also such errors.
        """
        if trial.has_timelines:
            return self._measure_in_time(trial)

        started = time.monotonic()
        is_in_reach = trial.load < trials.FAR_BELOW * self._sent
        most = self._repeats
        if trial.duration < SHORT and (is_in_reach or trial.load < self._hopeless):
            most = self._short_repeats
        beyond = refused = repeats = 0

        while repeats < most and refused < self._repeats:
            repeats += 1
            try:
                output = self._measure_once(trial, started)
            except trials.NegativeLossError:
                refused += 1
                continue

            certain_above = trial.certain_above or 0.0
            if output.decided_after is not None and output.loss_ratio <= certain_above:
                # More frames were in flight than expected, so nothing was certain.
                refused += 1
                continue

            missing = output.unsent_frames or 0
            unsent = missing / max(1, (output.sent_frames or 0) + missing)
            self._sent = max(self._sent, (1.0 - unsent) * trial.load)
            is_beyond = unsent > FALTERING and not is_in_reach
            beyond += is_beyond
            is_limit = is_beyond and (beyond > 1 or trial.load >= self._limit)
            if is_limit:
                self._limit = min(self._limit, trial.load)
            if is_limit or not unsent or trial.keeps_unsent:
                return replace(output, repeats=repeats - 1)
            if repeats >= self._repeats and output.lost_frames and not is_in_reach:
                # The load is also too much for the SUT. The next attempt is the last one, whatever it loses.
                break

        try:
            output = self._measure_once(replace(trial, certain_above=None), started)
        except trials.NegativeLossError as error:
            raise trials.NegativeLossError(
                f"{error} {repeats} earlier attempts failed in the same way, or because the generator "
                "faltered."
            ) from error

        if trial.duration < SHORT and output.unsent_frames:
            self._hopeless = min(self._hopeless, trial.load)
        return replace(output, repeats=repeats)

    def latency(self, load: float, duration: float) -> trials.LatencyOutput:
        """Performs a trial in which some frames measure their latency, or the answer says why they cannot.

        Args:
            load: Frames per second per interface.
            duration: Seconds of the trial.
        """
        self._pauses.begin_traffic()
        answer = self._agent.run(Plan(((load, duration),), latency=True))
        self._pauses.end_traffic(answer.directions)
        return trials.LatencyOutput(answer.directions, answer.latency)

    def now(self) -> float:
        """Seconds of the controller's monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Waits for this many seconds."""
        time.sleep(seconds)

    def start_traffic(self, load: float, watch: bool = False) -> None:
        """Begins traffic of a constant load until `stop_traffic`.

        Args:
            load: Frames per second per interface.
            watch: Whether losses are located in time.
        """
        self._pauses.begin_traffic()
        self._agent.hold(Plan(((load, None),), locates=watch))

    def stop_traffic(self, late_wait: float = 0.0) -> Answer:
        """Ends the traffic that `start_traffic` began; see `AgentClient.stop`.

        Args:
            late_wait: Seconds after that in which frames are late; they are counted separately.
        """
        stopped = self._agent.stop(late_wait)
        self._pauses.end_traffic(stopped.directions)
        return stopped

    def _measure_once(self, trial: trials.TrialInput, started: float) -> trials.TrialOutput:
        opens = trial.exchange is not None and not trial.exchange.established
        self._pauses.begin_traffic(trial.rest, forgets=opens)
        answer = self._agent.run(self._plan(trial))
        directions = self._with_changed_fields(answer.directions)
        ended = self._pauses.end_traffic(directions)
        decided_after = answer.certain_after if answer.ended else None
        output = self._output(
            trial, directions, elapsed=ended - started, decided_after=decided_after
        )

        if answer.ended:
            if output.loss_ratio > (trial.certain_above or 0.0):
                change = _IN_FLIGHT_DECAY
            else:
                change = 2.0
            seen = 2.0 * answer.were_in_flight / trial.load
            self._in_flight = max(trials.IN_FLIGHT, seen, change * self._in_flight)

        return replace(output, timelines=answer.timelines)

    def _plan(self, trial: trials.TrialInput) -> Plan:
        """What the agent does in a trial."""
        steps = tuple((step.load, step.duration) for step in trial.parts)
        if trial.has_timelines:
            return Plan(steps, is_burst=trial.frames is not None, locates=True)
        if trial.exchange is not None:
            count = frames_within(trial.duration, trial.load)
            return connecting(trial.load, count, trial.exchange)
        # Record: a trial.
        return Plan(
            ((trial.load, trial.duration),),
            ramp=self._ramp,
            above=trial.certain_above,
            in_flight=0.0 if trial.certain_above is None else self._in_flight,
        )

    def _with_changed_fields(
        self, directions: Sequence[trials.DirectionCounters]
    ) -> tuple[trials.DirectionCounters, ...]:
        """Counters that say what differs in faulty frames, even if the generator cannot say it."""
        unknown = [
            way
            for way in directions
            if way.faulty > way.duplicated_frames and not way.changed_fields
        ]
        if self._look is None or not unknown:
            return tuple(directions)
        # A change that was seen once occurs in all trials.
        look, self._look = self._look, None
        seen = look()
        return tuple(
            replace(way, changed_fields=seen.get(way.name, ())) if way in unknown else way
            for way in directions
        )

    def _measure_in_time(self, trial: trials.TrialInput) -> trials.TrialOutput:
        """Performs a burst or a schedule. Any frame may decide a burst, so a burst that was too slow is repeated."""
        started = time.monotonic()
        for attempt in range(self._repeats + 1):
            is_last = attempt == self._repeats
            try:
                output = self._measure_once(trial, started)
            except trials.NegativeLossError:
                if is_last:
                    raise
                continue

            slow = [
                timeline
                for timeline in output.timelines
                if trial.frames is not None and not _is_kept(timeline, trial)
            ]
            if not slow:
                return replace(output, repeats=attempt)
            if is_last:
                rate = min(timeline.rate or 0.0 for timeline in slow)
                raise trials.BurstRateError(
                    f"The generator cannot send a burst of {trial.frames} frames at {trial.load:.10g} frames/s: in "
                    f"direction {', '.join(timeline.name for timeline in slow)} it reached {rate:.10g} frames/s. "
                    "Measure at a rate that it can send, and state that this is below the link's maximum rate.",
                    rate,
                )

        raise AssertionError("The last attempt ends the loop.")


class _Pauses:
    """The time without traffic before a trial, and what happens to the SUT and to late frames in it."""

    def __init__(
        self,
        idle_time: float,
        rested_since: float,
        late_frames: trials.LateFrames,
        *,
        reset: Callable[[], None],
        forget: Callable[[], None],
    ) -> None:
        self._idle_time = idle_time
        self._quiet_since: float | None = None
        self._rested_since = rested_since
        self._late_frames = late_frames
        self._reset = reset
        self._forget = forget
        # Traffic before this was sent by another agent, or belongs to a check.
        late_frames.forget()

    def begin_traffic(self, rest: float = 0.0, *, forgets: bool = False) -> None:
        """Resets the SUT if possible, and waits until its idle time and the trial's rest are over.

        All traffic begins here. Between this wait and the traffic, no hook is called: a command disturbs the SUT.
        """
        if forgets:
            self._forget()
        self._reset()
        now = time.monotonic()
        rested = now - self._rested_since
        if self._quiet_since is None:
            idle = 0.0
        else:
            idle = now - self._quiet_since

        time.sleep(max(0.0, self._idle_time - idle, rest - rested))
        self._late_frames.begin_traffic()

    def end_traffic(self, directions: Sequence[trials.DirectionCounters]) -> float:
        """Reports late frames of earlier traffic, which came with these counters; returns the present time."""
        self._quiet_since = time.monotonic()
        self._rested_since = self._quiet_since
        by_direction = ((each.late_frames, *each.earlier_late_frames) for each in directions)
        self._late_frames.seen_since(by_traffic(by_direction))
        return self._quiet_since


def connecting(load: float, count: int, exchange: trials.Exchange) -> Plan:
    """The plan that opens connections, and answers over each.

    Args:
        load: Connections per second.
        count: How many connections there are.
        exchange: What is asked and answered over each.
    """
    steps = ((load, count / load),)
    return Plan(steps, exchange=Exchange(**asdict(exchange)), connections=count)


def _is_kept(timeline: trials.Timeline, trial: trials.TrialInput) -> bool:
    """Whether a direction sent all frames of a burst at its rate, as far as can be known."""
    (step,) = timeline.steps
    if step.sent < step.intended:
        return False
    if timeline.rate is None:
        return True
    load = trial.load * step.intended / (trial.frames or step.intended)
    late = (step.sent - 1) / timeline.rate - (step.sent - 1) / load
    return late <= max(2.0 * timeline.resolution, BURST_LATENESS * trial.duration)

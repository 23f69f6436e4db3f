"""The measurer over SSH: one line to the agent and one line back for each trial."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from lossratio.traffic.client.agent import AgentClient, StoppedTraffic
from lossratio.trials import (
    START_TOLERANCE,
    LatencyOutput,
    NegativeLoss,
    NegativeLossError,
    TrialInput,
    TrialOutput,
    output_from_counters,
)

FALTERING = 0.05
"""Largest share of unsent frames that always counts as a stall of the generator. A larger share is the generator's
limit if it occurred twice, or once at the same load or a lower one."""

REPEATS = 3
"""How often a trial is measured again, unless said otherwise."""


class TrafficMeasurer:
    """Performs trials with a traffic agent that has been configured; a `lossratio.trials.trial.Measurer`.

    It measures latency, too, and sends traffic apart from trials, with the same idle time before.

    Args:
        agent: The agent.
        idle_time: Seconds without traffic before each trial, for the DUT to recover: a property of the DUT. They are
            part of a trial's time.
        negative_loss: What to do when more frames were received than sent; see `lossratio.trials.counters`.
        repeats: How often a trial is measured again at most. It is measured again if its counters were refused, or if
            the generator left frames unsent; frames that the SUT lost make no difference. The last attempt counts,
            with its unsent frames. So does the second attempt with a larger share of unsent frames than `FALTERING`;
            from then on, at that load or a higher one, the first such attempt counts.
        tolerance: Seconds of traffic that may be missing without counting as unsent.
        ramp: Seconds before each trial in which the load grows from nothing, and nothing is counted.
    """

    def __init__(
        self,
        agent: AgentClient,
        *,
        idle_time: float = 0.0,
        negative_loss: NegativeLoss = "retry",
        repeats: int = REPEATS,
        tolerance: float = START_TOLERANCE,
        ramp: float = 0.0,
    ) -> None:
        self._agent = agent
        self._idle_time = idle_time
        self._negative_loss = negative_loss
        self._repeats = repeats
        self._tolerance = tolerance
        self._ramp = ramp
        self._quiet_since: float | None = None
        self._limit = math.inf

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial.

        Raises:
            NegativeLossError: If more frames were received than sent, again and again.
            TrafficError: If the trial could not be performed, or there are no counters worth anything.
        """
        started = time.monotonic()
        beyond = 0
        for repeats in range(self._repeats):
            try:
                output = self._measure_once(trial, started)
            except NegativeLossError:
                continue
            unsent = _unsent_share(output)
            beyond += unsent > FALTERING
            is_limit = unsent > FALTERING and (beyond > 1 or trial.load >= self._limit)
            if is_limit:
                self._limit = min(self._limit, trial.load)
            if is_limit or not unsent:
                return replace(output, repeats=repeats)
        try:
            return replace(self._measure_once(trial, started), repeats=self._repeats)
        except NegativeLossError as error:
            raise NegativeLossError(
                f"{error} So did {self._repeats} earlier attempts, or the generator faltered."
            ) from error

    def latency(self, load: float, duration: float) -> LatencyOutput:
        """Performs a trial whose frames say how long they took; see `AgentClient.latency`."""
        self._wait_until_idle()
        output = self._agent.latency(load, duration)
        self._quiet_since = time.monotonic()
        return output

    def start_traffic(self, load: float) -> None:
        """Begins traffic of a constant load; see `AgentClient.start_traffic`."""
        self._wait_until_idle()
        self._agent.start_traffic(load)

    def stop_traffic(self, late_wait: float = 0.0) -> StoppedTraffic:
        """Ends the traffic that `start_traffic` began; see `AgentClient.stop_traffic`."""
        stopped = self._agent.stop_traffic(late_wait)
        self._quiet_since = time.monotonic()
        return stopped

    def _measure_once(self, trial: TrialInput, started: float) -> TrialOutput:
        self._wait_until_idle()
        directions = self._agent.trial(trial.load, trial.duration, ramp=self._ramp)
        self._quiet_since = time.monotonic()
        return output_from_counters(
            trial,
            directions,
            tolerance=self._tolerance,
            negative_loss=self._negative_loss,
            elapsed=self._quiet_since - started,
        )

    def _wait_until_idle(self) -> None:
        quiet = 0.0 if self._quiet_since is None else time.monotonic() - self._quiet_since
        time.sleep(max(0.0, self._idle_time - quiet))


def _unsent_share(output: TrialOutput) -> float:
    unsent, sent = output.unsent_frames or 0, output.sent_frames or 0
    return unsent / (sent + unsent) if unsent else 0.0

"""A device that keeps connections: each frame opens one, and is lost if the connection is not established."""

from __future__ import annotations

import math

import numpy as np
from pydantic.dataclasses import dataclass

from lossratio.simulation.sut import STRICT, Delay, FrameRate, Frames, RunningSut, Seconds, Traffic


@dataclass(frozen=True, config=STRICT)
class ConnectionTable:
    """A firewall or NAT with a limited rate of new connections and a limited table, which is empty before each trial.

    A bucket of tokens, one for each connection, is full when a trial begins (measured on Linux's ``ct state new limit
    rate over N/second burst B packets drop``).
    """

    rate: FrameRate
    """Tokens per second."""
    burst: Frames = 0.0
    """Tokens that a full bucket holds."""
    room: Frames = 1e9
    """Entries of the table."""
    scan: Delay = 0.0
    """Seconds that a new connection takes longer for each entry that is there already: a table that is searched."""
    timeout: Seconds = 1e9
    """Time after which an entry is forgotten that nobody has answered. Answers come as fast as connections did."""
    kept: Frames = 0.0
    """Entries that stay although the device was told to forget them."""

    def start(self, rng: np.random.Generator) -> RunningSut:
        """A device with a table that was emptied."""
        return self._lost

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> float:
        """Connections that are established in a trial, over its duration and the share that must be."""
        if duration >= self.timeout:
            return 0.0
        return self._most(duration) / duration / (1.0 - loss_ratio)

    def _most(self, duration: float) -> float:
        """Connections that are established at most in so many seconds."""
        # The n-th of them takes 1 / rate + scan * n seconds.
        root = math.sqrt(1.0 + 2.0 * self.scan * self.rate**2 * duration)
        served = self.rate * duration if not self.scan else (root - 1.0) / (self.scan * self.rate)
        return min(self.burst + served, self.room - self.kept)

    def _lost(self, traffic: Traffic) -> int:
        if traffic.duration >= self.timeout:
            return traffic.frames
        # The sum's rounding error must not cost a token.
        return max(0, traffic.frames - math.floor(self._most(traffic.duration) * (1.0 + 1e-12)))

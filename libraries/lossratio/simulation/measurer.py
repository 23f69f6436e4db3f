"""A measurer without a network: a SUT model on a virtual clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lossratio.errors import SearchError
from lossratio.simulation.faults import FrameFaults
from lossratio.simulation.sut import RunningSut, Sut, Traffic
from lossratio.trials import DirectionCounters, TrialInput, TrialOutput, output_from_counters


class SimulatedMeasurer:
    """Performs trials on a simulated SUT, on a virtual clock: an hour of traffic takes milliseconds.

    One seed makes everything repeatable: the same trials in the same order give the same counters.

    Attributes:
        now: Seconds on the virtual clock: what all trials so far have taken.
    """

    def __init__(
        self,
        sut: Sut | Sequence[Sut],
        *,
        seed: int,
        overhead: float = 0.0,
        count_overhead: bool = False,
        settle: float = 0.0,
        max_rate: float | None = None,
        directions: int | None = None,
        faults: FrameFaults | None = None,
    ) -> None:
        """Starts the SUT at time 0.

        Args:
            sut: One SUT that the traffic of all directions goes through together; or one for each direction.
            seed: Seed of all random numbers.
            overhead: Seconds that each trial takes besides its traffic.
            count_overhead: Whether the effective duration includes the overhead, as FD.io CSIT's does.
            settle: Seconds without traffic after each trial, for frames in flight; never in the effective duration.
            max_rate: Frames per second and direction that the generator can send; what is above is unsent, not lost.
            directions: Transmitting directions; None: 1, or the number of SUTs.
            faults: What the SUTs do to frames besides losing them; None: nobody looks at frames.

        Raises:
            SearchError: If a time is negative, a rate or a number is not positive, or SUTs and directions do not match.
        """
        suts = tuple(sut) if isinstance(sut, Sequence) else (sut,)
        self._directions = len(suts) if directions is None else directions
        if self._directions < 1 or len(suts) not in (1, self._directions):
            raise SearchError(
                f"{len(suts)} SUTs do not serve {self._directions} directions: give one SUT, or one for each direction."
            )
        if min(overhead, settle) < 0:
            raise SearchError(f"overhead and settle must not be negative, as {overhead!r} or {settle!r} is.")
        if max_rate is not None and not max_rate > 0:
            raise SearchError(f"max_rate must be positive, not {max_rate!r}; None is a generator without limit.")
        self.now = 0.0
        self._overhead = overhead
        self._count_overhead = count_overhead
        self._settle = settle
        self._max_rate = math.inf if max_rate is None else max_rate
        self._rng = np.random.default_rng(seed)
        self._faults = faults
        self._suts: tuple[RunningSut, ...] = tuple(each.start(self._rng) for each in suts)

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs one trial; the virtual clock moves on."""
        intended = _whole_frames(trial.load * trial.duration)
        sent = min(intended, _whole_frames(self._max_rate * trial.duration)) if self._max_rate < math.inf else intended
        elapsed = trial.duration + self._settle + self._overhead
        counters = [
            DirectionCounters(
                name=f"port{number}>port{number ^ 1}",
                intended=intended,
                sent=sent,
                received=sent - lost,
                unsent=intended - sent,
                elapsed=trial.duration,
            )
            for number, lost in enumerate(self._lost(sent, trial.duration))
        ]
        if self._faults is not None:
            counters = [self._faults.examined(each, self._rng) for each in counters]
        self.now += elapsed
        effective = trial.duration + self._overhead if self._count_overhead else None
        return output_from_counters(trial, counters, effective_duration=effective, elapsed=elapsed)

    def _lost(self, sent: int, duration: float) -> list[int]:
        """Frames lost in each direction; a SUT that carries all of them does not tell one from the other."""
        if len(self._suts) == self._directions:
            return [sut(Traffic(self.now, duration, sent)) for sut in self._suts]
        lost = self._suts[0](Traffic(self.now, duration, sent * self._directions))
        shares = []
        for others in range(self._directions - 1, -1, -1):
            drawn = int(self._rng.binomial(lost, 1.0 / (1.0 + others)))
            shares.append(max(lost - sent * others, min(sent, drawn)))
            lost -= shares[-1]
        return shares


def _whole_frames(frames: float) -> int:
    # The product's rounding error must not become a frame.
    return math.ceil(frames * (1.0 - 1e-12))

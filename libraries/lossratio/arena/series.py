"""Several SUTs, one behind the other: what one forwards is the traffic of the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossratio.simulation import RunningSut, Sut, Traffic


@dataclass(frozen=True)
class Series:
    """A SUT made of parts, such as a noisy worker in front of a link that stalls. Its truth is not known.

    Attributes:
        parts: The SUTs, in the order that frames pass them.
    """

    parts: tuple[Sut, ...]

    def start(self, rng: np.random.Generator) -> RunningSut:
        """All parts in their fresh states."""
        running = [part.start(rng) for part in self.parts]

        def lost_frames(traffic: Traffic) -> int:
            left = traffic.frames
            for part in running:
                if left:
                    left -= part(Traffic(traffic.start, traffic.duration, left))
            return traffic.frames - left

        return lost_frames

    def truth(self, *, loss_ratio: float, duration: float, exceed_ratio: float) -> None:
        """None: the parts' losses would have to be folded."""
        return

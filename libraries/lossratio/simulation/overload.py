"""What a SUT with a capacity does with more load than that: the part that most models share."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from lossratio.simulation.quantities import STRICT, ProperRatio


@dataclass(frozen=True, config=STRICT)
class Overload:
    """How much less than its capacity an overloaded SUT forwards (congestion collapse).

    A frame that is dropped late has cost work already: with capacity C, load r > C and work w per dropped frame, in
    shares of a forwarded one's, the forwarding rate f solves ``f + w (r - f) = C``. It falls as the load grows, and
    ends at nothing. Besides, being overloaded at all may cost a share of the capacity (cold caches, full queues).

    Attributes:
        drop_cost: Work per dropped frame, as a share of the work per forwarded frame. 0: none.
        dip: Share of the capacity that is lost as soon as the SUT is overloaded. 0: none.
    """

    drop_cost: ProperRatio = 0.0
    dip: ProperRatio = 0.0

    def loss_ratio(self, load: float, capacity: float) -> float:
        """Share of frames lost at a steady load, both in frames per second."""
        if load <= capacity:
            return 0.0
        return min(1.0, (1.0 - capacity * (1.0 - self.dip) / load) / (1.0 - self.drop_cost))

    def lossy_load(self, capacity: float, loss_ratio: float) -> float:
        """The load above which more than a share `loss_ratio` (below 1) is lost, in frames per second."""
        return capacity * max(1.0, (1.0 - self.dip) / (1.0 - loss_ratio * (1.0 - self.drop_cost)))


GRACEFUL = Overload()
"""An overloaded SUT forwards exactly its capacity."""

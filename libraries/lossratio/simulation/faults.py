"""What a simulated SUT does to frames besides losing them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lossratio.simulation.quantities import STRICT, Ratio
from lossratio.trials import DirectionCounters, Examination, with_examination


@dataclass(frozen=True, config=STRICT)
class FrameFaults:
    """Faults of frames that are forwarded, each drawn for itself.

    Attributes:
        duplicated: Share of them that come out twice.
        corrupted: Share of them that come out with other contents.
    """

    duplicated: Ratio = 0.0
    corrupted: Ratio = 0.0

    def examined(self, counters: DirectionCounters, rng: np.random.Generator) -> DirectionCounters:
        """What a generator that looks at all frames counts, in place of one that finds each as it was sent.

        Args:
            counters: The counters of the forwarded frames.
            rng: Draws the faults.
        """
        corrupted = int(rng.binomial(counters.received, self.corrupted))
        copies = int(rng.binomial(counters.received - corrupted, self.duplicated))
        arrived = counters.received + copies
        found = Examination(examined=arrived, duplicated=copies, corrupted=corrupted)
        return with_examination(replace(counters, received=arrived), found)


def faults_from(data: object) -> FrameFaults:
    """Reads faults from data such as ``{"duplicated": "1 %"}``.

    Raises:
        ValueError: If a field is unknown or out of range.
    """
    try:
        return TypeAdapter(FrameFaults).validate_python(data)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise ValueError(
            f"The SUT's faults cannot be read: {told}. They are duplicated and corrupted, shares."
        ) from error

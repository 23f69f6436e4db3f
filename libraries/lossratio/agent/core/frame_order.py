# SPDX-License-Identifier: Apache-2.0
"""The order of a direction's frames: which flow and size a frame has, by its number."""

from __future__ import annotations

from .arrays import NDArray, np
from .frames_spec import FramesSpec, SteppingField

Numbers = NDArray[np.int64]


class FrameOrder:
    """The repeating order of frames of all sizes and flows.

    Attributes:
        pattern: Sizes of the first frames in bytes with FCS, which repeat for all others.
        flows: How many flows there are.
        period: After how many frames everything repeats.
    """

    def __init__(self, spec: FramesSpec) -> None:
        self.pattern = np.array([spec.sizes[number][0] for number in spec.size_order], dtype=np.int64)
        self.flows = spec.flows
        self.period = spec.period
        self._round = spec.round

    def flow_numbers(self, numbers: Numbers) -> Numbers:
        """Which flows frames belong to, by their numbers from 0 on."""
        if self._round < self.period:
            # Flows slip by one each time both patterns return together, so that every flow comes in every size.
            numbers = numbers % self.period
            numbers = numbers + numbers // self._round
        return numbers % self.flows

    def run(self, number: int) -> tuple[int, int]:
        """Which flow a frame belongs to, by its number, and for how many frames the flows are in sequence."""
        number %= self.period
        flow = (number + number // self._round) % self.flows
        return flow, min(self.flows - flow, self._round - number % self._round)


def values_of(field: SteppingField) -> NDArray[np.uint64]:
    """All values of a field, in the order in which it takes them."""
    if field.seed is None:
        steps = np.array(field.steps)
    else:
        # This numpy generator gives the same numbers as `permutation`, in less time.
        steps = np.random.RandomState(field.seed).permutation(field.count)
    values: NDArray[np.uint64] = np.uint64(field.first) + steps.astype(np.uint64)
    return values

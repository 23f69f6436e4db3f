"""Signs of life go on whatever a node answers."""

from __future__ import annotations

import pytest
from waiting import wait_until

from lossratio.errors import NodeError, ReservationError
from lossratio.nodes import Pulse


@pytest.mark.parametrize("error", [NodeError, ReservationError])
def test_a_pulse_goes_on_after_an_error(error):
    beats = []

    def beat():
        beats.append(1)
        if len(beats) == 1:
            raise error("not now")

    with Pulse(0.001, beat):
        wait_until(lambda: len(beats) > 2)

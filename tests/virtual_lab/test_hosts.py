"""What lossratio says of real hosts: their cards, drivers, links and cables."""

from __future__ import annotations

import pytest
from layouts import topologies


@pytest.mark.parametrize("cards", ["vmxnet3", "mixed"])
def test_a_check_logs_in_and_finds_nothing_wrong(lab, lossratio, cards):
    said = lossratio("check", topologies(lab)[cards], "--connect", "--probe")
    print(said)

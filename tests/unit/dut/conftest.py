"""A DUT's node in a network namespace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "traffic"))

from dut_lab import DutLab


@pytest.fixture
def dut_lab(netns_lab):
    return DutLab(netns_lab)

"""Fixtures of tests that measure."""

from __future__ import annotations

import pytest


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules and queues that a test adds to a DUT stand for faults of the device: its configuration is not compared."""
    monkeypatch.setattr("lossratio.dut.linux.node_dut.check_unchanged", lambda node, since: None)

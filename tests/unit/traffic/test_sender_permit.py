"""How long senders go on without hearing from the agent."""

from __future__ import annotations

import os

import pytest

from lossratio.traffic.agent.afpacket import sender


@pytest.mark.parametrize(("state", "may_go_on"), [("R", True), ("D", True), ("S", False), ("T", False), ("Z", False)])
def test_senders_go_on_while_the_agent_has_no_processor_or_waits_for_a_lock(tmp_path, monkeypatch, state, may_go_on):
    permit = sender.Permit()
    permit.grant()
    after = permit._until[0] + 1.0
    monkeypatch.setattr(sender.time, "monotonic", lambda: after)
    (tmp_path / "stat").write_text(f"{os.getpid()} (a name) {state} 1 2")
    permit._agent = f"../{tmp_path}"
    assert permit.is_over() is not may_go_on

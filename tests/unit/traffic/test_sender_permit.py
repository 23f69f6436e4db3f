"""How long senders go on without hearing from the agent."""

from __future__ import annotations

import io
import os

import pytest

from lossratio.agent.afpacket import sender


@pytest.mark.parametrize(("state", "may_go_on"), [("R", True), ("D", True), ("S", False), ("T", False), ("Z", False)])
def test_senders_go_on_while_the_agent_has_no_processor_or_waits_for_a_lock(tmp_path, monkeypatch, state, may_go_on):
    permit = sender.Permit()
    permit.grant()
    after = permit._until[0] + 1.0
    monkeypatch.setattr(sender.time, "monotonic", lambda: after)
    (tmp_path / "stat").write_text(f"{os.getpid()} (a name) {state} 1 2")
    permit._agent = f"../{tmp_path}"
    assert permit.is_over() is not may_go_on
    assert permit.circumstances() == f"for 2.000 s (process {permit._agent}: {state})"


def test_an_agent_that_renews_and_rests_while_a_sender_looks_at_it_lets_that_go_on(monkeypatch):
    now = 100.0
    monkeypatch.setattr(sender.time, "monotonic", lambda: now)
    permit = sender.Permit()
    permit.grant()

    def look(path, mode):
        permit.renew()
        return io.BytesIO(b"1 (agent) S 1 2")

    monkeypatch.setattr(sender, "open", look, raising=False)
    now += 1.0
    assert not permit.is_over()
    monkeypatch.setattr(sender, "open", lambda path, mode: io.BytesIO(b"1 (agent) S 1 2"), raising=False)
    now += 1.0
    assert permit.is_over()

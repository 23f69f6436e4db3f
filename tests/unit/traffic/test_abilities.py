"""What the agent says when a generator's program lacks a method that a request needs."""

from __future__ import annotations

import pytest

from lossratio.traffic.agent.core.protocol import AgentError
from lossratio.traffic.agent.server import Agent

TRIAL = {"load": 1000.0, "duration": 1.0}


class NothingGenerator:
    """A program with none of the methods."""


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        ({"op": "trial", **TRIAL}, "send frames while it opens connections"),
        ({"op": "latency", **TRIAL}, "send frames while it opens connections"),
        ({"op": "start", "load": 1000.0}, "send frames while it opens connections"),
        ({"op": "schedule", "steps": [TRIAL]}, "send bursts or schedules"),
        ({"op": "start", "load": 1000.0, "watch": True}, "locate losses of running traffic in time"),
        ({"op": "watched_trial", "above": 0.5, "in_flight": 0.001, **TRIAL}, "watch the counters of a running trial"),
    ],
)
def test_what_a_generator_lacks_is_named_with_the_way_out(request_of, words):
    agent = Agent(lambda: None, lambda: None, lambda message: None)
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError) as refusal:
        agent.answer(request_of)
    lacked = "start_watched" if request_of.get("watch") else request_of["op"]
    way_out = "Measure with early_verdict=off, or use" if lacked == "watched_trial" else "Use"
    assert refusal.value.kind == "unsupported"
    assert refusal.value.message == (
        f"This generator cannot {words}: its program has no method {lacked!r}. {way_out} 'kind: afpacket'."
    )

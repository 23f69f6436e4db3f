"""What the agent says to a request that it cannot fulfil: the program lacks a method, or a value makes no sense."""

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
    agent = Agent(lambda: None, lambda: None, lambda message: None, lambda: b"")
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError) as refusal:
        agent.answer(request_of)
    lacked = "start_watched" if request_of.get("watch") else request_of["op"]
    way_out = "Measure with early_verdict=off, or use" if lacked == "watched_trial" else "Use"
    assert refusal.value.kind == "unsupported"
    assert refusal.value.message == (
        f"This generator cannot {words}: its program has no method {lacked!r}. {way_out} 'kind: afpacket'."
    )


NO_NUMBERS = (True, False, "1", [1], {}, 10**400, -1, float("inf"), float("nan"))
REQUESTS = {
    "trial": ({**TRIAL, "ramp": 0}, ("load", "duration", "ramp")),
    "latency": (TRIAL, ("load", "duration")),
    "connect": ({"load": 1.0, "count": 1, "exchange": {}}, ("load", "count")),
    "watched_trial": ({**TRIAL, "above": 0, "in_flight": 0, "ramp": 0}, ("above", "in_flight", "ramp")),
    "resolve": ({"questions": [], "seconds": 1}, ("seconds",)),
    "probe": ({"ports": [], "networks": [], "listen": [], "sends": [], "speakers": [], "seconds": 1}, ("seconds",)),
    "start": ({"load": 1.0}, ("load",)),
}
PROBE = REQUESTS["probe"][0]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
@pytest.mark.parametrize(("op", "field"), [(op, field) for op, (_, fields) in REQUESTS.items() for field in fields])
def test_what_is_no_positive_number_is_refused_by_the_name_of_its_field(op, field, value):
    agent = Agent(lambda: None, lambda: None, lambda message: None, lambda: b"")
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError, match=f"The {field} must be") as refusal:
        agent.answer({"op": op, **REQUESTS[op][0], field: value})
    assert refusal.value.kind == "bad_request"


@pytest.mark.parametrize("through", [5, "xdp", [], {}, {"generator": "xdp"}, {"generator": "xdp", "options": []}])
def test_cards_are_reached_through_a_generator_with_options_only(through):
    with pytest.raises(AgentError, match="through a generator with options") as refusal:
        Agent(lambda: None, lambda: None, lambda message: None, lambda: b"").answer(
            {"op": "probe", **PROBE, "through": through}
        )
    assert refusal.value.kind == "bad_request"


def test_only_a_generator_with_cards_of_its_own_opens_them():
    for name in ("afpacket", "os", "nothing", None):
        through = {"generator": name, "options": {}}
        with pytest.raises(AgentError, match="has no cards") as refusal:
            Agent(lambda: None, lambda: None, lambda message: None, lambda: b"").answer(
                {"op": "probe", **PROBE, "through": through}
            )
        assert refusal.value.kind == "unsupported"

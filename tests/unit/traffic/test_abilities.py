"""What the agent says to a request that it cannot fulfil: the program lacks a method, or a value makes no sense."""

from __future__ import annotations

import pytest

from lossratio.agent.core.plan import ABILITIES
from lossratio.agent.core.protocol import AgentError, Channel
from lossratio.agent.server import Agent

TRIAL = {"steps": [[1000.0, 1.0]]}
EXCHANGE = {"answer_ratio": 1.0, "data_frames": 0, "closing": None, "established": False, "is_complete": False}


class NothingGenerator:
    """A program with none of the methods."""


@pytest.mark.parametrize(
    ("plan", "lacked"),
    [
        (TRIAL, "frames"),
        ({**TRIAL, "connections": 1, "exchange": {**EXCHANGE, "answers": "opened"}}, "connections"),
        ({**TRIAL, "latency": True}, "latency"),
        ({"steps": [[1000.0, None]]}, "holds"),
        ({**TRIAL, "locates": True}, "schedules"),
        ({**TRIAL, "locates": True, "is_burst": True}, "bursts"),
        ({"steps": [[1000.0, None]], "locates": True}, "places"),
        ({**TRIAL, "above": 0.5, "in_flight": 0.001}, "verdicts"),
    ],
)
def test_what_a_generator_lacks_is_named_with_the_way_out(plan, lacked):
    agent = Agent(Channel(0, 1))
    agent._generator = NothingGenerator()
    agent._way_out = "Use 'kind: afpacket'."
    agent._can = ABILITIES.keys() - {lacked}
    with pytest.raises(AgentError) as refusal:
        agent.answer({"op": "run", "plan": plan})
    way_out = "Measure with early_verdict=off, or use" if lacked == "verdicts" else "Use"
    assert refusal.value.kind == "unsupported"
    assert refusal.value.message == f"This generator cannot {ABILITIES[lacked]}. {way_out} 'kind: afpacket'."


NO_NUMBERS = (True, False, "1", [1], {}, 10**400, -1, float("inf"), float("nan"))
REQUESTS = {
    "resolve": ({"questions": [], "seconds": 1}, ("seconds",)),
    "probe": ({"ports": [], "networks": [], "listen": [], "sends": [], "speakers": [], "seconds": 1}, ("seconds",)),
}
PROBE = REQUESTS["probe"][0]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
@pytest.mark.parametrize(("op", "field"), [(op, field) for op, (_, fields) in REQUESTS.items() for field in fields])
def test_what_is_no_positive_number_is_refused_by_the_name_of_its_field(op, field, value):
    agent = Agent(Channel(0, 1))
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError, match=f"{field} must") as refusal:
        agent.answer({"op": op, **REQUESTS[op][0], field: value})
    assert refusal.value.kind == "bad_request"


PLANS = {
    "load": lambda value: {"steps": [[value, 1.0]]},
    "duration": lambda value: {"steps": [[1.0, value]]},
    **{name: lambda value, name=name: {**TRIAL, name: value} for name in ("ramp", "above", "in_flight")},
}


@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
@pytest.mark.parametrize("field", PLANS)
def test_a_plan_with_what_is_no_positive_number_is_refused_by_the_name_of_its_field(field, value):
    agent = Agent(Channel(0, 1))
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError, match=f"{field} must") as refusal:
        agent.answer({"op": "run", "plan": PLANS[field](value)})
    assert refusal.value.kind == "bad_request"


@pytest.mark.parametrize(
    "more",
    [
        {"is_burst": True},
        {"notes": True},
        {"above": 0.5},
        {"latency": True},
        {"exchange": {**EXCHANGE, "answers": "opened"}},
    ],
)
def test_a_plan_without_an_end_observes_places_of_losses_only(more):
    agent = Agent(Channel(0, 1))
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError, match="without an end") as refusal:
        agent.answer({"op": "run", "plan": {"steps": [[1000.0, None]], **more}})
    assert refusal.value.kind == "bad_request"


@pytest.mark.parametrize("through", [5, "xdp", [], {}, {"generator": "xdp"}, {"generator": "xdp", "options": []}])
def test_cards_are_reached_through_a_generator_with_options_only(through):
    with pytest.raises(AgentError, match=r"[Tt]hrough") as refusal:
        Agent(Channel(0, 1)).answer({"op": "probe", **PROBE, "through": through})
    assert refusal.value.kind == "bad_request"


@pytest.mark.parametrize("value", [None, [], 5])
@pytest.mark.parametrize(
    ("op", "request_with"),
    [
        ("run", lambda value: {"plan": value}),
        ("configure", lambda value: {"generator": "afpacket", "configuration": value}),
        ("resolve", lambda value: {"questions": [value], "seconds": 1.0}),
    ],
)
def test_a_request_with_something_else_instead_of_a_record_is_refused(op, request_with, value):
    agent = Agent(Channel(0, 1))
    agent._generator = NothingGenerator()
    with pytest.raises(AgentError, match="cannot be read") as refusal:
        agent.answer({"op": op, **request_with(value)})
    assert refusal.value.kind == "bad_request"


def test_only_a_generator_with_cards_of_its_own_opens_them():
    for name in ("afpacket", "os", "nothing"):
        through = {"generator": name, "options": {}}
        with pytest.raises(AgentError, match="has no cards") as refusal:
            Agent(Channel(0, 1)).answer({"op": "probe", **PROBE, "through": through})
        assert refusal.value.kind == "unsupported"

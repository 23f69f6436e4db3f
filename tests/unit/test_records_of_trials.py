"""A counter is declared once: the agent's answer, the journal, the result and its schema follow from the record."""

import json
from dataclasses import dataclass, fields

import pytest
from pydantic import TypeAdapter

from lossratio.agent.core.plan import Plan
from lossratio.results.trials import Trial
from lossratio.traffic.answers import read_answer, read_counters
from lossratio.trials import DirectionCounters, LatencyCounters, StreamCounters, TrialOutput, read_record
from lossratio.trials.record import Frames, write_record
from lossratio.values.records import Record


@dataclass(frozen=True)
class WithOneMore(DirectionCounters):
    """The record of a direction with a counter that no release has."""

    echoed_frames: Frames = 0
    """Frames that came back to the port that sent them."""


class Held(Record):
    """As a result holds its directions."""

    directions: tuple[WithOneMore, ...]
    """The counters of each direction."""


def test_a_new_counter_is_in_journal_result_and_schema_once_its_field_is_declared():
    one = WithOneMore("a>b", 9, 8, 7, echoed_frames=3)
    assert read_record(WithOneMore, write_record(one)) == one
    held = Held(directions=(one,))
    assert Held.model_validate_json(held.model_dump_json(), strict=True) == held
    described = Held.model_json_schema()["$defs"]["WithOneMore"]["properties"]
    assert described["echoed_frames"]["description"] == "Frames that came back to the port that sent them."
    assert described.keys() == {field.name for field in fields(one)}


@pytest.mark.parametrize("wrong", [-1, True, "3", 3.0, None])
def test_a_new_counter_is_read_as_strictly_as_all_others(wrong):
    data = {**json.loads(write_record(WithOneMore("a>b", 9, 8, 7))), "echoed_frames": wrong}
    with pytest.raises(ValueError, match="echoed_frames: must be"):
        read_record(WithOneMore, json.dumps(data))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "true", '"1"', "-1"])
def test_times_of_records_are_finite_numbers(text):
    with pytest.raises(ValueError, match="elapsed_s: must be"):
        read_record(
            DirectionCounters,
            f'{{"name":"a>b","intended_frames":1,"sent_frames":1,"received_frames":1,"elapsed_s":{text}}}',
        )


def test_results_and_trials_hold_the_same_records():
    for name in ("directions", "incidents"):
        held, output = (TypeAdapter(kind).json_schema()["properties"][name] for kind in (Trial, TrialOutput))
        assert held["items"] == output["items"]


def test_agents_answer_with_the_names_of_the_records():
    stream = StreamCounters(64, 8, 7)
    counters = DirectionCounters("a>b", 9, 8, 7, elapsed_s=1.0, flows_with_loss=2, jitter_us=0.5, streams=(stream,))
    direction = {**TypeAdapter(DirectionCounters).dump_python(counters, mode="json"), "examination": None}
    latency = LatencyCounters("a>b", 1, 0, 0, 0, None, None, None, None, 1.0, "none came back", hdr=None, histogram=())
    answer = {"directions": [direction], "latency": [TypeAdapter(LatencyCounters).dump_python(latency, mode="json")]}
    assert read_counters(answer, ["a>b"]) == (counters,)
    ended = {"certain_after": None, "ended": False, "most_missing": {}}
    assert read_answer(answer | ended, ["a>b"], Plan(((8.0, 1.0),), latency=True)).latency == (latency,)
    with pytest.raises(ValueError, match="sent: unknown"):
        read_counters({"directions": [{**direction, "sent": 8}]}, ["a>b"])


def test_suites_find_counters_by_their_names_without_a_unit():
    direction = DirectionCounters("a", intended_frames=3, sent_frames=3, received_frames=2, elapsed_s=1.5)
    assert (direction.sent, direction.received, direction.elapsed, direction.jitter) == (3, 2, 1.5, None)
    with pytest.raises(AttributeError, match="a DirectionCounters has no 'recieved'"):
        _ = direction.recieved

"""Goals of single streams: each is searched for by the loss of its own frames."""

import math

import pytest
from at_least_one import at_least_one

from lossratio.errors import SearchError
from lossratio.measurements.throughput.goals import goal_from
from lossratio.mlrsearch import MLRsearch, SearchGoal, goal_result
from lossratio.trials import (
    DirectionCounters,
    StreamFrames,
    TrialInput,
    TrialOutput,
    TrialResult,
    output_from_counters,
    run_search,
)

LIMITS = {"voice": 2345.0, "data": 4321.0}


class Classes:
    """A device that passes so many frames per second of each stream, of which each has half of the load."""

    def measure(self, trial: TrialInput) -> TrialOutput:
        streams = []
        for name, limit in LIMITS.items():
            sent = math.ceil(trial.load * trial.duration / 2.0)
            passed = min(sent, int(limit * trial.duration / 2.0))
            streams.append(StreamFrames(name, sent_frames=sent, received_frames=passed))
        sent = sum(stream.sent_frames for stream in streams)
        received = sum(stream.received_frames for stream in streams)
        counters = DirectionCounters("a>b", sent, sent, received, by_stream=tuple(streams))
        return output_from_counters(trial, [counters])


def goal(stream, **fields):
    return goal_from({"loss_ratio": 0, "duration_sum": "4 s", "name": str(stream), "stream": stream, **fields})


def test_one_search_encloses_the_limits_of_all_streams_and_of_all_frames():
    goals = [goal("voice"), goal("data"), goal(None)]
    found = run_search(MLRsearch(goals, 100.0, 10_000.0), Classes())
    for one, truth in at_least_one(zip(goals, (LIMITS["voice"], LIMITS["data"], min(LIMITS.values())), strict=True)):
        result = found[one]
        assert result.regular
        assert result.relevant_lower_bound <= truth * 1.001
        assert result.relevant_upper_bound >= truth * 0.999


def test_a_result_follows_from_the_trials_alone():
    search = MLRsearch([goal("voice"), goal("data")], 100.0, 10_000.0)
    found = run_search(search, Classes())
    for one, result in at_least_one(found.items()):
        assert goal_result(one, search.evidence, min_load=100.0, max_load=10_000.0) == result


def test_what_earlier_searches_found_of_a_stream_is_a_hint():
    def searched(hints):
        search = MLRsearch([goal("voice"), goal("data")], 100.0, 10_000.0, hints=hints)
        run_search(search, Classes())
        return search

    first = searched([])
    again = searched([first.evidence])
    assert set(again.hinted_loads) == set(again.goals)
    bounds = first.result()
    for one, load in again.hinted_loads.items():
        assert load == pytest.approx(bounds[one].relevant_lower_bound, rel=0.011)


def test_unsent_frames_are_shared_out_among_streams():
    streams = (StreamFrames("voice", 100, 100), StreamFrames("data", 299, 299))
    counters = DirectionCounters("a>b", 400, 399, 399, unsent_frames=1, by_stream=streams)
    result = TrialResult(
        TrialInput(1.0, 400.0), output_from_counters(TrialInput(1.0, 400.0), [counters], tolerance=0.0)
    )
    assert result.of_stream("voice").loss_ratio == pytest.approx(1 / 101)
    assert result.of_stream("data").loss_ratio == pytest.approx(1 / 300)


@pytest.mark.parametrize("fault", [{"duplicated_frames": 1}, {"generator_drop_frames": 1}])
def test_frames_that_may_be_of_any_stream_leave_no_loss_of_a_stream(fault):
    streams = (StreamFrames("voice", 100, 100), StreamFrames("data", 300, 299))
    counters = DirectionCounters("a>b", 400, 400, 399, by_stream=streams, **fault)
    trial = TrialInput(1.0, 400.0)
    result = TrialResult(trial, output_from_counters(trial, [counters]))
    with pytest.raises(SearchError, match="how many frames of the stream 'voice' came back"):
        result.of_stream("voice")


def test_a_trial_without_streams_cannot_be_searched_by_one():
    search = MLRsearch([goal("voice")], 100.0, 1000.0)
    with pytest.raises(SearchError, match="'voice'"):
        search.record(TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.0)))


def test_a_goal_without_a_name_says_its_stream():
    assert str(SearchGoal(0.0, 0.5, 1.0, 2.0, 0.01, stream="voice")) == "loss of voice 0 %"

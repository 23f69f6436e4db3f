import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import ValidationError
from report_examples import (
    BY_THE_BOOK,
    MAX_LOAD,
    MIN_LOAD,
    RESULT,
    as_json,
    conditions,
    mrr,
    mrr_results,
    run,
    searched,
    setup,
    throughput,
    throughput_results,
)

from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.evidence import search_fields
from lossratio.mlrsearch import NDR, PDR
from lossratio.results.conditions import LoadOrigin, LoadSemantics, load_semantics
from lossratio.results.model import Outcome
from lossratio.results.trial_timing import trial_timing
from lossratio.simulation.constant_capacity import SharpKnee

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schema" / "result.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
ANY_RESULTS = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

MUST_STATE = {
    "the unit of every rate": lambda data: (
        set(data["goals"][0]["result"]["relevant_lower_bound"])
        == {"per_interface_fps", "aggregate_fps", "aggregate_l1_bps"}
    ),
    "that each load is per interface": lambda data: (
        data["conditions"]["load"]["applies_to"] == "each transmitting interface"
    ),
    "the fixed factor to the aggregate": lambda data: data["conditions"]["load"]["aggregate_factor"] == 2,
    "every attribute of every goal, also defaults": lambda data: (
        [
            (
                report["goal"]["name"],
                report["goal"]["loss_ratio"],
                report["goal"]["exceed_ratio"],
                report["goal"]["initial_trial_duration_s"],
                report["goal"]["final_trial_duration_s"],
                report["goal"]["duration_sum_s"],
                report["goal"]["width_ratio"],
            )
            for report in data["goals"]
        ]
        == [("NDR", 0.0, 0.5, 1.0, 1.0, 21.0, 0.005), ("PDR", 0.005, 0.5, 1.0, 1.0, 21.0, 0.005)]
    ),
    "what the goal width is relative to": lambda data: (
        data["goals"][0]["goal"]["width_relative_to"] == "relevant upper bound"
    ),
    "the relevant lower bound": lambda data: (
        149_000 < data["goals"][0]["result"]["relevant_lower_bound"]["per_interface_fps"] <= 150_000
    ),
    "the relevant upper bound": lambda data: (
        150_000 < data["goals"][0]["result"]["relevant_upper_bound"]["per_interface_fps"] < 151_000
    ),
    "the conditional throughput": lambda data: (
        data["goals"][1]["result"]["conditional_throughput"]["per_interface_fps"] == pytest.approx(150_000, rel=1e-4)
    ),
    "whether a result is regular": lambda data: (
        [report["result"]["regular"] for report in data["goals"]] == [True, True]
    ),
    "the reason of an irregular one": lambda data: (
        [report["result"]["reason"] for report in data["goals"]] == [None, None]
    ),
    "every deviation from RFC 2544 section 23, with the times used": lambda data: (
        [
            (deviation["step"], deviation["rfc2544"], deviation["instead"])
            for deviation in data["conditions"]["timing"]["deviations"]
        ]
        == [
            (
                "learning frames and routing update",
                "before every trial, 2 s before the traffic",
                "before the search, 0 s before the traffic",
            ),
            ("wait for residual frames", "2 s", "0.005 s"),
            ("wait for the DUT to restabilise", "at least 5 s", "0.02 s"),
        ]
    ),
    "how effective duration is computed": lambda data: (
        data["conditions"]["timing"]["effective_duration"] == "the intended trial duration"
    ),
    "frame sizes": lambda data: (
        data["conditions"]["traffic"]["frame_sizes"] == [{"size_bytes": 64, "share_ratio": 1.0}]
        and data["conditions"]["traffic"]["average_frame_size_bytes"] == 64.0
    ),
    "frame formats": lambda data: data["conditions"]["traffic"]["frame_format"] == "Ethernet II, IPv4, UDP",
    "addresses": lambda data: "198.18.0.0/16" in data["conditions"]["traffic"]["addresses"],
    "whether traffic goes both ways": lambda data: data["conditions"]["traffic"]["pattern"] == "bidirectional",
    "whether it is meshed": lambda data: data["conditions"]["traffic"]["meshed"] is False,
    "modifiers": lambda data: data["conditions"]["traffic"]["modifiers"] == "254 source addresses in turn",
    "the mix of IP versions": lambda data: data["conditions"]["traffic"]["ip_versions"] == {"IPv4": 1.0},
    "whether the load is constant": lambda data: data["conditions"]["traffic"]["load_shape"] == "constant",
    "how ports relate to the one load": lambda data: (
        data["conditions"]["load"]["directions"] == ["port0>port1", "port1>port0"]
    ),
    "the whole traffic profile": lambda data: data["conditions"]["traffic"]["profile"]["frame_size"] == "64B",
    "which frames are expected to be forwarded": lambda data: (
        "max(sent, ceil((duration - tolerance) x load))" in data["conditions"]["timing"]["expected_frames"]
    ),
    "what happens on negative loss": lambda data: data["conditions"]["timing"]["negative_loss"] == "retry",
    "the SUT's default configuration and what the test changed": lambda data: (
        data["conditions"]["duts"]["DUT1"]
        == {"kind": "linux_bridge", "default": {"ageing_time": 300}, "changed": {"ageing_time": 0}}
    ),
    "where the maximum load comes from": lambda data: data["max_load"]["origin"] == "generator",
    "the theoretical maximum (RFC 2544 section 26)": lambda data: (
        data["max_load"]["theoretical_maximum"]["per_interface_fps"] == pytest.approx(1e9 / (84 * 8))
    ),
}


@pytest.mark.parametrize("statement", MUST_STATE)
def test_a_result_states_what_rfc_9971_wants_in_a_test_report(statement, regular_search):
    assert MUST_STATE[statement](as_json(regular_search))


@pytest.fixture(scope="module")
def regular_search():
    return throughput()


@pytest.mark.whole
@pytest.mark.parametrize("state", ["regular", "irregular", "failed", "mrr"])
def test_results_of_real_searches_fit_the_schema(state, regular_search):
    result = {
        "regular": lambda: regular_search,
        "irregular": lambda: throughput(SharpKnee(capacity=1e7)),
        "failed": lambda: throughput(error="the agent was killed", trials=3),
        "mrr": mrr,
    }[state]()
    VALIDATOR.validate(as_json(result))


@pytest.mark.whole
@ANY_RESULTS
@given(throughput_results() | mrr_results())
def test_any_result_survives_its_file_and_fits_the_schema(result):
    text = RESULT.dump_json(result)
    assert RESULT.validate_json(text) == result
    VALIDATOR.validate(json.loads(text))


@pytest.mark.whole
@ANY_RESULTS
@given(throughput_results())
def test_every_trial_comes_back_from_the_file_as_it_was(result):
    again = RESULT.validate_json(RESULT.dump_json(result))
    assert [read.as_result() for read in again.trials] == [written.as_result() for written in result.trials]


FREE_FORM = {"profile", "topology", "generator", "duts", "settings"}
UNITS = ("_fps", "_bps", "_s", "_bytes", "_frames", "_ratio")
COUNTS = {"repeats", "number", "aggregate_factor", "cpus", "threads_per_core", "links"}
RATIOS = {"loss_ratio_of_sent", "IPv4"}


def numbers(data, name=""):
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in FREE_FORM:
                yield from numbers(value, name if name.endswith(UNITS) else key)
    elif isinstance(data, list):
        for value in data:
            yield from numbers(value, name)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield name


@pytest.mark.parametrize("make", [throughput, mrr])
def test_the_name_of_every_number_says_its_unit(make):
    missing = set(numbers(as_json(make())))
    assert len(missing) > 15
    assert {name for name in missing - COUNTS - RATIOS if not name.endswith(UNITS)} == set()


def test_the_schema_describes_every_field():
    fields = {
        f"{name}.{field}": description
        for name, definition in SCHEMA["$defs"].items()
        for field, description in definition.get("properties", {}).items()
    }
    assert len(fields) > 100
    assert {name for name, given in fields.items() if "description" not in given and "$ref" not in given} == set()


def test_times_are_written_in_utc():
    data = as_json(throughput())
    assert data["started"] == "2026-08-01T12:00:00.250000Z"


def test_aggregate_and_bandwidth_follow_from_the_rate_per_interface():
    rate = run().conditions.rate(50_000.0)
    assert (rate.per_interface_fps, rate.aggregate_fps) == (50_000.0, 100_000.0)
    assert rate.aggregate_l1_bps == 100_000 * (64 + 20) * 8


def test_without_a_known_link_speed_there_is_no_theoretical_maximum():
    assert run().conditions.max_load(1e5, LoadOrigin.GIVEN).theoretical_maximum is None


def test_a_trial_as_in_rfc_2544_has_no_deviation():
    assert BY_THE_BOOK.deviations == ()


def test_learning_is_stated_with_its_times():
    timing = trial_timing(
        learning="before the search",
        learning_s=0.1,
        learning_fps=100.0,
        neighbours="static entries",
        wait_before_s=0.0,
        wait_after_s=2.0,
        recovery_s=5.0,
        tolerance_s=0.0,
        negative_loss="retry",
    )
    assert (timing.learning_s, timing.learning_fps, timing.neighbours) == (0.1, 100.0, "static entries")
    (deviation,) = timing.deviations
    assert deviation.instead == "before the search, for 0.1 s at 100 fps, 0 s before the traffic"


def test_never_learning_is_a_deviation_without_a_time():
    timing = trial_timing(
        learning="never", wait_before_s=2.0, wait_after_s=2.0, recovery_s=5.0, tolerance_s=0.0, negative_loss="retry"
    )
    assert [deviation.instead for deviation in timing.deviations] == ["never"]


def test_the_aggregate_factor_is_the_sum_of_the_directions_shares():
    with pytest.raises(ValidationError, match="must be 1, the sum of the shares"):
        LoadSemantics(directions=("port0>port1",), shares_ratio=(1.0,), aggregate_factor=2)
    with pytest.raises(ValidationError, match="1 directions have 2 shares"):
        LoadSemantics(directions=("port0>port1",), shares_ratio=(1.0, 1.0), aggregate_factor=2)


def test_a_load_of_one_direction_has_the_aggregate_that_the_shares_make():
    load = load_semantics({"port0>port1": 1.0, "port1>port0": 0.25}, encapsulation_overhead=50)
    assert load.applies_to == "what sends port0>port1"
    assert load.directions_in_words == "port0>port1, 0.25 of it port1>port0"
    rate = conditions().model_copy(update={"load": load}).rate(1000.0)
    assert (rate.aggregate_fps, rate.aggregate_l1_bps) == (1250.0, 1250.0 * (64 + 50 + 20) * 8)


def test_a_failed_search_has_trials_but_no_result():
    result = throughput(error="the agent was killed", trials=3)
    assert result.outcome is Outcome.FAILED
    assert [report.result for report in result.goals] == [None, None]
    assert len(result.trials) == 3


def test_a_failed_mrr_measurement_has_no_rate():
    assert mrr(error="the agent was killed", trials=0).mrr is None


def test_a_warm_up_is_kept_but_is_no_evidence():
    goal_results, entries = searched(SharpKnee(capacity=1e7))
    test_run = run()
    max_load, search = setup(test_run)
    search["settings"]["warm_up_duration_s"] = 1.0
    result = ThroughputResult(**search_fields(test_run, max_load, search, goal_results, entries))
    assert [trial.is_evidence for trial in result.trials] == [False, *[True] * (len(entries) - 1)]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"outcome": "irregular"}, "the outcome must be 'measured'"),
        ({"error": "agent lost"}, "a measurement has an error if and only if it failed"),
        ({"outcome": "failed"}, "a measurement has an error if and only if it failed"),
        ({"outcome": "failed", "error": "agent lost"}, "a failed measurement has no goal results"),
        ({"ended": "2026-08-01T11:00:00Z"}, "a test cannot end before it starts"),
        ({"started": "2026-08-01T11:00:00"}, "timezone"),
        ({"goals": []}, "at least 1 item"),
        ({"comment": "fine"}, "Extra inputs are not permitted"),
        ({"kind": "telemetry"}, "kind"),
    ],
)
def test_data_that_contradict_themselves_are_no_result(regular_search, change, complaint):
    with pytest.raises(ValidationError, match=complaint):
        RESULT.validate_python({**as_json(regular_search), **change})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"reason": "the time ran out"}, "an irregular goal result has a reason, and a regular one has none"),
        ({"regular": False}, "an irregular goal result has a reason, and a regular one has none"),
        ({"relevant_upper_bound": None}, "a regular goal result has both bounds"),
        ({"conditional_throughput": None}, "if and only if there is a relevant lower bound"),
    ],
)
def test_a_goal_result_that_contradicts_itself_is_none(regular_search, change, complaint):
    data = as_json(regular_search)
    data["goals"][0]["result"].update(change)
    with pytest.raises(ValidationError, match=complaint):
        RESULT.validate_python(data)


def test_the_outcome_of_an_mrr_measurement_goes_with_its_rate():
    with pytest.raises(ValidationError, match="a measured result has mrr"):
        RESULT.validate_python({**as_json(mrr()), "mrr": None})


def test_infinity_is_no_rate(regular_search):
    data = as_json(regular_search)
    data["min_load"]["per_interface_fps"] = float("inf")
    with pytest.raises(ValidationError, match="finite"):
        RESULT.validate_python(data)


@pytest.mark.whole
def test_goals_keep_their_order():
    assert [report.goal.name for report in throughput(goals=(PDR, NDR)).goals] == ["PDR", "NDR"]


def test_loads_of_the_search_are_in_the_result(regular_search):
    assert regular_search.min_load.per_interface_fps == MIN_LOAD
    assert regular_search.max_load.rate.per_interface_fps == MAX_LOAD
    assert regular_search.trials[0].load_per_interface_fps == MAX_LOAD

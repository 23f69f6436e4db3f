"""Latency in results, in words, in pictures, and as CSIT has it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings, strategies as st
from latency_examples import FORWARD, REVERSE, at, counters, dead, failed, result
from pydantic import ValidationError
from report_examples import RESULT, conditions, throughput
from test_csit_export import RESULT as RESULT_SCHEMA, identity, named

from lossratio.errors import ReportError
from lossratio.measurements.latency import LatencyPoint
from lossratio.measurements.latency.histogram import Histogram
from lossratio.measurements.latency.measure import Measured
from lossratio.measurements.latency.result import LatencyAtLoad, direction_latency, latency_lines
from lossratio.measurements.latency.view import latency_picture
from lossratio.report.csit import csit_export
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results import doubts_of
from lossratio.results.findings import findings_of, message
from lossratio.results.model import Outcome
from lossratio.results.trials import describe_trials
from lossratio.simulation.measurer import BASE_DELAY, simulated_latency
from lossratio.trials import (
    DirectionCounters,
    JournalEntry,
    LatencyOutput,
    TrialInput,
    TrialOutput,
    TrialResult,
    output_from_counters,
)


def test_percentiles_are_reported_as_far_as_there_are_frames():
    (direction,) = at(100e3, counters()).directions
    assert direction.percentiles_us == {"50": 10.0, "90": 10.0, "99": 50.0, "99.9": 50.0}
    assert direction.variation_us == 40.0
    (few,) = at(100e3, counters(histogram=((10.0, 99),))).directions
    assert few.variation_us is None


def test_no_percentile_is_above_the_largest_latency():
    direction = direction_latency(counters(histogram=((10.0, 98), (99_822.0, 2)), most_us=99_822.0))
    assert direction.percentiles_us["99"] == direction.most_us == 99_822.0


def test_no_percentile_is_below_the_smallest_latency():
    direction = direction_latency(counters(histogram=((49_900.0, 1000),), least_us=50_010.0, most_us=50_100.0))
    assert direction.percentiles_us["50"] == direction.least_us == 50_010.0


@pytest.mark.parametrize(
    ("histogram", "interval_ratio", "variation"),
    [
        # Intervals of 390 us around 50 ms cannot show a variation of 90 us.
        (((50_010.0, 1), (50_100.0, 999)), 1 / 128, None),
        (((50_010.0, 999), (50_100.0, 1)), 1 / 128, None),
        (((50_010.0, 1), (50_200.0, 999)), 0.0, pytest.approx(190.0, abs=25.0)),
        (((50_010.0, 1), (51_010.0, 999)), 1 / 128, pytest.approx(1000.0, abs=25.0)),
        (((50_010.0, 1000),), 1 / 128, 0.0),
    ],
)
def test_a_variation_that_the_histogram_cannot_show_is_not_reported(histogram, interval_ratio, variation):
    least, most = histogram[0][0], histogram[-1][0]
    changes = {"least_us": least, "most_us": most, "mean_us": (least + most) / 2, "resolution_us": 0.1}
    direction = direction_latency(counters(histogram=histogram, interval_ratio=interval_ratio, **changes))
    assert direction.variation_us == variation


# The curve of a histogram takes 0.1 s.
@settings(max_examples=20)
@given(st.lists(st.integers(1, 10_000_000), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_latencies_to_three_digits(latencies):
    histogram = Histogram.of([(value / 10.0, 1) for value in latencies], 0.1)
    exact = np.percentile(latencies, 50.0, method="inverted_cdf") / 10.0
    assert histogram.percentiles([50.0]).get("50", exact) == pytest.approx(exact, rel=1e-3)
    again = Histogram.decode(histogram.encode(), 0.1)
    assert again.curve() == histogram.curve()
    assert again.count == len(latencies)


@pytest.mark.parametrize(("fast", "slow", "percent"), [(446, 5, 99.0), (4496, 5, 99.9), (4957, 6, 99.9)])
def test_no_percentile_is_below_the_latency_that_its_share_of_the_frames_has(fast, slow, percent):
    histogram = Histogram.of([(10.0, fast), (500.0, slow)], 0.5)
    assert fast / (fast + slow) < percent / 100.0
    assert histogram.percentiles([percent]) == {f"{percent:g}": 500.0}


def test_a_histogram_of_the_generator_s_own_is_taken_as_it_is():
    recorded = HdrHistogram(1, 10_000, 3)
    for value in range(1, 101):
        recorded.record_value(value, 10)
    text = recorded.encode().decode()
    (direction,) = at(100e3, counters(histogram=(), hdr=text)).directions
    assert direction.percentiles_us == {"50": 50.0, "90": 90.0, "99": 99.0, "99.9": 100.0}
    assert direction.histogram_unit_us == 1.0


def recorded(*latencies):
    histogram = HdrHistogram(1, 10_000_000, 3)
    for latency, frames in latencies:
        histogram.record_value(latency, frames)
    return {"hdr": histogram.encode().decode(), "histogram": (), "least_us": 1.0, "most_us": 5_000.0}


def test_the_mean_is_that_of_the_histogram_and_not_of_the_generators_last_seconds():
    direction = direction_latency(counters(**recorded((5, 900), (500, 100)), mean_us=400.0))
    assert direction.percentiles_us["50"] == 5.0
    assert direction.mean_us == pytest.approx(54.5)


@pytest.mark.parametrize("missing", [2, 1000])
def test_a_histogram_that_lacks_frames_that_came_back_has_no_percentiles(missing):
    some = ((20, 1000 - missing),) if missing < 1000 else ()
    direction = direction_latency(counters(**recorded(*some), mean_us=400.0))
    assert (direction.percentiles_us, direction.histogram, direction.variation_us) == ({}, None, None)
    assert direction.mean_us == 400.0


def test_text_that_is_no_histogram_is_an_error():
    with pytest.raises(ReportError, match="cannot be read"):
        Histogram.decode("bm9uZQ==")


def test_a_direction_that_failed_says_why_and_the_other_stays():
    latency_result = result(at(100e3, counters(), dead(REVERSE)))
    assert latency_result.outcome is Outcome.IRREGULAR
    assert message(latency_result).splitlines()[:5] == [
        "Latency: at 100,000 frames/s of 64 B each way in a trial of 5 s, "
        "of which 0.1 % are missing, a frame takes 15.0 µs on average "
        f"and 1000 µs at most, but nothing is known about {REVERSE}.",
        "latency          least     mean     50 %     90 %     99 %   99.9 %     most   jitter",
        "latency at 100.00 kfps per interface; 0.1 % of the frames are missing (20 unsent, 0.098 % of "
        "the sent ones lost)",
        f"  {FORWARD}  10.0 µs  15.0 µs  10.0 µs  10.0 µs  50.0 µs  50.0 µs  1000 µs   2.0 µs",
        f"  {REVERSE}  not measured: None of 1000 latency frames came back.",
    ]
    (finding,) = findings_of([latency_result])
    assert finding.reason == f"100.00 kfps per interface: {REVERSE}: None of 1000 latency frames came back"


def test_a_load_says_what_is_missing_and_why():
    changes = {"loss_ratio": 0.02, "unsent_frames": 1_500, "generator_drop_frames": 3, "late_frames": 7}
    line = at(100e3, counters()).model_copy(update=changes).line()
    # 20,000 of 1,000,000 frames are missing. The others left the generator and never came back.
    causes = "1,500 unsent, 3 dropped by the generator, 7 late, 1.852 % of the sent ones lost"
    assert line == f"latency at 100.00 kfps per interface; 2 % of the frames are missing ({causes})"
    rounded = at(100e3, counters()).model_copy(update={"unsent_frames": 995}).line()
    assert rounded.endswith("0.1 % of the frames are missing (995 unsent)")
    of_earlier_version = at(100e3, counters()).model_copy(update={"duration_s": None}).line()
    assert of_earlier_version.endswith("0.1 % of the frames are missing (10 unsent)")
    without_cause = at(100e3, counters()).model_copy(update={"unsent_frames": 0}).line()
    assert without_cause == "latency at 100.00 kfps per interface; loss 0.1 %"


def test_frames_beyond_the_sent_ones_are_no_loss_of_the_latency_trial():
    trial = TrialInput(5.0, 100e3)
    ways = [DirectionCounters(name, 500_000, 500_000, 515_000) for name in (FORWARD, REVERSE)]
    latencies = LatencyOutput(tuple(ways), (counters(), counters(REVERSE)))
    output = output_from_counters(trial, ways, negative_loss="csit")
    measured = Measured(LatencyPoint(100e3), latencies, TrialResult(trial, output)).at_load(conditions(), 5.0)
    assert (measured.loss_ratio, measured.missing_ratio) == (0.03, 0.0)
    said = "loss 0 %; 30,000 more frames came back than were sent"
    assert measured.line() == f"latency at 100.00 kfps per interface; {said}"
    latency_result = result(measured)
    assert message(latency_result).startswith("Latency: at 100,000 frames/s of 64 B each")
    assert "missing" not in message(latency_result)
    search = throughput().model_copy(update={"latency": (measured,)})
    assert doubts_of([search]) == [()]


def test_a_load_that_failed_says_why_and_the_others_stay():
    latency_result = result(failed(200e3), at(100e3, counters()))
    assert latency_result.outcome is Outcome.IRREGULAR
    assert "latency at 200.00 kfps per interface\n  failed: Interface tg0 went down." in message(latency_result)
    assert RESULT.validate_json(RESULT.dump_json(latency_result)) == latency_result


def test_a_measurement_without_any_latency_failed():
    latency_result = result(failed(200e3), at(100e3, dead()))
    assert latency_result.outcome is Outcome.FAILED
    assert "Interface tg0 went down" in latency_result.error
    with pytest.raises(ValidationError, match="if and only if it has no values"):
        RESULT.validate_python(RESULT.dump_python(latency_result) | {"outcome": "measured", "error": None})


def test_the_picture_has_a_line_for_each_load_and_direction():
    latency = [at(load, counters(), counters(REVERSE), share=share) for load, share in ((90e3, 0.9), (10e3, 0.0))]
    picture = latency_picture(latency, "a test").svg
    names = re.findall(r"<title>([^<]*)</title>", picture)[1:]
    assert names == [
        "90 % of PDR, 90.000 kfps per interface, port0&gt;port1",
        "90 % of PDR, 90.000 kfps per interface, port1&gt;port0",
        "minimum load, 10.000 kfps per interface, port0&gt;port1",
        "minimum load, 10.000 kfps per interface, port1&gt;port0",
    ]
    for tick in ("50 %", "90 %", "99 %", "99.9 %"):
        assert f">{tick}</text>" in picture


def test_there_is_no_picture_of_nothing():
    assert latency_picture([failed(1e3), at(1e3, dead())], "a test").svg == ""


def with_latencies(trial, median, of_99):
    """The same trial by a generator that knows the latency of every frame."""
    known = {"latency_median_us": median, "latency_99_us": of_99, "latency_most_us": 2 * of_99}
    return trial.model_copy(update={"directions": tuple(replace(one, **known) for one in trial.directions)})


def test_trials_whose_every_frame_has_a_latency_are_in_the_message():
    search = throughput()
    known = search.model_copy(update={"trials": tuple(with_latencies(trial, 12.0, 40.0) for trial in search.trials)})
    bound = known.goals[1].result.relevant_lower_bound.per_interface_fps
    count = sum(trial.load_per_interface_fps == bound for trial in known.trials)
    assert (
        "  latency at lower bound  50 %: 12.0 µs, 99 %: 40.0 µs, most 80.0 µs "
        f"(every frame; 50 and 99 %: median of {count} trials)" in message(known)
    )
    assert "latency at lower bound" not in message(search)


CSIT_POINTS = ((135e3, 0.9), (75e3, 0.5), (15e3, 0.1), (9001.0, 0.0))


def csit_result(latency, directions=(FORWARD, REVERSE), pattern="bidirectional"):
    whole = conditions(directions)
    measured_under = whole.model_copy(update={"traffic": whole.traffic.model_copy(update={"pattern": pattern})})
    update = {"latency": latency, "conditions": measured_under}
    case = csit_export(named(throughput().model_copy(update=update))).case
    return json.loads(json.dumps(case))["result"]


def test_csit_gets_all_four_loads_in_whole_microseconds():
    latency = tuple(at(load, counters(), counters(REVERSE), share=share) for load, share in CSIT_POINTS)
    data = csit_result(latency)
    jsonschema.validate(data, RESULT_SCHEMA)
    assert data["latency_forward"].keys() == {"pdr_0", "pdr_10", "pdr_50", "pdr_90"}
    forward = data["latency_forward"]["pdr_90"]
    assert (forward["min"], forward["avg"], forward["max"], forward["unit"]) == (10.0, 15.0, 1000.0, "us")
    assert HdrHistogram.decode(forward["hdrh"]).get_value_at_percentile(99.0) == 50


def test_csit_gets_none_of_a_direction_that_lacks_one():
    latency = tuple(
        at(load, counters(), dead(REVERSE) if share == 0.5 else counters(REVERSE), share=share)
        for load, share in CSIT_POINTS
    )
    assert csit_result(latency).keys() == {"type", "ndr", "pdr", "latency_forward"}


def test_csit_has_all_links_of_one_way_together():
    slow = counters("port2>port3", ((20.0, 500),), least_us=20.0, mean_us=20.0, most_us=20.0)
    latency = tuple(at(load, counters(), slow, share=share) for load, share in CSIT_POINTS)
    data = csit_result(latency, (FORWARD, "port2>port3"), "unidirectional")
    assert data.keys() == {"type", "ndr", "pdr", "latency_forward"}
    forward = data["latency_forward"]["pdr_90"]
    assert (forward["min"], forward["max"]) == (10.0, 1000.0)
    assert forward["avg"] == round((1000 * 15.0 + 500 * 20.0) / 1500)
    merged = HdrHistogram.decode(forward["hdrh"])
    assert [merged.get_count_at_value(value) for value in (10, 20, 50)] == [900, 500, 99]
    assert merged.get_total_count() == 1500
    one_dead = tuple(at(load, counters(), dead("port2>port3"), share=share) for load, share in CSIT_POINTS)
    assert csit_result(one_dead, (FORWARD, "port2>port3"), "unidirectional").keys() == {"type", "ndr", "pdr"}


def test_csit_has_both_ways_of_parallel_links():
    directions = (FORWARD, REVERSE, "port2>port3", "port3>port2")
    latency = tuple(at(load, *map(counters, directions), share=share) for load, share in CSIT_POINTS)
    data = csit_result(latency, directions)
    for way in ("latency_forward", "latency_reverse"):
        assert HdrHistogram.decode(data[way]["pdr_0"]["hdrh"]).get_total_count() == 2000


def test_csit_has_no_latency_alone():
    with pytest.raises(ReportError, match="only as a part of NDR and PDR"):
        csit_export(named(result(at(1e3, counters())), identity()))


def test_a_simulated_queue_delays_more_the_nearer_the_load_is_to_its_capacity():
    rng = np.random.default_rng(1)
    capacity = 100e3
    means = []
    for load in (10e3, 50e3, 90e3):
        latency = simulated_latency(FORWARD, load, capacity, sent=50_000, received=50_000, rng=rng)
        utilization = load / capacity
        # The mean wait in a queue M/D/1 (Pollaczek and Khinchine).
        waited = utilization / (2 * capacity * (1 - utilization)) * 1e6
        assert latency.mean_us == pytest.approx(BASE_DELAY * 1e6 + waited, rel=0.15)
        means.append(latency.mean_us)
    assert means == sorted(means)
    assert simulated_latency(FORWARD, 1e6, None, sent=10, received=10, rng=rng).most_us == pytest.approx(
        BASE_DELAY * 1e6
    )
    assert (
        simulated_latency(FORWARD, 1e6, capacity, sent=10, received=0, rng=rng).error
        == "None of 10 latency frames came back."
    )


def test_latency_is_shown_with_the_load_that_it_was_measured_at():
    counted = counters(least_us=5.0, mean_us=9.25, most_us=80.0)
    direction = replace(direction_latency(counted), percentiles_us={"99": 30.0})
    latency = LatencyAtLoad(goal="PDR", share_ratio=0.9, load=conditions().rate(135e3), directions=(direction,))
    result = throughput().model_copy(update={"latency": (latency,)})
    page = report_page([Run(Path("a-run"), (RESULT.validate_json(RESULT.dump_json(result)),))], "a run")
    assert "90 % of PDR, 135.00 kfps per interface" in page
    assert "99 %: 30.0 µs" in page


def test_a_file_of_before_there_was_latency_stays_readable():
    data = RESULT.dump_python(throughput(), mode="json")
    del data["latency"]
    assert RESULT.validate_python(data).latency == ()


def test_the_most_of_a_sentence_is_that_of_all_directions():
    slow = counters(REVERSE, mean_us=12.0, most_us=50.0)
    first, *_ = message(result(at(100e3, counters(mean_us=11.0, most_us=9_000.0), slow))).splitlines()
    assert first.endswith("a frame takes 12.0 µs on average in the slower direction and 9000 µs at most.")


def test_each_reason_why_nothing_was_measured_has_its_load():
    loads = (at(load, dead(FORWARD), dead(REVERSE)) for load in (1e3, 2e3))
    error = result(*loads).error
    assert error.count("None of 1000 latency frames came back") == 4
    assert f"came back. 2.0000 kfps per interface: {FORWARD}: None" in error
    assert ".;" not in error


def test_frames_that_came_back_with_a_fault_are_not_lost_in_the_latency_trial():
    way = DirectionCounters(FORWARD, 1000, 1000, 990, examined_frames=1000, corrupted_frames=10)
    output = TrialOutput(0.01, sent_frames=1000, lost_frames=10, unsent_frames=0, directions=(way,))
    trials = describe_trials([JournalEntry.of(TrialResult(TrialInput(1.0, 1000.0), output))])
    lossy = at(1e3, counters()).model_copy(update={"loss_ratio": 0.01, "unsent_frames": 0})
    _, line, *_ = latency_lines([lossy], trials)
    assert line.endswith("1 % of the frames are missing (10 frames came back corrupted)")
    _, line, *_ = latency_lines([lossy])
    assert line.endswith("loss 1 %")

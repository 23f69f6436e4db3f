import re
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from report_examples import MAX_LOAD, conditions, mrr, trials_of_any_kind

from lossratio.errors import SearchError
from lossratio.measurements.mrr import MRR_TRIAL_DURATION, NOTHING_LOST, MrrRequest, maximum_receive_rate
from lossratio.results import caveats_of, findings_of, message, view_of
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

ONE_SECOND = TrialInput(1.0, 100_000.0)


def trial(received, elapsed=(1.0, 1.0), sent=100_000):
    names = ("port0>port1", "port1>port0")
    directions = tuple(
        DirectionCounters(name, 100_000, sent, came, unsent_frames=100_000 - sent, elapsed_s=time)
        for name, came, time in zip(names, received, elapsed, strict=True)
    )
    lost, unsent = sum(sent - came for came in received), 2 * (100_000 - sent)
    output = TrialOutput(
        (lost + unsent) / 200_000, sent_frames=2 * sent, lost_frames=lost, unsent_frames=unsent, directions=directions
    )
    return TrialResult(ONE_SECOND, output)


def test_it_is_measured_as_csit_does():
    assert (MrrRequest.model_fields["trials"].default, MRR_TRIAL_DURATION) == (10, 1.0)


def test_a_value_is_what_was_forwarded_over_the_time_really_spent():
    value = maximum_receive_rate([trial((60_000, 40_000), elapsed=(1.0, 1.25))], conditions()).values[0]
    assert value.measured_time_s == 1.25
    assert value.forwarding_rate.aggregate_fps == pytest.approx(100_000 / 1.25)
    assert value.forwarding_rate.per_interface_fps == pytest.approx(50_000 / 1.25)
    assert value.forwarding_rate.aggregate_l1_bps == pytest.approx(100_000 / 1.25 * 84 * 8)
    assert value.directions_fps == pytest.approx({"port0>port1": 60_000, "port1>port0": 32_000})


def test_where_no_time_was_measured_it_is_the_intended_one():
    value = maximum_receive_rate([trial((60_000, 40_000), elapsed=(None, None))], conditions()).values[0]
    assert value.measured_time_s == 1.0
    assert value.forwarding_rate.aggregate_fps == 100_000


def test_mean_and_population_standard_deviation():
    result = maximum_receive_rate([trial((50_000, 50_000)), trial((60_000, 60_000))], conditions())
    assert result.mean.aggregate_fps == 110_000
    assert result.stdev.aggregate_fps == 10_000
    assert result.stdev.per_interface_fps == 5_000


def test_unsent_frames_are_reported_and_are_no_loss():
    result = maximum_receive_rate([trial((80_000, 80_000), sent=80_000)] * 10, conditions())
    assert (result.sent_frames, result.lost_frames, result.unsent_frames) == (1_600_000, 0, 400_000)
    assert result.loss_ratio_of_sent == 0.0
    assert result.mean.aggregate_fps == 160_000


def test_without_counters_the_forwarding_rate_of_the_trial_counts():
    result = maximum_receive_rate([TrialResult(ONE_SECOND, TrialOutput(0.25))], conditions())
    assert result.mean.per_interface_fps == pytest.approx(75_000)
    assert (result.sent_frames, result.loss_ratio_of_sent) == (None, None)


def test_totals_without_directions_are_used():
    output = TrialOutput(0.5, sent_frames=150_000, lost_frames=50_000, unsent_frames=50_000)
    result = maximum_receive_rate([TrialResult(ONE_SECOND, output)], conditions())
    assert result.mean.aggregate_fps == 100_000


def test_nothing_sent_is_a_rate_of_nothing():
    result = maximum_receive_rate([trial((0, 0), sent=0)], conditions())
    assert (result.mean.aggregate_fps, result.loss_ratio_of_sent) == (0.0, None)


@pytest.mark.parametrize("trials", [[], [trial((1, 1)), TrialResult(TrialInput(1.0, 5.0), TrialOutput(0.0))]])
def test_it_needs_trials_at_one_load(trials):
    with pytest.raises(SearchError, match="needs trials at one load"):
        maximum_receive_rate(trials, conditions())


@pytest.mark.whole
@given(st.lists(trials_of_any_kind(MAX_LOAD), min_size=1, max_size=12))
def test_the_mean_lies_among_the_values_and_the_deviation_within_their_range(trials):
    result = maximum_receive_rate(trials, conditions())
    values = [value.forwarding_rate.per_interface_fps for value in result.values]
    assert len(values) == len(trials)
    assert min(values) <= result.mean.per_interface_fps * (1 + 1e-12)
    assert result.mean.per_interface_fps <= max(values) * (1 + 1e-12)
    assert result.stdev.per_interface_fps == pytest.approx(statistics.pstdev(values))
    assert result.stdev.per_interface_fps <= (max(values) - min(values)) / 2 + 1e-9


def test_a_sut_that_loses_nothing_is_remarked_on():
    for capacity, caveats in ((1e7, [NOTHING_LOST]), (300_000.0, [])):
        (finding,) = findings_of([mrr(SharpKnee(capacity=capacity), max_rate=380_000)])
        assert caveats_of(finding) == caveats


def test_a_knee_forwards_its_capacity():
    assert mrr(SharpKnee(capacity=300_000.0)).mrr.mean.aggregate_fps == pytest.approx(300_000, rel=1e-3)


def test_a_single_trial_shows_no_standard_deviation():
    view = view_of(mrr(trials=1))
    (finding,) = view.quantities(mrr(trials=1))
    assert finding.value is not None
    assert finding.deviation is None
    assert "standard deviation" not in message(mrr(trials=1))
    assert "standard deviation" in message(mrr(trials=2))


def mrr_of(*received):
    result = mrr(SharpKnee(capacity=200_000.0), trials=1, load=100_000.0)
    found = maximum_receive_rate([trial(received)], result.conditions)
    return message(result.model_copy(update={"mrr": found})).splitlines()[0]


def test_a_rate_is_each_way_only_if_both_directions_forward_it():
    assert "forwards 75,000 frames/s of 64 B each way at" in mrr_of(75_200, 74_800)
    assert (
        "forwards 37,500 frames/s of 64 B per interface on average (port0>port1: 75,000, port1>port0: 0) at"
    ) in mrr_of(75_000, 0)


def test_a_frame_that_came_back_is_not_hidden_by_rounding():
    assert mrr_of(1, 1).startswith(
        "MRR: forwards 1 frame/s of 64 B each way at the maximum load of 100,000 in a trial of 1 s: 99.999 % "
    )


def test_values_at_low_rates_are_not_rounded_to_whole_frames():
    result = mrr(SharpKnee(capacity=200_000.0), trials=1, load=100_000.0)
    found = maximum_receive_rate([trial((5, 6))], result.conditions)
    lines = message(result.model_copy(update={"mrr": found})).splitlines()
    assert "  values                  5.5 fps per interface" in lines


def test_frames_that_came_back_corrupted_are_beside_the_loss():
    result = mrr(SharpKnee(capacity=200_000.0), trials=1)
    (one,) = result.trials
    way = one.directions[0]
    corrupted = (replace(way, received_frames=way.received_frames - 6, corrupted_frames=6), *one.directions[1:])
    spoilt = result.model_copy(update={"trials": (one.model_copy(update={"directions": corrupted}),)})
    (line,) = (line for line in message(spoilt).splitlines() if line.startswith("  loss "))
    assert re.search(
        r"of the frames sent; of [\d,]+ missing frames: 6 frames came back corrupted; 0 frames unsent", line
    )


def test_one_unsent_frame_is_one_frame():
    (_, *lines) = message(mrr(SharpKnee(capacity=200_000.0), trials=1, load=100_000.5, max_rate=100_000.4)).splitlines()
    assert not re.search(r"\b1 frames", "\n".join(lines))

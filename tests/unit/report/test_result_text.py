import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from report_examples import (
    MAX_LOAD,
    MIN_LOAD,
    counted_trial,
    dropping_trial,
    mrr,
    mrr_results,
    searched,
    throughput,
    throughput_of,
    throughput_results,
)

from lossratio.errors import ReportError
from lossratio.measurements import Progress
from lossratio.measurements.mrr import MaximumReceiveRate, MrrResult, MrrView
from lossratio.measurements.throughput.bounds import BoundsSoFar
from lossratio.measurements.throughput.limits import UNSENT_LIMIT
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, Forecast, GoalBounds, MLRsearch, RelevantBounds
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results import TestResult, findings_of, format_frames_per_second, format_interval, message, view_of
from lossratio.results.conditions import LoadOrigin
from lossratio.results.findings import provenance
from lossratio.results.note import NoteKind, noted
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import Exchange, TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput
from lossratio.values.units import printable

ANY_RESULTS = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
REGULAR = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, lost=3)] * 21]


def lines_of(result):
    """The lines of a message, without the last one: the examples are simulated."""
    *lines, last = message(result).splitlines()
    assert last == "Simulated: no frame was sent, and the numbers come from a model."
    return lines


def test_the_message_of_a_regular_search():
    assert lines_of(throughput_of(REGULAR)) == [
        "NDR: forwards 100,000 frames/s of 64 B each way without loss "
        "in trials of 1 s; the limit is proved to within 0.4 %.",
        "NDR (loss ratio at most 0 %): regular",
        "  offered load, lower        100,000 fps per interface     200,000 fps aggregate, L1 134.40 Mbit/s",
        "  offered load, upper        100,400 fps per interface     200,800 fps aggregate, L1 134.94 Mbit/s",
        "  conditional throughput     100,000 fps per interface     200,000 fps aggregate, L1 134.40 Mbit/s",
        "Aggregates are rates per interface times 2 (port0>port1, port1>port0); frames of 64 bytes; "
        "42 trials in 42.0 s.",
    ]


def test_doubts_come_directly_after_the_sentences():
    late = replace(REGULAR[-1].output, loss_ratio=3e-5, lost_frames=3, late_frames=3)
    doubted = throughput_of([*REGULAR, replace(REGULAR[-1], output=late)])
    first, second, third, *_ = message(doubted).splitlines()
    assert first.startswith("NDR: ")
    assert second.startswith("Doubt: late frames: 3 of the 66 missing frames were only late")
    assert third == "NDR (loss ratio at most 0 %): regular"


def test_the_message_of_a_search_that_found_the_generators_limit():
    trials = [*[counted_trial(100_000.0)] * 21, *[counted_trial(100_400.0, unsent=300)] * 21]
    lines = lines_of(throughput_of(trials))
    assert lines[0].endswith(f"each way without loss in trials of 1 s; the SUT may forward more: {UNSENT_LIMIT}.")
    assert lines[1] == f"NDR (loss ratio at most 0 %): irregular: {UNSENT_LIMIT}"
    assert lines[-1] == "The generator could not send 6,300 frames, in 21 of the trials."


def stalled_trial(lateness, unsent=0):
    counters = DirectionCounters("port0>port1", 100_000, 100_000 - unsent, 100_000 - unsent, lateness_s=lateness)
    return replace(REGULAR[0], output=replace(REGULAR[0].output, unsent_frames=unsent, directions=(counters,)))


def test_stalls_of_the_generator_are_reported():
    trials = [*[stalled_trial(0.0009)] * 20, stalled_trial(0.0432), stalled_trial(None), *REGULAR[21:]]
    result = throughput_of(trials)
    stalls = "The generator was stalled for up to 43.2 ms, in one of the trials. It then"
    stalls = f"{stalls} sent faster than the load to catch up."
    # That is how it was measured: pages fold it, and the console shows it if it is asked to.
    assert provenance(result).splitlines()[-1] == stalls
    assert stalls not in message(result)
    page = unescape(report_page([Run(Path("run"), (result,))], "A run"))
    folded = page.partition("<details><summary>How it was measured</summary>")[2].partition("</details>")[0]
    assert stalls in folded


def test_the_remedy_for_frames_unsent_in_stalls_is_reported():
    trials = [stalled_trial(0.0432, unsent=2), *REGULAR[1:]]
    remedy = lines_of(throughput_of(trials))[-1]
    # A load that is too much for the generator is never sent whole.
    assert remedy.startswith(
        "The generator could send more if other programs on its machine used less CPU time, or with a larger "
    )


def test_bounds_at_the_ends_of_the_search_are_said_to_be_there():
    good = throughput_of([counted_trial(MAX_LOAD)] * 21, origin=LoadOrigin.LINK)
    first, *lines = lines_of(good)
    assert first.endswith("without loss in trials of 1 s; that is the maximum load, and the SUT may forward more.")
    assert lines[0].endswith("irregular: the maximum load is a lower bound")
    assert lines[1].endswith("(the maximum load)")
    # A load that meets the goal is no upper bound, on no surface.
    assert lines[2] == "  offered load, upper     none"
    (finding,) = findings_of([good])
    assert (finding.lower_bound, finding.upper_bound) == (good.max_load.rate, None)
    first, *lines = lines_of(throughput_of([counted_trial(MIN_LOAD, lost=1)] * 21))
    assert first == "NDR: no load was found that meets it: the minimum load is an upper bound."
    assert lines[1] == "  offered load, lower     none"
    assert lines[2].endswith("(the minimum load)")
    assert lines[3] == "  conditional throughput  none"


def test_one_trial_is_one():
    assert "64 bytes; 1 trial in " in message(throughput_of([counted_trial(MAX_LOAD)]))
    assert "\nMRR (1 trial at maximum load, " in message(mrr(trials=1))


def test_a_failure_is_all_that_is_said_about_a_failed_search():
    lines = message(throughput_of(REGULAR, error="The agent was killed.")).splitlines()
    assert lines[0] == "failed, no result: The agent was killed."
    assert not any("bound" in line or "throughput" in line for line in lines)


def test_remarks_are_in_the_message():
    lines = message(throughput_of(REGULAR, remarks=(noted("the goal is wide"),))).splitlines()
    assert lines[-1] == "Note: the goal is wide"


def test_parallel_links_are_counted():
    result = throughput_of(REGULAR)
    testbed = result.conditions.testbed.model_copy(update={"links": 2})
    conditions = result.conditions.model_copy(update={"testbed": testbed})
    lines = lines_of(result.model_copy(update={"conditions": conditions}))
    assert "(port0>port1, port1>port0) over 2 parallel links; frames of 64 bytes" in lines[-1]


@pytest.mark.parametrize(("capacity", "is_doubted"), [(1e5, True), (1e7, False)])
def test_an_mrr_that_loses_what_passed_before_is_doubted(capacity, is_doubted):
    before = noted("before the first trial, the device passed 39,918 frames, and lost none", NoteKind.PASSED)
    result = mrr(SharpKnee(capacity=capacity))
    doubts = message(result.model_copy(update={"remarks": (before,)}))
    assert ("each trial lost frames. But before the first trial, the device passed 39,918" in doubts) is is_doubted
    assert "used up" not in message(result)


def test_the_message_of_an_mrr_measurement():
    lines = lines_of(mrr(SharpKnee(capacity=1e7), max_rate=380_000.0))
    assert lines == [
        "MRR: forwards 380,000 frames/s of 64 B each way at the maximum load of about 380,000 (400,000 asked) "
        "in trials of 1 s: no frame is lost; the SUT may forward more.",
        "Doubt: unsent frames: the generator left 4.999 % of the frames unsent in the trials at 400.00 kfps per "
        "interface. This load was not offered, so the numbers of these trials are for smaller loads. Measure at a "
        "load that it can send",
        "MRR (10 trials at maximum load, 400,000 fps per interface): frames forwarded over the actual time",
        "  mean                       380,000 fps per interface     760,000 fps aggregate, L1 510.72 Mbit/s",
        "  standard deviation            0.00 fps per interface        0.00 fps aggregate, L1 0 bit/s",
        f"  values                  {'380,000 ' * 10}fps per interface",
        "  loss                    0 % of the frames sent; 399,920 frames unsent, which does not count as loss",
        "Note: no frame was lost at maximum load: the SUT may forward more",
        "Aggregates are rates per interface times 2 (port0>port1, port1>port0); frames of 64 bytes; "
        "10 trials in 10.0 s.",
        "The generator could not send 399,920 frames, in 10 of the trials.",
    ]


@pytest.mark.whole
@ANY_RESULTS
@given(throughput_results())
def test_the_message_never_hides_an_irregular_result(result):
    text = message(result)
    assert result.goals
    for report in result.goals:
        if report.result is None:
            assert text.startswith(f"failed, no result: {printable(result.error)}")
        elif not report.result.regular:
            allowed = f"{report.goal.loss_ratio * 100:.4g} %"
            assert f"{report.goal.name} (loss ratio at most {allowed}): irregular: {report.result.reason}\n" in text
        else:
            assert f"{report.goal.name} (loss ratio at most {report.goal.loss_ratio * 100:.4g} %): regular\n" in text


@pytest.mark.whole
@ANY_RESULTS
@given(throughput_results() | mrr_results())
def test_every_rate_in_a_message_says_what_it_is_a_rate_of(result):
    if result.error is not None or result.remarks:
        return
    a_rate = re.compile(r"[\d,.]+ [kMG]?(?:fps|bit/s)(?: \S+){2}")
    rates = [(line, rate) for line in message(result).splitlines() for rate in a_rate.findall(line)]
    assume(rates)
    for line, rate in rates:
        is_bandwidth = "bit/s" in rate and f"L1 {rate.split(' (')[0]}" in line
        assert is_bandwidth or rate.split("s ", 1)[1].startswith(("per interface", "aggregate")), line


@given(st.floats(1.0, 1e9))
def test_a_rate_is_written_to_a_hundredth_of_a_per_cent_or_better(rate):
    written = float(format_frames_per_second(rate).removesuffix(" fps").replace(",", ""))
    assert written == pytest.approx(rate, rel=1e-4, abs=0.0051)


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (149_770.0, 150_520.0, "149.77 to 150.52 kfps"),
        (999_000.0, 1_001_000.0, "999.00 kfps to 1.0010 Mfps"),
        (75_000.1, 75_000.2, "75.000 kfps"),
        (200_000.0, None, "from 200.00 kfps"),
        (200_000.0, 200_000.0, "from 200.00 kfps"),
        (None, 9_001.0, "below 9.0010 kfps"),
        (None, None, "no bounds"),
    ],
)
def test_intervals_in_words(lower, upper, text):
    assert format_interval(lower, upper) == text


def test_frames_that_the_generator_dropped_are_reported():
    text = message(throughput_of([dropping_trial(50_000.0, lost=1500, dropped=1200)] * 2))
    assert "the generator dropped 2,400 frames that came back in 2 trials" in text


def trial(loss_ratio=0.0, unsent=None):
    return TrialResult(TrialInput(1.0, 50_250.0), TrialOutput(loss_ratio, unsent_frames=unsent))


def progress_line(number, trial, bounds, time_left=None):
    return Progress(number, trial, tuple(bounds), time_left).line()


def test_a_line_of_progress():
    bounds = [
        GoalBounds(NDR, RelevantBounds(50_000.0, 50_250.0), RelevantBounds(50_000.0, 50_250.0)),
        GoalBounds(PDR, RelevantBounds(50_000.0, None), RelevantBounds(50_250.0, 51_000.0)),
    ]
    assert progress_line(12, trial(0.0012), bounds, Forecast(259.6, 240.0, 400.0)) == (
        "trial  12  50.250 kfps for 1 s  loss 0.12 %     NDR 50-50.25k      PDR ~50.25-51k     4min 20s left"
    )


def test_lines_of_connections_speak_of_connections():
    opened = TrialResult(TrialInput(1.0, 2_203.0, exchange=Exchange()), TrialOutput(0.0))
    line = progress_line(1, opened, [])
    assert line.startswith("trial   1  2,203 conn/s for 1 s ")
    assert line.endswith("established 2,203 conn/s per interface")


def test_columns_stay_where_they_are_behind_a_small_loss_of_four_digits():
    lines = [progress_line(1, trial(loss), [], Forecast(7.0, 7.0, 7.0)) for loss in (0.0, 0.0002061, 0.1234)]
    assert len({line.index("forwarded") for line in lines}) == 1


def test_progress_names_the_rule_that_chose_the_trial_if_asked():
    progress = Progress(1, trial(), (), Forecast(7.0, 7.0, 7.0), rule="proof")
    assert progress.line().endswith("7s left")
    assert progress.line(verbose=True).endswith("7s left  proof")


def test_progress_without_timeout_has_no_time_left():
    assert progress_line(
        1, trial(), [GoalBounds(NDR, RelevantBounds(None, None), RelevantBounds(None, 50_250.0))]
    ).endswith("NDR ~<50.25k")


def test_progress_without_goals_shows_the_forwarding_rate():
    assert progress_line(3, trial(0.5), [], Forecast(7.0, 7.0, 7.0)) == (
        "trial   3  50.250 kfps for 1 s  loss 50 %       forwarded 25.125 kfps per interface  7s left"
    )


def test_progress_shows_unsent_frames():
    assert "loss 50 % (25,125 unsent)" in progress_line(1, trial(0.5, 25_125), [])


@given(st.floats(min_value=1e-12, max_value=1.0))
def test_a_loss_is_never_shown_as_none(loss_ratio):
    assert "loss 0 %" not in progress_line(1, trial(loss_ratio), [])


def test_no_time_is_left_after_the_timeout():
    assert progress_line(1, trial(), [], Forecast(-3.0, -3.0, -3.0)).endswith("0s left")


@pytest.mark.whole
def test_lines_of_progress_of_a_whole_search_are_aligned():
    goal_results, entries = searched(SharpKnee(capacity=300_000.0))
    so_far = BoundsSoFar(goal_results)
    lines = [
        progress_line(number, entry.result, so_far.add(entry.result), Forecast(100.0, 100.0, 100.0))
        for number, entry in enumerate(entries, start=1)
    ]
    assert len({line.index("NDR") for line in lines}) == 1
    assert len({line.index("PDR") for line in lines}) == 1
    assert all(len(line) <= 100 for line in lines)
    low, high = goal_results[NDR].relevant_lower_bound, goal_results[NDR].relevant_upper_bound
    assert f"NDR {low / 1e3:.4g}-{high / 1e3:.4g}k " in lines[-1]


def test_progress_ends_where_the_result_is():
    result = throughput()
    so_far = BoundsSoFar([NDR, PDR])
    last = [so_far.add(trial.as_result()) for trial in result.trials][-1]
    assert last
    for report, bounds in zip(result.goals, last, strict=True):
        assert bounds.proved.lower == report.result.relevant_lower_bound.per_interface_fps
        assert bounds.proved.upper == report.result.relevant_upper_bound.per_interface_fps


@pytest.mark.whole
@pytest.mark.parametrize("goals", [[NDR, PDR], [RFC2544, TST009]], ids=["CSIT", "RFC 2544 and TST009"])
def test_the_controllers_bounds_are_those_that_the_report_follows(goals):
    controller, so_far = MLRsearch(goals, 9001.0, 1e6), BoundsSoFar(goals)
    while (asked := controller.next_trial()) is not None:
        share = max(0.0, 1.0 - 300_000.0 / asked.load)
        controller.record(TrialResult(asked, TrialOutput(share)))
        assert controller.bounds == so_far.add(TrialResult(asked, TrialOutput(share)))
    assert controller.bounds[0].proved.upper is not None


def test_attempts_are_named_with_all_their_reasons():
    base = mrr()
    first, *rest = base.trials
    trials = (first.model_copy(update={"repeats": 2, "repairs": ("TG rebooted", "TG still boots")}), *rest)
    result = base.model_copy(update={"trials": trials})
    text = provenance(result)
    assert "because the generator faltered or miscounted, or the testbed changed: 2." in text
    # The second repair was tried because the first one failed: the trial was measured again once.
    assert "Attempts to repair the infrastructure before a trial was measured again: 2." in text


def test_a_result_knows_the_view_of_its_kind():
    assert type(mrr().view()) is MrrView
    assert view_of(mrr()) is mrr().view()


def test_a_kind_of_another_name_does_not_show_these_results():
    class Other(MaximumReceiveRate):
        name = "other"
        result = MrrResult

        def view(self):
            raise AssertionError("these are results of another kind")

    assert "MRR" in message(mrr())
    assert Other.result is MrrResult


def test_a_result_of_no_kind_says_so():
    result = TestResult.model_construct(**dict(mrr()))
    with pytest.raises(ReportError, match="Cannot show a TestResult: no kind of measurement has results"):
        str(result)

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from report_examples import (
    MAX_LOAD,
    MIN_LOAD,
    counted_trial,
    dropping_trial,
    searched,
    stalled_trial,
    throughput,
    throughput_of,
    trials_of_any_kind,
)

from lossratio.errors import StarvedGeneratorError, TesterError
from lossratio.measurements.throughput.limits import (
    DROPS_LIMIT,
    LATE_LIMIT,
    MAX_LOAD_OF_GENERATOR,
    STALL_LIMIT,
    STARVED_LIMIT,
    UNSENT_LIMIT,
    check_generator,
    is_disturbed,
    is_least,
    judge,
)
from lossratio.measurements.throughput.measure import Throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.measurements.throughput.requirement import require_throughput
from lossratio.mlrsearch import NDR, PDR, IrregularReason, goal_result
from lossratio.report import render
from lossratio.report.run import Run
from lossratio.results.conditions import LoadOrigin
from lossratio.results.contradictions import contradictions_of
from lossratio.results.findings import doubts_of, findings_of, message
from lossratio.results.model import Outcome
from lossratio.results.note import NoteKind
from lossratio.results.view import CsitExportError, view_of
from lossratio.simulation.constant_capacity import ConstantLoss, SharpKnee
from lossratio.testbed.loads import LoadRange
from lossratio.traffic import load_profile
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import Incident, StreamFrames, TrialOutput


def judged(trials, goal=NDR, origin=LoadOrigin.GENERATOR):
    return judge(goal_result(goal, trials, min_load=MIN_LOAD, max_load=MAX_LOAD), trials, max_load_origin=origin)


BELOW = [counted_trial(100_000.0)] * 21


def test_a_bound_that_lost_frames_is_the_suts():
    assert judged([*BELOW, *[counted_trial(100_400.0, lost=3)] * 21]) is None


def test_a_bound_of_nothing_but_unsent_frames_is_the_generators():
    assert judged([*BELOW, *[counted_trial(100_400.0, unsent=3)] * 21]) == UNSENT_LIMIT


def test_lost_frames_count_even_where_others_were_unsent():
    assert judged([*BELOW, *[counted_trial(100_400.0, lost=1, unsent=3000)] * 21]) is None


def test_loss_within_the_goal_does_not_excuse_the_generator():
    at_upper = [counted_trial(100_400.0, lost=100, unsent=1000)] * 21
    assert judged([*BELOW, *at_upper], PDR) == UNSENT_LIMIT
    assert judged([*BELOW, *at_upper], NDR) is None


def test_the_generator_is_not_to_blame_where_one_of_two_goals_fails_by_the_sut():
    unsent = counted_trial(MIN_LOAD, unsent=round(0.51 * MIN_LOAD))
    with pytest.raises(StarvedGeneratorError):
        check_generator([unsent] * 21, [NDR, PDR], is_one_enough=True)
    lossy = counted_trial(MIN_LOAD, lost=1, unsent=round(0.51 * MIN_LOAD))
    check_generator([lossy] * 21, [NDR, PDR], is_one_enough=True)


@pytest.mark.parametrize("is_one_enough", [True, False])
@pytest.mark.parametrize(("exceed_ratio", "unsent", "ends"), [(0.5, 10, False), (0.5, 11, True), (0.0, 1, True)])
def test_unsent_trials_end_a_search_once_the_goal_no_longer_allows_them(exceed_ratio, unsent, ends, is_one_enough):
    goal = replace(NDR, exceed_ratio=exceed_ratio)
    trials = [counted_trial(MIN_LOAD, unsent=5)] * unsent
    refusal = pytest.raises(StarvedGeneratorError, match="reports 5 unsent frames of ") if ends else nullcontext()
    with refusal:
        check_generator(trials, [goal], is_one_enough=is_one_enough)


def test_a_search_does_not_follow_a_disturbed_generator_down():
    sent = counted_trial(100_000.0)
    slow = counted_trial(40_000.0, unsent=20_000)
    few = counted_trial(40_000.0, unsent=20)
    assert is_disturbed(slow, [sent, slow])
    # It may be the generator's capacity, or so few frames that they matter to nobody.
    assert not is_disturbed(slow, [slow])
    assert not is_disturbed(few, [sent, few])
    with pytest.raises(StarvedGeneratorError, match=r"in full and lost nothing is 100.00 kfps"):
        check_generator([slow] * 21, [NDR, PDR], is_one_enough=False, others=[sent, slow])


def test_unsent_trials_of_the_run_that_is_resumed_count_as_well():
    kind = Throughput()
    loads = LoadRange(MIN_LOAD, MAX_LOAD, LoadOrigin.GENERATOR)
    request = SearchRequest(profile=load_profile("ethip4-udp", frame_size="64B"), goals=(NDR,))
    controller = kind.controller(request, loads)
    unsent = counted_trial(MIN_LOAD, unsent=5)
    for _ in range(10):
        controller.record(unsent)

    check = kind.watch(request, loads)
    controller.record(unsent)
    with pytest.raises(StarvedGeneratorError, match=r"shows nothing about the device's throughput, .* reports 5 un"):
        check(unsent)


def test_a_bound_of_nothing_but_frames_that_the_generator_dropped_is_the_generators():
    assert judged([*BELOW, *[dropping_trial(100_400.0, lost=3, dropped=3)] * 21]) == DROPS_LIMIT


def test_frames_lost_besides_the_drops_of_the_generator_are_the_suts():
    assert judged([*BELOW, *[dropping_trial(100_400.0, lost=4, dropped=3)] * 21]) is None


def late_trial(load, *, lost=0, late=0, unsent=0):
    """A trial that lacks frames, of which some came back after the wait."""
    trial = counted_trial(load, lost=lost + late, unsent=unsent)
    return replace(trial, output=replace(trial.output, late_frames=late))


def test_a_bound_of_nothing_but_late_frames_is_not_the_suts():
    assert judged([*BELOW, *[late_trial(100_400.0, late=3)] * 21]) == LATE_LIMIT
    assert judged([*BELOW, *[late_trial(100_400.0, late=3, unsent=3)] * 21]) == LATE_LIMIT


def test_frames_lost_besides_late_ones_are_the_suts():
    assert judged([*BELOW, *[late_trial(100_400.0, lost=1, late=3)] * 21]) is None
    at_upper = [late_trial(100_400.0, lost=100, late=1000)] * 21
    assert judged([*BELOW, *at_upper], PDR) == LATE_LIMIT
    assert judged([*BELOW, *at_upper]) is None


def test_late_frames_besides_unsent_ones_that_suffice_are_the_generators_limit():
    at_upper = [late_trial(100_400.0, late=1)] * 5 + [counted_trial(100_400.0, unsent=1)] * 16
    assert judged([*BELOW, *at_upper]) == UNSENT_LIMIT


def test_late_frames_at_minimum_load_are_not_taken_for_loss():
    assert judged([late_trial(MIN_LOAD, late=5)] * 21) == LATE_LIMIT


def starved_trial(load, *, lost, explained, done="stands"):
    """A trial that lost frames, some of them while a DUT's program had no CPU."""
    trial = counted_trial(load, lost=lost)
    incident = Incident("DUT", "DUT1", None, "the thread vpp_wk_0 waited for a CPU", done, explained)
    return replace(trial, output=replace(trial.output, incidents=(incident,)))


@pytest.mark.parametrize(
    ("lost", "explained", "done", "limit"),
    [(900, 900, "stands", STARVED_LIMIT), (900, 899, "stands", None), (900, 900, "repeated", None)],
)
def test_a_bound_of_nothing_but_frames_that_came_while_a_dut_had_no_cpu_is_not_the_suts(lost, explained, done, limit):
    at_upper = [starved_trial(100_400.0, lost=lost, explained=explained, done=done)] * 21
    assert judged([*BELOW, *at_upper]) == limit
    result = throughput_of([*BELOW, *at_upper])
    assert list(contradictions_of(result)) == []
    assert result.goals[0].result.reason == limit


def test_a_dut_without_a_cpu_in_a_few_trials_does_not_excuse_the_sut():
    lossy = [counted_trial(100_400.0, lost=3)] * 21
    assert judged([*BELOW, *lossy, starved_trial(100_400.0, lost=900, explained=900)]) is None


# In 3 ms, 301 of these frames are due.
@pytest.mark.parametrize(("lost", "limit"), [(1, STALL_LIMIT), (301, STALL_LIMIT), (302, None)])
def test_a_bound_of_no_more_frames_than_bursts_after_stalls_have_is_not_the_suts(lost, limit):
    assert judged([*BELOW, *[stalled_trial(100_400.0, lost=lost, stall=0.003)] * 21]) == limit


def test_a_usual_delay_is_no_stall():
    assert judged([*BELOW, *[stalled_trial(100_400.0, lost=1, stall=0.001)] * 21]) is None


def test_loss_within_the_goal_does_not_excuse_a_burst():
    at_upper = [stalled_trial(100_400.0, lost=502 + 300, stall=0.003)] * 21
    assert judged([*BELOW, *at_upper], PDR) == STALL_LIMIT
    assert judged([*BELOW, *at_upper]) is None


@pytest.mark.parametrize(("steady", "stalled", "doubts"), [(0, 21, 1), (21, 2, 0)])
def test_bursts_are_a_doubt_only_if_an_upper_bound_rests_on_them(steady, stalled, doubts):
    with_bursts = [stalled_trial(100_400.0, lost=3, stall=0.003)] * stalled
    result = throughput_of([*BELOW, *[counted_trial(100_400.0, lost=3)] * steady, *with_bursts])
    found = [doubt.text for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.GENERATOR_STALLS]
    assert len(found) == doubts
    assert all("the loss beyond what is allowed; the SUT may forward more" in reason for reason in found)


def test_bursts_in_a_few_lossy_trials_do_not_excuse_the_sut():
    lossy = [counted_trial(100_400.0, lost=3)] * 21
    assert judged([*BELOW, *lossy, stalled_trial(100_400.0, lost=3, stall=0.003)]) is None


@pytest.mark.parametrize(
    ("steady", "limit", "doubts"),
    [
        pytest.param([3] * 11, None, 0, id="enough trials without stalls lose frames"),
        pytest.param([3] * 10, STALL_LIMIT, 1, id="too few"),
        pytest.param([3] * 10 + [0] * 11, STALL_LIMIT, 1, id="most of them lose none"),
    ],
)
def test_trials_without_stalls_alone_may_prove_a_bound(steady, limit, doubts):
    at_upper = [stalled_trial(100_400.0, lost=3, stall=0.003)] * 30
    at_upper += [stalled_trial(100_400.0, lost=lost, stall=0.001) for lost in steady]
    assert judged([*BELOW, *at_upper]) == limit
    result = throughput_of([*BELOW, *at_upper])
    found = [doubt for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.GENERATOR_STALLS]
    assert len(found) == doubts


def test_a_burst_may_have_lost_the_frames_of_a_stream():
    def streams(lost):
        counted = (StreamFrames("voice", 5_000, 5_000 - lost), StreamFrames("data", 15_000, 15_000))
        return stalled_trial(20_000.0, lost=lost, stall=0.002, streams=counted)

    goal = replace(NDR, stream="voice")
    for lost, limit in ((40, STALL_LIMIT), (41, None)):
        below = [replace(streams(0), input=TrialInput(1.0, 19_950.0))] * 21
        assert judged([*below, *[streams(lost)] * 21], goal) == limit


@pytest.mark.parametrize(
    ("trial", "limit"),
    [(late_trial(100_400.0, late=3), LATE_LIMIT), (stalled_trial(100_400.0, lost=3, stall=0.003), STALL_LIMIT)],
    ids=["late", "stalled"],
)
def test_a_bound_that_is_not_the_suts_is_said_as_at_least_everywhere(trial, limit):
    result = throughput_of([*BELOW, *[trial] * 21])
    (finding,) = findings_of([result])
    assert (finding.outcome, finding.is_at_limit) == (Outcome.IRREGULAR, True)
    run = Run(Path("run"), (result,))
    texts = [message(result), *(render(name, [run]) for name in ("html", "csv", "json"))]
    assert [limit in text for text in texts] == [True] * len(texts)
    with pytest.raises(CsitExportError, match=limit[:20]):
        view_of(result).csit(result)


def test_a_few_lossy_trials_are_not_enough_to_blame_the_sut():
    at_upper = [counted_trial(100_400.0, lost=1)] * 5 + [counted_trial(100_400.0, unsent=1)] * 16
    assert judged([*BELOW, *at_upper]) == UNSENT_LIMIT


def test_the_loss_ratio_is_that_of_the_frames_that_were_sent():
    half_sent = counted_trial(100_400.0, lost=300, unsent=50_200)
    assert half_sent.output.lost_frames / 100_400 < PDR.loss_ratio < half_sent.output.lost_frames / 50_200
    assert judged([*BELOW, *[half_sent] * 21], PDR) is None


def test_a_generator_that_sends_nothing_says_nothing_about_the_sut():
    assert judged([*BELOW, *[counted_trial(100_400.0, unsent=100_400)] * 21]) == UNSENT_LIMIT


def test_unsent_frames_at_minimum_load_are_not_taken_for_loss():
    trials = [counted_trial(MIN_LOAD, unsent=5)] * 21
    assert goal_result(NDR, trials, min_load=MIN_LOAD, max_load=MAX_LOAD).reason is (
        IrregularReason.MIN_LOAD_IS_UPPER_BOUND
    )
    assert judged(trials) == UNSENT_LIMIT


def test_no_loss_at_the_generators_maximum_load_says_only_that_more_was_not_offered():
    trials = [counted_trial(MAX_LOAD)] * 21
    assert judged(trials, origin=LoadOrigin.GENERATOR) == MAX_LOAD_OF_GENERATOR
    result = throughput_of(trials)
    assert [finding.is_at_limit for finding in findings_of([result])] == [True]
    assert list(contradictions_of(result)) == []
    with pytest.raises(TesterError, match="says nothing about the device"):
        require_throughput(result, 2 * MAX_LOAD)
    (contradiction,) = contradictions_of(with_reason(result, LATE_LIMIT))
    assert contradiction.endswith(f"but the trials give {MAX_LOAD_OF_GENERATOR!r}")


def with_reason(result, reason):
    (goal,) = result.goals
    told = goal.model_copy(update={"result": goal.result.model_copy(update={"reason": reason})})
    return result.model_copy(update={"goals": (told,)})


@pytest.mark.parametrize("origin", [LoadOrigin.GIVEN, LoadOrigin.LINK])
def test_no_loss_at_a_maximum_load_of_another_origin_is_said_as_it_is(origin):
    assert judged([counted_trial(MAX_LOAD)] * 21, origin=origin) == "the maximum load is a lower bound"


def test_another_reason_is_not_hidden_by_the_generators_limit():
    trials = [*[counted_trial(50_000.0)] * 21, *[counted_trial(100_400.0, unsent=3)] * 21]
    assert judged(trials) == f"{UNSENT_LIMIT}; the search was stopped before its end"


def test_unsent_frames_are_stated_as_seen_because_a_device_may_have_held_them_back_by_pause_frames():
    result = throughput_of([*BELOW, *[counted_trial(100_400.0, unsent=3)] * 21])
    assert result.goals[0].result.reason == "unsent frames, not lost ones, made the upper bound"
    assert list(contradictions_of(result)) == []
    assert is_least(UNSENT_LIMIT)
    assert [finding.is_at_limit for finding in findings_of([result])] == [True]


def test_without_counts_nothing_is_blamed_on_the_generator():
    lossy = TrialResult(TrialInput(1.0, 100_400.0), TrialOutput(0.5))
    assert judged([*BELOW, *[lossy] * 21]) is None


@pytest.mark.whole
@settings(max_examples=200)
@given(st.lists(trials_of_any_kind(), max_size=40), st.sampled_from([NDR, PDR]), st.sampled_from(LoadOrigin))
def test_a_verdict_never_makes_a_result_regular_and_has_a_reason_unless_it_is(trials, goal, origin):
    result = goal_result(goal, trials, min_load=MIN_LOAD, max_load=MAX_LOAD)
    reason = judge(result, trials, max_load_origin=origin)
    assert reason is not None or result.regular
    if result.reason is not None and reason != str(result.reason):
        assert reason.startswith((UNSENT_LIMIT, DROPS_LIMIT, MAX_LOAD_OF_GENERATOR, LATE_LIMIT, STALL_LIMIT))


@pytest.mark.whole
@settings(max_examples=100)
@given(st.lists(trials_of_any_kind(), max_size=40), st.sampled_from([NDR, PDR]))
def test_only_unsent_frames_make_it_the_generators_limit(trials, goal):
    all_sent = [trial for trial in trials if not trial.output.unsent_frames]
    assert UNSENT_LIMIT not in (judged(all_sent, goal) or "")


@pytest.mark.whole
def test_whole_searches_are_judged():
    bare = throughput(SharpKnee(capacity=1e7))
    assert bare.outcome is Outcome.IRREGULAR
    assert {report.result.reason for report in bare.goals} == {MAX_LOAD_OF_GENERATOR}
    slow_generator = throughput(SharpKnee(capacity=1e7), max_rate=200_000)
    assert {report.result.reason for report in slow_generator.goals} == {UNSENT_LIMIT}
    assert throughput(SharpKnee(capacity=300_000.0), max_rate=200_000).outcome is Outcome.MEASURED


def test_loss_at_minimum_load_stays_the_suts():
    goal_results, entries = searched(ConstantLoss(loss_ratio=0.1))
    trials = [entry.result for entry in entries]
    assert (
        judge(goal_results[NDR], trials, max_load_origin=LoadOrigin.GENERATOR) == "the minimum load is an upper bound"
    )

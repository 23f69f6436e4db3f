"""What the generator did not send is a doubt with its size, and no verdict about the SUT."""

from dataclasses import replace
from pathlib import Path

import pytest
from history_examples import series, with_columns
from latency_examples import at, counters
from report_examples import LINK_LIMIT, counted_trial, mrr, mrr_result, result_of, run, throughput, throughput_of
from test_csit_export import telemetry_trial

from lossratio.errors import BuildError, TesterError
from lossratio.measurements.frame_loss import FrameLossRate
from lossratio.measurements.mrr_requirement import require_mrr
from lossratio.measurements.throughput import require_lower_bounds, require_throughput
from lossratio.mlrsearch import NDR, PDR
from lossratio.report import Verdict
from lossratio.report.comparison import compare, comparison_table
from lossratio.report.history.entries import entries_of
from lossratio.report.history.trend import trends_of
from lossratio.report.history.trend_words import describe_trend, sentence_of
from lossratio.report.run import Run
from lossratio.results import Ends, LoadOrigin, LossPattern, LossPlaces, agreed_change, at_most
from lossratio.results.doubts import time_dependence_in
from lossratio.results.findings import doubts_of
from lossratio.results.note import NoteKind
from lossratio.results.run_directory import RunDirectory
from lossratio.results.trials import describe_trials
from lossratio.runs.builds.measuring import BuildBench
from lossratio.runs.robot_run import RunRequest
from lossratio.runs.run import RunOutcome
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput
from lossratio.values.exit_status import ExitStatus
from lossratio.values.units import FRAMES_PER_SECOND, Unit

LOAD = 20_000.0


def starved_trial(share, capacity=30_000.0, load=LOAD):
    """A trial whose generator stood still for a share of its second, and sent at the load for the rest."""
    sent = round(load * (1.0 - share))
    received = round(min(1.0, capacity / load) * sent)
    unsent = round(load) - sent
    directions = tuple(
        DirectionCounters(name, round(load), sent, received, unsent_frames=unsent, elapsed_s=1.0)
        for name in ("port0>port1", "port1>port0")
    )
    lost = sent - received
    output = TrialOutput(
        (lost + unsent) / load,
        sent_frames=2 * sent,
        lost_frames=2 * lost,
        unsent_frames=2 * unsent,
        forwarding_rate=received,
        directions=directions,
    )
    return TrialResult(TrialInput(1.0, load), output)


def measured(*shares, capacity=30_000.0):
    test_run = run("64B-1c-eth-l2bdbase-mrr")
    entries = [JournalEntry.of(starved_trial(share, capacity)) for share in shares]
    return mrr_result(
        test_run, test_run.conditions.max_load(LOAD, LoadOrigin.GENERATOR, link_limit=LINK_LIMIT), entries
    )


def runs(*shares, **more):
    return [Run(f"run-{share}", (measured(*[share] * 10, **more),)) for share in shares]


def verdict_of(before, after):
    (quantity,) = compare(before, after).quantities
    return quantity.verdict


def kinds_of(result):
    return [doubt.kind for doubt in doubts_of([result])[0]]


def test_an_mrr_of_a_starved_generator_is_a_doubt_with_its_size():
    (doubt,) = doubts_of([measured(0.3, 0.55)])[0]
    assert doubt.kind is NoteKind.UNSENT
    assert doubt.text.startswith(
        "the generator left 42.5 % of the frames unsent in the trials at 20.000 kfps per interface"
    )


@pytest.mark.parametrize("shares", [(0.0,), (0.05, *[0.0] * 9), (0.0095,)])
def test_frames_that_cannot_move_a_value_by_what_a_comparison_counts_are_no_doubt(shares):
    assert kinds_of(measured(*shares)) == []


def test_one_stall_counts_with_its_share_of_all_equal_trials():
    assert kinds_of(measured(0.5, *[0.0] * 9)) == [NoteKind.UNSENT]


def test_a_frame_loss_rate_whose_load_was_not_offered_is_a_doubt_about_that_load():
    test_run = run("64B-loss")
    trials = [starved_trial(0.0), starved_trial(0.2, load=10_000.0), starved_trial(0.0, load=5_000.0)]
    maximum = test_run.conditions.max_load(LOAD, LoadOrigin.GENERATOR, link_limit=LINK_LIMIT)
    (doubt,) = doubts_of([result_of(FrameLossRate(), test_run, maximum, [JournalEntry.of(trial) for trial in trials])])[
        0
    ]
    assert doubt.kind is NoteKind.UNSENT
    assert "the generator left 20 % of the frames unsent in the trials at 10.000 kfps per interface" in doubt.text
    # It says nothing about what the SUT can forward.
    assert "This load was not offered, so the numbers of these trials are for smaller loads" in doubt.text


LIMITED = [*[counted_trial(1e5)] * 40, *[counted_trial(1.004e5, unsent=30_000)] * 40]


def test_an_upper_bound_of_the_generator_is_a_doubt_and_unsent_frames_above_it_are_none():
    (doubt,) = doubts_of([throughput_of(LIMITED)])[0]
    assert doubt.kind is NoteKind.UNSENT
    assert "This load was not offered, and the SUT may forward more" in doubt.text
    lossy = [*[counted_trial(1e5)] * 40, *[counted_trial(1.004e5, lost=3_000)] * 40]
    assert kinds_of(throughput_of([*lossy, counted_trial(2e5, unsent=90_000)])) == []


def test_latency_at_a_load_that_was_not_offered_is_a_doubt_about_the_search():
    search = throughput(SharpKnee(capacity=300_000.0))
    late = at(1e5, counters()).model_copy(update={"duration_s": 1.0, "loss_ratio": 0.3, "unsent_frames": 60_000})
    (doubt,) = doubts_of([search.model_copy(update={"latency": (late,)})])[0]
    assert doubt.kind is NoteKind.UNSENT
    assert (
        "the generator left 30 % of the frames unsent in the trials after the search at 100.00 kfps per interface"
        in doubt.text
    )
    # Nothing of this is about what the search found.
    assert "This load was not offered, so the numbers of these trials are for smaller loads" in doubt.text
    assert "may forward more" not in doubt.text


@pytest.mark.parametrize(("more", "others"), [((6e4,), "another load"), ((6e4, 4e4), "2 other loads")])
def test_unsent_frames_after_a_search_at_several_loads_are_told_of_all_loads(more, others):
    missing = {"duration_s": 1.0, "loss_ratio": 0.01, "unsent_frames": 1_900}
    latency = [at(load, counters()).model_copy(update=missing) for load in (2e5, 1e5, *more)]
    worst = at(8e4, counters()).model_copy(update={**missing, "loss_ratio": 0.3, "unsent_frames": 48_000})
    (doubt,) = doubts_of([throughput(SharpKnee(capacity=3e5)).model_copy(update={"latency": (*latency, worst)})])[0]
    # At the two largest loads, the generator left less than 1 % unsent.
    several = "30 % of the frames unsent in the trials after the search at 80.000 kfps per interface, and more than 1 %"
    assert f"{several} at {others}. These loads were not offered, so" in doubt.text


def test_a_starved_generator_is_no_regression_of_the_sut():
    comparison = compare(runs(0.0, 0.0, 0.001), runs(0.55, 0.47, 0.4))
    (quantity,) = comparison.quantities
    assert quantity.verdict is Verdict.NOT_COMPARABLE
    assert quantity.difference.change == 0.0
    assert "-47.31 % as measured, +0.00 % if these frames had passed" in quantity.note
    table = comparison_table(comparison)
    assert "frames that the generator did not send or did not count may explain the difference" in table
    assert "B: up to 55 % of the frames at one load were unsent, late or dropped by the generator" in table
    assert (*comparison.worse, *comparison.broken) == ()
    assert verdict_of(runs(0.55, 0.47, 0.4), runs(0.0, 0.0, 0.001)) is Verdict.NOT_COMPARABLE


def test_a_stall_while_the_sut_is_the_limit_is_no_regression_either():
    # It forwards 10 of 20 kfps while the generator sends, and half of that on average.
    slow = {"capacity": 10_000.0}
    assert verdict_of(runs(0.0, 0.0, 0.001, **slow), runs(0.5, 0.51, 0.52, **slow)) is Verdict.NOT_COMPARABLE


def test_a_slower_sut_is_a_regression_also_behind_a_generator_that_never_sends_all():
    before, after = runs(0.25, 0.251, 0.252, capacity=10_000.0), runs(0.25, 0.251, 0.252, capacity=8_000.0)
    assert verdict_of(before, after) is Verdict.REGRESSION
    assert verdict_of(after, before) is Verdict.PROGRESSION
    assert verdict_of(before, runs(0.3, 0.31, 0.32, capacity=2_000.0)) is Verdict.REGRESSION


def test_a_search_limited_by_the_generator_is_no_regression_with_a_value_or_without():
    good = [Run(f"a{n}", (throughput_of([*[counted_trial(2e5)] * 40, *[counted_trial(2.01e5, lost=9000 + n)] * 40]),))
            for n in range(3)]  # fmt: skip
    limited = [Run(f"b{n}", (throughput_of([*LIMITED, counted_trial(3e5, lost=n)]),)) for n in range(3)]
    assert verdict_of(good, limited) is Verdict.NOT_COMPARABLE
    assert verdict_of(limited, good) is Verdict.NOT_COMPARABLE
    nothing = throughput_of([counted_trial(9_001.0, unsent=4_000)] * 40)
    assert nothing.goals[0].result.reason == "unsent frames, not lost ones, made the upper bound"
    (quantity,) = compare(good, [Run("c", (nothing,))]).quantities
    assert quantity.verdict is Verdict.NOT_COMPARABLE
    slow = [Run("d", (throughput_of([counted_trial(9_001.0, lost=4_000)] * 40),))]
    assert verdict_of(good, slow) is Verdict.REGRESSION


def test_a_change_to_or_from_a_lower_bound_may_be_larger():
    # The PDR varies, so the difference has an interval.
    slow = runs_of_pdr(2e5)
    most = [Run(f"b{n}", (throughput_of([counted_trial(4e5, lost=n)] * 40, (PDR,)),)) for n in range(3)]
    table = comparison_table(compare(slow, most))
    assert "PDR, rose by at least 100.20 %." in table
    assert "+100.20 % or more  none: some values are only lower bounds  " in table
    fallen = comparison_table(compare(most, slow))
    assert "PDR, fell by at least 50.05 %." in fallen
    known = comparison_table(compare(slow, runs_of_pdr(190_000.0)))
    assert "at least" not in known.splitlines()[0]


def runs_of_pdr(load):
    """Runs of a search whose value varies a little, and is no lower bound."""
    lossy = [counted_trial(1.004 * load, lost=9_000)] * 40
    return [
        Run(f"c{n}", (throughput_of([*[counted_trial(load, lost=200 + n)] * 40, *lossy], (PDR,)),)) for n in range(3)
    ]


@pytest.mark.parametrize(("guilty", "verdict"), [("TG", Verdict.NOT_COMPARABLE), ("DUT", Verdict.REGRESSION)])
def test_a_search_that_a_starved_generator_ended_says_nothing_about_the_sut(guilty, verdict):
    failed = throughput(error="the generator cannot send the smallest load").model_copy(update={"guilty": guilty})
    comparison = compare([Run("a", (throughput(),))], [Run("b", (failed,))])
    assert [quantity.verdict for quantity in comparison.quantities] == [verdict] * 2
    unsent = [entry["unsent_share"] for entry in entries_of(Run(Path("run"), (failed,)))]
    assert unsent == [1.0 if guilty == "TG" else 0.0] * 2


def test_no_demand_of_an_mrr_fails_by_the_generator():
    starved = measured(*[0.4] * 10)
    rate = starved.mrr.mean.per_interface_fps
    require_mrr(starved, rate)
    with pytest.raises(
        TesterError, match=r"says nothing about the device: MRR is .* up to 40 % of the frames were uns"
    ):
        require_mrr(starved, 1.2 * rate)
    with pytest.raises(AssertionError, match=r"^MRR is "):
        require_mrr(measured(*[0.01] * 10, capacity=0.5 * LOAD), 0.9 * LOAD)


@pytest.mark.whole
def test_no_demand_of_throughput_fails_by_the_generator():
    limited = throughput_of(LIMITED, (PDR,))
    require_throughput(limited, 9e4)
    with pytest.raises(
        TesterError, match=r"says nothing about the device.*PDR.*unsent frames, not lost.*PAUSE frames, switch"
    ):
        require_throughput(limited, 2e5)
    nothing = throughput_of([counted_trial(9_001.0, unsent=4_000)] * 40, (NDR,))
    for demand in (lambda: require_throughput(nothing, 1.0), lambda: require_lower_bounds(nothing)):
        with pytest.raises(TesterError, match="says nothing about the device"):
            demand()
    with pytest.raises(AssertionError):
        require_lower_bounds(throughput_of([counted_trial(9_001.0, lost=4_000)] * 40, (NDR,)))


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({}, "was 9.0010 kfps per interface. Of this load, 5.0010 kfps per interface came back. Search from a smaller"),
        ({4e5: 395_000}, "5.0010 kfps per interface came back. Search from a smaller load, e.g. min_load=900 fps"),
        ({4e5: 177_800, 2e5: 88_900}, "the same share of the frames, 44.4. %, .*; the load is not the cause"),
        ({1.5e4: 4_000, 2e4: 4_000}, "the same number of frames, .*; the load is not the cause"),
    ],
)
def test_a_smaller_load_is_advised_unless_the_load_is_not_the_cause(others, words):
    trials = [counted_trial(load, lost=lost) for load, lost in others.items()]
    with pytest.raises(AssertionError, match=words):
        require_lower_bounds(throughput_of([*trials, *[counted_trial(9_001.0, lost=4_000)] * 40], (NDR,)))


def test_a_search_in_which_every_frame_was_lost_says_where_to_look():
    trials = [counted_trial(4e5, lost=400_000), *[counted_trial(9_001.0, lost=9_001)] * 40]
    with pytest.raises(AssertionError, match=r"Every frame was lost at all loads\. Check the path of the frames"):
        require_lower_bounds(throughput_of(trials, (NDR,)))


def test_nothing_is_said_about_losses_if_frames_are_only_late():
    late = [replace(trial, output=replace(trial.output, late_frames=trial.output.lost_frames))
            for trial in (counted_trial(4e5, lost=8_000), *[counted_trial(9_001.0, lost=180)] * 40)]  # fmt: skip
    with pytest.raises(AssertionError, match="late frames, not lost ones") as caught:
        require_lower_bounds(throughput_of(late, (NDR,)))
    assert "9.0010 kfps per interface. If a search may end" in str(caught.value)


def test_a_search_that_ended_before_its_smallest_load_advises_no_smaller_one():
    trials = [counted_trial(4e5, lost=200_000), counted_trial(2e5)]
    with pytest.raises(AssertionError, match="search was stopped before its end") as caught:
        require_lower_bounds(throughput_of(trials, (NDR,)))
    assert "9.0010 kfps per interface. If a search may end" in str(caught.value)


def test_what_lost_frames_have_in_common_is_said_in_place_of_advice():
    trials = [counted_trial(4e5, lost=4_000), *[counted_trial(9_001.0, lost=4_000)] * 40]
    pattern = {"direction": None, "chance": 1e-9, "trials": 41}
    flows = LossPattern(kind="flows", sentence="All lost frames are of 1 of 8 flows", explained_ratio=1.0, **pattern)
    way = LossPattern(kind="direction", sentence="All are of one direction", explained_ratio=1.0, **pattern)
    few = flows.model_copy(update={"sentence": "Few", "explained_ratio": 0.3})

    def told(*patterns):
        places = LossPlaces(located_frames=4_000, trials=41, looked_at=5, patterns=patterns)
        result = throughput_of(trials, (NDR,)).model_copy(update={"loss_places": places})
        with pytest.raises(AssertionError) as caught:
            require_lower_bounds(result)
        return str(caught.value)

    assert "per interface. All lost frames are of 1 of 8 flows. If a search may end" in told(flows, way)
    assert "All are of one direction. If a search may end" in told(way)
    assert "per interface. Of this load, " in told(few)


def test_a_build_is_not_judged_by_a_starved_generator(tmp_path):
    RunDirectory(tmp_path).write(measured(0.4))
    bench = BuildBench(RunRequest((), ()), run_suites=lambda request: RunOutcome(ExitStatus.PASSED))
    with pytest.raises(BuildError, match="says nothing about the build: the generator left 40 %") as caught:
        bench.measure(tmp_path)
    assert caught.value.status is ExitStatus.INFRASTRUCTURE


def trend(values, unsent):
    (trend,) = trends_of([with_columns(series(values), unsent_share=list(unsent))])
    return trend


def test_a_trend_is_no_regression_where_the_generator_left_as_much_unsent():
    values = [20e3 + night % 3 for night in range(8)]
    starved = trend([*values, 11e3, 9.4e3], [0.0] * 8 + [0.45, 0.53])
    assert starved.verdict is Verdict.NOT_OFFERED
    assert not starved.is_alarm
    assert trend([*values, 11e3, 9.4e3], [0.0] * 10).verdict is Verdict.REGRESSION
    slower = trend([*values, 11e3, 10.2e3, 9.4e3], [0.0] * 8 + [0.1, 0.1, 0.1])
    assert slower.verdict is Verdict.REGRESSION
    assert trend([*values, 11e3, 9.4e3], [0.3] * 10).verdict is Verdict.REGRESSION
    assert trend([*values, None], [0.0] * 8 + [1.0]).verdict is Verdict.NOT_OFFERED


def test_a_trend_from_a_lower_bound_fell_by_at_least_the_difference():
    rates = [*[20e3] * 8, 10e3, 10e3]
    at_limit, known = (trend(rates, [share] * 8 + [0.0] * 2) for share in (1.0, 0.0))
    assert "20.000 kfps to 10.000 kfps (-50.00 % or more) since" in describe_trend(at_limit)
    assert ", fell by at least 50.00 % since" in sentence_of([at_limit])
    assert "(-50.00 %) since" in describe_trend(known)


def test_the_history_keeps_the_share():
    result = measured(0.4)
    assert [entry["unsent_share"] for entry in entries_of(Run(Path("run"), (result,)))] == pytest.approx([0.4])
    assert [entry["unsent_share"] for entry in entries_of(Run(Path("run"), (throughput_of(LIMITED),)))] == [1.0]
    assert [entry["unsent_share"] for entry in entries_of(Run(Path("run"), (throughput(SharpKnee(3e5)),)))] == [
        0.0,
        0.0,
    ]


def test_a_time_is_judged_by_the_repetitions_whose_load_was_offered():
    seconds = Unit("s", lower_is_better=True)
    starved, slow = Ends(2.0, 3.0, 0.3), Ends(2.5, 2.5, 0.0)
    assert at_most([slow, starved], seconds) == [2.5]
    assert at_most([slow, starved], FRAMES_PER_SECOND) == [2.5, 3.0]


def test_a_change_is_the_smaller_one_of_both_lists_and_none_if_they_differ_in_its_sign():
    assert agreed_change(-0.5, -0.1) == -0.1
    assert agreed_change(-0.1, float("-inf")) == -0.1
    for change, most in ((-0.5, 0.1), (0.0, -0.1), (0.0, float("inf")), (None, -0.1), (-0.1, None)):
        assert agreed_change(change, most) is None


def test_a_starved_mrr_does_not_say_that_the_sut_degrades_under_overload():
    degraded = mrr(SharpKnee(capacity=200_000.0))
    assert [doubt.kind for doubt in doubts_of([throughput(), degraded])[1]] == [NoteKind.MRR_BELOW_PDR]
    trials = [
        trial.model_copy(
            update={"unsent_frames": trial.sent_frames // 2, "sent_frames": trial.sent_frames // 2, "directions": ()}
        )
        for trial in degraded.trials
    ]
    starved = degraded.model_copy(update={"trials": tuple(trials)})
    assert [doubt.kind for doubt in doubts_of([throughput(), starved])[1]] == [NoteKind.UNSENT]


def later(search, load, lost_ratio, seconds=1.0):
    fields = {"duration_s": seconds, "loss_ratio": lost_ratio, "unsent_frames": 0}
    latency = at(load, counters()).model_copy(update=fields)
    return kinds_of(search.model_copy(update={"latency": (latency,)}))


@pytest.mark.parametrize(
    ("load", "lost", "doubts"),
    [
        (135e3, 0.23, [NoteKind.CONTRADICTED]),
        (135e3, 0.0101, [NoteKind.CONTRADICTED]),
        (135e3, 0.0099, []),
        (149.9e3, 0.0149, []),
        (149.9e3, 0.0151, [NoteKind.CONTRADICTED]),
        (300e3, 0.5, []),
    ],
)
def test_a_latency_trial_that_loses_what_the_search_found_to_pass_contradicts_it(load, lost, doubts):
    # NDR is 149.77 and PDR 150.52 kfps: above NDR, 0.5 % are allowed.
    assert later(throughput(), load, lost) == doubts


def test_a_longer_trial_may_lose_what_a_bucket_of_50_ms_held():
    # A policer of rate r passes r (T + 0.05 s): at the bound of trials of 1 s, 4 % less in trials of 5 s.
    assert later(throughput(), 135e3, 0.049, seconds=5.0) == []
    assert later(throughput(), 135e3, 0.051, seconds=5.0) == [NoteKind.CONTRADICTED]


def test_a_trial_that_contradicts_a_search_lost_a_share_of_the_frames_that_were_sent():
    counted = {"duration_s": 5.0, "loss_ratio": 0.48, "unsent_frames": 13_500}
    latency = at(135e3, counters()).model_copy(update=counted)
    (doubt,) = doubts_of([throughput().model_copy(update={"latency": (latency,)})])[0]
    assert "lost 47.47 % of the sent frames, and NDR allows 0 %" in doubt.text
    assert latency.line().endswith("48 % of the frames are missing (13,500 unsent, 47.47 % of the sent ones lost)")


def test_a_longer_trial_that_contradicts_a_search_does_not_prove_a_change():
    def said(seconds):
        fields = {"duration_s": seconds, "loss_ratio": 0.23, "unsent_frames": 0}
        latency = at(135e3, counters()).model_copy(update=fields)
        ((doubt,),) = doubts_of([throughput().model_copy(update={"latency": (latency,)})])
        return str(doubt)

    assert said(1.0).endswith("meets the goal. Find out what changed, and search again")
    assert said(2.5).endswith(
        "This trial took 2.5 s, and those of the search 1 s: either something changed, or a bucket or a buffer holds "
        "more than 50 ms of traffic. Search again with trials as long as this one"
    )


def test_the_trial_of_telemetry_contradicts_a_search_as_well():
    search = throughput()
    load = search.goals[1].result.relevant_lower_bound
    trial = telemetry_trial().model_copy(update={"load": load, "goal": "PDR", "duration_s": 1.0})
    sent = round(load.aggregate_fps)
    for received, doubts in ((sent, []), (round(0.9 * sent), [NoteKind.CONTRADICTED])):
        counted = trial.model_copy(update={"sent_frames": sent, "received_frames": received})
        assert kinds_of(search.model_copy(update={"telemetry": (counted,)})) == doubts


def test_what_the_generator_dropped_in_a_later_trial_contradicts_no_search():
    search = throughput()
    frames = round(search.conditions.rate(135e3).aggregate_fps)
    latency = at(135e3, counters()).model_copy(
        update={
            "duration_s": 1.0,
            "loss_ratio": 0.05,
            "unsent_frames": 0,
            "generator_drop_frames": round(0.05 * frames),
        }
    )
    assert kinds_of(search.model_copy(update={"latency": (latency,)})) == []
    load = search.goals[1].result.relevant_lower_bound
    sent = round(load.aggregate_fps)
    asked = {"load": load, "goal": "PDR", "duration_s": 1.0, "sent_frames": sent, "received_frames": round(0.9 * sent)}
    dropped = sent - round(0.9 * sent)
    trial = telemetry_trial().model_copy(update={**asked, "generator_drop_frames": dropped})
    assert kinds_of(search.model_copy(update={"telemetry": (trial,)})) == []


def test_late_frames_of_a_later_trial_contradict_no_search_and_are_told():
    search = throughput()
    frames = round(search.conditions.rate(135e3).aggregate_fps)
    counted = {"duration_s": 1.0, "loss_ratio": 0.05, "unsent_frames": 0, "late_frames": round(0.05 * frames)}
    latency = at(135e3, counters()).model_copy(update=counted)
    load = search.goals[1].result.relevant_lower_bound
    sent = round(load.aggregate_fps)
    received = round(0.9 * sent)
    asked = {"load": load, "goal": "PDR", "duration_s": 1.0, "sent_frames": sent, "received_frames": received}
    trial = telemetry_trial().model_copy(update={**asked, "late_frames": sent - received})
    for more in ({"latency": (latency,)}, {"telemetry": (trial,)}):
        assert kinds_of(search.model_copy(update=more)) == [NoteKind.LATE_FRAMES]
    held = round(0.05 * frames) + sent - received
    (doubts,) = doubts_of([search.model_copy(update={"latency": (latency,), "telemetry": (trial,)})])
    (doubt,) = doubts
    assert str(doubt).startswith(f"{NoteKind.LATE_FRAMES.value}: {held:,} of the {held:,} missing frames were only")
    assert "in 2 trials after the search, they came back" in str(doubt)
    # Where 2 % of the frames were lost, and not late, that is the device's.
    fewer = trial.model_copy(update={"late_frames": sent - received - round(0.02 * sent)})
    assert NoteKind.CONTRADICTED in kinds_of(search.model_copy(update={"telemetry": (fewer,)}))


def test_a_busy_device_behind_a_generator_that_gets_slower_has_no_drift():
    """The device forwards what it can, however much less the generator sends."""

    def slower(number, capacity):
        sent = round(400_000 * (1.0 - 0.015 * number))
        received = min(sent, capacity)
        direction = DirectionCounters("a>b", 400_000, sent, received, unsent_frames=400_000 - sent)
        counted = {"sent_frames": sent, "lost_frames": sent - received, "unsent_frames": 400_000 - sent}
        output = TrialOutput(1.0 - received / 400_000, forwarding_rate=received, directions=(direction,), **counted)
        return TrialResult(TrialInput(1.0, 400_000.0), output)

    for capacity in (300_000, 500_000):
        trials = describe_trials(JournalEntry.of(slower(number, capacity)) for number in range(12))
        assert time_dependence_in(trials) is None

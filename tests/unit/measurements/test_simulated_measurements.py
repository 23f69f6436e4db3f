from __future__ import annotations

import json
import random
from datetime import datetime, timezone
from pathlib import Path
from typing import ClassVar

import pytest
from at_least_one import at_least_one
from measurement_examples import NO_LOSS, PROFILE, SIMULATED, StallingTestbed, place, policed

from lossratio.errors import DutError, SearchError, StarvedGeneratorError, TopologyError
from lossratio.measurements.measurement import STARVED
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.request import WarmUp
from lossratio.measurements.throughput import SearchRequest, find_conditional_throughput, require_lower_bounds
from lossratio.measurements.throughput.limits import MAX_LOAD_OF_GENERATOR
from lossratio.mlrsearch import NDR, PDR, SearchGoal
from lossratio.mlrsearch.classification import Tally
from lossratio.results.conditions import LoadOrigin
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials.journal_reading import read_journal

REQUEST = SearchRequest(goals=(NDR, PDR), profile=PROFILE)


@pytest.mark.parametrize(("rate", "burst"), [(15_000, 300), (20_000, 400), (50_000, 1_000), (100_000, 9_999)])
@pytest.mark.parametrize("duration", [0.5, 1.0, 5.0])
def test_the_bounds_of_a_zero_loss_goal_enclose_the_policers_truth(tmp_path, rate, burst, duration):
    goal = SearchGoal(0.0, 0.5, duration, duration, 0.005, duration)
    testbed = policed(police=str(rate), burst=str(burst))
    result = find_conditional_throughput(testbed, SearchRequest(goals=(goal,), profile=PROFILE), place(tmp_path))
    goal_result = result.goals[0].result
    assert goal_result.regular
    passed_rate = testbed.request.dut.options.policed_rate
    # Frames are whole: a load may ask for a frame more than the truth and lose none.
    truth = passed_rate + burst / duration
    assert goal_result.relevant_lower_bound.per_interface_fps <= truth + 1 / duration
    assert goal_result.relevant_upper_bound.per_interface_fps >= truth - 1 / duration


def test_a_rate_needs_trials_that_send_several_frames(tmp_path):
    short = MrrRequest(profile=PROFILE, trial_duration=0.000_01, max_load=200e3)
    with pytest.raises(SearchError, match=r"A trial of 1e-05 s .* fewer than 10 frames.*Give a longer trial_duration"):
        measure_mrr(policed(police="20 kfps"), short, place(tmp_path))
    enough = MrrRequest(profile=PROFILE, trial_duration=0.000_05, max_load=200e3, trials=1)
    assert measure_mrr(policed(police="20 kfps"), enough, place(tmp_path)).mrr.sent_frames == 20


@pytest.mark.parametrize("given", [{"timeout": 3.0}, {"rest": 3600.0}])
def test_a_search_without_a_load_whose_time_ran_out_advises_more_time(tmp_path, given):
    request = SearchRequest(goals=(NDR, PDR), profile=PROFILE).but(**given)
    result = find_conditional_throughput(policed(police="20 kfps"), request, place(tmp_path))
    with pytest.raises(
        AssertionError, match=r"the time ran out\. Give the search more time, e\.g\. timeout=1 h"
    ) as caught:
        require_lower_bounds(result)
    assert "smallest load" not in str(caught.value)


def test_a_search_needs_trials_that_send_a_frame(tmp_path):
    request = SearchRequest(goals=(SearchGoal(0.0, 0.5, 1e-6, 1e-6, 0.005, 1e-6),), profile=PROFILE)
    with pytest.raises(SearchError, match=r"sends less than one frame\. Give the search goal a longer final_trial_dur"):
        find_conditional_throughput(policed(police="20 kfps"), request, place(tmp_path))


def test_each_direction_has_a_policer_of_its_own_and_shares_a_device_from_the_topology(tmp_path):
    one_way = load_profile("ethip4-udp", frame_size=64, bidirectional=False)

    def lower_bound(testbed, profile, name):
        result = find_conditional_throughput(
            testbed, SearchRequest(goals=(NO_LOSS,), profile=profile), place(tmp_path, name)
        )
        return result.goals[0].result.relevant_lower_bound

    policed_both, policed_one = (lower_bound(policed(police="50 kfps"), profile, "p") for profile in (PROFILE, one_way))
    assert policed_both.per_interface_fps == policed_one.per_interface_fps
    device = open_testbed(SIMULATED)
    both, one = (lower_bound(device, profile, "d") for profile in (PROFILE, one_way))
    assert both.aggregate_fps == pytest.approx(150e3, rel=0.01)
    assert one.aggregate_fps == pytest.approx(150e3, rel=0.01)


@pytest.mark.whole
def test_a_search_leaves_a_result_file_and_a_journal_with_every_trial(tmp_path):
    result = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path))
    assert read_result(tmp_path / "results" / "a_suite.a_test.json") == result
    contents = read_journal(tmp_path / "trials" / "a_suite.a_test.jsonl")
    assert [entry.result.output.directions for entry in contents.entries] == [
        trial.as_result().output.directions for trial in result.trials
    ]
    assert [entry.result.input for entry in contents.entries] == [trial.as_result().input for trial in result.trials]
    rules = [entry.rule for entry in contents.entries]
    assert set(rules) == {"look", "plan"}
    assert rules == [trial.rule for trial in result.trials]
    assert contents.search["dut"]["options"]["police"] == 50_000
    assert [goal["name"] for goal in contents.search["goals"]] == ["NDR", "PDR"]
    assert result.outcome is Outcome.MEASURED
    assert result.conditions.duts["DUT1"]["model"]["model"] == "policer"
    assert result.conditions.timing.recovery_s == 0.02


@pytest.mark.whole
def test_progress_is_shown_after_each_trial(tmp_path):
    progresses = []
    result = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path), progresses.append)
    assert [progress.number for progress in progresses] == [trial.number for trial in result.trials]
    assert [progress.trial.input for progress in progresses] == [trial.as_result().input for trial in result.trials]
    assert [progress.rule for progress in progresses] == [trial.rule for trial in result.trials]
    assert [progress.trial.loss_ratio for progress in progresses] == [trial.loss_ratio for trial in result.trials]
    for report, bounds in zip(result.goals, progresses[-1].bounds, strict=True):
        assert bounds.proved.lower == report.result.relevant_lower_bound.per_interface_fps
        assert bounds.proved.upper == report.result.relevant_upper_bound.per_interface_fps


@pytest.mark.whole
def test_the_time_left_is_shown_with_its_uncertainty_once_the_bounds_are_in_sight(tmp_path):
    progresses = []
    result = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path), progresses.append)
    elapsed = [trial.elapsed_s for trial in result.trials]
    for progress in at_least_one(progresses[len(progresses) // 2 :]):
        left = sum(elapsed[progress.number :])
        assert progress.time_left.low - 0.01 <= left <= progress.time_left.high + 0.01


@pytest.mark.whole
def test_the_time_left_ends_with_the_timeout(tmp_path):
    progresses = []
    request = SearchRequest(goals=(NDR, PDR), profile=PROFILE, timeout=20.0)
    find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path), progresses.append)
    spent = 0.0
    for progress in at_least_one(progresses):
        spent += progress.trial.elapsed
        assert spent + progress.time_left.high < 20.0 + 1.1


@pytest.mark.whole
def test_being_watched_changes_nothing(tmp_path):
    unwatched = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path / "unwatched"))
    watched = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path / "watched"), print)
    assert watched.trials == unwatched.trials


def test_a_warm_up_is_shown_and_says_nothing_about_bounds(tmp_path):
    progresses = []
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, warm_up_duration=1.0)
    find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path), progresses.append)
    assert progresses[0].bounds == ()
    assert progresses[0].purpose.startswith("warm-up")
    assert progresses[1].time_left.seconds > 0


def test_a_lossless_device_is_irregular_by_the_generators_maximum_load(tmp_path):
    testbed = policed(police="1 Mfps")
    result = find_conditional_throughput(testbed, SearchRequest(goals=(NO_LOSS,), profile=PROFILE), place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    assert result.goals[0].result.reason == MAX_LOAD_OF_GENERATOR
    assert result.max_load.origin is LoadOrigin.GENERATOR


@pytest.mark.whole
def test_a_generator_that_cannot_send_the_smallest_load_is_to_blame_and_a_resumed_search_forgets_its_trials(tmp_path):
    whole = find_conditional_throughput(open_testbed(SIMULATED), REQUEST, place(tmp_path / "whole"))
    with pytest.raises(StarvedGeneratorError, match=r"about the device.*reports 1,620 unsent .* delay of up to 90 ms"):
        find_conditional_throughput(StallingTestbed(*range(5, 1000)), REQUEST, place(tmp_path))
    failed = read_result(tmp_path / "results" / "a_suite.a_test.json")
    assert (failed.outcome, failed.guilty) == (Outcome.FAILED, "TG")
    kept = read_journal(tmp_path / "trials" / "a_suite.a_test.jsonl")
    assert (len(kept.entries), len(kept.entries) + len(kept.withdrawn)) == (4, len(failed.trials))
    assert {trial.reason for trial in kept.withdrawn} == {STARVED}
    resumed = find_conditional_throughput(open_testbed(SIMULATED), REQUEST, place(tmp_path, resume=tmp_path))
    assert [report.result for report in resumed.goals] == [report.result for report in whole.goals]


def test_a_maximum_load_above_the_generators_limit_ends_there_and_is_remarked(tmp_path):
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, max_load=800e3)
    result = find_conditional_throughput(policed(police="1 Mfps"), request, place(tmp_path))
    assert result.goals[0].result.reason == "unsent frames, not lost ones, made the upper bound"
    assert any("above what the generator can send" in remark.text for remark in result.remarks)


def test_a_search_that_runs_out_of_time_is_irregular_with_what_it_knows(tmp_path):
    request = SearchRequest(goals=(NDR, PDR), profile=PROFILE, timeout=6.0)
    result = find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    assert "time" in result.goals[0].result.reason
    assert sum(trial.elapsed_s for trial in result.trials) < 8.0


def test_goals_that_the_rfc_advises_against_have_a_remark(tmp_path):
    with pytest.warns(match="duration sum"):
        goal = SearchGoal(0.0, 0.5, 2.0, 1.0, 0.01, name="odd")
    request = SearchRequest(goals=(goal, NO_LOSS), profile=PROFILE)
    result = find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path))
    assert any("duration sum" in remark.text for remark in result.remarks)
    assert any("different final trial durations" in remark.text for remark in result.remarks)


def test_a_warm_up_is_measured_first_and_does_not_count(tmp_path):
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, warm_up_duration=2.0)
    result = find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path))
    assert (result.trials[0].duration_s, result.trials[0].load_per_interface_fps) == (2.0, 400e3)
    assert result.settings["warm_up_duration_s"] == 2.0
    assert result.goals[0].result.regular
    assert [trial.is_evidence for trial in result.trials] == [False, *[True] * (len(result.trials) - 1)]


def test_the_time_of_a_measurement_begins_before_its_warm_up(tmp_path):
    class Noting(StallingTestbed):
        times: ClassVar = []

        def ready_for(self, profile, *settings):
            self.times.append(datetime.now(timezone.utc))
            return super().ready_for(profile, *settings)

    warm_up = WarmUp(duration=1.0, profile=PROFILE)
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE, warm_up=warm_up)
    result = find_conditional_throughput(Noting(), request, place(tmp_path))
    of_warm_up, of_trials = Noting.times
    assert result.started <= of_warm_up <= of_trials <= result.ended


def test_without_a_warm_up_every_trial_counts(tmp_path):
    result = find_conditional_throughput(
        policed(police="50 kfps"), SearchRequest(goals=(NO_LOSS,), profile=PROFILE), place(tmp_path)
    )
    assert {trial.is_evidence for trial in result.trials} == {True}


def test_the_limit_of_the_links_is_in_the_result_where_the_topology_says_their_speed(tmp_path):
    file = tmp_path / "fast.yaml"
    file.write_text(SIMULATED.read_text().replace("{link: link1}", "{link: link1, speed: 1 Gbps}"))
    search = find_conditional_throughput(
        open_testbed(file), SearchRequest(goals=(NO_LOSS,), profile=PROFILE), place(tmp_path)
    )
    mrr = measure_mrr(open_testbed(file), MrrRequest(profile=PROFILE, trials=1), place(tmp_path, "mrr"))
    for result in (search, mrr):
        assert result.max_load.theoretical_maximum.per_interface_fps == pytest.approx(1e9 / (84 * 8))
    unknown = measure_mrr(open_testbed(SIMULATED), MrrRequest(profile=PROFILE, trials=1), place(tmp_path, "unknown"))
    assert unknown.max_load.theoretical_maximum is None


def test_mrr_is_what_the_policer_passes(tmp_path):
    result = measure_mrr(policed(police="50 kfps", burst="1000"), MrrRequest(profile=PROFILE), place(tmp_path))
    assert len(result.mrr.values) == 10
    assert result.mrr.mean.per_interface_fps == pytest.approx(51e3, abs=1)
    assert result.mrr.stdev.per_interface_fps == pytest.approx(0, abs=1)
    assert result.max_load.rate.per_interface_fps == 400e3
    assert read_result(tmp_path / "results" / "a_suite.a_test.json") == result


def test_progress_of_mrr_counts_down(tmp_path):
    progresses = []
    result = measure_mrr(
        policed(police="50 kfps"), MrrRequest(profile=PROFILE, trials=4), place(tmp_path), progresses.append
    )
    assert [progress.number for progress in progresses] == [1, 2, 3, 4]
    assert [progress.trial.output.directions for progress in progresses] == [
        trial.as_result().output.directions for trial in result.trials
    ]
    elapsed = [trial.elapsed_s for trial in result.trials]
    assert [progress.time_left.seconds for progress in progresses] == pytest.approx(
        [sum(elapsed[number:]) for number in range(1, 5)]
    )


def test_unsent_frames_are_no_loss_to_mrr(tmp_path):
    request = MrrRequest(profile=PROFILE, max_load=800e3, trials=3)
    result = measure_mrr(policed(police="1 Mfps"), request, place(tmp_path))
    assert result.mrr.unsent_frames == pytest.approx(3 * 2 * 400_000, rel=1e-3)
    assert result.mrr.lost_frames == 0
    assert result.mrr.mean.per_interface_fps == pytest.approx(400e3)


def test_mrr_without_trials_is_an_error(tmp_path):
    with pytest.raises(SearchError, match="trials must be at least 1, not 0"):
        measure_mrr(policed(police="50 kfps"), MrrRequest(profile=PROFILE, trials=0), place(tmp_path))


@pytest.mark.parametrize(
    "measure",
    [
        lambda: measure_mrr(policed(police="50 kfps"), MrrRequest(profile=PROFILE, ramp=-0.01), place(Path("nowhere"))),
        lambda: find_conditional_throughput(policed(police="50 kfps"), REQUEST.but(ramp=-0.01), place(Path("nowhere"))),
    ],
)
def test_a_ramp_of_less_than_nothing_is_refused_even_if_a_trial_would_outlast_it(measure):
    with pytest.raises(SearchError, match="ramp"):
        measure()


def test_two_goals_of_one_name_are_refused_as_their_results_could_be_mixed_up(tmp_path):
    quick, patient = (SearchGoal(0.001, 0.5, 1.0, duration_sum, 0.01) for duration_sum in (1.0, 60.0))
    with pytest.raises(SearchError, match=r"different search goals are called 'loss 0\.1 %'"):
        find_conditional_throughput(
            policed(police="50 kfps"), SearchRequest(goals=(quick, patient), profile=PROFILE), place(tmp_path)
        )


@pytest.mark.parametrize(
    ("dut", "options", "message"),
    [
        ("linux_brigde", {}, "no kind of DUT 'linux_brigde'.*linux_bridge"),
        ("linux_bridge", {"polise": "50 kfps"}, "no option 'polise'.*police"),
        ("linux_bridge", {"police": "fast"}, "police: 'fast' is not a frame rate"),
        (None, {"police": "50 kfps"}, "police belong to a kind of DUT"),
    ],
)
def test_a_wrong_kind_or_option_is_an_error_before_anything_is_touched(dut, options, message):
    with pytest.raises(DutError, match=message):
        open_testbed(SIMULATED, dut=dut, options=options)


def test_a_wrong_model_is_an_error_that_names_the_file(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text(SIMULATED.read_text().replace("sharp_knee", "sharp_nose"))
    with pytest.raises(TopologyError, match=rf"{file}.*no SUT model 'sharp_nose'"):
        open_testbed(file)
    file.write_text("\n".join(line for line in SIMULATED.read_text().splitlines() if "sut:" not in line))
    with pytest.raises(TopologyError, match=rf"{file}: no DUT has a 'sut', the model to simulate"):
        open_testbed(file)


@pytest.mark.whole
def test_progress_of_a_search_counts_no_trial_again(tmp_path, monkeypatch):
    counted = []
    add = Tally.add
    monkeypatch.setattr(Tally, "add", lambda *trial: counted.append(trial) or add(*trial))

    def tallies(name, on_progress):
        counted.clear()
        find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path, name), on_progress)
        return len(counted)

    progress = []
    # Reports count the trials once more, after the search; that is the same with and without progress.
    assert tallies("with progress", progress.append) == tallies("without", None)
    assert len(progress) > 10


EARLY = REQUEST.but(early_verdict=True)


@pytest.mark.whole
def test_early_verdicts_are_in_the_trials_the_conditions_and_the_settings(tmp_path):
    progress_reports = []
    result = find_conditional_throughput(policed(police="50 kfps"), EARLY, place(tmp_path), progress_reports.append)
    plain = find_conditional_throughput(policed(police="50 kfps"), REQUEST, place(tmp_path, "plain"))
    assert [report.result for report in result.goals] == [report.result for report in plain.goals]
    assert read_result(tmp_path / "results" / "a_suite.a_test.json") == result
    assert result.settings["early_verdict"] is True
    deviation = result.conditions.timing.deviations[-1]
    assert deviation.instead.startswith("with early verdicts: a trial ends as soon as")
    ended = [trial for trial in result.trials if trial.decided_after_s is not None]
    assert ended
    assert all(trial.loss_ratio > PDR.loss_ratio for trial in ended)
    assert all(trial.effective_duration_s == trial.duration_s > trial.elapsed_s for trial in ended)
    assert f"loss at least {ended[0].loss_ratio * 100:.4g} %" in progress_reports[ended[0].number - 1].line()
    assert not plain.settings["early_verdict"]
    assert plain.conditions.timing.deviations == result.conditions.timing.deviations[:-1]


COIN = """
format: lossratio-topology/1
name: coin
testbed: simulated
nodes:
  TG:
    type: TG
    generator: {kind: simulated}
    interfaces: {p0: {link: l0}, p1: {link: l1}}
  DUT1:
    type: DUT
    sut: {model: recorded, file: coin.jsonl}
    interfaces: {p0: {link: l0}, p1: {link: l1}}
"""


@pytest.mark.whole
def test_a_search_that_ends_at_a_coin_has_the_zone_and_no_error(tmp_path):
    chance = random.Random(4)
    loads = [load for load in range(100_000, 400_000, 5_000) for _ in range(40)]
    lossy = [load > 260_000 or (load >= 220_000 and chance.random() < 0.5) for load in loads]
    lines = [{"load": load, "frames": load, "lost": load // 20 * lost} for load, lost in zip(loads, lossy, strict=True)]
    (tmp_path / "coin.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "coin.yaml").write_text(COIN.replace("coin.jsonl", str(tmp_path / "coin.jsonl")))
    device = open_testbed(tmp_path / "coin.yaml")
    request = REQUEST.but(goals=(PDR,), end_at_coin=True, max_load=190_000.0)
    result = find_conditional_throughput(device, request, place(tmp_path))
    assert result.settings["end_at_coin"] is True
    (report,) = result.goals
    assert report.is_left_to_a_coin
    least, most = (end.aggregate_fps for end in report.result.zone.ends)
    assert 215_000 <= least < most <= 265_000
    require_lower_bounds(result)
    assert (
        "end_at_coin"
        not in find_conditional_throughput(device, request.but(end_at_coin=False), place(tmp_path, "whole")).settings
    )

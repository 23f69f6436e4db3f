from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from measurement_examples import NO_LOSS, PROFILE, SIMULATED, StallingTestbed, place, policed

from lossratio.errors import SearchError, TrafficError
from lossratio.measurements.soak.measure import Soak, SoakPreset, SoakRequest, find_critical_load, warm_start_from
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.plrsearch import LikelihoodName, LimitReached
from lossratio.results.conditions import LoadOrigin
from lossratio.results.contradictions import contradictions_of
from lossratio.results.findings import message
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.testbed import LoadRange
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials.journal_reading import read_journal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

ONE_WAY = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
USUAL = SoakRequest(profile=ONE_WAY, timeout=60.0, target_loss_ratio=1e-5)


class Stop(BaseException):
    """What interrupts a search, as Ctrl-C does."""


@pytest.fixture(scope="module")
def soak(tmp_path_factory):
    """A soak test of the simulated device of 150 kfps, its place and the progress after each trial."""
    where, progresses = place(tmp_path_factory.mktemp("soak")), []
    return find_critical_load(open_testbed(SIMULATED), USUAL, where, progresses.append), where, progresses


def test_a_sharp_knee_is_verified_within_a_hundredth_below_it(soak):
    result, _, _ = soak
    found = result.critical_load
    assert result.outcome is Outcome.MEASURED
    assert "regular, verified also in trials of 5 s" in message(result)
    assert 148.5e3 <= found.verified.per_interface_fps <= 150e3 < found.contradicted.per_interface_fps
    assert found.stated == found.verified
    assert found.ended_by == "timeout"


def test_the_result_file_is_read_as_it_was_written(soak):
    result, where, _ = soak
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    assert not list(contradictions_of(result))


def test_progress_has_a_bracket_and_a_time_left_that_shrinks(soak):
    result, _, progresses = soak
    assert [progress.number for progress in progresses] == list(range(1, len(result.trials) + 1))
    assert all(earlier.time_left > later.time_left for earlier, later in pairwise(progresses))
    low, high = progresses[-1].between
    assert low <= 150e3 < high < 1.02 * low


@pytest.mark.parametrize(
    ("between", "said"),
    [
        ((None, 2e3), "critical load not known yet"),
        ((1992.0, None), "perhaps 1,992 or more fps  "),
        ((1992.0, 2016.0), "critical load perhaps 1,992 to 2,016 fps  "),
    ],
)
def test_a_live_line_has_the_bracket(between, said):
    controller = SimpleNamespace(passed_and_failed=between, elapsed=16.0, trials=9)
    trial = TrialResult(TrialInput(2.0, 2000.0), TrialOutput(0.0, sent_frames=4000, lost_frames=0))
    assert said in Soak().progress(USUAL, controller, trial).line()


@pytest.mark.whole
def test_plrsearchs_estimate_has_curves_and_an_interval(tmp_path):
    where = place(tmp_path)
    result = find_critical_load(open_testbed(SIMULATED), USUAL.but(likelihood=LikelihoodName.POISSON), where)
    found = result.critical_load.plrsearch
    assert found.least_95.per_interface_fps <= found.median.per_interface_fps <= found.most_95.per_interface_fps
    assert found.median.per_interface_fps == pytest.approx(150e3, rel=5e-3)
    for function in found.functions:
        assert len(function.curve) > 20
        losses = [point.loss_ratio for point in function.curve]
        assert losses == sorted(losses)
    assert read_result(where.directory.result_path(where.test.full_name)) == result


@pytest.mark.whole
def test_an_interrupted_soak_goes_on_and_ends_as_if_nothing_had_been(soak, tmp_path):
    whole, _, _ = soak

    def interrupt(progress):
        if progress.number == 7:
            raise Stop("enough")

    with pytest.raises(Stop):
        find_critical_load(open_testbed(SIMULATED), USUAL, place(tmp_path), interrupt)
    failed = read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name))
    assert (failed.outcome, failed.critical_load, len(failed.trials)) == (Outcome.FAILED, None, 7)
    resumed = find_critical_load(open_testbed(SIMULATED), USUAL, place(tmp_path, resume=tmp_path))
    assert resumed.trials[:7] == failed.trials
    assert sum(trial.elapsed_s for trial in resumed.trials) <= 60.0 + resumed.trials[-1].elapsed_s
    assert resumed.critical_load.stated.per_interface_fps == pytest.approx(
        whole.critical_load.stated.per_interface_fps, rel=0.01
    )


@pytest.mark.whole
@pytest.mark.parametrize("makes_up_for_them", [False, True])
def test_a_stalled_trial_is_set_aside_and_kept_and_the_soak_goes_on(soak, tmp_path, makes_up_for_them):
    healthy, _, _ = soak
    where, progresses = place(tmp_path), []
    testbed = StallingTestbed(1, 5, 9, makes_up_for_them=makes_up_for_them)
    result = find_critical_load(testbed, USUAL, where, progresses.append)
    assert [trial.number for trial in result.trials if not trial.is_evidence] == [1, 5, 9]
    assert [progress.number for progress in progresses if progress.set_aside] == [1, 5, 9]
    assert all("the generator" in trial.set_aside for trial in result.trials if not trial.is_evidence)
    # Another trial takes its place.
    assert result.trials[1].load_per_interface_fps == result.trials[0].load_per_interface_fps
    assert result.outcome is Outcome.MEASURED
    assert result.critical_load.stated.per_interface_fps == pytest.approx(
        healthy.critical_load.stated.per_interface_fps, rel=0.01
    )
    assert len(read_journal(where.directory.journal_path(where.test.full_name)).entries) == len(result.trials)
    assert "Set aside because they say nothing about the SUT: 3 trials" in message(result)
    assert read_result(where.directory.result_path(where.test.full_name)) == result


@pytest.mark.whole
def test_a_soak_ends_when_stalls_are_the_rule_and_can_be_resumed_on_a_quiet_machine(soak, tmp_path):
    healthy, _, _ = soak
    testbed = StallingTestbed(*range(2, 20))
    with pytest.raises(
        TrafficError, match=r"3 of the last 4 trials.*could not send [\d,]+ of [\d,]+ frames, more than 1 %"
    ):
        find_critical_load(testbed, USUAL, place(tmp_path))
    assert testbed.measured == 4
    resumed = find_critical_load(open_testbed(SIMULATED), USUAL, place(tmp_path, resume=tmp_path))
    assert [trial.number for trial in resumed.trials if not trial.is_evidence] == [2, 3, 4]
    assert resumed.critical_load.stated.per_interface_fps == pytest.approx(
        healthy.critical_load.stated.per_interface_fps, rel=0.01
    )


@pytest.mark.whole
def test_a_generator_that_is_too_slow_for_the_first_loads_ends_a_soak_soon(tmp_path):
    testbed = StallingTestbed(*range(1, 20))
    with pytest.raises(TrafficError, match=r"4 of the last 4 trials.*lower the load"):
        find_critical_load(testbed, USUAL, place(tmp_path))


def trial_with_stall(stall):
    counters = DirectionCounters("a>b", 2000, 2000, 2000, lateness_s=stall)
    output = TrialOutput(0.0, sent_frames=2000, lost_frames=0, directions=(counters,))
    return TrialResult(TrialInput(2.0, 1000.0), output)


def test_stalls_in_most_trials_cost_time_and_do_not_end_a_soak():
    check = Soak().watch(USUAL, LoadRange(100.0, 1e6, LoadOrigin.GENERATOR))
    for stall in [0.003, 0.004, 0.0, 0.003, 0.0024, 0.0] * 20:
        check(trial_with_stall(stall))


def test_stalls_in_twenty_trials_in_a_row_end_a_soak_and_the_error_says_what_to_do():
    check = Soak().watch(USUAL, LoadRange(100.0, 1e6, LoadOrigin.GENERATOR))
    for _ in range(19):
        check(trial_with_stall(0.003))
    with pytest.raises(TrafficError, match=r"The last 20 trials .*stalled for 3 ms.*real-time priority.*max_load"):
        check(trial_with_stall(0.003))


@pytest.mark.whole
def test_a_precision_ends_it_early(tmp_path):
    request = USUAL.but(timeout=1500.0, precision=0.005)
    result = find_critical_load(open_testbed(SIMULATED), request, place(tmp_path))
    found = result.critical_load
    assert found.ended_by == "precision"
    assert found.contradicted.per_interface_fps <= 1.005 * found.verified.per_interface_fps
    assert sum(trial.elapsed_s for trial in result.trials) < 120.0


@pytest.mark.parametrize(
    ("loads", "limit"), [({"max_load": 100e3}, LimitReached.AT_LEAST), ({"min_load": 180e3}, LimitReached.AT_MOST)]
)
def test_a_critical_load_outside_of_the_limits_is_irregular_and_says_on_which_side(tmp_path, loads, limit):
    request = SoakRequest(profile=ONE_WAY, timeout=20.0, **loads)
    result = find_critical_load(open_testbed(SIMULATED), request, place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    assert result.critical_load.limit is limit


@pytest.mark.whole
def test_a_bucket_is_in_the_result_with_its_size_and_the_rate_in_the_long_run(tmp_path):
    request = SoakRequest(profile=ONE_WAY, timeout=120.0, target_loss_ratio=1e-4)
    where = place(tmp_path)
    result = find_critical_load(policed(police="50 kfps", burst="1000"), request, where)
    bucket = result.critical_load.bucket
    assert bucket.frames_per_interface == pytest.approx(1000.0, rel=0.05)
    assert bucket.long_run.per_interface_fps == pytest.approx(50e3, rel=0.01)
    assert 49e3 <= result.critical_load.stated.per_interface_fps <= 50.01e3
    assert read_result(where.directory.result_path(where.test.full_name)) == result


def test_a_warm_start_begins_at_the_bounds_of_the_search_before(tmp_path):
    testbed = open_testbed(SIMULATED)
    search = find_conditional_throughput(
        testbed, SearchRequest(goals=(NO_LOSS,), profile=PROFILE), place(tmp_path, "search")
    )
    loads = warm_start_from(search, PROFILE)
    request = SoakRequest(profile=PROFILE, timeout=20.0, warm_start=loads)
    result = find_critical_load(testbed, request, place(tmp_path, "soak"))
    assert {trial.load_per_interface_fps for trial in result.trials[: len(loads)]} == set(loads)
    journal = read_journal(place(tmp_path, "soak").directory.journal_path("a suite.soak"))
    assert journal.search["settings"]["warm_start_per_interface_fps"] == list(loads)


def test_a_warm_start_needs_a_search_with_the_same_traffic(soak, tmp_path):
    search = find_conditional_throughput(
        open_testbed(SIMULATED), SearchRequest(goals=(NO_LOSS,), profile=PROFILE), place(tmp_path, "search")
    )
    with pytest.raises(SearchError, match=r"other traffic \(ethip4-udp, 64 bytes\)"):
        warm_start_from(search, load_profile("ethip4-udp", frame_size=1518))
    with pytest.raises(SearchError, match="was not a search for throughput"):
        warm_start_from(soak[0], PROFILE)


@pytest.mark.whole
def test_the_preset_csit_measures_as_csit_does_and_shows_its_estimate(tmp_path):
    request = SoakRequest(profile=ONE_WAY, timeout=6.0).preset(SoakPreset.CSIT)
    result = find_critical_load(open_testbed(SIMULATED), request, place(tmp_path))
    assert [trial.duration_s for trial in result.trials] == pytest.approx([5.1, 5.2])
    assert result.settings["selection"] == "csit"
    csit = result.critical_load.csit
    assert (csit.trials, csit.samples) == (1, 1000)
    assert "as CSIT computes it" in message(result)


@pytest.mark.parametrize("settings", [{"precision": 0.1}, {"likelihood": LikelihoodName.POISSON}])
def test_a_preset_refuses_other_settings_of_what_it_chooses(settings):
    with pytest.raises(SearchError, match=f"preset=csit sets {next(iter(settings))} itself"):
        SoakRequest(profile=ONE_WAY, **settings).preset(SoakPreset.CSIT)


def test_rarest_decides_how_long_a_search_takes(tmp_path):
    assert SoakRequest(profile=PROFILE, rarest=300.0).seconds == 2250.0
    assert SoakRequest(profile=PROFILE, timeout=40.0).seconds == 40.0
    with pytest.raises(SearchError, match="rarest=30 s decides how long the search takes: leave out timeout"):
        find_critical_load(open_testbed(SIMULATED), USUAL.but(rarest=30.0), place(tmp_path))

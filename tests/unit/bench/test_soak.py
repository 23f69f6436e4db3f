from __future__ import annotations

from itertools import pairwise

import pytest
from bench_examples import NO_LOSS, PROFILE, SIMULATED, place, policed

from lossratio.bench.opening import open_testbed
from lossratio.bench.search import SearchRequest, find_conditional_throughput
from lossratio.bench.soak import SoakRequest, find_critical_load, warm_start_from
from lossratio.errors import SearchError
from lossratio.journal import read_journal
from lossratio.plrsearch import SelectionName
from lossratio.report.model import Outcome
from lossratio.report.run_directory import read_result
from lossratio.report.soak import SoakLimit
from lossratio.traffic import load_profile

ONE_WAY = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
QUICK = SoakRequest(ONE_WAY, timeout=45.0)


class Stop(BaseException):
    """What interrupts a search, as Ctrl-C does."""


@pytest.fixture(scope="module")
def soak(tmp_path_factory):
    """A soak test of the simulated device of 150 kfps, its place and all that was told on the way."""
    where, told = place(tmp_path_factory.mktemp("soak")), []
    return find_critical_load(open_testbed(SIMULATED), QUICK, where, told.append), where, told


def test_a_sharp_knee_is_found_to_a_thousandth(soak):
    result, _, _ = soak
    found = result.critical_load
    assert result.outcome is Outcome.MEASURED
    assert found.mean.per_interface_fps == pytest.approx(150e3, rel=1e-3)
    assert found.least_95.per_interface_fps < found.mean.per_interface_fps < found.most_95.per_interface_fps
    assert found.ended_by == "timeout"


def test_the_result_file_has_curves_distributions_and_the_interval_over_time(soak):
    result, where, _ = soak
    assert read_result(where.directory.result_path(where.test.full_name)) == result
    for function in result.critical_load.functions:
        assert len(function.curve) > 20
        loads = [point.load_per_interface_fps for point in function.curve]
        losses = [point.loss_ratio for point in function.curve]
        assert loads == sorted(loads)
        assert losses == sorted(losses)
    area = sum(
        (right.load_per_interface_fps - left.load_per_interface_fps)
        * 0.5
        * (left.density_per_fps + right.density_per_fps)
        for left, right in pairwise(result.critical_load.posterior)
    )
    assert area == pytest.approx(0.99, abs=0.015)
    assert [point.trials for point in result.critical_load.history] == sorted(
        {point.trials for point in result.critical_load.history}
    )


def test_progress_has_an_estimate_that_narrows_and_a_time_left_that_shrinks(soak):
    result, _, told = soak
    assert [each.number for each in told] == list(range(1, len(result.trials) + 1))
    assert all(earlier.time_left > later.time_left for earlier, later in pairwise(told))
    widths = [each.latest.high - each.latest.low for each in told if each.latest is not None]
    assert widths[-1] < widths[0] / 10


def test_an_interrupted_soak_goes_on_and_ends_as_if_nothing_had_been(soak, tmp_path):
    whole, _, _ = soak

    def interrupt(progress):
        if progress.number == 7:
            raise Stop("enough")

    with pytest.raises(Stop):
        find_critical_load(open_testbed(SIMULATED), QUICK, place(tmp_path), interrupt)
    failed = read_result(place(tmp_path).directory.result_path(place(tmp_path).test.full_name))
    assert (failed.outcome, failed.critical_load, len(failed.trials)) == (Outcome.FAILED, None, 7)
    resumed = find_critical_load(open_testbed(SIMULATED), QUICK, place(tmp_path, resume=tmp_path))
    assert resumed.trials[:7] == failed.trials
    assert sum(trial.elapsed_s for trial in resumed.trials) <= 45.0 + resumed.trials[-1].elapsed_s
    assert resumed.critical_load.mean.per_interface_fps == pytest.approx(
        whole.critical_load.mean.per_interface_fps, rel=1e-3
    )


def test_a_precision_ends_it_early(tmp_path):
    result = find_critical_load(
        open_testbed(SIMULATED), SoakRequest(ONE_WAY, timeout=600.0, precision=0.005), place(tmp_path)
    )
    found = result.critical_load
    assert found.ended_by == "precision"
    width = found.most_95.per_interface_fps - found.least_95.per_interface_fps
    assert width <= 0.005 * found.mean.per_interface_fps
    assert sum(trial.elapsed_s for trial in result.trials) < 600.0


@pytest.mark.parametrize(
    ("loads", "limit"),
    [({"max_load": 100e3}, SoakLimit.AT_LEAST), ({"min_load": 180e3}, SoakLimit.AT_MOST)],
)
def test_a_critical_load_outside_of_the_limits_is_irregular_and_says_on_which_side(tmp_path, loads, limit):
    result = find_critical_load(open_testbed(SIMULATED), SoakRequest(ONE_WAY, timeout=20.0, **loads), place(tmp_path))
    assert result.outcome is Outcome.IRREGULAR
    assert result.critical_load.limit is limit


def test_a_policers_truth_is_in_the_interval_or_the_model_does_not_fit(tmp_path):
    request = SoakRequest(ONE_WAY, timeout=40.0, trial_duration=1.0, trial_growth=0.0)
    result = find_critical_load(policed(police="50 kfps", burst="1000"), request, place(tmp_path))
    found = result.critical_load
    inside = found.least_95.per_interface_fps <= 51e3 <= found.most_95.per_interface_fps
    assert inside or found.misfit
    assert found.mean.per_interface_fps == pytest.approx(51e3, rel=0.03)


def test_a_warm_start_begins_at_the_bounds_of_the_search_before(tmp_path):
    testbed = open_testbed(SIMULATED)
    search = find_conditional_throughput(testbed, SearchRequest((NO_LOSS,), PROFILE), place(tmp_path, "search"))
    loads = warm_start_from(search, PROFILE)
    request = SoakRequest(PROFILE, timeout=20.0, warm_start=loads)
    result = find_critical_load(testbed, request, place(tmp_path, "soak"))
    assert {trial.load_per_interface_fps for trial in result.trials[: len(loads)]} == set(loads)
    journal = read_journal(place(tmp_path, "soak").directory.journal_path("a suite.soak"))
    assert journal.search["settings"]["warm_start_per_interface_fps"] == list(loads)


def test_a_warm_start_needs_a_search_with_the_same_traffic(soak, tmp_path):
    search = find_conditional_throughput(
        open_testbed(SIMULATED), SearchRequest((NO_LOSS,), PROFILE), place(tmp_path, "search")
    )
    with pytest.raises(SearchError, match=r"other traffic \(ethip4-udp, 64 bytes\)"):
        warm_start_from(search, load_profile("ethip4-udp", frame_size=1518))
    with pytest.raises(SearchError, match="was no search for throughput"):
        warm_start_from(soak[0], PROFILE)


def test_the_drafts_selection_and_durations_can_be_asked_for(tmp_path):
    request = SoakRequest(ONE_WAY, timeout=20.0, selection=SelectionName.DRAFT)
    result = find_critical_load(open_testbed(SIMULATED), request, place(tmp_path))
    assert [trial.duration_s for trial in result.trials[:3]] == pytest.approx([5.1, 5.2, 5.3])
